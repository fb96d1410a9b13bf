"""Section 8.1's streams, predicates and cluster: what the experiments on PSP have in common.

The paper's: three streams of 50 rows a second, Poisson, windows of 10 s, a predicate that compares two images pixel by
pixel (5, 10 or 20 thousand pixels, time in proportion), matches drawn at a given selectivity, 4 to 19 nodes, and the
latency of a result from when its row was read in.

Not in the paper, so ours: the costs. 3 ns a pixel to compare; 0.1 ms to send and receive a row; 1 us to insert or to
purge one; and a hop of 7 ms, with which equation 5 has its minimum at 14 nodes for a selectivity of .5 and images of
middle size, where the paper's Figure 8(a) has it. At these costs one row of the paper's streams takes .4 to 4 s of
work, so that no cluster of 19 nodes keeps up with 150 rows a second: rows are read in as soon as the ring has a place
for them, and their wait for that is not part of the latency, in the paper's definition as well as here.

The paper runs 600 s from empty states. Here states are there from the start, and of all rows only an even sample
probes; the others only enter the states. What a row takes does not depend on how many others were looked at.

>>> from dataclasses import replace
>>> scenario = Scenario()
>>> scenario.load.pairs, scenario.best_length(19)
(25500.0, 6)
>>> replace(scenario, selectivity=0.5).best_length(19)
14
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from windrow.plan.ring.length import shortest_latency
from windrow.plan.ring.model import RingCosts, RingLoad
from windrow.run.cluster.feed import Feed
from windrow.run.cluster.layout import Layout
from windrow.run.cluster.matching import Chance
from windrow.run.cluster.outcome import ClusterRun
from windrow.run.cluster.reslicing import Reslicing
from windrow.run.cluster.ring import RingSetting, simulate_ring
from windrow.streams.arrivals import SECOND_US, Arrivals, Poisson

IMAGES = {"small": 5_000, "middle": 10_000, "large": 20_000}
"""Pixels."""
SELECTIVITIES = (0.05, 0.1, 0.5)
PIXEL_S, ROW_S, SEND_S, HOP_S = 3e-9, 1e-6, 1e-4, 7e-3
FEWEST, MOST = 4, 19
NODES, QUICK_NODES = tuple(range(FEWEST, MOST + 1)), (4, 6, 8, 10, 12, 14, 16, 19)
RUN_S, QUICK_RUN_S, WARM_UP_S = 600.0, 60.0, 20.0
ROWS, QUICK_ROWS = 300, 40


@dataclass(frozen=True, slots=True)
class Scenario:
    """One setting of section 8."""

    streams: int = 3
    rate_hz: float = 50.0
    window_s: float = 10.0
    selectivity: float = 0.1
    image: str = "middle"
    hop_s: float = HOP_S

    @property
    def costs(self) -> RingCosts:
        """The costs of the paper's Table 1."""
        return RingCosts(IMAGES[self.image] * PIXEL_S, ROW_S, ROW_S, SEND_S, self.hop_s)

    @property
    def load(self) -> RingLoad:
        """What a row meets."""
        stored = self.rate_hz * self.window_s
        return RingLoad.alike(streams=self.streams, stored=stored, selectivity=self.selectivity, costs=self.costs)

    @property
    def windows_us(self) -> tuple[int, ...]:
        """The windows of all streams."""
        return (int(self.window_s * SECOND_US),) * self.streams

    @property
    def orders(self) -> tuple[tuple[int, ...], ...]:
        """Each stream probes the others in turn, the next one first."""
        return tuple(
            tuple((driver + step) % self.streams for step in range(1, self.streams)) for driver in range(self.streams)
        )

    @property
    def rounds(self) -> int:
        """How often a row's partial results go round the ring: M - 1 (section 4.1)."""
        return self.streams - 1

    def best_length(self, slots: int, rounds: int | None = None) -> int:
        """The ring with the lowest latency by equation 5, as printed or with so many rounds."""
        return shortest_latency(self.load, slots, rounds)

    def feed(self, duration_s: float, seed: int, arrivals: Arrivals | None = None) -> Feed:
        """The rows of all streams."""
        pattern = Poisson(self.rate_hz) if arrivals is None else arrivals
        return Feed.drawn([pattern] * self.streams, duration_s, seed)

    def chance(self, seed: int) -> Chance:
        """Matches, drawn."""
        return Chance((self.selectivity,) * self.streams, np.random.default_rng(seed))

    def ring(self, nodes: int, concurrent: int = 1) -> RingSetting:
        """Even slices on so many nodes."""
        layout = Layout.even(self.windows_us, nodes)
        return RingSetting(layout, self.orders, self.costs, concurrent, saturated=True)

    def simulate(
        self,
        feed: Feed,
        drivers: Sequence[int],
        setting: RingSetting,
        seed: int,
        reslicing: Reslicing | None = None,
    ) -> ClusterRun:
        """Some rows on a ring."""
        return simulate_ring(feed, setting, self.chance(seed), drivers=drivers, seed=seed, reslicing=reslicing)


SWEPT = (
    "nodes",
    "latency_s",
    "finished_s",
    "predicted_s",
    "predicted_as_printed_s",
    "stored_rows",
    "service_hz",
    "busy",
)
"""The columns of `swept`."""


def swept(scenario: Scenario, nodes: Sequence[int], quick: bool, seed: int) -> list[tuple[float, ...]]:
    """Rings of different length under one load: simulated, and predicted by equation 5."""
    feed = scenario.feed(QUICK_RUN_S if quick else RUN_S, seed)
    drivers = feed.sample(WARM_UP_S, QUICK_RUN_S if quick else RUN_S, QUICK_ROWS if quick else ROWS)
    rows: list[tuple[float, ...]] = []
    for count in nodes:
        run = scenario.simulate(feed, drivers, scenario.ring(count), seed)
        predicted = scenario.load.latency_s(count, scenario.rounds), scenario.load.latency_s(count)
        busy = sum(run.busy_s) / count / run.span_s
        rows.append((count, run.latency_s, run.finished_s, *predicted, run.stored_rows, run.service_hz, busy))
    return rows


def lowest(nodes: Sequence[float], latencies_s: Sequence[float]) -> int:
    """The ring with the lowest latency."""
    return int(min(zip(latencies_s, nodes, strict=True))[1])


def falls_then_rises(latencies_s: Sequence[float]) -> bool:
    """Whether the lowest value lies inside, and both ends are above it by more than a percent.

    >>> falls_then_rises((3.0, 1.0, 2.0)), falls_then_rises((3.0, 2.0, 1.0)), falls_then_rises((1.005, 1.0, 2.0))
    (True, False, False)
    """
    return min(latencies_s[0], latencies_s[-1]) > 1.01 * min(latencies_s)


def milliseconds(seconds: float) -> str:
    """Seconds, as people read them.

    >>> milliseconds(0.0123), milliseconds(1.5)
    ('12.3 ms', '1500 ms')
    """
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds * 1e3:.0f} ms"
