"""A ring that is sliced anew while it runs neither loses nor doubles a result."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pytest

from tests.run.cluster.rings import COSTS, Case, is_partition, random_case
from windrow.errors import UsageError
from windrow.plan.ring.balance import imbalance
from windrow.plan.ring.relocation import passive_ends
from windrow.run.cluster.adapting import Adapting
from windrow.run.cluster.feed import Feed
from windrow.run.cluster.layout import Layout
from windrow.run.cluster.matching import Chance
from windrow.run.cluster.reslicing import Change, Spans
from windrow.run.cluster.ring import RingSetting, simulate_ring
from windrow.streams.arrivals import Step


@dataclass
class Played:
    """Changes at given event times."""

    changes: list[tuple[int, Change]]
    held: list[list[Spans]] = field(default_factory=list)

    def due(self, time_us: int) -> bool:
        return bool(self.changes) and self.changes[0][0] <= time_us

    def change(self, time_us: int, held: list[Spans]) -> Change:
        self.held.append(held)
        return self.changes.pop(0)[1]


def even(case: Case, nodes: int, at_once: bool) -> Change:
    return Change(Layout.even(case.windows_us, nodes), at_once)


@pytest.mark.parametrize("concurrent", [1, 4])
@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("streams", [2, 3])
def test_nodes_that_come_lose_nothing(streams: int, at_once: bool, concurrent: int) -> None:
    for seed in range(4):
        case = random_case(seed, streams, 2, rows=20)
        changes = [(time, even(case, nodes, at_once)) for time, nodes in ((15, 3), (25, 6), (40, 7))]
        setting = case.setting(concurrent=concurrent, delay_s=0.01)
        played = Played(changes)
        run = simulate_ring(case.feed, setting, case.matching(), seed=seed, reslicing=played)
        assert Counter(run.members) == case.expected()
        assert run.nodes == 7
        for held in played.held:
            for stream in range(streams):
                spans = [each[stream] for each in held]
                assert is_partition(spans, spans[-1][0], spans[0][1])


def test_nodes_that_go_lose_nothing() -> None:
    case = random_case(1, 3, 5, rows=25)
    run = simulate_ring(case.feed, case.setting(), case.matching(), reslicing=Played([(25, even(case, 2, True))]))
    assert Counter(run.members) == case.expected()
    assert run.nodes == 2


def test_nodes_that_go_passively_leave_when_they_are_empty() -> None:
    case = random_case(2, 3, 4, rows=25)
    empty = Layout(tuple(tuple(int(end) for end in passive_ends(window, 4, -2)) for window in case.windows_us))
    gone = even(case, 2, False)
    played = Played([(20, Change(empty, False)), (20 + max(case.windows_us), gone)])
    run = simulate_ring(case.feed, case.setting(), case.matching(), reslicing=played)
    assert Counter(run.members) == case.expected()
    assert run.nodes == 2
    with pytest.raises(UsageError, match="still holds rows"):
        simulate_ring(case.feed, case.setting(), case.matching(), reslicing=Played([(20, gone)]))


def test_slices_by_count_lose_nothing() -> None:
    for seed in range(3):
        case = random_case(seed, 3, 3, rows=25)
        counted = Layout.counted(case.windows_us, (5, 6, 4), 4)
        played = Played(
            [(20, Change(counted, True)), (35, Change(Layout.counted(case.windows_us, (1, 1, 1), 4), False))]
        )
        run = simulate_ring(case.feed, case.setting(), case.matching(), reslicing=played)
        assert Counter(run.members) == case.expected()


def test_slices_by_count_smooth_what_fluctuates() -> None:
    """Section 6: when rates come and go, slices of equal count are loaded more evenly than slices of equal age."""
    feed = Feed.drawn([Step(((2, 100), (2, 10)))] * 2, 40, seed=1)
    windows, nodes = (8_000_000,) * 2, 6
    stored = [count * 8 // 20 for count in feed.before(feed.position_at(20))]
    layouts = Layout.even(windows, nodes), Layout.counted(windows, stored, nodes)
    busiest = [
        imbalance(
            simulate_ring(
                feed,
                RingSetting(layout, ((1,), (0,)), COSTS, saturated=True),
                Chance((0.01,) * 2, np.random.default_rng(1)),
                drivers=feed.sample(start_s, start_s + 0.5, 15),
            ).busy_s
        )
        for layout in layouts
        for start_s in (14.0, 17.0, 19.0)
    ]
    assert max(busiest[3:]) < min(busiest[:3])
    assert max(busiest[3:]) < 1.25


def test_moving_at_once_takes_time_and_traffic() -> None:
    case = random_case(3, 3, 3, rows=25)
    quiet, moved = (
        simulate_ring(case.feed, case.setting(saturated=True), case.matching(), reslicing=Played(changes))
        for changes in ([], [(30, even(case, 3, True))])
    )
    assert moved.sent_rows > quiet.sent_rows
    pauses = [max(later.begin_s - earlier.end_s for earlier, later in pairwise(run.cycles)) for run in (quiet, moved)]
    assert pauses[0] < COSTS.hop_s < pauses[1]


@pytest.mark.parametrize("at_once", [True, False])
def test_adapting_to_a_higher_rate(at_once: bool) -> None:
    """PS-28: with the rate doubled, latency is lower than on the ring that stays as it was."""
    random = np.random.default_rng(1)
    arrivals = Step(((20, 50), (20, 100)))
    feed = Feed.drawn([arrivals] * 3, 40, seed=1)
    windows, costs = (4_000_000,) * 3, COSTS
    setting = RingSetting(Layout.even(windows, 4), ((1, 2), (0, 2), (0, 1)), costs, saturated=True)
    adapting = Adapting(windows, (0.05,) * 3, costs, slots=19, interval_s=1, at_once=at_once)
    drivers = feed.sample(8, 38, 70)
    runs = [
        simulate_ring(feed, setting, Chance((0.05,) * 3, random), drivers=drivers, reslicing=reslicing)
        for reslicing in (None, adapting)
    ]
    after = [run.within(lambda cycle: feed.time_us(cycle.position) > 26_000_000).latency_s for run in runs]
    assert after[1] < after[0]
    assert adapting.lengths[-1][1] > adapting.lengths[0][1]
    assert runs[1].nodes == adapting.lengths[-1][1]
