"""Sums of results: the numbers of one span and group, and where COUNT, SUM and AVG lie by them.

Each result has one column of ones, and for each argument one that says whether it is there, and one of its value. COUNT
and SUM are sums of a column, AVG is a ratio of two.

    of each column    found      sums as they are
                      estimate   each result weighed by the chance to find it (`windrow.control.sample`)
                      own        what sampled rows alone say: Σ u / f
                      plain, large, negative    of sampled results: values, their squares, how many are below zero
    in all            matches    how many results were sampled;  heaviest: what each can weigh at most, added up
                      whole      what sampled rows found, as an estimate of all their results;  rows: of its squares
    of two columns    uu, uv, vv the variance of an estimate with any γ: uu - γ (uv + vu) + γ² vv
    of an argument    second, fourth    over rows of powers: how many of them really count (`windrow.control.cells`)

All of them add up, over tasks and batches, and lines of all spans and groups add up to those of the whole run.

COUNT and SUM have γ = 1, so that their estimates add up as well. AVG is the ratio r for which the estimate of Σ (value
- r) is nothing, with the γ that suits these residuals: rows with large values, which few samples hold, count with what
all other rows found of them. How far r may be off is told by Student's distribution with as many degrees of freedom as
there are residuals of equal size that would vary as much (Kish 1965).

>>> shape = Shape(1)
>>> numbers = np.zeros(shape.width)
>>> told = {"found": 100, "estimate": 120, "plain": 60, "large": 60, "matches": 60, "heaviest": 240, "uu": 16}
>>> for name, number in {**told, "whole": 90, "rows": 200}.items():
...     numbers[shape.place(name)] = number
>>> line = Line(shape, numbers)
>>> line.sum_of(0), [round(end, 1) for end in line.sum_within(0) or ()]
(120.0, [112.8, 136.5])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import factorial, prod

import numpy as np
from numpy.typing import NDArray

from windrow.control.cells import POWERS, pairs, terms
from windrow.control.chance import student_quantile
from windrow.control.recall import CONFIDENCE, LEAST_MATCHES, Sum

Floats = NDArray[np.float64]
Interval = tuple[float, float]
CAUTION = 3.0
"""How many rows' worth of trust it takes to move γ half of its way."""
REFINED = 2
"""The ratio and the γ of its residuals are found in turns; so many are enough."""
_TOLD = ("found", "estimate", "own", "plain", "large", "negative", "matches", "heaviest", "whole")
_SETTLED = ("rows", "uu", "uv", "vv", "second", "fourth")
_WHOLE = ("matches", "heaviest", "whole", "rows")
_OF_TWO = ("uu", "uv", "vv")


@dataclass(frozen=True, slots=True)
class Shape:
    """Where in a line's numbers is what; `columns` are those of a result."""

    columns: int

    @property
    def told(self) -> int:
        """How many numbers tasks tell; the others are known when all have."""
        return int(self.place("rows").start)

    @property
    def width(self) -> int:
        """How many numbers a line has."""
        return int(self.place(_SETTLED[-1]).stop)

    def place(self, name: str) -> slice:
        """Where some numbers are."""
        start = 0
        for each in (*_TOLD, *_SETTLED):
            size = self._size(each)
            if each == name:
                return slice(start, start + size)
            start += size
        raise KeyError(name)

    def _size(self, name: str) -> int:
        if name in _WHOLE:
            return 1
        if name in _OF_TWO:
            return self.columns**2
        power = dict(POWERS).get(name)
        return self.columns if power is None else len(pairs(self.columns)) * len(terms(power))


@dataclass(frozen=True, slots=True)
class Line:
    """The numbers of one span and group, and what follows from them."""

    shape: Shape
    numbers: Floats

    def of(self, name: str) -> Floats:
        """Some of the numbers."""
        return self.numbers[self.shape.place(name)]

    @property
    def tells(self) -> bool:
        """Whether enough results were sampled."""
        return bool(self.of("matches")[0] >= LEAST_MATCHES)

    def sum_of(self, column: int) -> float:
        """An estimate of the sum of a column over all results."""
        return float(self.of("estimate")[column])

    def sum_within(self, column: int) -> Interval | None:
        """Where that sum lies: what is missing of values of one sign is like a count, of others nearly normal."""
        if not self.tells:
            return None
        only = np.eye(self.shape.columns)[column]
        value, found = self.sum_of(column), float(self.of("found")[column])
        plain, large = float(self.of("plain")[column]), float(self.of("large")[column])
        counted, fitted = self._fitted()
        variance = self._variance(only) * fitted
        if self.of("negative")[column] or not plain > 0:
            reach = student_quantile(max(1.0, counted - 1), (1 + CONFIDENCE) / 2) * variance**0.5
            return value - reach, value + reach
        matches, heaviest = int(self.of("matches")[0]), float(self.of("heaviest")[0])
        low, high = Sum(value - found, variance, matches, heaviest * large / plain, shed=True).interval()
        return found + low, max(found + high, value)

    def ratio_of(self, there: int) -> tuple[float, Interval | None]:
        """The average of the argument whose column is `there`, and where it lies."""
        pair = [there, there + 1]
        estimate, own = self.of("estimate")[pair], self.of("own")[pair]
        ratio, gamma, parts = float(estimate[1] / estimate[0]), 1.0, float(estimate[0])
        if not self.tells:
            return ratio, None
        for _ in range(REFINED):
            gamma = self._gamma(there, ratio)
            total = own + gamma * (estimate - own)
            if not total[0] > 0:
                ratio, gamma, parts = float(estimate[1] / estimate[0]), 1.0, float(estimate[0])
                break
            ratio, parts = float(total[1] / total[0]), float(total[0])
        counted = self._counted(there, (-ratio, 1.0, gamma * ratio, -gamma))
        regressed = self._counted(there, (0.0, 0.0, -ratio, 1.0))
        fitted = 1.0 + 2.0 * regressed / (regressed + CAUTION) / max(1.0, counted - 2)
        quantile = student_quantile(max(1.0, counted), (1 + CONFIDENCE) / 2)
        reach = quantile * (self._variance(self._residual(there, ratio), gamma) * fitted) ** 0.5 / parts
        return ratio, (ratio - reach, ratio + reach)

    def _residual(self, there: int, ratio: float) -> Floats:
        weights = np.zeros(self.shape.columns)
        weights[there], weights[there + 1] = -ratio, 1.0
        return weights

    def _gamma(self, there: int, ratio: float) -> float:
        """The regression of sampled rows' residuals on those that others would find too, with caution."""
        weights = self._residual(there, ratio)
        uv, vv = (float(weights @ self._matrix(name) @ weights) for name in ("uv", "vv"))
        if not vv > 0:
            return 1.0
        counted = self._counted(there, (0.0, 0.0, -ratio, 1.0))
        return 1.0 + (uv / vv - 1.0) * counted / (counted + CAUTION)

    def _counted(self, there: int, weights: Sequence[float]) -> float:
        """How many rows of equal size would tell as much, of a weighed sum of u and v of an argument's two columns."""
        squares, fourth = (self._power(name, power, there, weights) for name, power in POWERS)
        return squares**2 / fourth if fourth > 0 else 0.0

    def _power(self, name: str, power: int, there: int, weights: Sequence[float]) -> float:
        """The sum over rows of a power of a weighed sum, by the binomial theorem."""
        number, size = there // 2, len(terms(power))
        held = self.of(name)[number * size : (number + 1) * size]
        return sum(
            float(found) * factorial(power) / prod(factorial(term.count(k)) for k in range(4))
            * prod(weights[k] for k in term)
            for term, found in zip(terms(power), held, strict=True)
        )  # fmt: skip

    def _matrix(self, name: str) -> Floats:
        return self.of(name).reshape(self.shape.columns, self.shape.columns)

    def _variance(self, weights: Floats, gamma: float = 1.0) -> float:
        uu, uv, vv = (float(weights @ self._matrix(name) @ weights) for name in _OF_TWO)
        return max(0.0, uu - 2 * gamma * uv + gamma**2 * vv)

    def _fitted(self) -> tuple[float, float]:
        """How many rows of equal size would tell as much of a count, and the correction where they are few."""
        whole, rows = float(self.of("whole")[0]), float(self.of("rows")[0])
        counted = whole**2 / rows if rows > 0 else 0.0
        return counted, counted / (counted - 2) if counted > 3 else 3.0
