"""CTR, to compare PSP with: segments of windows stored several times, each step asks as few nodes as hold all of them.

    window of b    | q1 | q2 | q3 | q4 | q5 |       each segment on `copies` nodes, drawn
    step to b      node 3: q1 q2 q4   node 1: q3 q5    a set cover, chosen greedily: the node that holds most of what is
                                                     missing, of equal ones the least busy so far

A row goes to the nodes of its first cover; what they find goes to all nodes of the next step's cover, when all of them
are done (hops are synchronised, and one row is processed at a time). The more copies, the smaller covers can be, and
the fewer nodes share the work. A segment that several nodes of a cover hold is probed by one of them.

Gu, Yu and Wang: Adaptive load diffusion for multiway windowed stream joins, ICDE 2007; as described in PSP, sections 7
and 8.1, with the number of copies enforced.

>>> greedy_cover({0: 0b011, 1: 0b110, 2: 0b100}, wanted=0b111, busy_s=[0.0, 0.0, 0.0])
{0: 3, 1: 4}
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windrow.errors import UsageError
from windrow.plan.ring.model import RingCosts
from windrow.run.cluster.feed import Feed
from windrow.run.cluster.matching import NOTHING, Found, Matching, Members
from windrow.run.cluster.outcome import ClusterRun, Cycle
from windrow.streams.arrivals import SECOND_US


@dataclass(frozen=True, slots=True)
class CoordinatedSetting:
    """Windows, orders, costs and nodes; how often each segment is stored, and how long segments are."""

    windows_us: tuple[int, ...]
    orders: tuple[tuple[int, ...], ...]
    costs: RingCosts
    nodes: int
    copies: int
    segment_us: int
    saturated: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.copies <= self.nodes or self.segment_us < 1:
            message = f"{self.copies} copies on {self.nodes} nodes, segments of {self.segment_us} us"
            raise UsageError(message, hint="give one or more, and no more copies than nodes")


def simulate_coordinated(
    feed: Feed, setting: CoordinatedSetting, matching: Matching, *, drivers: Sequence[int] | None = None, seed: int = 0
) -> ClusterRun:
    """Run a feed, or only some of its rows (by position, ascending), on coordinated nodes."""
    positions = range(feed.rows) if drivers is None else drivers
    if not positions:
        raise UsageError("no row probes", hint="give a feed with rows, and drivers")
    run = _Coordinated(feed, setting, matching, np.random.default_rng(seed))
    for position in positions:
        run.process(position)
    counted = (run.sent_rows, run.messages, tuple(run.busy_s), tuple(run.members), run.lookups, run.overlaps)
    return ClusterRun(tuple(run.cycles), setting.nodes, *counted)


def greedy_cover(held: Mapping[int, int], wanted: int, busy_s: Sequence[float]) -> dict[int, int]:
    """Few nodes that together hold all `wanted` segments (sets of bits), and which of them each is to probe."""
    cover: dict[int, int] = {}
    while wanted:
        best = min(held, key=lambda node: (-(held[node] & wanted).bit_count(), busy_s[node], node))
        cover[best] = held[best] & wanted
        if not cover[best]:
            raise UsageError(f"no node holds the segments {wanted:b}", hint="store each segment somewhere")
        wanted &= ~cover[best]
    return cover


class _Coordinated:
    def __init__(
        self, feed: Feed, setting: CoordinatedSetting, matching: Matching, generator: np.random.Generator
    ) -> None:
        self.feed, self.setting, self.matching = feed, setting, matching
        end_us = max((times[-1] for times in feed.times_us if times), default=0)
        self.homes = [_drawn(generator, end_us // setting.segment_us + 1, setting) for _ in feed.times_us]
        self.busy_s = [0.0] * setting.nodes
        self.now_s, self.built = 0.0, -1
        self.sent_rows = self.messages = self.lookups = self.overlaps = 0
        self.cycles: list[Cycle] = []
        self.members: list[Members] = []

    def process(self, position: int) -> None:
        feed, setting, driver = self.feed, self.setting, int(self.feed.streams[position])
        time_us, counts = feed.time_us(position), feed.before(position + 1)
        built = position - self.built if self.built >= 0 else 1
        self.built = position
        self.sent_rows += setting.copies * built
        self.messages += setting.copies * built
        begin_s = self.now_s if setting.saturated else max(self.now_s, time_us / SECOND_US)
        found = self.matching.begin(streams=len(counts), stream=driver, row=int(feed.numbers[position]))
        reached_s = begin_s + setting.costs.insert_s + setting.costs.purge_s
        latencies_s = finished_s = 0.0
        for level, stream in enumerate(setting.orders[driver], start=1):
            last = level == len(counts) - 1
            shares = self._shares(stream, time_us, counts[stream])
            found, hop_s, weighted_s, mean_s = self._hop(found, stream, level, shares)
            if last:
                latencies_s = found.count * (reached_s - begin_s) + weighted_s
            finished_s = reached_s - begin_s + mean_s
            reached_s += hop_s
        self.members += found.members
        self.now_s = reached_s
        told = (found.count, latencies_s, finished_s, self._stored(time_us, counts))
        self.cycles.append(Cycle(position, begin_s, reached_s, *told))

    def _shares(self, stream: int, time_us: int, count: int) -> dict[int, list[range]]:
        """Which rows of a window each node of a cover is to probe."""
        times, length_us = self.feed.times_us[stream], self.setting.segment_us
        first = bisect_right(times, time_us - self.setting.windows_us[stream], 0, count)
        if first >= count:
            return {}
        segments = range(times[first] // length_us, times[count - 1] // length_us + 1)
        edges = [first, *(bisect_left(times, each * length_us, first, count) for each in segments[1:]), count]
        held: dict[int, int] = {}
        for bit, segment in enumerate(segments):
            for node in self.homes[stream][segment].tolist():
                held[node] = held.get(node, 0) | 1 << bit
        self.lookups += len(segments) * self.setting.copies
        cover = greedy_cover(held, (1 << len(segments)) - 1, self.busy_s)
        rows = [edges[bit + 1] - edges[bit] for bit in range(len(segments))]
        self.overlaps += sum(_rows_of(held[node], rows) for node in cover) - (count - first)
        return {
            node: [range(edges[bit], edges[bit + 1]) for bit in range(len(segments)) if mask >> bit & 1]
            for node, mask in cover.items()
        }

    def _hop(
        self, found: Found, stream: int, level: int, shares: Mapping[int, list[range]]
    ) -> tuple[Found, float, float, float]:
        """What the nodes of a cover find; how long the slowest takes; when results come, summed; when nodes are done,
        on average.
        """
        costs = self.setting.costs
        if not found.count or not shares:
            return NOTHING, 0.0, 0.0, 0.0
        total, weighted_s, done_s = NOTHING, 0.0, []
        for node, ranges in shares.items():
            got_s = costs.hop_s + costs.send_s * found.count
            probe_s = costs.compare_s * found.count * sum(map(len, ranges))
            mine = [self.matching.probe(found, stream, rows) for rows in ranges]
            total = Found(
                total.count + sum(each.count for each in mine),
                (*total.members, *(members for each in mine for members in each.members)),
            )
            weighted_s += sum(each.count for each in mine) * (got_s + probe_s / 2)
            done_s.append(got_s + probe_s)
            self.busy_s[node] += done_s[-1] - costs.hop_s
            self.sent_rows += found.count * level
            self.messages += 1
        return total, max(done_s), weighted_s, sum(done_s) / len(done_s)

    def _stored(self, time_us: int, counts: Sequence[int]) -> int:
        """Rows of all segments that reach into a window, as often as they are stored."""
        live, length_us = 0, self.setting.segment_us
        for times, window_us, count in zip(self.feed.times_us, self.setting.windows_us, counts, strict=True):
            first = bisect_right(times, time_us - window_us, 0, count)
            if first < count:
                live += count - bisect_left(times, times[first] // length_us * length_us, 0, count)
        return live * self.setting.copies


def _drawn(generator: np.random.Generator, segments: int, setting: CoordinatedSetting) -> NDArray[np.int64]:
    """The nodes that store each segment of a stream."""
    return generator.random((segments, setting.nodes)).argsort(axis=1)[:, : setting.copies]


def _rows_of(mask: int, rows: Sequence[int]) -> int:
    return sum(count for bit, count in enumerate(rows) if mask >> bit & 1)
