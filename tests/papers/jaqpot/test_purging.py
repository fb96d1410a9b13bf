"""The simulation of states purged by insertion agrees with the arithmetic of freshness."""

from __future__ import annotations

import numpy as np
import pytest

from windrow.papers.jaqpot.purging import Clock, Ring, stale_shares
from windrow.plan.directions import Join, Model, State, allocate, least_resources, stream
from windrow.plan.directions.instances import times_window

CLOCK = Clock(step_s=0.05, warm_up_s=15, measured_s=5)
LEAVES = {name: stream(name, 100, 200, 0.05) for name in "abcd"}
LINEAR = Join(Join(Join(LEAVES["a"], LEAVES["b"], State(200, 0.05)), LEAVES["c"], State(200, 0.05)), LEAVES["d"])
BUSHY = Join(Join(LEAVES["a"], LEAVES["b"], State(200, 0.05)), Join(LEAVES["c"], LEAVES["d"], State(200, 0.05)))


@pytest.mark.parametrize("tree", [LINEAR, BUSHY], ids=["linear", "bushy"])
def test_what_is_feasible_is_fresh_and_the_most_productive_paths_alone_are_not(tree: Join) -> None:
    model = Model.of(tree)
    wanted = times_window(model, 3.0)
    needed = least_resources(model, model.per_stream(wanted))
    assert needed is not None
    kept = allocate(tree, 1.1 * needed, wanted)
    assert kept.infeasible is None
    (share,) = stale_shares(tree, kept.probing_hz, [wanted], CLOCK, np.random.default_rng(1))
    assert share < 0.02
    starved_hz = {**dict.fromkeys(kept.probing_hz, 0.0), "d": 50.0, "(c d)": 50.0, "a": 1.0, "(a b)": 1.0}
    (share,) = stale_shares(tree, starved_hz, [wanted], CLOCK, np.random.default_rng(1))
    assert share > 0.9


def test_half_the_refreshing_is_not_enough() -> None:
    """Rows of a spend 2 s in their window and 200 / y s in the state of (a b)."""
    tree = Join(Join(LEAVES["a"], LEAVES["b"], State(200, 0.05)), LEAVES["c"])
    asked = [{"a": 4.0, "b": 4.0}]
    allowed_hz = {"a": 10.0, "b": 10.0, "(a b)": 110.0, "c": 100.0}
    enough = stale_shares(tree, allowed_hz, asked, CLOCK, np.random.default_rng(2))
    half = stale_shares(tree, allowed_hz | {"(a b)": 55.0}, asked, CLOCK, np.random.default_rng(2))
    assert enough[0] < 0.02 < 0.1 < half[0]


def test_no_results_are_not_stale() -> None:
    assert stale_shares(BUSHY, {}, [{"a": 1.0}], Clock(0.5, 1, 1), np.random.default_rng(1)) == (0.0,)


@pytest.mark.parametrize("sizes", [(3, 4, 2), (0, 10, 1), (5, 5, 5), (12,)])
def test_a_ring_holds_the_newest(sizes: tuple[int, ...]) -> None:
    ring = Ring(np.zeros((5, 1)))
    rows = np.arange(1.0, sum(sizes) + 1)[:, None]
    for part in np.split(rows, np.cumsum(sizes)[:-1]):
        ring.insert(part)
    assert sorted(ring.happened_s[:, 0]) == sorted(np.concatenate((np.zeros(5), rows[:, 0]))[-5:])
