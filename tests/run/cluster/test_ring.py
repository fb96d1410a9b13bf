"""The ring keeps what PSP promises: exact results, each once; states without duplicates; an end of every cycle."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from tests.run.cluster.rings import COSTS, Case, Record, is_partition, random_case
from windrow.errors import StateError, UsageError
from windrow.plan.ring.model import RingLoad
from windrow.run.cluster.feed import Feed
from windrow.run.cluster.layout import Layout
from windrow.run.cluster.matching import Chance, Exact
from windrow.run.cluster.node import SlicedJoin
from windrow.run.cluster.outcome import ClusterRun
from windrow.run.cluster.ring import Partial, RingSetting, simulate_ring

SIZES = [(streams, nodes) for streams in (2, 3, 4) for nodes in (1, 2, 3, 5)]


def ran(case: Case, seed: int = 1, record: Record | None = None, **changes: object) -> ClusterRun:
    return simulate_ring(case.feed, case.setting(**changes), case.matching(), seed=seed, watch=record)


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize(("streams", "nodes"), SIZES)
def test_union_of_slices_is_the_join(streams: int, nodes: int, closed: bool) -> None:
    """PS-01, PS-02: uneven and empty slices, random delays, one row at a time and several."""
    results = 0
    for seed in range(3):
        case = random_case(seed, streams, nodes, closed=closed, rows=18 - 2 * streams)
        expected = case.expected()
        results += expected.total()
        for changes in (
            {},
            {"delay_s": 0.02},
            {"concurrent": 4},
            {"concurrent": 4, "delay_s": 0.02, "saturated": True},
        ):
            assert Counter(ran(case, **changes).members) == expected, changes
    assert results > 5


@pytest.mark.long
@pytest.mark.parametrize(("streams", "nodes"), SIZES)
def test_union_of_slices_is_the_join_again_and_again(streams: int, nodes: int) -> None:
    for seed in range(3, 60):
        case = random_case(seed, streams, nodes, closed=bool(seed % 2), rows=20 - 2 * streams)
        run = ran(case, seed, concurrent=1 + seed % 6, delay_s=0.03 * (seed % 3), saturated=seed % 4 == 0)
        assert Counter(run.members) == case.expected(), seed


def test_windows_open_and_closed() -> None:
    """CO-01: rows exactly a window apart make no result if the window is open, one if it is closed."""
    feed = Feed.of([[0], [5]])
    results = []
    for window in (5, 6):
        setting = RingSetting(Layout.even((window, window), 2), ((1,), (0,)), COSTS)
        results.append(simulate_ring(feed, setting, Exact(lambda partial, stream, row: True)).results)
    assert results == [0, 1]


def test_without_delayed_purge_results_are_lost() -> None:
    """PS-03: and nothing is found that is none, or found twice."""
    lost = 0
    for seed in range(6):
        case = random_case(seed, 3, 4, rows=20)
        expected = case.expected()
        found = Counter(ran(case, concurrent=4, delayed_purge=False, saturated=True, delay_s=0.05).members)
        assert found <= expected
        lost += (expected - found).total()
    assert lost > 0


@pytest.mark.parametrize(("streams", "nodes"), SIZES)
def test_a_cycle_ends_with_its_last_end(streams: int, nodes: int) -> None:
    """PS-04, PS-07: M - 1 END markers come home to the head, in (M - 1) · N hops, one at a time."""
    case = random_case(1, streams, nodes)
    record = Record(case.layout, case.feed)
    run = ran(case, record=record, delay_s=0.01)
    assert {cycle.end_hops for cycle in run.cycles} == {(streams - 1) * nodes}
    for cycle in run.cycles[:8]:
        ends = record.ends(cycle.position)
        home = [message.level for _, place, message in ends if place == 0]
        assert home == list(range(2, streams + 1))
        assert [place for _, place, _ in ends] == [(hop + 1) % nodes for hop in range((streams - 1) * nodes)]
        assert all(earlier < later for (earlier, *_), (later, *_) in pairwise(ends))


def test_end_is_the_last_of_its_kind_at_the_head() -> None:
    """PS-06."""
    case = random_case(2, 4, 3, rows=12)
    record = Record(case.layout, case.feed)
    ran(case, record=record, delay_s=0.02)
    at_head = [message for _, place, message in record.seen if place == 0 and isinstance(message, Partial)]
    last = {(message.driver, message.level): message for message in at_head}
    assert len(last) > 20
    assert all(message.end for message in last.values())


@pytest.mark.parametrize("concurrent", [1, 4])
def test_a_slice_holds_its_ages_once(concurrent: int) -> None:
    """PS-05: after its purge a slice has exactly W_s <= T_p - T < W_e of what came before."""
    case = random_case(3, 3, 4, rows=25)
    record = Record(case.layout, case.feed)
    ran(case, record=record, concurrent=concurrent, delay_s=0.01)
    assert len(record.states) > 4 * 30
    for driver, place, spans in record.states:
        now, counts = case.feed.time_us(driver), case.feed.before(driver + 1)
        for stream, (ends, count) in enumerate(zip(case.layout.ends_us, counts, strict=True)):
            times = case.feed.times_us[stream]
            start = ends[place - 1] if place else 0
            beyond = bisect_right(times, now - start, 0, count) if place else count
            assert spans[stream] == (bisect_right(times, now - ends[place], 0, count), beyond)


def test_states_are_windows_without_duplicates() -> None:
    """All rows of the slices together are those of the windows, whatever the number of nodes."""
    for nodes in (1, 2, 5):
        case = random_case(4, 3, nodes, rows=25)
        run = ran(case)
        for cycle in run.cycles:
            now, counts = case.feed.time_us(cycle.position), case.feed.before(cycle.position + 1)
            windows = zip(case.feed.times_us, counts, case.windows_us, strict=True)
            in_windows = sum(count - bisect_right(times, now - window, 0, count) for times, count, window in windows)
            assert cycle.stored == in_windows


def test_delayed_purge_holds_some_rows_twice_while_several_are_worked_on() -> None:
    case = random_case(5, 3, 4, rows=30)
    one, four = ran(case, saturated=True), ran(case, saturated=True, concurrent=4)
    assert one.stored_rows < four.stored_rows < 1.5 * one.stored_rows
    assert four.cycles[-1].stored == one.cycles[-1].stored
    assert four.service_hz > one.service_hz


def test_a_sample_of_rows_finds_what_it_finds_among_all() -> None:
    case = random_case(6, 3, 4, rows=30)
    drivers = list(range(20, case.feed.rows, 3))
    found = simulate_ring(case.feed, case.setting(), case.matching(), drivers=drivers)
    expected: Counter[tuple[int, ...]] = Counter()
    for members, count in case.expected().items():
        newest = max((case.feed.times_us[stream][row], stream, row) for stream, row in enumerate(members))
        position = int(np.flatnonzero((case.feed.streams == newest[1]) & (case.feed.numbers == newest[2]))[0])
        if position in drivers:
            expected[members] = count
    assert expected
    assert Counter(found.members) == expected


def test_a_run_is_a_function_of_its_seed() -> None:
    case = random_case(7, 3, 3)
    assert ran(case, delay_s=0.1, concurrent=3) == ran(case, delay_s=0.1, concurrent=3)
    assert ran(case, delay_s=0.1, concurrent=3) != ran(case, seed=2, delay_s=0.1, concurrent=3)


def test_the_work_is_what_the_model_says() -> None:
    """L_PSP, for a row that finds exactly as much as expected: every key matches a given share."""
    nodes, stored = 4, 40
    feed = Feed.of([[*range(0, 400, 10), 401], range(0, 400, 10), range(0, 400, 10)])
    setting = RingSetting(
        Layout.even((405,) * 3, nodes), ((1, 2), (0, 2), (0, 1)), replace(COSTS, insert_s=0, purge_s=0)
    )
    exact = Exact(lambda partial, stream, row: row % 4 == 0)
    run = simulate_ring(feed, setting, exact, drivers=[feed.rows - 1])
    load = RingLoad.alike(streams=3, stored=stored, selectivity=0.25, costs=setting.costs)
    markers_s = COSTS.send_s * nodes * 2
    assert sum(run.busy_s) == pytest.approx(load.ring_s(nodes), abs=markers_s)
    assert run.results == load.results == 100
    assert run.finished_s == pytest.approx(load.latency_s(nodes, rounds=2), rel=0.25)


def test_bandwidth_shows_where_it_is_short() -> None:
    """Equation 6: with what it asks for, rows are there in time; with a tenth of it, nodes wait for them."""
    feed = Feed.of([range(0, 4000, 5), range(0, 4000, 5)])
    layout, costs = Layout.even((2000,) * 2, 4), replace(COSTS, send_s=0.0, hop_s=0.0)
    load = RingLoad((400.0,), (0.05,), costs)
    needed_s = 1 / load.bandwidth_bytes_s(4, row_bytes=1)
    finished = [
        simulate_ring(
            feed,
            RingSetting(layout, ((1,), (0,)), costs, row_link_s=row_link_s, saturated=True),
            Chance((0.05,) * 2, np.random.default_rng(1)),
            drivers=range(900, 960),
        ).finished_s
        for row_link_s in (0.0, needed_s / 10, needed_s, 10 * needed_s)
    ]
    assert finished[1] < 1.5 * finished[0]
    assert finished == sorted(finished)
    assert finished[3] > 5 * finished[0]


def test_streams_over_rings_of_different_length() -> None:
    case = random_case(8, 3, 4, rows=14)
    for lengths in ((4, 1, 2), (1, 3, 2)):
        layout = Layout.of_lengths(case.windows_us, lengths)
        run = simulate_ring(case.feed, replace(case.setting(), layout=layout), case.matching())
        assert Counter(run.members) == case.expected()


def test_chance_finds_as_much_as_expected() -> None:
    feed = Feed.of([range(0, 4000, 5), range(0, 4000, 5), range(0, 4000, 5)])
    setting = RingSetting(Layout.even((500,) * 3, 5), ((1, 2), (0, 2), (0, 1)), COSTS)
    chance = Chance((0.1,) * 3, np.random.default_rng(1))
    run = simulate_ring(feed, setting, chance, drivers=range(900, 2000, 10))
    assert run.results / len(run.cycles) == pytest.approx(100, rel=0.1)


def test_what_makes_no_ring() -> None:
    layout = Layout.even((10, 10), 2)
    with pytest.raises(UsageError, match="stream 1"):
        RingSetting(layout, ((1,), (1,)), COSTS)
    with pytest.raises(UsageError, match="0 rows at once"):
        RingSetting(layout, ((1,), (0,)), COSTS, concurrent=0)
    with pytest.raises(UsageError, match="slices cannot end"):
        Layout(((5, 3), (5, 5)))
    with pytest.raises(UsageError, match="no row probes"):
        simulate_ring(Feed.of([[1], [2]]), RingSetting(layout, ((1,), (0,)), COSTS), Exact(lambda *_: True), drivers=[])
    with pytest.raises(StateError, match="row 1 of stream 0"):
        SlicedJoin(0, layout, ([1, 2], [1]), delays=False).insert(0, 1, 2)


def test_the_checks_of_these_tests() -> None:
    assert is_partition([(3, 5), (3, 3), (1, 3)], 1, 5)
    assert not is_partition([(3, 5), (2, 4)], 2, 5)
