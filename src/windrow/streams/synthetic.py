"""Streams whose matches are known: the process GrubJoin is measured with (GrubJoin, section VI-B).

The value of stream i at time φ (seconds) climbs through its domain and starts again every period, with Gaussian noise:

    X_i(φ) = (D/η)·(φ + τ_i) + κ_i·N(0, 1)  mod D          D domain   η period_s   τ lag_s   κ noise

    x |    /|    /|       streams with lags 0 and 5 s show the same value 5 s apart: the row of the stream with
      |   / |   / |       the larger lag comes first. Noise blurs this: a match may be noise/(D/η) seconds off.
      |  /  |  /  |
      '-----------> φ     The ε-join matches rows with |x_i − x_j| <= ε (a plain distance: 999.5 and 0.5 are far apart).

Each stream draws from generators of its own, seeded by its name: adding a stream changes no other. φ is absolute time,
so a stream made in pieces goes on without a jump.

>>> from windrow.streams.arrivals import Constant
>>> stream = GrubJoinStream("cam", Constant(rate_hz=0.1), lag_s=5)
>>> generate([stream], duration_s=60, seed=1, start_us=0)["cam"].column("x").to_pylist()
[100.0, 300.0, 500.0, 700.0, 900.0, 100.0]
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow.errors import UsageError
from windrow.streams.arrivals import SECOND_US, Arrivals, Poisson

MIDNIGHT_US = 1_704_067_200 * SECOND_US
"""Where generated streams start unless told otherwise: 2024-01-01 00:00 UTC, a whole number of the usual periods."""

NONALIGNED_LAGS_S = (0.0, 5.0, 15.0)
NONALIGNED_NOISE = (2.0, 2.0, 50.0)


@dataclass(frozen=True, slots=True)
class GrubJoinStream:
    """One stream of the process: its arrivals, lag τ, deviation κ, domain D and wrap-around period η.

    >>> stream = GrubJoinStream("cam", Poisson(rate_hz=10), lag_s=5)
    >>> stream.values(np.array([10.0, 50.0]), np.random.default_rng(0)).tolist()
    [300.0, 100.0]
    """

    name: str
    arrivals: Arrivals
    lag_s: float = 0.0
    noise: float = 0.0
    domain: float = 1000.0
    period_s: float = 50.0

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("lag_s", self.lag_s, True),
            ("noise", self.noise, self.noise >= 0),
            ("domain", self.domain, self.domain > 0),
            ("period_s", self.period_s, self.period_s > 0),
        ):
            if not (allowed and math.isfinite(value)):
                hint = "lags are finite, noise is zero or more, domain and period are above zero"
                raise UsageError(f"{name} of stream '{self.name}' is {value!r}", hint=hint)

    def values(self, times_s: NDArray[np.float64], generator: np.random.Generator) -> NDArray[np.float64]:
        """X(φ) for each time φ."""
        climbing = self.domain / self.period_s * (times_s + self.lag_s)
        values = np.mod(climbing + self.noise * generator.standard_normal(len(times_s)), self.domain)
        # The remainder of a tiny negative number rounds up to the domain itself, which is outside [0, D).
        return np.where(values < self.domain, values, 0.0)


def generate(
    streams: Iterable[GrubJoinStream], duration_s: float, seed: int, start_us: int = MIDNIGHT_US
) -> dict[str, pa.Table]:
    """The streams' rows over a span of time, in time order: `ts` timestamp[us], `id` int64 (0, 1, 2 …), `x` double."""
    tables: dict[str, pa.Table] = {}
    for stream in streams:
        if stream.name in tables:
            raise UsageError(f"two streams are named '{stream.name}'", hint="give each stream its own name")
        times_us = stream.arrivals.times_us(start_us, duration_s, generator_for(stream.name, seed, purpose=0))
        # Whole periods since 1970 are taken off as integers, because a float of the full time would lose digits.
        period_us = max(1, round(stream.period_s * SECOND_US))
        values = stream.values((times_us % period_us) / SECOND_US, generator_for(stream.name, seed, purpose=1))
        tables[stream.name] = pa.table(
            {"ts": pa.array(times_us, pa.timestamp("us")), "id": np.arange(len(times_us), dtype=np.int64), "x": values}
        )
    return tables


def cameras(
    rate_hz: float = 100.0, lags_s: Sequence[float] = NONALIGNED_LAGS_S, noise: Sequence[float] = NONALIGNED_NOISE
) -> tuple[GrubJoinStream, ...]:
    """Cameras `cam1`, `cam2` … along a road that see the same things at different times.

    The defaults are GrubJoin's nonaligned setting: `cam1` sees a thing last, 5 s after `cam2` and 15 s after `cam3`,
    whose picture is the least sharp.

    >>> [(camera.name, camera.lag_s, camera.noise) for camera in cameras()]
    [('cam1', 0.0, 2.0), ('cam2', 5.0, 2.0), ('cam3', 15.0, 50.0)]
    """
    if len(lags_s) != len(noise):
        raise UsageError(f"{len(lags_s)} lags but {len(noise)} noise levels", hint="give one of each for every camera")
    return tuple(
        GrubJoinStream(f"cam{number}", Poisson(rate_hz), lag_s, sharpness)
        for number, (lag_s, sharpness) in enumerate(zip(lags_s, noise, strict=True), start=1)
    )


def generator_for(name: str, seed: int, purpose: int) -> np.random.Generator:
    """The generator of one stream for one purpose; it depends on nothing but these three."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(*name.encode(), purpose)))
