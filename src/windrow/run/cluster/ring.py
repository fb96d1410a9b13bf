"""PSP: windows sliced by age over a ring of nodes, rows and partial results passing round it (PSP, section 4).

        ┌──────────────────────────────────────────────┐
        ▼                                              │
    ─▶ head ──▶ node 2 ──▶ … ──▶ tail ─────────────────┘      links are first in, first out
        0 ≤ age < W/N              (N-1)W/N ≤ age < W

    a row comes:    head   Build (it enters the state), then Probe (it purges, goes on, probes the first window)
    at each node    what is purged goes on as Build, ahead of the Probe; what is found goes on as Partial
    a Partial       passes all nodes once, the last of them its origin; at each it probes the next window
    END             on the last Partial of each level the head makes; when it is back the next level's is made, and
                    after the one for complete results, which are not sent round but have a marker, the row is done

One row at a time is PSP; with `concurrent` of them and delayed purge it is PSP-I. Without delayed purge results are
lost, which tests show. Messages carry all results of one probe together; a node handles them one after the other: `T_s`
for each row or partial result, `T_j` for each pair, `T_i` and `T_p` for rows that move. It sends on before it probes.

In the paper: `concurrent` is PSP-I's threshold, `Partial.origin` the ID of an intermediate result.

>>> from windrow.run.cluster.matching import Exact
>>> feed = Feed.of([range(0, 50, 5), range(2, 52, 5)])
>>> layout, costs = Layout.even((20, 20), nodes=3), RingCosts(compare_s=1e-3, hop_s=1e-2)
>>> setting = RingSetting(layout, ((1,), (0,)), costs)
>>> run = simulate_ring(feed, setting, Exact(lambda partial, stream, row: True))
>>> run.results, run.cycles[-1].stored, {cycle.end_hops for cycle in run.cycles}
(64, 8, {3})
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TypeAlias

import numpy as np

from windrow.errors import UsageError
from windrow.plan.ring.model import RingCosts
from windrow.run.cluster.feed import Feed
from windrow.run.cluster.layout import Layout
from windrow.run.cluster.matching import NOTHING, Found, Matching, Members
from windrow.run.cluster.node import SlicedJoin
from windrow.run.cluster.outcome import ClusterRun, Cycle
from windrow.run.cluster.reslicing import Change, Reslicing, filled, resliced
from windrow.streams.arrivals import SECOND_US

HEAD = 0


@dataclass(frozen=True, slots=True)
class Build:
    """Rows that enter the state of the next node."""

    stream: int
    first: int
    beyond: int


@dataclass(frozen=True, slots=True)
class Probe:
    """A new row on its way from head to tail."""

    driver: int


@dataclass(frozen=True, slots=True)
class Partial:
    """What one probe found, with `level` members, on its way round the ring to where it was made."""

    driver: int
    level: int
    origin: int
    found: Found
    end: bool


Message: TypeAlias = Build | Probe | Partial
Watch: TypeAlias = Callable[[float, SlicedJoin, Message], None]
"""Sees each message before a node handles it: (time, node, message)."""


@dataclass(frozen=True, slots=True)
class RingSetting:
    """A ring: its slices; in which order each stream's rows probe the others; its costs; how many rows it works on at
    once. On links, random delays come on top of a hop, and a row keeps a link busy for `row_link_s`: its bytes over the
    bandwidth, nothing where that is sufficient, as the paper's model assumes. `saturated`: rows are read in as soon as
    there is a place, whatever their event time.
    """

    layout: Layout
    orders: tuple[tuple[int, ...], ...]
    costs: RingCosts
    concurrent: int = 1
    delayed_purge: bool = True
    delay_s: float = 0.0
    row_link_s: float = 0.0
    saturated: bool = False

    def __post_init__(self) -> None:
        streams = set(range(len(self.layout.ends_us)))
        for driver, order in enumerate(self.orders):
            if {driver, *order} != streams or len(order) != len(streams) - 1:
                raise UsageError(f"stream {driver} cannot probe in the order {order}", hint="name each other one once")
        if len(self.orders) != len(streams) or self.concurrent < 1 or min(self.delay_s, self.row_link_s) < 0:
            raise UsageError(
                f"{self.concurrent} rows at once, delays of {self.delay_s} s", hint="give 1 or more, 0 or more"
            )


@dataclass(slots=True)
class _Active:
    """A row being worked on."""

    position: int
    stream: int
    time_us: int
    cuts: tuple[int, ...]
    begin_s: float = -1.0
    results: int = 0
    latencies_s: float = 0.0
    end_hops: int = 0
    last_s: dict[int, float] = field(default_factory=dict)


def simulate_ring(
    feed: Feed,
    setting: RingSetting,
    matching: Matching,
    *,
    drivers: Sequence[int] | None = None,
    seed: int = 0,
    watch: Watch | None = None,
    reslicing: Reslicing | None = None,
) -> ClusterRun:
    """Run the rows of a feed through a ring. With `drivers` (positions, ascending) only these probe, the rows before
    the first of them being there from the start.
    """
    positions = range(feed.rows) if drivers is None else drivers
    if not positions:
        raise UsageError("no row probes", hint="give a feed with rows, and drivers")
    return _Ring(feed, setting, matching, list(positions), np.random.default_rng(seed), watch, reslicing).run()


class _Ring:
    def __init__(
        self,
        feed: Feed,
        setting: RingSetting,
        matching: Matching,
        drivers: list[int],
        generator: np.random.Generator,
        watch: Watch | None,
        reslicing: Reslicing | None,
    ) -> None:
        self.feed, self.setting, self.matching, self.watch, self.reslicing = feed, setting, matching, watch, reslicing
        self.drivers, self.generator = drivers, generator
        self.costs, self.streams = setting.costs, len(setting.orders)
        self.waiting = 0
        self.built = list(feed.before(drivers[0]))
        self.active: dict[int, _Active] = {}
        self.heap: list[tuple[float, int, int, Message]] = []
        self.sent = self.sent_rows = self.messages = 0
        self.read_s = 0.0
        self.cycles: list[Cycle] = []
        self.members: list[Members] = []
        self.busy_s: list[float] = []
        delays = setting.delayed_purge and setting.concurrent > 1
        self.nodes = [SlicedJoin(each, setting.layout, feed.times_us, delays) for each in range(setting.layout.nodes)]
        filled(self.nodes, setting.layout, feed.times_us, feed.time_us(drivers[0]), self.built)
        self._links()

    def run(self) -> ClusterRun:
        self._admit(self.read_s)
        while self.heap:
            time_s, _, place, message = heappop(self.heap)
            node = self.nodes[place]
            if self.watch is not None:
                self.watch(time_s, node, message)
            start_s = max(time_s, self.free_s[place])
            if isinstance(message, Partial):
                done_s = self._pass(start_s, node, message)
            elif isinstance(message, Probe):
                done_s = self._probe(start_s, node, message)
            else:
                node.insert(message.stream, message.first, message.beyond)
                done_s = start_s + self.costs.insert_s * (message.beyond - message.first)
            self.free_s[place] = done_s
            self.busy_s[place] += done_s - start_s
        cycles = tuple(self.cycles)
        return ClusterRun(
            cycles, len(self.nodes), self.sent_rows, self.messages, tuple(self.busy_s), tuple(self.members)
        )

    def _links(self) -> None:
        count = len(self.nodes)
        self.free_s, self.arrived_s, self.linked_s = [0.0] * count, [0.0] * count, [0.0] * count
        self.busy_s = (self.busy_s + [0.0] * count)[:count]

    def _admit(self, now_s: float) -> None:
        """Read in rows while there is a place for them; slice anew first, when that is due and all rows are done."""
        while len(self.active) < self.setting.concurrent and self.waiting < len(self.drivers):
            position = self.drivers[self.waiting]
            time_us = self.feed.time_us(position)
            self.read_s = max(self.read_s, now_s)
            if self.reslicing is not None and self.reslicing.due(time_us):
                if self.active:
                    return
                self._reslice(self.reslicing.change(time_us, [node.spans() for node in self.nodes]), time_us)
            self.read_s = max(self.read_s, 0.0 if self.setting.saturated else time_us / SECOND_US)
            self.waiting += 1
            self._read_in(position, time_us)

    def _read_in(self, position: int, time_us: int) -> None:
        stream, counts = int(self.feed.streams[position]), self.feed.before(position + 1)
        for each, beyond in enumerate(counts):
            if beyond > self.built[each]:
                self._schedule(self.read_s, HEAD, Build(each, self.built[each], beyond))
                self.built[each] = beyond
        self.active[position] = _Active(position, stream, time_us, counts)
        self._schedule(self.read_s, HEAD, Probe(position))

    def _reslice(self, change: Change | None, time_us: int) -> None:
        if change is not None:
            costs, places = self.costs, len(self.nodes)
            self.nodes, moved = resliced(self.nodes, change, self.feed.times_us, time_us, self.built)
            self.read_s += costs.hop_s + costs.send_s * moved if moved else 0.0
            self.sent_rows += moved
            if len(self.nodes) != places:
                self._links()

    def _schedule(self, time_s: float, place: int, message: Message) -> None:
        self.sent += 1
        heappush(self.heap, (time_s, self.sent, place, message))

    def _send(self, time_s: float, node: SlicedJoin, message: Message, rows: int) -> None:
        """To the next node, behind all that is on the way."""
        hop_s = self.costs.hop_s
        if self.setting.delay_s:
            hop_s += float(self.generator.exponential(self.setting.delay_s))
        sent_s = self.linked_s[node.place] = max(self.linked_s[node.place], time_s) + rows * self.setting.row_link_s
        arrives_s = self.arrived_s[node.place] = max(self.arrived_s[node.place], sent_s + hop_s)
        self.messages += 1
        self.sent_rows += rows
        self._schedule(arrives_s, (node.place + 1) % len(self.nodes), message)

    def _probe(self, start_s: float, node: SlicedJoin, message: Probe) -> float:
        row, is_tail = self.active[message.driver], node.place == len(self.nodes) - 1
        if node.place == HEAD:
            row.begin_s = start_s
        moved = node.purge(row.position, row.time_us)
        ready_s = start_s + self.costs.send_s + self.costs.purge_s * sum(beyond - first for _, first, beyond in moved)
        if not is_tail:
            for stream, first, beyond in moved:
                self._send(ready_s, node, Build(stream, first, beyond), beyond - first)
            self._send(ready_s, node, message, 1)
        number = int(self.feed.numbers[row.position])
        begun = self.matching.begin(streams=self.streams, stream=row.stream, row=number)
        return self._find(ready_s, node, row, (1, begun), node.place == HEAD)

    def _pass(self, start_s: float, node: SlicedJoin, message: Partial) -> float:
        row, is_home = self.active[message.driver], message.origin == node.place
        count = message.found.count
        ready_s = start_s + self.costs.send_s * max(count, 1)
        if not is_home:
            self._send(ready_s, node, message, count * message.level)
        row.end_hops += message.end
        if message.level < self.streams:
            return self._find(ready_s, node, row, (message.level, message.found), message.end and is_home)
        node.release(row.position)
        if is_home:
            self._done(ready_s, row)
        return ready_s

    def _find(self, ready_s: float, node: SlicedJoin, row: _Active, probing: tuple[int, Found], is_end: bool) -> float:
        """Probe the next window, and send on what was found, or out where it is complete."""
        level, partials = probing
        stream = self.setting.orders[row.stream][level - 1]
        rows = node.rows(row.position, stream, row.cuts[stream])
        found = self.matching.probe(partials, stream, rows) if partials.count and rows else NOTHING
        done_s = ready_s + self.costs.compare_s * partials.count * len(rows)
        row.last_s[node.place] = done_s
        if level + 1 == self.streams:
            row.results += found.count
            row.latencies_s += found.count * ((ready_s + done_s) / 2 - row.begin_s)
            self.members += found.members
            found = NOTHING
        if found.count or is_end:
            made = Partial(row.position, level + 1, node.place, found, is_end)
            self._send(done_s, node, made, found.count * (level + 1))
        return done_s

    def _done(self, now_s: float, row: _Active) -> None:
        del self.active[row.position]
        finished_s = sum(row.last_s.values()) / len(row.last_s) - row.begin_s
        stored = sum(node.held for node in self.nodes)
        told = (row.results, row.latencies_s, finished_s, stored, row.end_hops)
        self.cycles.append(Cycle(row.position, row.begin_s, now_s, *told))
        self._admit(now_s)
