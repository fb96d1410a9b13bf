"""What sampled rows say of what was left out: sums that add up, a number and its variance.

A share f of a driver's rows is sampled: they look everywhere, but only into a share z of the strata. The others, h,
look where the plan says. Of each sampled row, u is what it found, divided by z: an estimate of all its results; v is
the same for those that the other rows would find too (times a constant α, and on average over their portions). All
there is:

    T = Σ u / f  +  γ (α found by others  -  h/f Σ v)             what sampled rows find, corrected by how much more, or
                                                                  less, others find of what they can find
    V = h/f² Σ (u - γ v)²  +  1/f (1 - z) Σ over strata (u² - h γ² v²)           the first sum about the mean

The second line knows that a row decides for all of its results at once, and each of its strata again. Whatever α and γ,
T is unbiased. α = 1 / (h + f z) is about best where the others find nearly everything, and then makes T the sum of what
was found, each result weighed by the chance to find it. γ is the regression of u on v: where rows that find much also
miss much, what they miss is known better than from sampled rows alone. It is moved away from 1 only as far as the
sample is large. f is the share that was really sampled: given their number, sampled rows are a simple random sample, so
that rows which find about the same hardly add to the variance. Where nothing is left out, T is what was found and V 0.

The results of one row may be found by several tasks, so squares cannot be summed where results are: rows and strata are
hashed into buckets, with a random sign. Buckets add up, and their squares are on average the sums of squares (Alon,
Matias, Szegedy 1996). A batch's buckets end in a `Sample`, a few numbers; those of several batches add up again.

>>> half = Shedding(0.5, portions=(("a", (Portion(0.1, (None,), sampled=True), Portion(0.9, (((0, 5),),)))),))
>>> weights = Weights.of(half, "a")
>>> round(weights.others, 4), weights.heaviest
(1.0526, 20.0)
>>> sample = Sample(rows=1000, sampled=100, due=100, emitted=960, matches=60, kept=947.4, full=120, held=105.3)
>>> round(sample.total), round(sample.missing)
(1200, 240)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from windrow.plan.shedding import Portion, Shedding

BUCKETS = 256
"""Sums of squares are known to about sqrt(2 / BUCKETS) of themselves, batch by batch."""
LEAST_DUE = 30
"""Where fewer rows should be sampled, the share that should be says more than the share that was. (What was sampled may
not decide this, nor where a group of batches ends: a share taken when it happens to be high is too high.)
"""
CAUTION = 10.0
"""How many rows' worth of trust it takes to move γ half of its way."""


@dataclass(frozen=True, slots=True)
class Weights:
    """How a driver's results count under a plan: `share` is ω, `throttle` z, `others` the weight α of what unsampled
    rows find; `portions` are theirs, and `shares` what part of them each has.
    """

    share: float
    throttle: float
    others: float
    portions: tuple[Portion, ...]
    shares: tuple[float, ...]

    @staticmethod
    def of(shedding: Shedding, driver: str) -> Weights | None:
        """Those of a driver's batch; None where nothing is left out."""
        portions = shedding.of(driver)
        others = tuple(portion for portion in portions if not portion.sampled)
        rest = sum(portion.share for portion in others)
        share = sum(portion.share for portion in portions if portion.sampled)
        thinned = share > 0 and shedding.throttle < 1
        if not thinned and all(portion.is_whole for portion in others):
            return None
        known = rest + share * shedding.throttle
        shares = tuple(portion.share / rest for portion in others) if rest > 0 else ()
        return Weights(float(share), shedding.throttle, float(1.0 / known) if known > 0 else 1.0, others, shares)

    @property
    def rest(self) -> float:
        """The share of rows that are not sampled: h."""
        return 1.0 - self.share

    @property
    def tells(self) -> bool:
        """Whether anything can be learned of what is left out."""
        return self.share > 0 and self.throttle > 0

    @property
    def heaviest(self) -> float:
        """The weight of a sampled row's result that all others escape who may."""
        whole = sum(share for share, held in zip(self.shares, self.portions, strict=True) if held.is_whole)
        return (1.0 - self.rest * self.others * whole) / (self.share * self.throttle)


@dataclass(frozen=True, slots=True)
class Sample:
    """What is known of a driver's batches in which something was left out, all summed.

    Of `rows` rows `sampled` were sampled and `due` should have been; they found `matches` of the `emitted` results.
    `kept` is α times what others found, `full` and `held` are the sums of u and v, `uu`, `uv`, `vv` those of their
    products, row by row; `thin_u` and `thin_v` those of (1 - z) u² and (1 - z) v² by stratum, the latter less what
    portions differ by. `heaviest` adds up the weight a sampled result can have at most.
    """

    rows: int = 0
    sampled: int = 0
    due: float = 0.0
    emitted: int = 0
    matches: int = 0
    kept: float = 0.0
    full: float = 0.0
    held: float = 0.0
    heaviest: float = 0.0
    uu: float = 0.0
    uv: float = 0.0
    vv: float = 0.0
    thin_u: float = 0.0
    thin_v: float = 0.0

    def __add__(self, other: Sample) -> Sample:
        return Sample(*(getattr(self, name) + getattr(other, name) for name in _SUMS))

    @property
    def share(self) -> float:
        """The share of rows that is sampled: f."""
        if not self.rows:
            return 0.0
        return (self.sampled if self._counts else self.due) / self.rows

    @property
    def gamma(self) -> float:
        """The regression of what rows find in all on what all others would find too: γ."""
        _, uv, vv = self._about_mean()
        spread = vv - self.share * self.thin_v
        if not (spread > 0 and self.held > 0):
            return 1.0
        counted = self.held**2 / self.vv
        return 1.0 + (uv / spread - 1.0) * counted / (counted + CAUTION)

    @property
    def total(self) -> float:
        """The estimated number of results, those left out included."""
        share = self.share
        if not share > 0:
            return float(self.emitted)
        return self.full / share + self.gamma * (self.kept - (1 - share) / share * self.held)

    @property
    def missing(self) -> float:
        """The estimated number of results that were left out."""
        return self.total - self.emitted

    @property
    def missing_variance(self) -> float:
        """The variance of that estimate."""
        share, gamma = self.share, self.gamma
        if not share > 0:
            return 0.0
        uu, uv, vv = self._about_mean()
        rows = max(0.0, uu - 2 * gamma * uv + gamma**2 * vv) * self._fitted
        strata = self.thin_u - (1 - share) * gamma**2 * self.thin_v
        return max(0.0, (1 - share) / share**2 * rows + strata / share)

    @property
    def _counts(self) -> bool:
        return self.due >= LEAST_DUE and self.sampled > 1

    @property
    def _fitted(self) -> float:
        """How much too small the squares are, because a mean and γ were fitted to few rows that count; measured."""
        counted = self.held**2 / self.vv if self.vv > 0 else float(self.sampled)
        return 1.0 + 3.0 * counted / (counted + CAUTION) / max(1.0, counted - 2)

    def _about_mean(self) -> tuple[float, float, float]:
        """Sums of products about the mean, corrected for the mean that was fitted."""
        n = self.sampled
        if not self._counts:
            return self.uu, self.uv, self.vv
        pairs = (
            (self.uu, self.full * self.full), (self.uv, self.full * self.held), (self.vv, self.held * self.held)
        )  # fmt: skip
        uu, uv, vv = ((total - product / n) * n / (n - 1) for total, product in pairs)
        return uu, uv, vv

    def to_values(self) -> dict[str, Any]:
        """As values that JSON knows."""
        return asdict(self)

    @staticmethod
    def from_values(values: Mapping[str, Any]) -> Sample:
        """What `to_values` gave, after a way through JSON or not."""
        return Sample(**values)


_SUMS = tuple(each.name for each in fields(Sample))
NO_SAMPLE = Sample()


@dataclass(frozen=True, slots=True)
class Sketch:
    """What is known of one batch of a driver while it runs: the sums so far, and lines of buckets.

    `rows` has a line of sampled rows, one of u and one of v. The squares of the lines in `strata`, the first of which
    is u's, add up to `thin_u` and `thin_v`, those in `less` are taken from the latter.
    """

    sums: Sample = NO_SAMPLE
    rows: tuple[tuple[float, ...], ...] = ()
    strata: tuple[tuple[float, ...], ...] = ()
    less: tuple[tuple[float, ...], ...] = ()

    def __add__(self, other: Sketch) -> Sketch:
        return Sketch(
            self.sums + other.sums,
            _summed(self.rows, other.rows),
            _summed(self.strata, other.strata),
            _summed(self.less, other.less),
        )

    def settled(self) -> Sample:
        """What remains of it when the batch is done."""
        sums, n = self.sums, self.sums.sampled
        if not self.rows or not n:
            return sums
        ones, u, v = map(np.array, self.rows)
        # Buckets hold what is about the mean, the mean's part is known: else its size would add to their error.
        u, v = u - sums.full / n * ones, v - sums.held / n * ones
        return sums + Sample(
            uu=float(u @ u) + sums.full**2 / n,
            uv=float(u @ v) + sums.full * sums.held / n,
            vv=float(v @ v) + sums.held**2 / n,
            thin_u=_squares(self.strata[:1]),
            thin_v=_squares(self.strata[1:]) - _squares(self.less),
        )

    def to_values(self) -> dict[str, Any]:
        """As values that JSON knows."""
        return asdict(self)

    @staticmethod
    def from_values(values: Mapping[str, Any]) -> Sketch:
        """What `to_values` gave, after a way through JSON or not."""
        lines = {name: tuple(map(tuple, values[name])) for name in ("rows", "strata", "less")}
        return Sketch(Sample.from_values(values["sums"]), **lines)


def together(samples: Iterable[Sample]) -> Sample:
    """All of some batches."""
    total = NO_SAMPLE
    for sample in samples:
        total += sample
    return total


def _summed(one: Sequence[Sequence[float]], two: Sequence[Sequence[float]]) -> tuple[tuple[float, ...], ...]:
    if not one or not two:
        return tuple(map(tuple, one or two))
    return tuple(
        tuple(a + b for a, b in zip(first, second, strict=True)) for first, second in zip(one, two, strict=True)
    )


def _squares(lines: Sequence[Sequence[float]]) -> float:
    return sum(float(np.dot(line, line)) for line in lines)
