"""A ring that follows the load: every so often its length is chosen anew, and its slices with it (PSP, section 6).

    held rows ─▶ rates ─▶ length with the lowest latency (plan/ring/lengths)
                      └─▶ slices of equal count, or of equal length               ─▶ Change

`at_once`: slices are bounded by count and rows move to new nodes at once. Else the adjustment is passive: slices get
other ends, new nodes stand behind the tail, and rows follow as they age; nodes that are too many get empty slices and
stay. Nothing changes while length and counts are about what they were.

>>> adapting = Adapting((10_000_000,) * 2, (0.1, 0.1), RingCosts(1e-3, hop_s=5e-3), slots=12, interval_s=5)
>>> adapting.due(4_000_000), adapting.due(5_000_000)
(False, True)
>>> adapting.change(5_000_000, [[(0, 100), (0, 100)]]).layout.nodes
3
"""

from __future__ import annotations

from dataclasses import dataclass, field

from windrow.plan.ring.lengths import SlicedStream, common_length
from windrow.plan.ring.model import RingCosts
from windrow.plan.ring.relocation import passive_ends
from windrow.run.cluster.layout import Layout
from windrow.run.cluster.reslicing import Change, Spans
from windrow.streams.arrivals import SECOND_US

SAME = 0.1
"""Counts that differ by less than this share are the same."""


@dataclass
class Adapting:
    """Looks at what nodes hold, every `interval_s` of event time; `lengths` tells what it chose, and when."""

    windows_us: tuple[int, ...]
    selectivities: tuple[float, ...]
    costs: RingCosts
    slots: int
    interval_s: float
    at_once: bool = True
    lengths: list[tuple[float, int]] = field(default_factory=list)
    looked_us: int = 0
    counts: tuple[int, ...] = ()

    def due(self, time_us: int) -> bool:
        return time_us - self.looked_us >= self.interval_s * SECOND_US

    def change(self, time_us: int, held: list[Spans]) -> Change | None:
        self.looked_us = time_us
        counts = tuple(sum(beyond - first for first, beyond in each) for each in zip(*held, strict=True))
        if not any(counts):
            return None
        each = zip(self.windows_us, self.selectivities, counts, strict=True)
        streams = [SlicedStream(count * SECOND_US / window, window / SECOND_US, share) for window, share, count in each]
        nodes, before = common_length(streams, self.costs, self.slots), self.lengths[-1][1] if self.lengths else 0
        if nodes == before and self._alike(counts):
            return None
        self.lengths.append((time_us / SECOND_US, nodes))
        self.counts = counts
        if self.at_once:
            return Change(Layout.counted(self.windows_us, counts, nodes), nodes != len(held))
        return Change(Layout(tuple(_ends(window, len(held), nodes) for window in self.windows_us)), False)

    def _alike(self, counts: tuple[int, ...]) -> bool:
        pairs = zip(counts, self.counts, strict=True)
        return bool(self.counts) and all(abs(now - then) <= SAME * max(then, 1) for now, then in pairs)


def _ends(window_us: int, held: int, nodes: int) -> tuple[int, ...]:
    """Even slices over `nodes`, of `held` or more that are there."""
    there = max(held, nodes)
    return tuple(round(end) for end in passive_ends(window_us, there, nodes - there))
