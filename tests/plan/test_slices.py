"""Slices: a probe that can reach a stored row visits the slice that holds it, and none without need."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.plan.queries import spec_of
from windrow.errors import PlanError
from windrow.plan.slices import (
    KINDS,
    ONE_SLICE,
    SHORTEST_SPAN_US,
    SPANS_A_WINDOW,
    Slices,
    Slicing,
    slicing_key,
    spans_in_turn,
    spans_visited,
    time_slicing,
)

LEAST, MOST = -(2**63), 2**63 - 1

WORDS = st.one_of(
    st.integers(-60, 60), st.integers(LEAST, LEAST + 60), st.integers(MOST - 60, MOST), st.integers(LEAST, MOST)
)
REALS = st.one_of(st.floats(allow_nan=False), st.integers(-60, 60).map(float), st.sampled_from([-0.0, 5e-324]))


def by_time(count: int, span_us: int) -> Slicing:
    return Slicing("a", "time", count, span=span_us)


def by_value(count: int, span: float) -> Slicing:
    return Slicing("a", "range", count, 0, span)


TIMES = st.builds(by_time, st.integers(1, 7), st.one_of(st.integers(1, 12), st.integers(1, 2**61)))
VALUES = st.builds(
    by_value, st.integers(1, 7), st.one_of(st.floats(5e-324, 1.7e308), st.sampled_from([1.0, 0.1, 7.5, 2.0**40]))
)


def check_inside(slicing: Slicing, low: np.ndarray, inside: np.ndarray, high: np.ndarray) -> None:
    homes = spans_in_turn(slicing, inside)
    visited = spans_visited(slicing, low, high)
    assert visited.shape == (len(low), slicing.count)
    assert ((homes >= 0) & (homes < slicing.count)).all()
    assert visited[np.arange(len(low)), homes].all()
    assert (visited.sum(axis=1) >= 1).all()


@given(st.one_of(TIMES, VALUES), st.lists(st.tuples(WORDS, WORDS, WORDS), max_size=8))
@example(by_time(5, 1), [(2**53, 2**53 + 1, 2**53 + 1), (MOST - 3, MOST - 1, MOST), (LEAST, LEAST + 4, LEAST + 4)])
@example(by_time(3, 1), [(LEAST, 0, MOST), (LEAST, LEAST, LEAST), (MOST, MOST, MOST), (-1, 0, 0)])
@example(by_value(3, 1.0), [(LEAST, 0, MOST), (LEAST, LEAST, LEAST), (MOST, MOST, MOST), (-1, 0, 0)])
@example(by_value(5, 5e-324), [(LEAST, 0, MOST), (LEAST, LEAST, LEAST), (MOST - 1, MOST, MOST), (-1, 0, 0)])
def test_whatever_a_range_contains_lies_in_a_visited_slice(slicing: Slicing, drawn: list[tuple[int, int, int]]) -> None:
    ordered = [sorted(three) for three in drawn]
    low, inside, high = (np.array([three[k] for three in ordered], np.int64) for k in range(3))
    check_inside(slicing, low, inside, high)


@given(VALUES, st.lists(st.tuples(REALS, REALS, REALS), max_size=8))
@example(by_value(3, 5e-324), [(0.0, 5e-324, 1e-323), (-np.inf, -1e308, 0.0), (1e308, np.inf, np.inf)])
def test_whatever_a_range_of_floats_contains_lies_in_a_visited_slice(
    slicing: Slicing, drawn: list[tuple[float, float, float]]
) -> None:
    ordered = [sorted(three) for three in drawn]
    low, inside, high = (np.array([three[k] for three in ordered], np.float64) for k in range(3))
    check_inside(slicing, low, inside, high)


@given(TIMES, st.lists(st.tuples(WORDS, WORDS), max_size=8))
def test_a_range_visits_as_many_slices_as_it_has_spans(slicing: Slicing, drawn: list[tuple[int, int]]) -> None:
    low, high = (np.array([pair[k] for pair in drawn], np.int64) for k in range(2))
    span = int(slicing.span or 0)
    spans = [max(0, b // span - a // span + 1) if a <= b else 0 for a, b in drawn]
    assert spans_visited(slicing, low, high).sum(axis=1).tolist() == [min(count, slicing.count) for count in spans]


def test_an_empty_range_visits_nothing_and_neither_does_one_of_nan() -> None:
    low, high = np.array([5, MOST, 0], np.int64), np.array([4, LEAST, -1], np.int64)
    for slicing in (by_time(4, 10), by_value(4, 10.0)):
        assert not spans_visited(slicing, low, high).any()
        assert spans_visited(slicing, low[:0], high[:0]).shape == (0, 4)
    nan = np.array([np.nan, 0.0, np.nan])
    assert spans_visited(by_value(4, 10.0), nan, np.zeros(3)).sum(axis=1).tolist() == [0, 1, 0]
    assert spans_in_turn(by_value(4, 10.0), np.array([np.nan, 10.0, -0.0, 0.0])).tolist() == [0, 1, 0, 0]


def test_rows_go_to_the_slices_in_turn() -> None:
    words = np.arange(-30, 30, dtype=np.int64)
    for slicing in (by_time(3, 5), by_value(3, 5.0)):
        homes = spans_in_turn(slicing, words)
        assert homes.tolist() == [(word // 5) % 3 for word in range(-30, 30)]
        assert np.bincount(homes).tolist() == [20, 20, 20]


@pytest.mark.parametrize("count", [1, 2, 5, 64])
@pytest.mark.parametrize("window_us", [0, 1, 20_000_000, 86_400_000_000, MOST, None])
def test_a_window_is_spread_over_all_slices(count: int, window_us: int | None) -> None:
    slicing = time_slicing("a", count, window_us)
    span_us = int(slicing.span or 0)
    assert (slicing.stream, slicing.kind, slicing.count) == ("a", "time", count)
    assert span_us >= SHORTEST_SPAN_US
    if window_us is not None and window_us >= SPANS_A_WINDOW * count * SHORTEST_SPAN_US:
        assert span_us * SPANS_A_WINDOW * count <= window_us
        assert spans_visited(slicing, np.array([-window_us], np.int64), np.array([0], np.int64)).all()


def test_spans_follow_the_window() -> None:
    assert time_slicing("a", 5, 20_000_000) == by_time(5, 618_033)
    assert time_slicing("a", 2, 0) == by_time(2, SHORTEST_SPAN_US)
    assert time_slicing("a", 3, None) == by_time(3, 3_090_169)


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("window_us", [4_000_000, 20_000_000, 60_000_000, 3_600_000_000])
def test_whole_seconds_do_not_fall_to_one_slice(count: int, window_us: int) -> None:
    homes = spans_in_turn(time_slicing("a", count, window_us), np.arange(600, dtype=np.int64) * 1_000_000)
    assert np.bincount(homes, minlength=count).min() > 600 // count // 3


WRONG: list[tuple[str, int, int | None, float | None]] = [
    ("time", 2, None, None), ("time", 2, 0, 5), ("hash", 2, None, None), ("hash", 2, 0, 1.0), ("range", 2, None, 1.0),
    ("range", 2, 0, None), ("range", 2, 0, 0.0), ("range", 2, 0, float("inf")), ("range", 2, 0, float("nan")),
    ("time", 0, None, 5), ("nothing", 2, 0, 1.0),
]  # fmt: skip


@pytest.mark.parametrize("fields", WRONG, ids=str)
def test_slicings_that_mean_nothing_are_refused(fields: tuple[str, int, int | None, float | None]) -> None:
    kind, count, conjunct, span = fields
    with pytest.raises(PlanError, match="slice"):
        Slicing("a", kind, count, conjunct, span)  # type: ignore[arg-type] # one kind is unknown


def test_slices_are_found_by_stream() -> None:
    slicing = time_slicing("a", 3, 5_000_000)
    assert Slices(3, (slicing,)).of("a") == slicing
    assert (ONE_SLICE.of("x").stream, ONE_SLICE.of("x").count) == ("x", 1)
    with pytest.raises(PlanError, match="how 'b' is sliced"):
        Slices(3, (slicing,)).of("b")
    with pytest.raises(PlanError, match="has 2 slices"):
        Slices(2, (slicing,))
    assert KINDS == ("time", "hash", "range")


def test_keys_are_the_side_of_a_condition_that_reads_the_stream() -> None:
    conjuncts = spec_of("a.i + 1 = b.i AND abs(a.x - b.x) <= 1").conjuncts
    shown = [str(slicing_key(conjuncts, Slicing(name, "hash", 2, 0))) for name in "ab"]
    assert shown == ["a.i + 1", "b.i"]
    assert [str(slicing_key(conjuncts, Slicing(name, "range", 2, 1, 1.0))) for name in "ab"] == ["a.x", "b.x"]
    for wrong in (Slicing("a", "hash", 2, 1), Slicing("c", "hash", 2, 0), Slicing("a", "range", 2, 2, 1.0)):
        with pytest.raises(PlanError, match="has no key of"):
            slicing_key(conjuncts, wrong)
