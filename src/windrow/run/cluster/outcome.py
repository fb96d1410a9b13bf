"""What a run on a simulated cluster tells, whichever scheme it was: latency, throughput, states, traffic.

Latency counts from when a row is read in to when its results are there, as in the paper (section 5): the wait of rows
that have not been read in is not in it. The paper's model (equation 5) says when nodes are done with a row, averaged
over them; that is `finished_s` here. Results of one probe come evenly while it runs.

>>> cycles = (Cycle(0, 1.0, 1.5, 4, 1.0, 0.3, 90), Cycle(1, 1.5, 2.5, 1, 0.75, 0.8, 110))
>>> run = ClusterRun(cycles, nodes=2, sent_rows=30, messages=40, busy_s=(1.2, 0.6))
>>> run.latency_s, run.finished_s, run.stored_rows, run.service_hz
(0.35, 0.55, 100.0, 1.3333333333333333)
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from windrow.run.cluster.matching import Members


@dataclass(frozen=True, slots=True)
class Cycle:
    """One row: its position, when it was read in, when it was done, its results, the sum of their latencies, when nodes
    were done with it on average (from its beginning), the rows in all states then, and the hops of its END markers.
    """

    position: int
    begin_s: float
    end_s: float
    results: int
    latencies_s: float
    finished_s: float
    stored: int
    end_hops: int = 0


@dataclass(frozen=True, slots=True)
class ClusterRun:
    """The rows that were processed; what was sent between nodes, in rows (a partial result is as many as it has
    members) and in messages; how long each node was busy; and the results, where they are exact.

    Routing reads `lookups` entries of its table, and where windows are stored more than once, `overlaps` are the rows
    that two nodes asked for one step both hold: results would come twice from them if none was told to keep quiet.
    """

    cycles: tuple[Cycle, ...]
    nodes: int
    sent_rows: int
    messages: int
    busy_s: tuple[float, ...]
    members: tuple[Members, ...] = field(default=(), repr=False)
    lookups: int = 0
    overlaps: int = 0

    @property
    def results(self) -> int:
        """How many results there were."""
        return sum(cycle.results for cycle in self.cycles)

    @property
    def latency_s(self) -> float:
        """The mean latency of a result; of nodes being done where nothing was found."""
        return sum(cycle.latencies_s for cycle in self.cycles) / self.results if self.results else self.finished_s

    @property
    def finished_s(self) -> float:
        """How long after a row was read in a node is done with it, on average."""
        return statistics.fmean(cycle.finished_s for cycle in self.cycles)

    @property
    def stored_rows(self) -> float:
        """The mean of the rows in all states."""
        return statistics.fmean(cycle.stored for cycle in self.cycles)

    @property
    def span_s(self) -> float:
        """From when the first row was read in to when the last was done."""
        return max(cycle.end_s for cycle in self.cycles) - self.cycles[0].begin_s

    @property
    def service_hz(self) -> float:
        """Rows a second."""
        return len(self.cycles) / self.span_s

    @property
    def output_hz(self) -> float:
        """Results a second."""
        return self.results / self.span_s

    @property
    def sent_a_row(self) -> float:
        """Rows sent between nodes for each row that was processed."""
        return self.sent_rows / len(self.cycles)

    def sent_bytes(self, row_bytes: int) -> int:
        """What went over the network, if a row has so many bytes."""
        return self.sent_rows * row_bytes

    def within(self, wanted: Callable[[Cycle], bool]) -> ClusterRun:
        """Only some rows, for their latencies and states; traffic and busy times stay those of the whole run."""
        return replace(self, cycles=tuple(cycle for cycle in self.cycles if wanted(cycle)))
