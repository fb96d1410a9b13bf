"""Event time from any column that can be one."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import InputError, UsageError
from windrow.streams.event_time import event_time_us, time_column

LAST = 2**63 - 1


@pytest.mark.parametrize(
    ("values", "type_", "unit", "expected"),
    [
        ([-1, 0, 1, None], pa.timestamp("s"), None, [-1_000_000, 0, 1_000_000, None]),
        ([-1, 2], pa.timestamp("ms", tz="Europe/Berlin"), None, [-1000, 2000]),
        ([-5, 7], pa.timestamp("us"), "s", [-5, 7]),
        ([-1000, -999, -1, 0, 999, 1000], pa.timestamp("ns"), None, [-1, -1, -1, 0, 0, 1]),
        ([LAST, LAST // 10**6, -LAST], pa.timestamp("s"), None, [None, LAST // 10**6 * 10**6, None]),
        ([-1, 1, None], pa.date32(), None, [-86_400_000_000, 86_400_000_000, None]),
        ([2**31 - 1], pa.date32(), None, [None]),
        ([86_400_000], pa.date64(), None, [86_400_000_000]),
        ([3, None], pa.int16(), None, [3, None]),
        ([3, -3], pa.int32(), "s", [3_000_000, -3_000_000]),
        ([-1, 1999], pa.int64(), "ns", [-1, 1]),
        ([2**64 - 1, 5, None], pa.uint64(), None, [None, 5, None]),
        ([1.5, -0.25, None], pa.float64(), None, [1_500_000, -250_000, None]),
        ([float("nan"), float("inf"), -float("inf"), 1e300, 9.3e12], pa.float64(), None, [None] * 5),
        ([1331901000.123457], pa.float64(), None, [1331901000123457]),
        ([2.5], pa.float32(), "ms", [2500]),
        ([], pa.timestamp("ns"), None, []),
        ([None, None], pa.float64(), None, [None, None]),
    ],
)
def test_microseconds(values: list[Any], type_: pa.DataType, unit: str | None, expected: list[int | None]) -> None:
    column = pa.array(values, type_)
    for form in (column, pa.chunked_array([column[:1], column[1:]], type_)):
        result = event_time_us(form, unit)
        assert isinstance(result, pa.Array)
        assert result.type == pa.int64()
        assert result.to_pylist() == expected


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=8))
def test_nanoseconds_are_floored(values: list[int | None]) -> None:
    expected = [None if value is None else value // 1000 for value in values]
    assert event_time_us(pa.array(values, pa.timestamp("ns"))).to_pylist() == expected


def test_the_input_is_left_as_it_was() -> None:
    column = pa.array([1, None, 2**62], pa.timestamp("s"))
    event_time_us(column)
    assert column.cast(pa.int64()).to_pylist() == [1, None, 2**62]


@pytest.mark.parametrize("values", [["2020-01-01"], [True], [dt.time(1)]])
def test_other_types_are_refused(values: list[Any]) -> None:
    with pytest.raises(InputError, match="cannot be event time"):
        event_time_us(pa.array(values))


def test_an_unknown_unit_is_refused() -> None:
    with pytest.raises(UsageError, match="no unit of time 'minutes'"):
        event_time_us(pa.array([1]), "minutes")


def test_which_column_is_the_event_time() -> None:
    schema = pa.schema({"seen": pa.timestamp("us"), "ts": pa.int64(), "name": pa.string()})
    assert time_column(schema) == "ts"
    assert time_column(schema, "seen") == "seen"
    assert time_column(schema.remove(1)) == "seen"


def test_no_plain_event_time_lists_the_columns() -> None:
    two = pa.schema({"seen": pa.timestamp("us"), "sent": pa.timestamp("us")})
    for schema in (two, pa.schema({"x": pa.int64()})):
        with pytest.raises(UsageError, match=r"no column is plainly.*cam\.csv.*the columns are (seen|x)"):
            time_column(schema, place="cam.csv")
    with pytest.raises(UsageError, match=r"no time column 'when'.*seen timestamp\[us\], sent"):
        time_column(two, "when")
    with pytest.raises(InputError, match="column 'ts' of type string cannot be event time"):
        time_column(pa.schema({"ts": pa.string()}))
