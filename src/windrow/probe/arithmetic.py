"""Scalar arithmetic with SQL's edges, for generated predicates to call.

Integers, decimals, dates and times are int64 inside; each operation that can leave its range returns (value, fits),
and the caller turns "does not fit" into NULL. Floats need no flag: their NULL is NaN.

>>> add_exact(2**62, 2**62)[1], multiply_exact(3, -4)
(False, (-12, True))
>>> float_to_integer(2.5, -128, 127), float_to_integer(1e3, -128, 127)[1]
((2, True), False)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windrow.probe.jit import compiled

Matrix = NDArray[Any]

LARGEST = 2**63 - 1
SMALLEST = -(2**63)


@compiled
def add_exact(left: int, right: int) -> tuple[int, bool]:
    """The sum, and whether it fits 64 bits."""
    if (right > 0 and left > LARGEST - right) or (right < 0 and left < SMALLEST - right):
        return 0, False
    return left + right, True


@compiled
def subtract_exact(left: int, right: int) -> tuple[int, bool]:
    """The difference, and whether it fits 64 bits."""
    if (right < 0 and left > LARGEST + right) or (right > 0 and left < SMALLEST + right):
        return 0, False
    return left - right, True


@compiled
def multiply_exact(left: int, right: int) -> tuple[int, bool]:
    """The product, and whether it fits 64 bits."""
    estimate = float(left) * float(right)
    if -9.2e18 < estimate < 9.2e18:
        return left * right, True
    if not -9.3e18 < estimate < 9.3e18:
        return 0, False
    # Near the edge the exact size fits 64 bits without sign. The product itself may not be looked at before it is known
    # to fit: the compiler takes it for granted that signed words do not overflow.
    size = np.uint64(abs(left)) * np.uint64(abs(right))
    limit = np.uint64(LARGEST) + np.uint64((left < 0) != (right < 0))
    return (left * right, True) if size <= limit else (0, False)


@compiled
def divide_exact(left: int, right: int) -> tuple[int, bool]:
    """The quotient cut towards zero, as SQL's integer division."""
    if right == 0 or (left == SMALLEST and right == -1):
        return 0, False
    quotient = left // right
    if quotient < 0 and quotient * right != left:
        quotient += 1
    return quotient, True


@compiled
def modulo_exact(left: int, right: int) -> tuple[int, bool]:
    """The remainder with the sign of the dividend; as in SQL it does not fit where the quotient does not."""
    if right == 0:
        return 0, False
    if right == -1:
        return 0, left != SMALLEST
    remainder = left % right
    if remainder != 0 and (remainder < 0) != (left < 0):
        remainder -= right
    return remainder, True


@compiled
def divide_float(left: float, right: float) -> float:
    """The quotient; NaN, hence NULL, where the divisor is zero."""
    return left / right if right != 0.0 else np.nan


@compiled
def divide_single(left: float, right: float) -> np.float32:
    """The quotient in 32 bits; NaN, hence NULL, where the divisor is zero."""
    return np.float32(left / right) if right != 0.0 else np.float32(np.nan)


@compiled
def modulo_float(left: float, right: float) -> float:
    """The remainder with the sign of the dividend; NaN, hence NULL, where the divisor is zero."""
    return np.fmod(left, right) if right != 0.0 else np.nan


@compiled
def square_root(value: float) -> float:
    """The square root; NaN, hence NULL, of a negative number."""
    return math.sqrt(value) if value >= 0.0 else np.nan


@compiled
def float_to_integer(value: float, smallest: int, largest: int) -> tuple[int, bool]:
    """The nearest integer, ties to even."""
    rounded = np.rint(value)
    if not (-9.223372036854775808e18 <= rounded < 9.223372036854775808e18):
        return 0, False
    whole = int(rounded)
    return (whole, True) if smallest <= whole <= largest else (0, False)


@compiled
def float_to_single(value: float) -> np.float32:
    """The nearest number of 32 bits; NaN, hence NULL, where a finite value is beyond them."""
    single = np.float32(value)
    return np.float32(np.nan) if np.isinf(single) and not np.isinf(value) else single


@compiled
def scale_down(value: int, factor: int) -> int:
    """value / factor, ties away from zero."""
    half = factor // 2
    quotient = abs(value) // factor
    if abs(value) % factor >= half and factor > 1:
        quotient += 1
    return quotient if value >= 0 else -quotient


@compiled
def floor_scaled(value: int, factor: int) -> int:
    """value / factor, cut downwards."""
    return value // factor


@compiled
def ceil_scaled(value: int, factor: int) -> int:
    """value / factor, cut upwards."""
    return -((-value) // factor)


@compiled
def decimal_to_float(value: int, factor: int) -> float:
    """value / factor; in two parts where the unscaled value has more digits than a float holds."""
    if factor == 1 or abs(value) <= 9007199254740992:
        return float(value) / float(factor)
    quotient, _ = divide_exact(value, factor)
    return float(quotient) + float(value - quotient * factor) / float(factor)


@compiled
def haversine_m(latitude_a: float, longitude_a: float, latitude_b: float, longitude_b: float) -> float:
    """Great-circle distance in metres on a sphere of radius 6,371,008.8 m; degrees in."""
    first, second = math.radians(latitude_a), math.radians(latitude_b)
    half_height = math.sin((second - first) / 2.0)
    half_width = math.sin(math.radians(longitude_b - longitude_a) / 2.0)
    chord = half_height * half_height + math.cos(first) * math.cos(second) * half_width * half_width
    return 2.0 * 6371008.8 * math.asin(math.sqrt(min(1.0, chord)))


@compiled
def dot(left: Matrix, i: int, right: Matrix, j: int) -> float:
    """Sum of products in index order, in float64."""
    total = 0.0
    for k in range(left.shape[1]):
        total += np.float64(left[i, k]) * np.float64(right[j, k])
    return total


@compiled
def cosine(left: Matrix, i: int, right: Matrix, j: int) -> float:
    """dot / (|left| |right|); NaN, hence NULL, where one has no direction."""
    product, left_squares, right_squares = 0.0, 0.0, 0.0
    for k in range(left.shape[1]):
        a, b = np.float64(left[i, k]), np.float64(right[j, k])
        product += a * b
        left_squares += a * a
        right_squares += b * b
    norm = math.sqrt(left_squares) * math.sqrt(right_squares)
    return product / norm if norm != 0.0 else np.nan


@compiled
def l2(left: Matrix, i: int, right: Matrix, j: int) -> float:
    """Euclidean distance, summed in index order in float64."""
    total = 0.0
    for k in range(left.shape[1]):
        difference = np.float64(left[i, k]) - np.float64(right[j, k])
        total += difference * difference
    return math.sqrt(total)


DAY_US = 86_400_000_000
UNIT_US = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": DAY_US,
}


@compiled
def month_number(time_us: int) -> int:
    """Months since year 0 of the proleptic Gregorian calendar, counted from March so that leap days come last."""
    days = time_us // DAY_US + 719468
    era = days // 146097
    day_of_era = days - era * 146097
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_from_march = (5 * day_of_year + 2) // 153
    return (era * 400 + year_of_era) * 12 + month_from_march + 2
