"""The paper's model of two streams under a memory limit (KN-20, KN-21, KN-22), and how strategies share memory out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import PlanError, UsageError
from windrow.plan.memory import (
    REGULATED,
    STRATEGIES,
    best_split,
    limit_bytes,
    oldest_searched,
    output_rate,
    regulated_output,
    share_out,
    unsearched,
)

RATES = st.floats(0.1, 1000)


@given(RATES, RATES, st.floats(0, 1), st.floats(1, 10_000))
def test_output_is_equation_13_of_the_slower_streams_span(
    rate_a: float, rate_b: float, part: float, rows: float
) -> None:
    span_a = part * rows / rate_a
    by_hand = 0.01 * (rate_b - rate_a) * rate_a * span_a + 0.01 * rate_a * rows
    stored = (rate_a * span_a, rows - rate_a * span_a)
    assert output_rate(0.01, (rate_a, rate_b), stored) == pytest.approx(by_hand, rel=1e-9)


def test_equation_13_by_numbers() -> None:
    assert output_rate(0.01, (5, 45), (500, 500)) == pytest.approx(250.0)
    found = [output_rate(0.01, (5, 5), (stored, 1000 - stored)) for stored in (0, 250, 500, 1000)]
    assert found == pytest.approx([50.0] * 4)


@given(RATES, RATES, st.floats(1, 10_000), st.floats(0, 1))
def test_no_split_beats_all_memory_for_the_slower_stream(
    rate_a: float, rate_b: float, memory: float, part: float
) -> None:
    best = output_rate(0.01, (rate_a, rate_b), best_split((rate_a, rate_b), memory))
    assert best >= output_rate(0.01, (rate_a, rate_b), (part * memory, (1 - part) * memory)) * (1 - 1e-12)


def test_all_memory_for_the_slower_stream() -> None:
    assert best_split((5, 45), 1000) == (1000.0, 0.0)
    assert best_split((45, 5), 1000) == (0.0, 1000.0)
    assert share_out("slowest", (5, 45), 1000, (5000, 5000)) == (1000.0, 0.0)


def test_where_rates_may_be_chosen_one_stream_is_stored_and_the_other_let_in() -> None:
    found = {
        name: regulated_output(0.01, service_hz=10, memory=100, share=share, stored_a=100 * stored)
        for name, (share, stored) in REGULATED.items()
    }
    assert found == {
        "a stored, b let in": pytest.approx(10.0),
        "b stored, a let in": pytest.approx(10.0),
        "equal": pytest.approx(5.0),
        "a stored, a let in": pytest.approx(0.0),
        "b stored, b let in": pytest.approx(0.0),
    }
    assert regulated_output(0.01, 10, 100, share=0.01, stored_a=100) == pytest.approx(9.9)


def test_figure_9_ranks_the_strategies() -> None:
    rates = (10.0, 50.0)
    found = {name: output_rate(0.01, rates, share_out(name, rates, 1000, (1e9, 1e9))) for name in STRATEGIES}
    assert sorted(found, key=lambda name: -found[name]) == ["slowest", "inverse", "equal", "proportional", "fastest"]


@given(
    st.sampled_from(sorted(STRATEGIES)),
    st.lists(st.tuples(RATES, st.floats(0, 1000)), min_size=2, max_size=5),
    st.floats(0, 3000),
)
def test_memory_is_used_as_far_as_there_is_use_for_it(
    strategy: str, streams: list[tuple[float, float]], memory: float
) -> None:
    rates, full = zip(*streams, strict=True)
    given_out = share_out(strategy, rates, memory, full)
    assert all(0 <= part <= need * (1 + 1e-9) for part, need in zip(given_out, full, strict=True))
    assert sum(given_out) == pytest.approx(min(memory, sum(full)), rel=1e-6, abs=1e-6)


def test_an_unknown_strategy_is_refused() -> None:
    with pytest.raises(PlanError, match="no strategy 'largest'"):
        share_out("largest", (1, 1), 10, (10, 10))


def test_windows_older_than_any_that_is_searched_may_go() -> None:
    assert unsearched({1: 0, 2: 0, 3: 1, 4: 0, 5: 0}) == {4, 5}
    assert unsearched({1: 0, 2: 0}) == {1, 2}
    assert oldest_searched([((0, 5), (20, 30)), ()], window=25) == 25
    assert oldest_searched([(), ()], window=25) == 0


@pytest.mark.parametrize(("text", "size"), [("500MB", 500_000_000), ("2 KiB", 2048), ("1_000", 1000), (7, 7)])
def test_limits_are_read(text: str | int, size: int) -> None:
    assert limit_bytes(text) == size


@pytest.mark.parametrize("text", ["", "much", "-5MB", "0", "5 MX", "0.1"])
def test_what_is_no_limit_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UsageError, match="is not a memory limit") as refused:
        limit_bytes(text)
    assert "\n" not in str(refused.value)
