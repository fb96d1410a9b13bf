"""What one new row costs on a ring of nodes, and how soon its results are there (PSP, sections 5.1 to 5.3).

    step            1             2                     …   M-1
    probed stream   S_2           S_3                       S_M            in the row's join order
    partials        1             r_2 = stored_2 · S        …              each passes all nodes once
    compared        stored_2      r_2 · stored_3            …

    alone    L_C    = T_i + T_p + T_j · (all compared pairs)
    ring     L_PSP  = L_C + T_s · N · (all partials)

In the paper: `stored` is lambda_k · W_k of the probed streams, `selectivities` S of each step; of `RingCosts`,
`compare_s` is T_j, `insert_s` T_i, `purge_s` T_p, `send_s` T_s, `hop_s` T_n; `nodes` is N, `streams` M.

Where the paper is misprinted, this follows what its other equations need: equation 1 counts the pairs that are
compared, over streams 2 … M (only then equation 2 is an equality), and N nodes serve N / L_PSP rows a second
(equation 3, as equation 4 uses it). Equation 5 charges M rounds of the ring; a cycle takes M - 1 (section 4.1), so the
number of rounds is an argument.

>>> load = RingLoad.alike(streams=3, stored=500, selectivity=0.1, costs=RingCosts(1e-4, send_s=1e-4, hop_s=5e-3))
>>> round(load.alone_s, 6), load.pairs, round(load.latency_s(10), 6)
(2.55, 25500.0, 0.2826)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from windrow.errors import PlanError


@dataclass(frozen=True, slots=True)
class RingCosts:
    """Seconds of elementary work: to compare a pair, to insert and to purge a stored row, to send and receive a row or
    a partial result, and of one hop over the network.
    """

    compare_s: float
    insert_s: float = 0.0
    purge_s: float = 0.0
    send_s: float = 0.0
    hop_s: float = 0.0

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise PlanError(f"{name} is {value!r}", hint="give finite seconds, zero or more")


@dataclass(frozen=True, slots=True)
class RingLoad:
    """What a new row meets: the stored rows and the selectivity of each step it takes, and what work costs."""

    stored: tuple[float, ...]
    selectivities: tuple[float, ...]
    costs: RingCosts

    def __post_init__(self) -> None:
        if not self.stored or len(self.stored) != len(self.selectivities):
            message = f"{len(self.stored)} probed windows and {len(self.selectivities)} selectivities"
            raise PlanError(message, hint="give one of each a step, one step or more")
        if min(*self.stored, *self.selectivities, 0.0) < 0:
            raise PlanError(f"rows {self.stored}, selectivities {self.selectivities}", hint="give none below zero")

    @classmethod
    def alike(cls, *, streams: int, stored: float, selectivity: float, costs: RingCosts) -> RingLoad:
        """Streams that do not differ: the paper's lambda_i = lambda_j, W_i = W_j, S_i = S_j."""
        return cls((stored,) * (streams - 1), (selectivity,) * (streams - 1), costs)

    @property
    def streams(self) -> int:
        """M."""
        return len(self.stored) + 1

    @property
    def partials(self) -> tuple[float, ...]:
        """How many rows or partial results take each step, and last, how many results there are."""
        counts = [1.0]
        for rows, selectivity in zip(self.stored, self.selectivities, strict=True):
            counts.append(counts[-1] * rows * selectivity)
        return tuple(counts)

    @property
    def results(self) -> float:
        """Results of one row."""
        return self.partials[-1]

    @property
    def travelling(self) -> float:
        """Rows and partial results that have to pass all nodes: 1 + sum over k of the products of section 5.1."""
        return sum(self.partials[:-1])

    @property
    def pairs(self) -> float:
        """Pairs that are compared."""
        return sum(probing * rows for probing, rows in zip(self.partials, self.stored, strict=False))

    @property
    def alone_s(self) -> float:
        """L_C: the work of one row on a single machine (equation 1)."""
        return self.costs.insert_s + self.costs.purge_s + self.costs.compare_s * self.pairs

    def ring_s(self, nodes: int) -> float:
        """L_PSP: the work of one row on all nodes together."""
        return self.alone_s + self.costs.send_s * _checked(nodes) * self.travelling

    def service_hz(self, nodes: int) -> float:
        """mu: rows a second that nodes without idle time get done (equation 3)."""
        return nodes / self.ring_s(nodes)

    def output_hz(self, nodes: int) -> float:
        """O_PSP: results a second of nodes without idle time (equation 4)."""
        return self.results * self.service_hz(nodes)

    def latency_s(self, nodes: int, rounds: int | None = None) -> float:
        """tau: from a row to its results, work being balanced (equation 5); `rounds` of the ring, M as printed."""
        return self.latency_over_s([nodes] * len(self.stored), rounds)

    def latency_over_s(self, lengths: Sequence[int], rounds: int | None = None) -> float:
        """Equation 5 where each step's window lies on a number of nodes of its own."""
        mean = sum(map(_checked, lengths)) / len(self.stored)
        work_s = (self.costs.insert_s + self.costs.purge_s) / mean
        for nodes, probing, rows in zip(lengths, self.partials, self.stored, strict=False):
            work_s += probing * (self.costs.compare_s * rows / nodes + self.costs.send_s)
        network_s = (self.streams if rounds is None else rounds) * mean * self.costs.hop_s
        return (mean - 1) / 2 * self.costs.hop_s + max(work_s, network_s)

    def bandwidth_bytes_s(self, nodes: int, row_bytes: float) -> float:
        """Band: what a link has to carry so that a row is there before the one ahead of it is joined (equation 6)."""
        shortest_s = self.costs.compare_s * min(self.stored) / _checked(nodes)
        return row_bytes / shortest_s if shortest_s > 0 else math.inf

    def extra_traffic(self, nodes: int) -> float:
        """Hops of partial results per final result: N / (S · W) for large S · W (section 4.3).

        >>> RingLoad.alike(streams=3, stored=500, selectivity=0.1, costs=RingCosts(1e-4)).extra_traffic(10)
        0.2
        """
        return nodes * self.partials[-2] / self.results if self.results > 0 else math.inf


def most_hops(streams: int, nodes: int) -> int:
    """Hops until a row is done: (M - 1) · N, one round of the ring for each END (section 4.1).

    >>> most_hops(streams=4, nodes=5)
    15
    """
    return (streams - 1) * nodes


def sub_joins(streams: int, nodes: int) -> int:
    """Combinations of slices that one row's results may come from: N ** (M - 1) (section 3).

    >>> sub_joins(streams=4, nodes=3)
    27
    """
    return int(nodes ** (streams - 1))


def tree_nodes(streams: int) -> int:
    """The most machines a tree of binary joins can use; a ring has no such limit (section 1).

    >>> tree_nodes(4)
    3
    """
    return streams - 1


def _checked(nodes: int) -> int:
    if nodes < 1:
        raise PlanError(f"a ring of {nodes} nodes", hint="give one node or more")
    return nodes
