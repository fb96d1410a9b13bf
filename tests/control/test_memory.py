"""What is learned for the memory: what would be found if nothing were let go, how much is spent on looking around."""

from __future__ import annotations

import json

import numpy as np
import pytest

from windrow.control.lags import Learned
from windrow.control.memory import Exposure, Holding, directions_of, searched
from windrow.control.observation import Joined, PathTally, StepTally
from windrow.plan.bins import Bins
from windrow.plan.holding import Curve, Direction, Stock
from windrow.plan.shedding import Portion, sampled

PATHS = {"a": ("b",)}
CUT = Bins(window=100, count=4)


def tally(found: tuple[float, ...], exposed: tuple[float, ...], drivers: int = 100) -> PathTally:
    results = int(sum(found))
    steps = (StepTally(drivers, 1000, 1000, results),)
    return PathTally(drivers, results, steps, (found,), 0.0, (), (0,), (exposed,))


def learned(found: tuple[float, ...], drivers: int = 100) -> dict[str, Learned]:
    others = {"a": tally(found, (), drivers)}
    return {"a": Learned.empty(PATHS, {"b": 4}).after({}, others, throttle=1.0, keep=1.0)}


def test_exposure_is_the_share_that_was_held_over_all_drivers() -> None:
    joined = Joined(others={"a": tally((0.0,) * 4, (100.0, 100.0, 50.0, 0.0))})
    exposure = Exposure().after(joined, PATHS, {"a": ("a",)}, {"a": 1.0})
    exposure = exposure.after(Joined(others={"a": tally((0.0,) * 4, (100.0,) * 4)}), PATHS, {"a": ("a",)}, {"a": 1.0})
    assert exposure.share("a", "b", 4).tolist() == [1.0, 1.0, 0.75, 0.5]
    assert exposure.share("b", "a", 4).tolist() == [1.0] * 4
    assert Exposure.from_values(json.loads(json.dumps(exposure.to_values()))) == exposure


def test_what_was_let_go_counts_as_if_it_were_there() -> None:
    joined = Joined(others={"a": tally((100.0, 0.0, 100.0, 0.0), (100.0, 100.0, 10.0, 10.0))})
    exposure = Exposure().after(joined, PATHS, {"a": ("a",)}, {"a": 1.0})
    (direction,) = directions_of(
        learned((100.0, 0.0, 100.0, 0.0)), exposure, PATHS, {"a": (CUT,)}, {"a": 10.0, "b": 10.0}, {}
    )
    near, _, far, _ = direction.lags["b"].masses
    assert 5 < far / near < 10
    assert direction.results_hz > 2 * 10.0


def test_lags_that_a_harvest_does_not_search_promise_nothing() -> None:
    portions = {"a": (sampled(0.1, 1), Portion(0.9, (((0, 25), (50, 75)),)))}
    (direction,) = directions_of(
        learned((50.0, 50.0, 50.0, 50.0)), Exposure(), PATHS, {"a": (CUT,)}, {"a": 10.0, "b": 10.0}, portions
    )
    masses = direction.lags["b"].masses
    assert masses[0] == pytest.approx(masses[2], rel=0.05)
    assert (masses[1], masses[3]) == (0.0, 0.0)
    assert searched([], CUT).tolist() == [1.0] * 4


def stocks() -> dict[str, Stock]:
    return {name: Stock(np.arange(0, 101, 5), np.full(20, 10.0)) for name in "ab"}


def directions() -> tuple[Direction, ...]:
    curve = Curve((0, 50, 101), (1.0, 0.2))
    return (Direction(10.0, {"b": curve}), Direction(10.0, {"a": curve}))


def test_half_of_the_memory_looks_around_until_enough_was_seen() -> None:
    held = {
        results: Holding("expected", {"a": 1.0, "b": 1.0}, directions(), results).spans(stocks(), 200.0)
        for results in (0.0, 100.0, 1e6)
    }
    thin = {results: spans[0].steps[-1][1] for results, spans in held.items()}
    assert thin[0.0] > thin[100.0] > thin[1e6] > 0
    assert all(span.steps[0][1] == 1.0 for spans in held.values() for span in spans)


def test_a_split_goes_half_way_from_the_one_before() -> None:
    holding = Holding("expected", {"a": 1.0, "b": 1.0}, directions(), 1e6, before={"a": 1.0, "b": 0.0})
    holding.spans(stocks(), 200.0)
    assert holding.split == pytest.approx({"a": 0.75, "b": 0.25}, abs=0.02)
