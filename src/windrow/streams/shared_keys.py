"""Three streams joined on one key, with known selectivities: Datasets I to VI of driver-selection, section 4.1.

A number of keys is shared by all three streams, each key with a fixed number of rows a stream; every other row has a
key of its own. With |S| rows a stream, K shared keys and multiplicities m, all selectivities follow:

    σ(Si ⋈ Sj) = K·mi·mj / (|Si|·|Sj|)        |S1 ⋈ S2 ⋈ S3| = K·m1·m2·m3

    dataset   S1           S2            S3           |S|              m
    I         constant     constant      steps        10^6 each        1, 5, 1000
    II        constant     steps, late   steps        10^6 each        1, 5, 1000
    III       constant     steps, late   sinusoidal   10^6 each        1, 5, 1000
    IV        constant     constant      20-80        10^6 each        1, 5, 1000
    V         constant     constant      80-20        10^4 10^5 10^6   1, 10, 100
    VI        constant     constant      20-80        10^4 10^5 10^6   1, 10, 100

The paper's unit of time, a nanosecond, is a microsecond here: a dataset lasts ten seconds. Its steps change after each
quarter of a stream's tuples, between one tuple per 5 and one per 15 units. It does not give the sine: one period over
the whole run with an amplitude of 0.8 is our choice. |S2| of V and VI is 10^5, not the printed 10^9, which contradicts
the selectivities.

>>> tables = generate_dataset("VI", scale=0.01, seed=1)
>>> {name: table.num_rows for name, table in tables.items()}
{'S1': 100, 'S2': 1000, 'S3': 10000}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow.errors import UsageError
from windrow.streams.arrivals import Arrivals, BModel, Constant, Sinusoidal, Step
from windrow.streams.synthetic import MIDNIGHT_US, generator_for

SHARED_KEYS = 1000
DURATION_S = 10.0
_OWN_KEYS = 1 << 40


@dataclass(frozen=True, slots=True)
class KeyedStream:
    """One stream of a dataset: its rows in all, the rows of each shared key, and its arrivals for a given mean rate."""

    rows: int
    multiplicity: int
    arrivals: Callable[[float], Arrivals]


def _steps_early(rate_hz: float) -> Arrivals:
    return Step(((DURATION_S / 8, 2 * rate_hz), (3 * DURATION_S / 8, 2 * rate_hz / 3)))


def _steps_late(rate_hz: float) -> Arrivals:
    return Step(((3 * DURATION_S / 8, 2 * rate_hz / 3), (DURATION_S / 8, 2 * rate_hz)))


def _sinusoidal(rate_hz: float) -> Arrivals:
    return Sinusoidal(rate_hz, amplitude=0.8, period_s=DURATION_S)


def _bursty_20_80(rate_hz: float) -> Arrivals:
    return BModel(rate_hz, bias=0.2)


def _bursty_80_20(rate_hz: float) -> Arrivals:
    return BModel(rate_hz, bias=0.8)


Dataset = tuple[KeyedStream, KeyedStream, KeyedStream]


def _equal_sizes(*arrivals: Callable[[float], Arrivals]) -> Dataset:
    first, second, third = (KeyedStream(10**6, m, a) for m, a in zip((1, 5, 1000), arrivals, strict=True))
    return first, second, third


def _growing_sizes(*arrivals: Callable[[float], Arrivals]) -> Dataset:
    shapes = zip((10**4, 10**5, 10**6), (1, 10, 100), arrivals, strict=True)
    first, second, third = (KeyedStream(rows, m, a) for rows, m, a in shapes)
    return first, second, third


DATASETS: Mapping[str, Dataset] = MappingProxyType(
    {
        "I": _equal_sizes(Constant, Constant, _steps_early),
        "II": _equal_sizes(Constant, _steps_late, _steps_early),
        "III": _equal_sizes(Constant, _steps_late, _sinusoidal),
        "IV": _equal_sizes(Constant, Constant, _bursty_20_80),
        "V": _growing_sizes(Constant, Constant, _bursty_80_20),
        "VI": _growing_sizes(Constant, Constant, _bursty_20_80),
    }
)
"""The six datasets by their Roman numeral."""


def generate_dataset(dataset: str, scale: float, seed: int, start_us: int = MIDNIGHT_US) -> dict[str, pa.Table]:
    """Streams S1, S2, S3 of a dataset: `ts` timestamp[us], `id` int64, `key` int64.

    `scale` shrinks rows and shared keys alike, so results shrink with it and a row's number of matches stays.
    """
    if dataset not in DATASETS:
        raise UsageError(f"there is no dataset '{dataset}'", hint=f"the datasets are {', '.join(DATASETS)}")
    shared = round(SHARED_KEYS * scale)
    if not 1 <= shared <= SHARED_KEYS:
        raise UsageError(f"a scale of {scale!r} leaves {shared} shared keys", hint="give a scale from 0.001 to 1")
    tables: dict[str, pa.Table] = {}
    for number, stream in enumerate(DATASETS[dataset], start=1):
        name, rows = f"S{number}", stream.rows * shared // SHARED_KEYS
        arrivals = stream.arrivals(rows / DURATION_S)
        times_us = arrivals.times_us(start_us, DURATION_S, generator_for(name, seed, purpose=0))
        keys = _keys(len(times_us), shared, stream.multiplicity, number, generator_for(name, seed, purpose=1))
        tables[name] = pa.table(
            {"ts": pa.array(times_us, pa.timestamp("us")), "id": np.arange(len(times_us), dtype=np.int64), "key": keys}
        )
    return tables


def _keys(rows: int, shared: int, multiplicity: int, number: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Shared keys 0, 1, 2 … and keys no other stream has, in random order: selectivities stay the same all along."""
    common = np.repeat(np.arange(shared, dtype=np.int64), multiplicity)
    own = number * _OWN_KEYS + np.arange(rows - len(common), dtype=np.int64)
    return generator.permutation(np.concatenate((common, own)))
