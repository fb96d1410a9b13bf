"""Literals mean what they mean in DuckDB, whichever type they end up in."""

from __future__ import annotations

import datetime as dt
import math
import struct
from decimal import Decimal
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.query.columns import Duck
from windrow.errors import QueryError
from windrow.query import types
from windrow.query.casts import type_named
from windrow.query.expression import Literal
from windrow.query.literals import convert, integer, interval, negative, number, text_literal, unit_us
from windrow.query.types import Kind, Type

DUCK = Duck()


def in_python(literal: Literal) -> Any:
    """A literal in the form DuckDB's Python client returns it."""
    value, kind = literal.value, literal.type.kind
    if value is None or not isinstance(value, int) or kind is Kind.BOOLEAN:
        return value
    if kind is Kind.DECIMAL:
        return Decimal(value).scaleb(-literal.type.scale)
    if kind is Kind.DATE:
        return dt.date(1970, 1, 1) + dt.timedelta(days=value)
    if kind is Kind.TIMESTAMP:
        return dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=value)
    if kind is Kind.TIMESTAMPTZ:
        return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=value)
    return dt.timedelta(microseconds=value) if kind is Kind.INTERVAL else value


def duckdb_reads(literal: str, target: str) -> Any:
    """What DuckDB makes of a literal; None where it refuses it."""
    try:
        return DUCK.value(f"{literal}::{target}")
    except duckdb.Error:
        return None


def windrow_reads(literal: Literal, target: Type) -> Any:
    try:
        return in_python(convert(literal, target))
    except QueryError:
        return None


@pytest.mark.parametrize(
    "text", ["0", "7", "2147483647", "2147483648", "0.3", "1.50", "100.00", "1.", "1e3", "1.5E-3", "007", "1_000"]
)
def test_a_number_has_duckdbs_type_and_value(text: str) -> None:
    literal = number(text)
    assert str(literal.type) == DUCK.value(f"typeof({text})")
    assert in_python(literal) == DUCK.value(text)


@given(
    st.integers(-(10**17), 10**17),
    st.integers(0, 12),
    st.sampled_from(["FLOAT", "DOUBLE", "DECIMAL(18,3)", "DECIMAL(9,0)", "INTEGER"]),
)
def test_a_decimal_becomes_what_duckdb_makes_of_it(unscaled: int, scale: int, target: str) -> None:
    literal = Literal(unscaled, types.decimal(18, scale))
    expected = duckdb_reads(f"'{literal}'::DECIMAL(18,{scale})", target)
    if expected is not None:
        assert windrow_reads(literal, type_named(target)) == expected


@given(st.integers(-(2**63), 2**63 - 1), st.sampled_from(["FLOAT", "DOUBLE"]))
def test_an_integer_becomes_the_nearest_float(value: int, target: str) -> None:
    assert windrow_reads(Literal(value, types.BIGINT), type_named(target)) == duckdb_reads(f"'{value}'::BIGINT", target)


@given(st.floats(-1e6, 1e6, width=32), st.sampled_from(["INTEGER", "SMALLINT", "DECIMAL(9,2)", "DECIMAL(18,1)"]))
def test_a_float_is_rounded_as_duckdb_rounds(value: float, target: str) -> None:
    bits = struct.unpack("<d", struct.pack("<d", value))[0]
    assert windrow_reads(Literal(bits, types.DOUBLE), type_named(target)) == duckdb_reads(f"{value!r}::DOUBLE", target)


NUMBERS = [
    "1",
    " 12 ",
    "-7",
    "2.5",
    "-2.5",
    "1.5",
    "1e3",
    "300",
    "3.335",
    "0.335",
    "x",
    "",
    "1_000",
    ".5",
    "5.",
    "99999999999",
    "1 2",
    "--1",
]
WORDS = ["true", "t", "YES", "no", "n", "0", "1", "on", " true", "2", ""]
DAYS = [
    "2020-01-05",
    "2020/01/05",
    "2020-1-5",
    " 2020-01-05 ",
    "20200105",
    "2020-13-01",
    "2020-02-30",
    "1969-12-31",
    "0001-01-01",
    "x",
]
TIMES = [
    "2020-01-05",
    "2020-01-05 10:00",
    "2020-01-05T10:00:01.123456789",
    "2020-01-05 10:00:01.5",
    "2020-01-05 10",
    "2020-01-05 10:00:60",
    "2020-01-05 24:00:00",
    "2020-01-05 10:00:01+02",
    "2020-01-05 10:00:01-02:30",
    "2020-01-05 10:00:01Z",
    "1960-06-01 00:00:00.000001",
    "now?",
]
SPANS = [
    "5 seconds",
    "1.5 s",
    "1 day 2 hours",
    "-3 minutes",
    "01:02:03",
    "-00:00:01.5",
    "2 weeks",
    "7 ms",
    "9 us",
    "soon",
    "1.5 days",
]


@pytest.mark.parametrize(
    ("texts", "target"),
    [
        (NUMBERS, "INTEGER"),
        (NUMBERS, "TINYINT"),
        (NUMBERS, "DOUBLE"),
        (NUMBERS, "FLOAT"),
        (NUMBERS, "DECIMAL(5,2)"),
        (WORDS, "BOOLEAN"),
        (DAYS, "DATE"),
        (TIMES, "TIMESTAMP"),
        (TIMES, "TIMESTAMPTZ"),
        (SPANS, "INTERVAL"),
    ],
)
def test_a_text_becomes_what_duckdb_makes_of_it(texts: list[str], target: str) -> None:
    read = 0
    for text in texts:
        found = windrow_reads(text_literal(text), type_named(target))
        assert found == duckdb_reads(f"'{text}'", target), text
        read += found is not None
    assert read >= 3


def test_text_that_is_not_a_number_is_null_and_infinity_is_infinite() -> None:
    assert convert(text_literal("nan"), types.DOUBLE).value is None
    assert convert(text_literal("inf"), types.FLOAT).value == math.inf


def test_years_beyond_pythons_calendar_can_be_written_and_shown() -> None:
    late = convert(text_literal("12345-06-07"), types.DATE)
    assert str(late) == "DATE '12345-06-07'"


def test_the_sign_moves_a_literal_to_the_type_it_then_fits() -> None:
    assert negative(integer(2147483648)) == Literal(-2147483648, types.INTEGER)
    assert negative(number("9223372036854775808")) == Literal(-(2**63), types.BIGINT)
    assert negative(number("0.3")) == Literal(-3, types.decimal(2, 1))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: convert(text_literal("abc"), types.INTEGER), "'abc' cannot be read as INTEGER"),
        (lambda: convert(integer(300), types.TINYINT), "300 does not fit TINYINT"),
        (lambda: convert(Literal(math.inf, types.DOUBLE), types.INTEGER), "inf cannot be INTEGER"),
        (lambda: convert(Literal(10**7, types.DATE), types.INTEGER), "cannot be INTEGER"),
        (lambda: convert(Literal(2**31 - 1, types.DATE), types.TIMESTAMP), "cannot be TIMESTAMP"),
        (lambda: interval("3", "months"), "'months' has no fixed length"),
        (lambda: interval("soon"), "cannot read the interval 'soon'"),
        (lambda: interval("999999999 weeks"), "is too long"),
        (lambda: unit_us("fortnights"), "'fortnights' is not a unit of time"),
        (lambda: number("1e400"), "'1e400' is not a number Windrow can take"),
        (lambda: number("1e"), "'1e' is not a number Windrow can take"),
    ],
)
def test_what_a_literal_cannot_be_is_said(make: Any, message: str) -> None:
    with pytest.raises(QueryError, match=message.replace("'", ".")):
        make()
