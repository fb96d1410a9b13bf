"""Quantiles of the gamma distribution, which intervals of counts and of sums of rare parts are made of.

    P(shape, x)    the share of the distribution below x: a series below its mean, a continued fraction above it
    quantile       where P reaches a share: bisection, from the Wilson-Hilferty approximation (large shapes: that alone)

The exact 95 % interval of a Poisson mean, with n events seen, is from quantile(n, .025) to quantile(n + 1, .975).

>>> [round(gamma_quantile(1, 0.975), 3), round(gamma_quantile(10, 0.025), 3), round(gamma_quantile(11, 0.975), 2)]
[3.689, 4.795, 18.39]
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
