"""A length for each stream: over how many nodes its window is sliced at the start (PSP, section 5.4).

The best lengths depend on each other, and trying all of them takes time exponential in the number of streams. So they
are found one after the other, in ascending order of stored rows times selectivity: a stream's length is the best one
while streams that have none yet get the same, and the streams with the most weight come last, when most is known.

    order    by lambda_i · W_i · (mean selectivity)      20 · 10 · .1  <  100 · 5 · .05  <  50 · 10 · .1
    length   of the 1st: all alike, of the 2nd: 1st known, 3rd like the 2nd …

>>> streams = (SlicedStream(50, 10, 0.1), SlicedStream(20, 10, 0.1), SlicedStream(100, 5, 0.05))
>>> slicing_order(streams)
(1, 2, 0)
>>> initial_lengths(streams, RingCosts(1e-4, send_s=1e-4, hop_s=5e-3), slots=20)
(9, 8, 9)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from windrow.errors import PlanError
from windrow.plan.ring.length import ring_length
from windrow.plan.ring.model import RingCosts, RingLoad


@dataclass(frozen=True, slots=True)
class SlicedStream:
    """A stream as slicing sees it: lambda, W, and the mean selectivity of probing it."""

    rate_hz: float
    window_s: float
    selectivity: float

    @property
    def stored(self) -> float:
        """Rows in the window."""
        return self.rate_hz * self.window_s

    @property
    def weight(self) -> float:
        """lambda · W · S: the partial results that a probe makes of one."""
        return self.stored * self.selectivity


def slicing_order(streams: Sequence[SlicedStream]) -> tuple[int, ...]:
    """The streams by ascending weight, ties by their place."""
    return tuple(sorted(range(len(streams)), key=lambda each: streams[each].weight))


def join_order(streams: Sequence[SlicedStream], driver: int) -> tuple[int, ...]:
    """The order in which a driver probes the others: fewest partial results first."""
    return tuple(each for each in slicing_order(streams) if each != driver)


def load_of(streams: Sequence[SlicedStream], driver: int, costs: RingCosts) -> RingLoad:
    """What a row of `driver` meets."""
    probed = [streams[each] for each in join_order(streams, driver)]
    return RingLoad(tuple(each.stored for each in probed), tuple(each.selectivity for each in probed), costs)


def mean_latency_s(streams: Sequence[SlicedStream], lengths: Sequence[int], costs: RingCosts) -> float:
    """Equation 5 over the rows of all streams, by their rates, each window lying on `lengths` nodes of its own."""
    total_hz = sum(stream.rate_hz for stream in streams)
    if not total_hz > 0:
        raise PlanError("no stream has a rate", hint="give at least one rate above zero")
    spent = 0.0
    for driver, stream in enumerate(streams):
        over = [lengths[each] for each in join_order(streams, driver)]
        spent += stream.rate_hz * load_of(streams, driver, costs).latency_over_s(over)
    return spent / total_hz


def common_length(streams: Sequence[SlicedStream], costs: RingCosts, slots: int) -> int:
    """The one length for all windows that has the lowest mean latency.

    >>> common_length((SlicedStream(50, 10, 0.1),) * 3, RingCosts(1e-4, send_s=1e-4, hop_s=5e-3), slots=20)
    13
    """
    return min(range(1, slots + 1), key=lambda nodes: mean_latency_s(streams, (nodes,) * len(streams), costs))


def initial_lengths(
    streams: Sequence[SlicedStream], costs: RingCosts, slots: int, favour: str = "latency"
) -> tuple[int, ...]:
    """Over how many nodes each stream's window is sliced."""
    if len(streams) < 2:
        raise PlanError(f"a join of {len(streams)} streams", hint="give two or more")
    longest = ring_length(load_of(streams, 0, costs), slots, favour)  # checks slots and favour
    if favour == "output":
        return (longest,) * len(streams)
    known: dict[int, int] = {}
    for place in slicing_order(streams):
        alike = {nodes: [known.get(each, nodes) for each in range(len(streams))] for nodes in range(1, slots + 1)}
        known[place] = min(alike, key=lambda nodes: mean_latency_s(streams, alike[nodes], costs))
    return tuple(known[place] for place in range(len(streams)))
