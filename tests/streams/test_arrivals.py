"""Arrival patterns: golden numbers, closed forms, and what holds for every pattern."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import UsageError
from windrow.streams.arrivals import (
    ARRIVALS,
    SECOND_US,
    Arrivals,
    BModel,
    Constant,
    Poisson,
    Sinusoidal,
    Step,
)

PATTERNS: tuple[Arrivals, ...] = (
    Constant(37.5),
    Poisson(37.5),
    Sinusoidal(37.5, amplitude=1.0, period_s=3),
    Step(((1.5, 50), (0.5, 0))),
    BModel(37.5, bias=0.2, levels=5),
    BModel(37.5, bias=0.8, levels=5, random_side=True),
)


def seeded(seed: int = 7) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_ge_01_poisson_arrivals_have_their_rate_and_exponential_gaps() -> None:
    times_us = Poisson(50).times_us(0, 400, seeded())
    assert len(times_us) / 400 == pytest.approx(50.0, rel=0.03)
    gaps_s = np.diff(times_us) / SECOND_US
    assert np.std(gaps_s) / np.mean(gaps_s) == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("random_side", [False, True])
def test_ge_02_b_model_entropy_per_level(random_side: bool) -> None:
    shares = BModel(100, bias=0.8, levels=10, random_side=random_side).shares(seeded())
    assert len(shares) == 2**10
    assert -np.sum(shares * np.log2(shares)) / 10 == pytest.approx(0.7219281, rel=1e-6)


@pytest.mark.parametrize("bias", [0.2, 0.8])
def test_ge_03_the_first_half_holds_the_bias(bias: float) -> None:
    pattern = BModel(rate_hz=100, bias=bias)
    shares = pattern.shares(seeded())
    assert np.sum(shares[: len(shares) // 2]) == pytest.approx(bias, rel=1e-9)
    times_us = pattern.times_us(0, 100, seeded())
    assert len(times_us) == 10_000
    assert int(np.sum(times_us < 50 * SECOND_US)) == 10_000 * bias


def test_a_random_side_depends_on_the_seed_alone() -> None:
    pattern = BModel(rate_hz=100, bias=0.2, random_side=True)
    again = [pattern.times_us(0, 10, seeded(seed)).tolist() for seed in (1, 1, 2)]
    assert again[0] == again[1] != again[2]


def test_a_sine_without_amplitude_is_constant() -> None:
    expected = Constant(20).times_us(5, 7, seeded())
    np.testing.assert_allclose(Sinusoidal(20, 0, 2).times_us(5, 7, seeded()), expected, atol=1)


def test_a_sine_follows_its_rate() -> None:
    times_s = Sinusoidal(1000, amplitude=0.5, period_s=8).times_us(0, 16, seeded()) / SECOND_US
    counts, edges = np.histogram(times_s, bins=64, range=(0, 16))
    middles = (edges[:-1] + edges[1:]) / 2
    np.testing.assert_allclose(counts / 0.25, 1000 * (1 + 0.5 * np.sin(2 * math.pi * middles / 8)), atol=15)


def test_steps_begin_again_and_a_rate_of_zero_is_silent() -> None:
    times_s = Step(((2, 3), (1, 0), (1, 1))).times_us(0, 9, seeded()) / SECOND_US
    thirds = [0, 1, 2, 3, 4, 5, 9, 12, 13, 14, 15, 16, 17, 21, 24, 25, 26]
    np.testing.assert_allclose(times_s, np.array(thirds) / 3, atol=1e-6)


@pytest.mark.parametrize("pattern", [Constant(0), Poisson(0), Sinusoidal(0, 0.5, 1), Step(((1, 0),)), BModel(0, 0.2)])
def test_a_rate_of_zero_brings_nothing(pattern: Arrivals) -> None:
    assert pattern.times_us(0, 100, seeded()).tolist() == []


@pytest.mark.parametrize("pattern", PATTERNS, ids=repr)
@settings(max_examples=20, deadline=None)
@given(
    start_us=st.integers(-(10**15), 10**15),
    duration_s=st.floats(0, 20),
    seed=st.integers(0, 2**32),
)
def test_times_are_sorted_and_inside(pattern: Arrivals, start_us: int, duration_s: float, seed: int) -> None:
    times_us = pattern.times_us(start_us, duration_s, seeded(seed))
    assert times_us.dtype == np.int64
    assert np.all(np.diff(times_us) >= 0)
    assert np.all((times_us >= start_us) & (times_us < start_us + duration_s * SECOND_US))
    if not isinstance(pattern, Poisson):
        assert len(times_us) <= 37.5 * duration_s + 60


@pytest.mark.parametrize(
    ("make", "shown"),
    [
        (lambda: Constant(-1), "rate_hz is -1"),
        (lambda: Poisson(math.nan), "rate_hz is nan"),
        (lambda: Sinusoidal(1, 1.5, 1), "amplitude is 1.5"),
        (lambda: Sinusoidal(1, 0.5, 0), "period_s is 0"),
        (lambda: Step(()), "at least one"),
        (lambda: Step(((0, 1),)), "duration_s of a step is 0"),
        (lambda: BModel(1, 2), "bias is 2"),
        (lambda: BModel(1, 0.2, 60), "levels is 60"),
        (lambda: Constant(1).times_us(0, -1, seeded()), "duration_s is -1"),
    ],
)
def test_senseless_numbers_are_refused(make: Callable[[], object], shown: str) -> None:
    with pytest.raises(UsageError, match=shown):
        make()


def test_every_pattern_is_registered_under_its_name() -> None:
    assert {type(pattern) for pattern in PATTERNS} == set(ARRIVALS.values())
