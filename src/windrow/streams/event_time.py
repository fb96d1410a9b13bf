"""Event time: any time column as int64 microseconds since 1970, UTC.

    timestamp, any unit and zone    the instant; a finer unit is floored, so no row moves past another
    date                            its midnight
    integer                         counts of `unit`, microseconds unless told otherwise
    float                           counts of `unit`, seconds unless told otherwise; to the nearest microsecond, because
                                    0.000001 s is not a binary fraction and flooring would move most rows by one

NULL, NaN, infinities and what lies beyond int64 microseconds become NULL: the join counts such rows as bad.

>>> event_time_us(pa.array([-1, 1999, None], pa.timestamp("ns"))).to_pylist()
[-1, 1, None]
>>> event_time_us(pa.array([1.5, float("nan")])).to_pylist(), event_time_us(pa.array([7]), "ms").to_pylist()
([1500000, None], [7000])
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from windrow.errors import InputError, UsageError

UNITS: Mapping[str, Fraction] = MappingProxyType(
    {"s": Fraction(1_000_000), "ms": Fraction(1_000), "us": Fraction(1), "ns": Fraction(1, 1_000)}
)
"""Microseconds in one tick of each unit of time."""

_DAY = Fraction(86_400_000_000)
_INT64 = np.iinfo(np.int64)


def is_time(type_: pa.DataType) -> bool:
    """Whether a column of this type can be a stream's event time."""
    tests = (pa.types.is_timestamp, pa.types.is_date, pa.types.is_integer, pa.types.is_floating)
    return any(test(type_) for test in tests)


def time_column(schema: pa.Schema, wanted: str | None = None, place: str = "") -> str:
    """The event-time column: the wanted one, else the one named `ts`, else the only timestamp.

    >>> time_column(pa.schema({"seen": pa.timestamp("ms"), "x": pa.int64()}))
    'seen'
    """
    columns = ", ".join(f"{field.name} {field.type}" for field in schema)
    if wanted is not None and wanted not in schema.names:
        raise UsageError(f"there is no time column '{wanted}'", place=place, hint=f"the columns are {columns}")
    name = wanted if wanted is not None else _default_time(schema)
    if name is None:
        raise UsageError(
            "no column is plainly the event time",
            place=place,
            hint=f"name one with ?time=COL; the columns are {columns}",
        )
    if not is_time(schema.field(name).type):
        hint = f"event time is a timestamp, date, integer or float; the columns are {columns}"
        raise InputError(
            f"column '{name}' of type {schema.field(name).type} cannot be event time", place=place, hint=hint
        )
    return name


def _default_time(schema: pa.Schema) -> str | None:
    if "ts" in schema.names:
        return "ts"
    timestamps = [field.name for field in schema if pa.types.is_timestamp(field.type)]
    return timestamps[0] if len(timestamps) == 1 else None


def event_time_us(column: pa.Array | pa.ChunkedArray, unit: str | None = None) -> pa.Array:
    """A time column as int64 microseconds; `unit` (s, ms, us, ns) is the tick of integers and floats."""
    if unit is not None and unit not in UNITS:
        raise UsageError(f"there is no unit of time '{unit}'", hint=f"the units are {', '.join(UNITS)}")
    type_ = column.type
    if pa.types.is_floating(type_):
        return _from_floats(column, UNITS[unit or "s"])
    if pa.types.is_timestamp(type_):
        return _from_integers(column.cast(pa.int64()), UNITS[type_.unit])
    if pa.types.is_date32(type_):
        return _from_integers(column.cast(pa.int32()), _DAY)
    if pa.types.is_date64(type_):
        return _from_integers(column.cast(pa.int64()), UNITS["ms"])
    if pa.types.is_integer(type_):
        return _from_integers(column, UNITS[unit or "us"])
    raise InputError(f"a column of type {type_} cannot be event time", hint="use a timestamp, date, integer or float")


def _from_integers(column: pa.Array | pa.ChunkedArray, tick: Fraction) -> pa.Array:
    values, absent = _values(column, fill=0)
    largest = _INT64.max // max(tick.numerator, 1)
    if values.dtype == np.uint64:
        absent |= values > np.uint64(_INT64.max)
    values = values.astype(np.int64, copy=False)
    if tick.numerator > 1:
        absent |= (values > largest) | (values < -largest)
        values = np.where(absent, 0, values) * tick.numerator
    elif tick.denominator > 1:
        values = values // tick.denominator
    return _masked(values, absent)


def _from_floats(column: pa.Array | pa.ChunkedArray, tick: Fraction) -> pa.Array:
    values, absent = _values(column.cast(pa.float64()), fill=np.nan)
    scaled = np.rint(values * float(tick))
    with np.errstate(invalid="ignore"):
        absent |= ~(np.abs(scaled) < float(2**63))
    return _masked(np.where(absent, 0.0, scaled).astype(np.int64), absent)


def _values(column: pa.Array | pa.ChunkedArray, fill: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """A column as an array, and where it is NULL (a fresh array, free to be changed)."""
    absent = np.zeros(len(column), dtype=np.bool_)
    if column.null_count:
        absent |= np.asarray(column.is_null())
        column = pc.fill_null(column, pa.scalar(fill, column.type))
    return np.asarray(column), absent


def _masked(values: NDArray[np.int64], absent: NDArray[np.bool_]) -> pa.Array:
    return pa.array(values, pa.int64(), mask=absent if absent.any() else None)
