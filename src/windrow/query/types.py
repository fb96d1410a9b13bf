"""Types of values: DuckDB's, as far as a join needs them, and how Arrow's map onto them.

Inside, a value of each kind has one machine form, which kernels and literals share:

    BOOLEAN                         bool / uint8
    TINYINT … BIGINT, UTINYINT …    an integer of that width
    FLOAT, DOUBLE                   float32, float64; NaN is NULL
    DECIMAL(width, scale)           the unscaled int64; what does not fit 64 bits is an overflow, hence NULL
    DATE                            int32 days since 1970
    TIMESTAMP, TIMESTAMPTZ          int64 microseconds since 1970, UTC
    INTERVAL                        int64 microseconds (fixed units only: no months)
    VARCHAR                         UTF-8 bytes
    VECTOR(length)                  float32 or float64 elements, fixed length
    OTHER                           anything else Arrow holds: it can be selected, not computed with

>>> decimal(5, 2)
Type(kind=<Kind.DECIMAL: 'DECIMAL'>, width=5, scale=2, length=0)
>>> str(decimal(5, 2)), str(from_arrow(pa.list_(pa.float32(), 3)))
('DECIMAL(5,2)', 'FLOAT[3]')
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import pyarrow as pa


class Kind(Enum):
    """What a value is; the names are DuckDB's."""

    BOOLEAN = "BOOLEAN"
    TINYINT = "TINYINT"
    SMALLINT = "SMALLINT"
    INTEGER = "INTEGER"
    BIGINT = "BIGINT"
    UTINYINT = "UTINYINT"
    USMALLINT = "USMALLINT"
    UINTEGER = "UINTEGER"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    DECIMAL = "DECIMAL"
    VARCHAR = "VARCHAR"
    DATE = "DATE"
    TIMESTAMP = "TIMESTAMP"
    TIMESTAMPTZ = "TIMESTAMP WITH TIME ZONE"
    INTERVAL = "INTERVAL"
    VECTOR = "VECTOR"
    NULL = "NULL"
    OTHER = "OTHER"


SIGNED = (Kind.TINYINT, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT)
UNSIGNED = (Kind.UTINYINT, Kind.USMALLINT, Kind.UINTEGER)
INTEGERS = SIGNED + UNSIGNED
FLOATS = (Kind.FLOAT, Kind.DOUBLE)
TIMES = (Kind.TIMESTAMP, Kind.TIMESTAMPTZ)

BITS = {
    Kind.TINYINT: 8,
    Kind.SMALLINT: 16,
    Kind.INTEGER: 32,
    Kind.BIGINT: 64,
    Kind.UTINYINT: 8,
    Kind.USMALLINT: 16,
    Kind.UINTEGER: 32,
}


@dataclass(frozen=True, slots=True)
class Type:
    """A kind with its parameters: `width` and `scale` of a decimal, `length` and element `width` (bits) of a vector."""

    kind: Kind
    width: int = 0
    scale: int = 0
    length: int = 0

    def __str__(self) -> str:
        if self.kind is Kind.DECIMAL:
            return f"DECIMAL({self.width},{self.scale})"
        if self.kind is Kind.VECTOR:
            return f"{'FLOAT' if self.width == 32 else 'DOUBLE'}[{self.length}]"
        return str(self.kind.value)

    @property
    def is_integer(self) -> bool:
        return self.kind in INTEGERS

    @property
    def is_float(self) -> bool:
        return self.kind in FLOATS

    @property
    def is_numeric(self) -> bool:
        return self.is_integer or self.is_float or self.kind is Kind.DECIMAL

    @property
    def is_time(self) -> bool:
        return self.kind in TIMES

    def show(self, value: Any) -> str:
        """A literal of this type as SQL text."""
        if value is None:
            return "NULL"
        if self.kind is Kind.VARCHAR:
            return "'" + str(value).replace("'", "''") + "'"
        if self.kind is Kind.DECIMAL:
            digits = str(abs(value)).rjust(self.scale + 1, "0")
            whole, part = digits[: len(digits) - self.scale], digits[len(digits) - self.scale :]
            return ("-" if value < 0 else "") + whole + (f".{part}" if part else "")
        if self.kind is Kind.DATE:
            return f"DATE '{np.datetime64(value, 'D')}'"
        if self.is_time:
            text = str(np.datetime64(value, "us")).replace("T", " ")
            return f"TIMESTAMP '{text}'" if self.kind is Kind.TIMESTAMP else f"TIMESTAMPTZ '{text}+00'"
        if self.kind is Kind.INTERVAL:
            unit, length_us = next(each for each in _INTERVAL_UNITS if value % each[1] == 0)
            return f"INTERVAL '{value // length_us}' {unit}"
        if self.kind is Kind.BOOLEAN:
            return "true" if value else "false"
        return str(np.float32(value)) if self.kind is Kind.FLOAT else str(value)


_INTERVAL_UNITS = (
    ("DAYS", 86_400_000_000),
    ("HOURS", 3_600_000_000),
    ("MINUTES", 60_000_000),
    ("SECONDS", 1_000_000),
    ("MILLISECONDS", 1_000),
    ("MICROSECONDS", 1),
)

BOOLEAN = Type(Kind.BOOLEAN)
TINYINT = Type(Kind.TINYINT)
SMALLINT = Type(Kind.SMALLINT)
INTEGER = Type(Kind.INTEGER)
BIGINT = Type(Kind.BIGINT)
FLOAT = Type(Kind.FLOAT)
DOUBLE = Type(Kind.DOUBLE)
VARCHAR = Type(Kind.VARCHAR)
DATE = Type(Kind.DATE)
TIMESTAMP = Type(Kind.TIMESTAMP)
TIMESTAMPTZ = Type(Kind.TIMESTAMPTZ)
INTERVAL = Type(Kind.INTERVAL)
NULL = Type(Kind.NULL)
OTHER = Type(Kind.OTHER)


def decimal(width: int, scale: int) -> Type:
    """DECIMAL(width, scale)."""
    return Type(Kind.DECIMAL, width=width, scale=scale)


def vector(length: int, element_bits: int) -> Type:
    """A vector of `length` floats of 32 or 64 bits."""
    return Type(Kind.VECTOR, width=element_bits, length=length)


_FROM_ARROW: dict[pa.DataType, Type] = {
    pa.bool_(): BOOLEAN,
    pa.int8(): TINYINT,
    pa.int16(): SMALLINT,
    pa.int32(): INTEGER,
    pa.int64(): BIGINT,
    pa.uint8(): Type(Kind.UTINYINT),
    pa.uint16(): Type(Kind.USMALLINT),
    pa.uint32(): Type(Kind.UINTEGER),
    pa.float32(): FLOAT,
    pa.float64(): DOUBLE,
    pa.string(): VARCHAR,
    pa.large_string(): VARCHAR,
    pa.string_view(): VARCHAR,
    pa.date32(): DATE,
    pa.date64(): DATE,
    pa.null(): NULL,
}


def from_arrow(arrow: pa.DataType) -> Type:
    """The type a column of this Arrow type has in a query."""
    known = _FROM_ARROW.get(arrow)
    if known is not None:
        return known
    if pa.types.is_dictionary(arrow):
        return from_arrow(arrow.value_type)
    if pa.types.is_timestamp(arrow):
        return TIMESTAMP if arrow.tz is None else TIMESTAMPTZ
    if pa.types.is_duration(arrow):
        return INTERVAL
    if pa.types.is_decimal(arrow) and arrow.scale >= 0 and arrow.precision <= 38:
        return decimal(arrow.precision, arrow.scale)
    if pa.types.is_fixed_size_list(arrow) and arrow.value_type in (pa.float32(), pa.float64()):
        return vector(arrow.list_size, 32 if arrow.value_type == pa.float32() else 64)
    return OTHER


_TO_ARROW: dict[Kind, pa.DataType] = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.TINYINT: pa.int8(),
    Kind.SMALLINT: pa.int16(),
    Kind.INTEGER: pa.int32(),
    Kind.BIGINT: pa.int64(),
    Kind.UTINYINT: pa.uint8(),
    Kind.USMALLINT: pa.uint16(),
    Kind.UINTEGER: pa.uint32(),
    Kind.FLOAT: pa.float32(),
    Kind.DOUBLE: pa.float64(),
    Kind.VARCHAR: pa.string(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us"),
    Kind.TIMESTAMPTZ: pa.timestamp("us", tz="UTC"),
    Kind.INTERVAL: pa.duration("us"),
    Kind.NULL: pa.null(),
}


def to_arrow(type_: Type) -> pa.DataType:
    """The Arrow type a computed value of this type is delivered in."""
    if type_.kind is Kind.DECIMAL:
        return pa.decimal128(type_.width, type_.scale)
    if type_.kind is Kind.VECTOR:
        return pa.list_(pa.float32() if type_.width == 32 else pa.float64(), type_.length)
    return _TO_ARROW[type_.kind]
