"""Quantiles: of the gamma distribution, which intervals of counts and of sums of rare parts are made of; of Student's.

    P(shape, x)    the share of the distribution below x: a series below its mean, a continued fraction above it
    quantile       where P reaches a share: bisection, from the Wilson-Hilferty approximation (large shapes: that alone)

The exact 95 % interval of a Poisson mean, with n events seen, is from quantile(n, .025) to quantile(n + 1, .975).

>>> [round(gamma_quantile(1, 0.975), 3), round(gamma_quantile(10, 0.025), 3), round(gamma_quantile(11, 0.975), 2)]
[3.689, 4.795, 18.39]

How many deviations a mean may be off that rests on n + 1 numbers:

>>> [round(student_quantile(n, 0.975), 3) for n in (1, 2.5, 10, 1000)]
[12.706, 3.575, 2.228, 1.962]
"""

from __future__ import annotations

import math
from statistics import NormalDist

_LARGE = 1e4
_CLOSE = 1e-12
_MOST_TERMS = 10_000


def gamma_share(shape: float, x: float) -> float:
    """The share of a gamma distribution with scale 1 that lies below x: the regularised incomplete gamma function.

    >>> round(gamma_share(1.0, 1.0), 6)                    # 1 - 1 / e
    0.632121
    """
    if x <= 0:
        return 0.0
    front = math.exp(shape * math.log(x) - x - math.lgamma(shape))
    return front * _series(shape, x) if x < shape + 1 else 1.0 - front * _fraction(shape, x)


def gamma_quantile(shape: float, share: float) -> float:
    """The value below which a share of a gamma distribution with scale 1 lies."""
    if shape <= 0 or share <= 0:
        return 0.0
    ninth = 1.0 / (9.0 * shape)
    guess = shape * max(0.0, 1.0 - ninth + NormalDist().inv_cdf(share) * math.sqrt(ninth)) ** 3
    if shape > _LARGE:
        return guess
    low, high = 0.0, max(guess, 1.0)
    while gamma_share(shape, high) < share:
        low, high = high, 2 * high
    while high - low > _CLOSE * high:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if gamma_share(shape, middle) < share else (low, middle)
    return high


def student_quantile(freedom: float, share: float) -> float:
    """The value below which a share of Student's distribution lies, one half or more; `freedom` may be a fraction."""
    low, high = 0.0, 1.0
    while _student_tail(freedom, high) > 1 - share:
        low, high = high, 2 * high
    while high - low > _CLOSE * high:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if _student_tail(freedom, middle) < 1 - share else (middle, high)
    return high


def _student_tail(freedom: float, x: float) -> float:
    """The share of Student's distribution above x: half of an incomplete beta function."""
    a, b, near = freedom / 2, 0.5, freedom / (freedom + x * x)
    if not 0 < near < 1:
        return 0.5 if near >= 1 else 0.0
    size = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(near) + b * math.log1p(-near)
    if near < (a + 1) / (a + b + 2):
        return math.exp(size) * _beta_fraction(a, b, near) / a / 2
    return (1.0 - math.exp(size) * _beta_fraction(b, a, 1 - near) / b) / 2


def _beta_fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    tiny = 1e-300
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1)
    d = 1.0 / (d if abs(d) > tiny else tiny)
    value = d
    for k in range(1, _MOST_TERMS):
        for term in (
            k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k)),
            -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1)),
        ):
            d, c = 1.0 + term * d, 1.0 + term / c
            d = 1.0 / (d if abs(d) > tiny else tiny)
            c = c if abs(c) > tiny else tiny
            value *= d * c
        if abs(d * c - 1.0) < _CLOSE:
            break
    return value


def _series(shape: float, x: float) -> float:
    term = total = 1.0 / shape
    for k in range(1, _MOST_TERMS):
        term *= x / (shape + k)
        total += term
        if term < total * _CLOSE:
            break
    return total


def _fraction(shape: float, x: float) -> float:
    """Lentz's evaluation of 1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - …))."""
    tiny = 1e-300
    b = x + 1.0 - shape
    c, d = 1.0 / tiny, 1.0 / b
    value = d
    for k in range(1, _MOST_TERMS):
        a = -k * (k - shape)
        b += 2.0
        d, c = a * d + b, b + a / c
        d, c = 1.0 / (d if abs(d) > tiny else tiny), c if abs(c) > tiny else tiny
        value *= d * c
        if abs(d * c - 1.0) < _CLOSE:
            break
    return value
