"""When tuples come: seeded patterns of arrival times.

A pattern says how many tuples should have come by a time; tuple n comes when that count reaches n.

    count                        .-'        Constant     a straight line
      n |- - - - - - - - - - -.-'           Sinusoidal   a line with waves
        |                  .-'|             Step         straight pieces, repeated
        |        .--------'   |             BModel       bursts inside bursts
        |     .-'             |             Poisson      a line, with random gaps
        '-----------------------------> time

All patterns begin at `start_us` and cover `duration_s` seconds, its end excluded. Times come sorted, as int64
microseconds. Only `Poisson` and a `BModel` with a random side draw from the generator; the others are the same for
every seed.

>>> ARRIVALS["constant"](rate_hz=4).times_us(0, 1, np.random.default_rng(0)).tolist()
[0, 250000, 500000, 750000]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from windrow.errors import UsageError

Times = NDArray[np.int64]
Floats = NDArray[np.float64]

SECOND_US = 1_000_000
_WAVE_KNOTS = 1 << 14
_MOST_LEVELS = 24


class Arrivals(Protocol):
    """A pattern of arrivals."""

    def times_us(self, start_us: int, duration_s: float, generator: np.random.Generator) -> Times:
        """Sorted arrival times in [start, start + duration)."""
        ...


@dataclass(frozen=True, slots=True)
class Constant:
    """One tuple every 1/rate seconds, the first at the start.

    >>> Constant(rate_hz=0.5).times_us(10, 5, np.random.default_rng(0)).tolist()
    [10, 2000010, 4000010]
    """

    rate_hz: float

    def __post_init__(self) -> None:
        _check("rate_hz", self.rate_hz)

    def times_us(self, start_us: int, duration_s: float, generator: np.random.Generator) -> Times:  # noqa: ARG002 - not random
        _check("duration_s", duration_s)
        count = _count(self.rate_hz * duration_s)
        return _within(np.arange(count) / self.rate_hz if count else np.empty(0), start_us, duration_s)


@dataclass(frozen=True, slots=True)
class Poisson:
    """Independent arrivals: the number in any span is Poisson distributed (PSP, section 8.1).

    >>> times = Poisson(rate_hz=50).times_us(0, 400, np.random.default_rng(1))
    >>> len(times), times[:3].tolist()
    (20005, [4535, 6338, 6366])
    """

    rate_hz: float

    def __post_init__(self) -> None:
        _check("rate_hz", self.rate_hz)

    def times_us(self, start_us: int, duration_s: float, generator: np.random.Generator) -> Times:
        _check("duration_s", duration_s)
        count = generator.poisson(self.rate_hz * duration_s)
        return _within(np.sort(generator.random(count)) * duration_s, start_us, duration_s)


@dataclass(frozen=True, slots=True)
class Sinusoidal:
    """A rate that swings by `amplitude` (0 to 1, a share of the mean) around its mean, once a period, rising first.

    >>> times = Sinusoidal(mean_rate_hz=100, amplitude=1.0, period_s=10).times_us(0, 10, np.random.default_rng(0))
    >>> len(times), int(np.sum(times < 5 * SECOND_US))  # the first half of a period holds 1/2 + amplitude/pi of it
    (1000, 819)
    """

    mean_rate_hz: float
    amplitude: float
    period_s: float

    def __post_init__(self) -> None:
        _check("mean_rate_hz", self.mean_rate_hz)
        _check("amplitude", self.amplitude, most=1.0)
        _check("period_s", self.period_s, above_zero=True)

    def times_us(self, start_us: int, duration_s: float, generator: np.random.Generator) -> Times:  # noqa: ARG002 - not random
        knots_s = np.linspace(0.0, self.period_s, _WAVE_KNOTS + 1)
        angle = 2 * np.pi * knots_s / self.period_s
        wave = self.amplitude * self.period_s / (2 * np.pi) * (1 - np.cos(angle))
        return _repeated(knots_s, self.mean_rate_hz * (knots_s + wave), start_us, duration_s)


@dataclass(frozen=True, slots=True)
class Step:
    """Constant rates one after the other, as (duration in seconds, rate in Hz), begun again when the last is over.

    >>> Step(rates=((1, 2), (2, 0))).times_us(0, 6, np.random.default_rng(0)).tolist()
    [0, 500000, 3000000, 3500000]
    """

    rates: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        if not self.rates:
            raise UsageError("a step pattern needs at least one (duration, rate)", place="Step(rates=())")
        for duration_s, rate_hz in self.rates:
            _check("duration_s of a step", duration_s, above_zero=True)
            _check("rate_hz of a step", rate_hz)

    def times_us(self, start_us: int, duration_s: float, generator: np.random.Generator) -> Times:  # noqa: ARG002 - not random
        spans_s, rates_hz = np.array(self.rates, dtype=np.float64).T
        knots_s = np.concatenate(([0.0], np.cumsum(spans_s)))
        counts = np.concatenate(([0.0], np.cumsum(spans_s * rates_hz)))
        return _repeated(knots_s, counts, start_us, duration_s)


@dataclass(frozen=True, slots=True)
class BModel:
    """Bursty arrivals: every span gives one half of itself the share `bias` (b-model, driver-selection, section 4.1).

    The duration is halved `levels` times. The share goes to the first half each time, or, with `random_side`, to a half
    drawn by a coin. `bias=0.2` is the paper's 20-80, `bias=0.8` its 80-20; `rate_hz` is the mean rate.

    >>> pattern = BModel(rate_hz=100, bias=0.2, levels=2)
    >>> pattern.shares(np.random.default_rng(0)).round(2).tolist()
    [0.04, 0.16, 0.16, 0.64]
    >>> times = pattern.times_us(0, 10, np.random.default_rng(0))
    >>> len(times), int(np.sum(times < 5 * SECOND_US))
    (1000, 200)
    >>> BModel(100, 0.2, 2, random_side=True).shares(np.random.default_rng(5)).round(2).tolist()
    [0.64, 0.16, 0.16, 0.04]
    """

    rate_hz: float
    bias: float
    levels: int = 10
    random_side: bool = False

    def __post_init__(self) -> None:
        _check("rate_hz", self.rate_hz)
        _check("bias", self.bias, most=1.0)
        _check("levels", self.levels, most=_MOST_LEVELS)

    def shares(self, generator: np.random.Generator) -> Floats:
        """The share of all tuples in each of the 2**levels equal spans."""
        shares = np.ones(1)
        for _ in range(self.levels):
            first = np.full(len(shares), self.bias)
            if self.random_side:
                first = np.where(generator.random(len(shares)) < 0.5, first, 1 - first)
            shares = np.column_stack((shares * first, shares * (1 - first))).ravel()
        return shares

    def times_us(self, start_us: int, duration_s: float, generator: np.random.Generator) -> Times:
        _check("duration_s", duration_s)
        cumulated = np.concatenate(([0.0], np.cumsum(self.shares(generator))))
        knots_s = np.linspace(0.0, duration_s, len(cumulated))
        total = self.rate_hz * duration_s
        wanted = np.arange(_count(total), dtype=np.float64)
        return _within(_reached(wanted, knots_s, cumulated * total), start_us, duration_s)


ARRIVALS: Mapping[str, Callable[..., Arrivals]] = MappingProxyType(
    {"constant": Constant, "poisson": Poisson, "sinusoidal": Sinusoidal, "step": Step, "b-model": BModel}
)
"""The class of each pattern by its name."""


def _repeated(knots_s: Floats, counts: Floats, start_us: int, duration_s: float) -> Times:
    """Arrivals of a pattern given for one period, begun again and again."""
    _check("duration_s", duration_s)
    period_s, per_period = float(knots_s[-1]), float(counts[-1])
    if per_period == 0:
        return np.empty(0, dtype=np.int64)
    periods, rest_s = divmod(duration_s, period_s)
    total = periods * per_period + float(np.interp(rest_s, knots_s, counts))
    whole, within = np.divmod(np.arange(_count(total), dtype=np.float64), per_period)
    return _within(whole * period_s + _reached(within, knots_s, counts), start_us, duration_s)


def _reached(wanted: Floats, knots_s: Floats, counts: Floats) -> Floats:
    """When a piecewise linear count reaches each value: at the end of a flat piece, when the next comes."""
    piece = np.clip(np.searchsorted(counts, wanted, side="right") - 1, 0, len(counts) - 2)
    rise = counts[piece + 1] - counts[piece]
    share = np.divide(wanted - counts[piece], rise, out=np.zeros_like(wanted), where=rise > 0)
    reached: Floats = knots_s[piece] + share * (knots_s[piece + 1] - knots_s[piece])
    return reached


def _count(expected: float) -> int:
    """How many of the tuples 0, 1, 2 … come before the count is `expected`, which may be off by a rounding error."""
    return math.ceil(expected - 1e-6)


def _within(times_s: Floats, start_us: int, duration_s: float) -> Times:
    # A nanosecond absorbs rounding errors, which would move 0.3 s to 299999 us or the last tuple to the excluded end.
    times_us = np.floor(times_s * SECOND_US + 1e-3).astype(np.int64)
    return start_us + np.minimum(times_us, math.ceil(duration_s * SECOND_US) - 1)


def _check(name: str, value: float, most: float = math.inf, above_zero: bool = False) -> None:
    if not (math.isfinite(value) and 0 <= value <= most) or (above_zero and value == 0):
        limits = "above zero" if above_zero else "zero or more" if most == math.inf else f"between 0 and {most:g}"
        raise UsageError(f"{name} is {value!r}", hint=f"give a finite number {limits}")
