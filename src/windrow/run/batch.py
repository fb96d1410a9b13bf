"""One batch: the new rows of every stream, driven along their paths through the stores.

    for each driver i, in the policy's order
        new rows of i ──▶ portions ──step 1──▶ partial rows ──step 2──▶ … ──▶ results    probe.step proposes, decides
                          plan.shedding        store of l₁              store of l₂      run.partial holds members

A stored row is visible to a driver's row iff its position is smaller. What was stored before this batch always is. Of
the batch's own rows: under the timestamp policy those with a smaller (event time, stream), which only moves the upper
end of the time range; under a buffer policy those of streams that drove before. Rows of one stream are never
compared. So each result has one member with the largest position, and is found exactly once, on that member's path.

In a tree of joins a path may end in a node instead of the results: what is found is stored there, and drives in its
turn. Lower levels run first, so a node's new rows see all new rows beneath its partner, and no pair is met twice: of a
pair of two sources the one that ran later sees the other.

A plan that sheds shares a driver's rows out over portions, which look at different parts of the windows
(`run.reach`). Each row is in one portion, so nothing is found twice; with nothing shed there is one portion, of all.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from windrow.plan.bins import Lags
from windrow.plan.drivers import Order
from windrow.plan.plan import path_name
from windrow.plan.shedding import ALL, Portion, Shedding
from windrow.probe.gather import handles_of
from windrow.probe.pairs import Pairs
from windrow.probe.ranges import intersect, row_ranges
from windrow.probe.step import StepProbe
from windrow.run.counting import Clerk, Page, StepCount
from windrow.run.draw import draw
from windrow.run.intermediate import intermediate
from windrow.run.partial import Partial, View, first_partial, saturating_add
from windrow.run.program import Program
from windrow.run.reach import Reach, Search, Strata, are_many, harvested, stratified, stratum_length, whole_search
from windrow.run.sources import Source
from windrow.store.operand import Array
from windrow.store.segment import Segment

BLOCK_ROWS = 1 << 20
NOTHING: Lags = ()


@dataclass(frozen=True, slots=True)
class Position:
    """Which of the batch's own rows a driver sees: `order` is None under the timestamp policy; `nodes` are those of a
    tree, in the order they drive in, after all streams.
    """

    driver: str
    order: Order | None
    streams: tuple[str, ...]
    nodes: tuple[str, ...] = field(default=(), kw_only=True)

    def upper_us(self, target: str, turn_us: Array) -> Array | None:
        """The latest event time of a visible new row of `target`, for each driver row; None where it is not limited."""
        if self.order is not None or self._of_nodes(target):
            return None
        later = self.streams.index(target) > self.streams.index(self.driver)
        return saturating_add(turn_us, -1) if later else turn_us

    def sees(self, target: str) -> bool:
        """Whether any new row of `target` can be visible."""
        if self._of_nodes(target):
            return self._turn(target) < self._turn(self.driver)
        return self.order is None or self.order.index(target) < self.order.index(self.driver)

    def _of_nodes(self, target: str) -> bool:
        return target in self.nodes or self.driver in self.nodes

    def _turn(self, name: str) -> int:
        return self.nodes.index(name) if name in self.nodes else -1

    def looks_into(self, target: str, _segment: Segment, is_fresh: bool) -> bool:
        """Whether any row of a segment can be visible."""
        return not is_fresh or self.sees(target)

    def visible(self, _target: str, _segment: Segment, pairs: Pairs, _partial: Partial) -> Pairs:
        """Of pairs within reach, those whose stored row is visible: all, since reach ends where visible rows do."""
        return pairs


@dataclass(frozen=True, slots=True)
class Leg:
    """A step as the rows of one portion take it: over which lags (None: all) or strata, and where it is counted."""

    probe: StepProbe
    lags: Lags | None = None
    strata: Strata | None = None
    count: StepCount | None = None


@dataclass(frozen=True, slots=True)
class Way:
    """The legs of one portion's path, and the page where its results are noted."""

    legs: tuple[Leg, ...]
    page: Page | None = None


def run_batch(
    program: Program,
    stored: Mapping[str, Sequence[Segment]],
    fresh: Mapping[str, Segment],
    order: Order | None,
    shedding: Shedding = ALL,
    clerk: Clerk | None = None,
    made: dict[str, Segment] | None = None,
) -> Iterator[Partial]:
    """The results of a batch, in blocks; `fresh` holds the new rows of each stream, `order` the order of buffers (None:
    by time), `shedding` what is left out; `clerk` takes notes, `made` the new segments of the plan's nodes.
    """
    views = {
        stream.name: View(
            stream, tuple(stored[stream.name]), fresh.get(stream.name) if len(fresh.get(stream.name, ())) else None
        )
        for stream in program.spec.streams
    }
    if not program.nodes and any(not view.segments for view in views.values()):
        return
    views |= {name: View(program.sources[name], tuple(stored[name]), None) for name in program.nodes}
    yield from _driven(program, views, order, shedding, clerk, {} if made is None else made)


def build_nodes(program: Program, rows: Mapping[str, Segment]) -> dict[str, Segment]:
    """The rows of each node of a plan over some rows of each stream, all of them."""
    views = {name: View(source, (), rows.get(name)) for name, source in program.sources.items()}
    made: dict[str, Segment] = {}
    for _ in _driven(program, views, None, ALL, None, made, results=False):
        pass
    return made


def _driven(
    program: Program,
    views: dict[str, View],
    order: Order | None,
    shedding: Shedding,
    clerk: Clerk | None,
    made: dict[str, Segment],
    results: bool = True,
) -> Iterator[Partial]:
    """Results of the new rows in some views, streams first, then nodes; views of nodes get the rows that are found."""
    nodes = tuple(program.nodes)
    names = tuple(name for name in views if name not in program.nodes)
    found: dict[str, list[Partial]] = {name: [] for name in nodes}
    into = {path.driver: path.into for path in program.plan.firsts}
    for driver in (*(order or names), *nodes):
        if driver in found:
            segment = intermediate(program, driver, found.pop(driver))
            views[driver] = View(program.sources[driver], views[driver].stored, segment)
            if segment is not None:
                made[driver] = segment
        new_rows, node = views[driver].fresh, into[driver]
        if new_rows is None or (node is None and not results):
            continue
        position = Position(driver, order, names, nodes=nodes)
        first = first_partial(views, driver, new_rows)
        for number, part in shares(program, driver, first, shedding):
            way = way_of(program, driver, part, number, shedding, clerk)
            if nodes and way.legs[0].lags == NOTHING:
                continue
            blocks = follow(way, 0, part, position)
            if node is None:
                yield from blocks
            else:
                found[node].extend(blocks)


def shares(program: Program, driver: str, first: Partial, shedding: Shedding) -> Iterator[tuple[int, Partial]]:
    """A driver's new rows, portion by portion: the number of each that has any, and its rows."""
    portions = shedding.of(driver)
    if len(portions) < 2:
        yield 0, first
        return
    ends = np.cumsum([portion.share for portion in portions])
    drawn = draw(program.content_of(first, driver), shedding.seed)
    places = np.minimum(np.searchsorted(ends, drawn, side="right"), len(portions) - 1)
    for number in np.unique(places):
        rows = np.flatnonzero(places == number)
        yield int(number), first if len(rows) == len(first) else first.pick(rows)


def way_of(program: Program, driver: str, first: Partial, number: int, shedding: Shedding, clerk: Clerk | None) -> Way:
    """How the rows `first` of a driver's portion take its path."""
    portion = portion_of(program, driver, number, shedding)
    path = path_name(driver, portion.alternative)
    page = None if clerk is None else clerk.page(path, portion.sampled)
    if page is not None:
        page.drove(first)
    steps = range(len(program.steps[path]))
    return Way(tuple(leg_of(program, driver, portion, step, first, shedding, page) for step in steps), page)


def portion_of(program: Program, driver: str, number: int, shedding: Shedding) -> Portion:
    """A driver's portion by its number; all rows, unrestricted, where nothing is said of it."""
    portions = shedding.of(driver)
    return portions[number] if portions else Portion(1.0, (None,) * len(program.steps[driver]))


def leg_of(
    program: Program,
    driver: str,
    portion: Portion,
    step: int,
    partial: Partial,
    shedding: Shedding,
    page: Page | None,
) -> Leg:
    """Step `step` of a portion's path, as the rows `partial` take it."""
    probe = program.steps[path_name(driver, portion.alternative)][step]
    strata = None
    if portion.sampled and step == 0 and shedding.throttle < 1:
        length = stratum_length(program.sources[probe.target], shedding.strata)
        strata = Strata(length, shedding.throttle, shedding.seed, program.content_of(partial, driver))
    return Leg(probe, portion.lags[step], strata, None if page is None else page.steps[step])


def follow(way: Way, number: int, partial: Partial, position: Position) -> Iterator[Partial]:
    """Take the remaining legs, depth first, in blocks that bound the memory of intermediate rows."""
    if number == len(way.legs):
        if way.page is not None:
            way.page.found(partial)
        yield partial
        return
    for block in take_leg(way.legs[number], partial, position):
        yield from follow(way, number + 1, block, position)


def take_leg(leg: Leg, partial: Partial, position: Position) -> Iterator[Partial]:
    """One step: partial rows extended by each matching row of the step's store.

    Its seconds are without those in which indexes are built: they are the price of new rows, not of probes; and without
    those of whoever watches.
    """
    started, before, aside_s, index_s = time.perf_counter(), _candidates(leg), _aside_s(leg), leg.probe.work.index_s
    for block in _extensions(leg, partial, position):
        if leg.count is not None:
            leg.count.matches += len(block)
            leg.count.seconds += time.perf_counter() - started
        yield block
        started = time.perf_counter()
    if leg.count is not None:
        leg.count.probes += 0 if leg.lags == NOTHING else len(partial)
        leg.count.seconds += time.perf_counter() - started - (_aside_s(leg) - aside_s)
        leg.count.index_s += leg.probe.work.index_s - index_s
        leg.count.candidates += _candidates(leg) - before


def _aside_s(leg: Leg) -> float:
    """Seconds so far that were not spent on probing."""
    sifter = None if leg.count is None else leg.count.sifter
    return leg.probe.work.index_s + (0.0 if sifter is None else sifter.seconds)


def _candidates(leg: Leg) -> int:
    """Pairs looked at so far: for a matrix product all within reach, however few of them it proposes."""
    if leg.probe.method == "matrix":
        return 0 if leg.count is None else leg.count.searched
    return leg.probe.work.compared + leg.probe.work.proposed


def _extensions(leg: Leg, partial: Partial, position: Position) -> Iterator[Partial]:
    if len(partial) == 0 or leg.lags == NOTHING:
        return
    view = partial.views[leg.probe.target]
    if not view.segments:
        return
    whole = whole_search(leg.probe, partial, view.stream)
    searches, later = [whole], leg.strata
    if leg.strata is not None and not (leg.strata.outside or are_many(whole, view, leg.strata)):
        drawn, later = stratified(whole, view, leg.strata), None
        searches = [] if drawn is None else [drawn]
    elif leg.strata is None and leg.lags is not None:
        searches = harvested(whole, position.driver, view.stream, leg.lags)
    if searches:
        yield from _probed(leg, view, searches, position, later)


def _probed(
    leg: Leg, view: View, searches: Sequence[Search], position: Position, strata: Strata | None
) -> Iterator[Partial]:
    """Partial rows extended by what they match where the searches, which are over the same rows, may look; of that
    what lies in their strata, if these are not in the searches.
    """
    partial = searches[0].partial
    probing = leg.probe.begin(partial)
    upper_us = position.upper_us(leg.probe.target, partial.turn_us) if view.fresh is not None else None
    found: list[tuple[Array, Array, Array, Mapping[str, Array]]] = []
    count = 0
    for number, segment in enumerate(view.segments):
        is_fresh = segment is view.fresh
        if not position.looks_into(leg.probe.target, segment, is_fresh):
            continue
        for search in searches:
            in_time = search.in_time.up_to(upper_us) if is_fresh else search.in_time
            clocks = [(segment.time_us, in_time), *((segment.clocks[name], r) for name, r in search.by_clock.items())]
            if any(part.excludes(clock) for clock, part in clocks):
                continue
            low, high = _rows_in_reach(clocks)
            if leg.count is not None:
                within = _pairs(low, high, len(partial), len(segment))
                leg.count.searched += within
                if leg.count.sifter is not None:
                    leg.count.sifter.see(partial, segment, low, high, within)
            for matching in probing.matches(segment, low, high):
                pairs = _living(position.visible(leg.probe.target, segment, matching, partial), segment, partial)
                if strata is not None:
                    pairs = _in_strata(pairs, segment, view.stream, strata)
                members = {name: clock[pairs.row] for name, clock in segment.clocks.items()}
                found.append((pairs.probe, handles_of(number, pairs.row), segment.time_us[pairs.row], members))
                count += len(pairs.probe)
                if count >= BLOCK_ROWS:
                    yield _extended(partial, view, found)
                    found, count = [], 0
    if leg.count is not None and leg.count.sifter is not None:
        leg.count.sifter.end(partial)
    if found:
        yield _extended(partial, view, found)


def _living(pairs: Pairs, segment: Segment, partial: Partial) -> Pairs:
    """Of pairs within reach, those whose stored row still lives when the newest member comes: for rows of streams the
    reach says so, for those of nodes it says a little too much.
    """
    if segment.dies_us is None:
        return pairs
    fits = partial.newest_us[pairs.probe] <= segment.dies_us[pairs.row]
    for name, dies in segment.dies_clocks.items():
        fits &= partial.newest_clock[name][pairs.probe] <= dies[pairs.row]
    return Pairs(pairs.probe[fits], pairs.row[fits])


def _in_strata(pairs: Pairs, segment: Segment, stream: Source, strata: Strata) -> Pairs:
    clock = segment.time_us if stream.window.rows is None else segment.clocks[stream.name]
    held = strata.holds(pairs.probe, clock[pairs.row])
    return Pairs(pairs.probe[held], pairs.row[held])


def _rows_in_reach(clocks: Sequence[tuple[Array, Reach]]) -> tuple[Array, Array] | tuple[None, None]:
    """The row range of each partial row in a segment; (None, None) where it is the whole segment for all."""
    ranges: tuple[Array, Array] | None = None
    for clock, reach in clocks:
        if not reach.covers(clock):
            rows = row_ranges(clock, reach.low, reach.high)
            ranges = rows if ranges is None else intersect(ranges, rows)
    return (None, None) if ranges is None else ranges


def _pairs(low: Array | None, high: Array | None, probes: int, rows: int) -> int:
    """How many pairs lie within row ranges."""
    if low is None or high is None:
        return probes * rows
    return int(np.maximum(high.astype(np.int64) - low, 0).sum())


def _extended(
    partial: Partial, view: View, found: Sequence[tuple[Array, Array, Array, Mapping[str, Array]]]
) -> Partial:
    probes, handles, times_us = (np.concatenate([part[k] for part in found]) for k in range(3))
    clocks = {name: np.concatenate([part[3][name] for part in found]) for name in found[0][3]}
    return partial.extend(view, probes, handles, times_us, clocks)
