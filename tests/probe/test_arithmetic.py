"""Arithmetic with SQL's edges against Python's integers, which have none, and its Decimal."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from windrow.probe import arithmetic
from windrow.probe.arithmetic import DAY_US, LARGEST, SMALLEST

words = st.one_of(
    st.integers(SMALLEST, LARGEST),
    st.integers(-10, 10),
    st.builds(
        lambda power, step, sign: max(SMALLEST, min(LARGEST, sign * (2**power + step))),
        st.integers(28, 63),
        st.integers(-2, 2),
        st.sampled_from((1, -1)),
    ),
)
floats = st.floats(allow_nan=False)


def truncated(left: int, right: int) -> int:
    return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)


EXACT: dict[str, Callable[[int, int], int | None]] = {
    "add_exact": lambda left, right: left + right,
    "subtract_exact": lambda left, right: left - right,
    "multiply_exact": lambda left, right: left * right,
    "divide_exact": lambda left, right: truncated(left, right) if right else None,
    "modulo_exact": lambda left, right: left - truncated(left, right) * right if right else None,
}


@pytest.mark.parametrize("name", EXACT)
@given(left=words, right=words)
@example(left=SMALLEST, right=-1)
@example(left=-1, right=SMALLEST)
@example(left=SMALLEST, right=1)
@example(left=SMALLEST, right=10)
@example(left=3_037_000_500, right=3_037_000_500)
@example(left=3_037_000_499, right=3_037_000_500)
@example(left=2**32, right=-(2**31))
@example(left=2**32, right=2**31)
def test_words_are_exact_or_do_not_fit(name: str, left: int, right: int) -> None:
    exact = EXACT[name](left, right)
    if name == "modulo_exact" and (left, right) == (SMALLEST, -1):
        exact = None  # the quotient does not fit
    value, fits = getattr(arithmetic, name)(left, right)
    assert fits == (exact is not None and SMALLEST <= exact <= LARGEST)
    if fits:
        assert value == exact


@given(floats, floats)
def test_quotients_and_remainders_of_floats(left: float, right: float) -> None:
    quotient, remainder = arithmetic.divide_float(left, right), arithmetic.modulo_float(left, right)
    if right == 0:
        assert math.isnan(quotient)
        assert math.isnan(remainder)
        return
    with np.errstate(all="ignore"):
        expected = float(np.float64(left) / np.float64(right))
    assert quotient == expected or (math.isnan(quotient) and math.isnan(expected))
    if math.isinf(left):
        assert math.isnan(remainder)
    else:
        assert remainder == math.fmod(left, right)


@given(st.floats(width=32, allow_nan=False), st.floats(width=32, allow_nan=False))
def test_single_quotients_are_rounded_once(left: float, right: float) -> None:
    divide: Callable[..., Any] = arithmetic.divide_single
    found = divide(np.float32(left), np.float32(right))
    with np.errstate(all="ignore"):
        expected = np.float32(np.nan) if right == 0 else np.float32(left) / np.float32(right)
    assert found == expected or (np.isnan(found) and np.isnan(expected))


@given(st.one_of(floats, st.integers(-(10**6), 10**6).map(lambda half: half / 2)), st.sampled_from((8, 16, 32, 64)))
@example(9.223372036854775807e18, 64)
@example(-9.223372036854775808e18, 64)
@example(127.5, 8)
@example(-128.5, 8)
@example(math.inf, 64)
@example(math.nan, 64)
def test_floats_become_the_nearest_integer(value: float, bits: int) -> None:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    found, fits = arithmetic.float_to_integer(value, low, high)
    if not math.isfinite(value):
        assert not fits
        return
    exact = int(Decimal(value).quantize(Decimal(1), ROUND_HALF_EVEN)) if abs(value) < 2**53 else int(value)
    assert fits == (low <= exact <= high)
    if fits:
        assert found == exact


@given(floats)
@example(3.4028235677973366e38)
@example(3.4028234e38)
@example(-math.inf)
def test_doubles_beyond_32_bits_are_null(value: float) -> None:
    with np.errstate(over="ignore"):
        expected = np.float32(value)
    found = arithmetic.float_to_single(value)
    assert np.isnan(found) if np.isinf(expected) and math.isfinite(value) else found == expected


ROUNDED = {"scale_down": ROUND_HALF_UP, "floor_scaled": ROUND_FLOOR, "ceil_scaled": ROUND_CEILING}


@pytest.mark.parametrize("name", ROUNDED)
@given(value=st.integers(-(10**18) + 1, 10**18 - 1), scale=st.integers(1, 18))
@example(value=-5, scale=1)
@example(value=15, scale=1)
@example(value=-15, scale=1)
def test_decimals_lose_digits(name: str, value: int, scale: int) -> None:
    exact = (Decimal(value) / Decimal(10) ** scale).quantize(Decimal(1), ROUNDED[name])
    assert getattr(arithmetic, name)(value, 10**scale) == int(exact)


@given(st.integers(-(2**53), 2**53), st.integers(0, 15))
def test_short_decimals_become_the_nearest_float(value: int, scale: int) -> None:
    assert arithmetic.decimal_to_float(value, 10**scale) == float(Decimal(value) / Decimal(10) ** scale)


@given(st.integers(-(10**18) + 1, 10**18 - 1), st.integers(0, 18))
def test_long_decimals_are_close(value: int, scale: int) -> None:
    exact = Decimal(value) / Decimal(10) ** scale
    assert arithmetic.decimal_to_float(value, 10**scale) == pytest.approx(float(exact), rel=3e-16)


@given(st.floats(allow_nan=False))
def test_square_roots(value: float) -> None:
    found = arithmetic.square_root(value)
    assert math.isnan(found) if value < 0 else found == math.sqrt(value)


@given(st.dates(), st.integers(0, DAY_US - 1))
@example(dt.date(1, 1, 1), 0)
@example(dt.date(1600, 2, 29), DAY_US - 1)
@example(dt.date(1900, 3, 1), 0)
@example(dt.date(1969, 12, 31), DAY_US - 1)
@example(dt.date(9999, 12, 31), 0)
def test_month_numbers_are_those_of_the_calendar(day: dt.date, rest_us: int) -> None:
    time_us = (day - dt.date(1970, 1, 1)).days * DAY_US + rest_us
    epoch = arithmetic.month_number(0)
    assert arithmetic.month_number(time_us) - epoch == (day.year - 1970) * 12 + day.month - 1


def test_month_numbers_go_back_without_end() -> None:
    years = [arithmetic.month_number(-year * 146097 * DAY_US // 400) for year in (0, 400, 800, 4000)]
    assert [years[0] - each for each in years] == [0, 4800, 9600, 48000]


PLACES = {
    "the same place": ((48.1, 11.6, 48.1, 11.6), 0.0),
    "a quarter of the meridian": ((0.0, 0.0, 90.0, 7.0), math.pi / 2 * 6371008.8),
    "half way round": ((0.0, 0.0, 0.0, 180.0), math.pi * 6371008.8),
    "over the date line": ((0.0, 179.5, 0.0, -179.5), math.radians(1) * 6371008.8),
    "Munich to Berlin": ((48.137, 11.575, 52.52, 13.405), 504_250.0),
}


@pytest.mark.parametrize("name", PLACES)
def test_great_circles(name: str) -> None:
    places, metres = PLACES[name]
    assert arithmetic.haversine_m(*places) == pytest.approx(metres, rel=1e-3, abs=1e-6)
    first, second = places[:2], places[2:]
    assert arithmetic.haversine_m(*second, *first) == pytest.approx(arithmetic.haversine_m(*places), rel=1e-12)


def vectors_of(seed: int, kind: Any) -> Any:
    return np.random.default_rng(seed).normal(size=(6, 5)).astype(kind)


@pytest.mark.parametrize("kinds", [(np.float32, np.float32), (np.float32, np.float64), (np.float64, np.float64)])
def test_vector_functions_sum_in_index_order(kinds: tuple[Any, Any]) -> None:
    left, right = vectors_of(1, kinds[0]), vectors_of(2, kinds[1])
    left[3] = 0
    for i in range(6):
        for j in range(6):
            one, two = [float(x) for x in left[i]], [float(x) for x in right[j]]
            product = squares_one = squares_two = gaps = 0.0
            for x, y in zip(one, two, strict=True):
                product, gaps = product + x * y, gaps + (x - y) * (x - y)
                squares_one, squares_two = squares_one + x * x, squares_two + y * y
            assert arithmetic.dot(left, i, right, j) == product
            assert arithmetic.l2(left, i, right, j) == math.sqrt(gaps)
            cosine = arithmetic.cosine(left, i, right, j)
            if i == 3:
                assert math.isnan(cosine)
            else:
                assert cosine == product / (math.sqrt(squares_one) * math.sqrt(squares_two))
