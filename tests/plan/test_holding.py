"""What to hold: never more than there is memory for, as good as any split of it, the paper's optimum where lags tell
nothing.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.plan.holding import (
    Curve,
    Direction,
    Floats,
    Steps,
    Stock,
    best_split_of,
    hold,
    hold_cautiously,
    hold_youngest,
)

CELLS = 20
WIDTH = 10
EDGES = np.arange(0, CELLS * WIDTH + 1, WIDTH)
FLAT = (1.0,) * CELLS


def stock(*sizes: float) -> Stock:
    return Stock(EDGES, np.array(sizes * (CELLS // len(sizes)), np.float64))


def curve(*masses: float) -> Curve:
    return Curve(
        tuple(range(0, (len(masses) + 1) * CELLS * WIDTH // len(masses), CELLS * WIDTH // len(masses))), masses
    )


def peak(cell: int) -> Curve:
    return curve(*(float(k == cell) for k in range(CELLS)))


def held(what: Steps) -> Floats:
    """The share of each cell's rows, cell by cell."""
    found = np.zeros(CELLS * WIDTH)
    before = 0
    for age, share in what:
        found[before:age] = share
        before = age
    return np.asarray(found.reshape(CELLS, WIDTH).mean(axis=1))


def spent(stocks: dict[str, Stock], steps: dict[str, Steps]) -> float:
    return sum(float(stocks[name].bytes @ held(what)) for name, what in steps.items())


def output(stocks: dict[str, Stock], directions: tuple[Direction, ...], steps: dict[str, Steps]) -> float:
    """By hand: of each direction's results those whose members are all held."""
    return sum(
        direction.results_hz
        * float(np.prod([lags.over(stocks[name]) @ held(steps[name]) for name, lags in direction.lags.items()]))
        for direction in directions
    )


def test_without_lags_all_memory_goes_to_the_slower_stream() -> None:
    stocks = {"slow": stock(10.0), "fast": stock(30.0)}
    directions = (Direction(300.0, {"fast": curve(*FLAT)}), Direction(300.0, {"slow": curve(*FLAT)}))
    steps = hold(stocks, directions, budget=150, explored=0.0)
    assert steps["slow"][0][0] == pytest.approx(150, abs=3)
    assert steps["fast"] == ()


def test_what_lies_far_back_is_held_thinly_for_long_enough() -> None:
    stocks = {"a": stock(10.0), "b": stock(10.0)}
    directions = (Direction(10.0, {"b": peak(14)}), Direction(0.001, {"a": curve(*FLAT)}))
    steps = hold(stocks, directions, budget=75, explored=0.0)
    assert steps["b"][-1][0] == 150
    assert steps["b"][-1][1] == pytest.approx(0.5, rel=0.06)
    youngest = hold_youngest(stocks, "equal", {"a": 1.0, "b": 1.0}, 75)
    assert output(stocks, directions, youngest) < 0.01 < output(stocks, directions, steps)


def test_older_than_all_that_is_searched_goes_first() -> None:
    stocks = {"a": stock(10.0), "b": stock(10.0)}
    near = curve(*(1.0 if k in (2, 7) else 0.0 for k in range(CELLS)))
    directions = (Direction(1.0, {"b": near}), Direction(1.0, {"a": peak(1)}))
    steps = hold(stocks, directions, budget=110, explored=0.0)
    assert held(steps["b"])[:8].tolist() == [1.0] * 8
    assert held(steps["a"])[:2].tolist() == [1.0] * 2


@settings(max_examples=40)
@given(
    st.integers(2, 4),
    st.integers(0, 10**6),
    st.sampled_from((0.05, 0.1, 0.3, 0.6, 0.95)),
    st.sampled_from((0.0, 0.01, 0.25)),
)
def test_the_memory_is_never_exceeded(streams: int, seed: int, share: float, explored: float) -> None:
    stocks, directions = drawn(streams, seed)
    budget = share * sum(one.total for one in stocks.values())
    for steps in (
        hold(stocks, directions, budget, explored),
        hold_cautiously(stocks, {name: one.total for name, one in stocks.items()}, budget, explored),
    ):
        assert spent(stocks, steps) <= budget * 1.01
        assert all(np.all(np.diff(held(what)) <= 1e-12) for what in steps.values())


@pytest.mark.parametrize("streams", [2, 3])
@pytest.mark.parametrize("share", [0.1, 0.3, 0.6])
def test_no_strategy_of_the_paper_promises_more(streams: int, share: float) -> None:
    for seed in range(6):
        stocks, directions = drawn(streams, seed)
        rates = {name: float(one.total) for name, one in stocks.items()}
        budget = share * sum(rates.values())
        ours = output(stocks, directions, hold(stocks, directions, budget, explored=0.0))
        for strategy in ("slowest", "fastest", "proportional", "inverse", "equal"):
            theirs = output(stocks, directions, hold_youngest(stocks, strategy, rates, budget))
            assert ours >= 0.97 * theirs, (seed, strategy)


def test_two_streams_reach_the_best_of_all_whole_spans() -> None:
    for seed in range(5):
        stocks, directions = drawn(2, seed)
        budget = 0.3 * sum(one.total for one in stocks.values())
        ours = output(stocks, directions, hold(stocks, directions, budget, explored=0.0))
        best = 0.0
        for ages in itertools.product(range(0, CELLS * WIDTH + 1, WIDTH), repeat=2):
            steps: dict[str, Steps] = {name: ((age, 1.0),) for name, age in zip(stocks, ages, strict=True)}
            if spent(stocks, steps) <= budget:
                best = max(best, output(stocks, directions, steps))
        assert ours >= 0.97 * best, seed


def test_everything_is_held_where_there_is_room() -> None:
    stocks, directions = drawn(3, 1)
    steps = hold(stocks, directions, budget=1e9, explored=0.01)
    assert all(what == ((CELLS * WIDTH, 1.0),) for what in steps.values())


def test_a_split_is_of_all_the_memory() -> None:
    stocks, directions = drawn(4, 2)
    assert sum(best_split_of(stocks, directions, 100.0).values()) == pytest.approx(1.0)


def drawn(streams: int, seed: int) -> tuple[dict[str, Stock], tuple[Direction, ...]]:
    random = np.random.default_rng(seed)
    names = "abcd"[:streams]
    stocks = {name: Stock(EDGES, random.uniform(1, 30) * np.ones(CELLS)) for name in names}
    directions = []
    for driver in names:
        lags = {}
        for name in names:
            if name != driver:
                middle, width = random.uniform(0, CELLS), random.uniform(1, 8)
                lags[name] = curve(*np.exp(-0.5 * ((np.arange(CELLS) - middle) / width) ** 2).tolist())
        directions.append(Direction(float(random.uniform(0.1, 10)), lags))
    return stocks, tuple(directions)
