"""ATR, to compare PSP with: each node joins whole segments of one stream with the parts of the others they need.

    master   ├─ segment 0 ─┤├─ segment 1 ─┤├─ segment 2 ─┤        segment s goes to node s mod N
    slaves   ├── W ─┼─ segment 1 ─┼─ W ──┤                        what can match a row of segment 1 goes there, too

Every result has one row of the master, so it is found on one node, without duplicates and without anything sent between
nodes. The slaves' rows near a segment's edges are stored on two nodes and more; how many depends on how short segments
are beside windows. One row is processed by one node: more nodes work on more rows at once, none any faster.

Rows are stored and probe in the order in which they come. On a busy node they wait, and what nodes have stored at some
time is what each has got to by then. A row of a slave probes the master first: where that has none, nothing follows.

Gu, Yu and Wang: Adaptive load diffusion for multiway windowed stream joins, ICDE 2007; as described in PSP, section 7.

>>> from windrow.run.cluster.matching import Exact
>>> feed = Feed.of([range(0, 100, 10), range(5, 105, 10)])
>>> setting = AlignedSetting((20, 20), ((1,), (0,)), RingCosts(1e-3), nodes=3, segment_us=30)
>>> run = simulate_aligned(feed, setting, Exact(lambda partial, stream, row: True))
>>> run.results, run.sent_rows
(36, 31)
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import merge

import numpy as np

from windrow.errors import UsageError
from windrow.plan.ring.model import RingCosts
from windrow.run.cluster.feed import Feed
from windrow.run.cluster.matching import Found, Matching, Members
from windrow.run.cluster.outcome import ClusterRun, Cycle
from windrow.streams.arrivals import SECOND_US

MASTER = 0


@dataclass(frozen=True, slots=True)
class AlignedSetting:
    """Windows, the order in which rows of each stream probe, costs, nodes, and the segment length, which is what is
    tuned.
    """

    windows_us: tuple[int, ...]
    orders: tuple[tuple[int, ...], ...]
    costs: RingCosts
    nodes: int
    segment_us: int

    def __post_init__(self) -> None:
        if self.nodes < 1 or self.segment_us < 1:
            raise UsageError(f"{self.nodes} nodes, segments of {self.segment_us} us", hint="give one of each or more")

    def order(self, driver: int) -> tuple[int, ...]:
        """The order of probes, the master before all others."""
        return tuple(sorted(self.orders[driver], key=lambda stream: stream != MASTER))


@dataclass(frozen=True, slots=True)
class _Part:
    """A segment of the master with what goes with it: a join of its own."""

    place: int
    firsts: tuple[int, ...]
    beyonds: tuple[int, ...]


@dataclass(slots=True)
class _Node:
    """What one node did: when it ended each row, and what it held from then on."""

    ended_s: list[float]
    stored: list[int]
    cycles: list[Cycle]
    members: list[Members]
    busy_s: float = 0.0


def simulate_aligned(
    feed: Feed, setting: AlignedSetting, matching: Matching, *, until_s: float = float("inf")
) -> ClusterRun:
    """Run a feed on aligned nodes, each until some time."""
    joins = _parts(feed, setting)
    nodes = [_run(feed, setting, matching, joins[node :: setting.nodes], until_s) for node in range(setting.nodes)]
    cycles = sorted((cycle for node in nodes for cycle in node.cycles), key=lambda cycle: cycle.end_s)
    ends_s = np.array([cycle.end_s for cycle in cycles])
    stored = np.zeros(len(cycles), np.int64)
    for node in nodes:
        held = np.array([0, *node.stored])
        stored += held[np.searchsorted(np.array(node.ended_s), ends_s, side="right")]
    told = tuple(
        Cycle(one.position, one.begin_s, one.end_s, one.results, one.latencies_s, one.finished_s, int(held))
        for one, held in zip(cycles, stored, strict=True)
    )
    sent = sum(len(node.ended_s) for node in nodes)
    busy_s = tuple(node.busy_s for node in nodes)
    members = tuple(each for node in nodes for each in node.members)
    return ClusterRun(told, setting.nodes, sent, sent, busy_s, members, lookups=sent)


def _parts(feed: Feed, setting: AlignedSetting) -> list[_Part]:
    """All segments, with the rows of each stream that go with them."""
    end_us = max((times[-1] for times in feed.times_us if times), default=0)
    found: list[_Part] = []
    for place in range(end_us // setting.segment_us + 1):
        start_us = place * setting.segment_us
        firsts, beyonds = [], []
        for stream, times in enumerate(feed.times_us):
            early, late = (0, 0) if stream == MASTER else (setting.windows_us[stream], setting.windows_us[MASTER])
            firsts.append(bisect_right(times, start_us - early) if early else bisect_left(times, start_us))
            beyonds.append(bisect_left(times, start_us + setting.segment_us + late))
        found.append(_Part(place, tuple(firsts), tuple(beyonds)))
    return found


def _rows(feed: Feed, part: _Part) -> Iterator[tuple[int, int, _Part]]:
    """The rows of a part in order: (event time, position, part)."""
    times = [
        (feed.times_us[stream][first], stream)
        for stream, first in enumerate(part.firsts)
        if first < part.beyonds[stream]
    ]
    if not times:
        return
    begin = feed.position_at_us(min(times)[0])
    wanted = sum(part.beyonds) - sum(part.firsts)
    for position in range(begin, feed.rows):
        stream, number = int(feed.streams[position]), int(feed.numbers[position])
        if part.firsts[stream] <= number < part.beyonds[stream]:
            yield feed.times_us[stream][number], position, part
            wanted -= 1
            if not wanted:
                return


def _run(feed: Feed, setting: AlignedSetting, matching: Matching, parts: list[_Part], until_s: float) -> _Node:
    """One node, first come, first served."""
    node, now_s = _Node([], [], [], []), 0.0
    for time_us, position, part in merge(*(_rows(feed, part) for part in parts), key=lambda row: (row[0], row[1])):
        begin_s = max(now_s, time_us / SECOND_US)
        if begin_s >= until_s:
            break
        counts = feed.before(position + 1)
        spans = _stored(feed, setting, part, time_us, counts)
        done = _join(feed, setting, matching, position, spans)
        now_s = begin_s + done.work_s
        node.busy_s += done.work_s
        node.ended_s.append(now_s)
        node.stored.append(sum(map(len, spans)))
        if done.probed:
            told = (done.found.count, done.found.count * done.middle_s, done.work_s, 0)
            node.cycles.append(Cycle(position, begin_s, now_s, *told))
            node.members += done.found.members
    return node


def _stored(feed: Feed, setting: AlignedSetting, part: _Part, time_us: int, counts: tuple[int, ...]) -> list[range]:
    """The rows of each window that a part holds at an event time."""
    each = zip(feed.times_us, setting.windows_us, part.firsts, part.beyonds, counts, strict=True)
    return [
        range(max(first, bisect_right(times, time_us - window_us)), min(count, beyond))
        for times, window_us, first, beyond, count in each
    ]


@dataclass(frozen=True, slots=True)
class _Joined:
    """What one row did on a node: its work, when in it results came on average, and whether it had to probe at all."""

    found: Found
    work_s: float
    middle_s: float
    probed: bool


def _join(feed: Feed, setting: AlignedSetting, matching: Matching, position: int, spans: list[range]) -> _Joined:
    costs, driver = setting.costs, int(feed.streams[position])
    found = matching.begin(streams=len(spans), stream=driver, row=int(feed.numbers[position]))
    work_s = costs.send_s + costs.insert_s + costs.purge_s
    order, step_s, probed = setting.order(driver), 0.0, False
    for place, stream in enumerate(order):
        probed |= place == 0 and len(spans[stream]) > 0
        step_s = costs.compare_s * found.count * len(spans[stream])
        found = matching.probe(found, stream, spans[stream])
        work_s += step_s
    return _Joined(found, work_s, work_s - step_s / 2, probed)
