"""Operands: every kind of Arrow array in and out again, slices and NULLs included, memory shared where it can be."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from windrow.errors import InputError
from windrow.query import types
from windrow.store.operand import Form, Operand, from_arrow, from_values, time_us, to_arrow, tokens_operand

ARRAYS: tuple[tuple[pa.DataType, list[Any]], ...] = (
    (pa.bool_(), [True, None, False, True]),
    (pa.int8(), [-128, None, 127, 0]),
    (pa.int64(), [-(2**63), None, 2**63 - 1, 5]),
    (pa.uint32(), [0, None, 2**32 - 1, 5]),
    (pa.float32(), [0.5, None, -0.0, float("inf")]),
    (pa.float64(), [0.1, None, -1e300, float("-inf")]),
    (pa.decimal128(5, 2), [Decimal("1.50"), None, Decimal("-999.99"), Decimal("0.00")]),
    (pa.decimal128(38, 3), [Decimal("9223372036854775.807"), None, Decimal("-1.000"), Decimal("0.001")]),
    (pa.date32(), [dt.date(1969, 12, 31), None, dt.date(2020, 2, 29), dt.date(1, 1, 1)]),
    (pa.timestamp("us"), [-1, None, 0, 2**53]),
    (pa.timestamp("us", "UTC"), [-1, None, 0, 2**53]),
    (pa.duration("us"), [-1, None, 0, 2**53]),
    (pa.string(), ["", None, "héllo", "a" * 50]),
    (pa.list_(pa.float32(), 2), [[1.0, 2.0], None, [0.0, -1.5], [float("inf"), 0.0]]),
    (pa.list_(pa.float64(), 3), [[1.0, 2.0, 3.0], None, [0.1, 0.2, 0.3], [0.0, 0.0, 0.0]]),
)  # fmt: skip


@pytest.mark.parametrize("place", range(len(ARRAYS)), ids=[str(kind) for kind, _ in ARRAYS])
@pytest.mark.parametrize("cut", [(0, 4), (1, 3), (2, 2), (0, 1), (2, 0)], ids=str)
def test_there_and_back(place: int, cut: tuple[int, int]) -> None:
    kind, values = ARRAYS[place]
    array = pa.array(values, kind).slice(*cut)
    type_ = types.from_arrow(kind)
    operand = from_arrow(array, type_)
    assert len(operand) == cut[1]
    found = to_arrow(operand, type_)
    assert found.type == types.to_arrow(type_) == kind
    assert found.to_pylist() == array.to_pylist()
    found.validate(full=True)
    if type_.is_float:
        assert operand.valid is None
        assert np.isnan(operand.values).tolist() == [value is None for value in array.to_pylist()]
    elif array.null_count:
        assert operand.valid is not None
        assert operand.valid.tolist() == [value is not None for value in array.to_pylist()]
    else:
        assert operand.valid is None


@pytest.mark.parametrize("place", range(len(ARRAYS)), ids=[str(kind) for kind, _ in ARRAYS])
def test_all_null(place: int) -> None:
    kind, _ = ARRAYS[place]
    type_ = types.from_arrow(kind)
    for length in (0, 3):
        operand = from_arrow(pa.array([None] * length, kind), type_)
        assert to_arrow(operand, type_).to_pylist() == [None] * length


CONVERTED = (
    (pa.array(["a", None, "b", "a"]).dictionary_encode(), types.VARCHAR, ["a", None, "b", "a"]),
    (pa.array([1.5, None, 2.5]).dictionary_encode(), types.DOUBLE, [1.5, None, 2.5]),
    (pa.array([7, None], pa.int16()).dictionary_encode(), types.SMALLINT, [7, None]),
    (pa.array(["a", None], pa.large_string()), types.VARCHAR, ["a", None]),
    (pa.array(["a", None], pa.string_view()), types.VARCHAR, ["a", None]),
    (pa.array([dt.date(1970, 1, 3), None], pa.date64()), types.DATE, [dt.date(1970, 1, 3), None]),
    (pa.array([None, None], pa.null()), types.NULL, [None, None]),
    (pa.array([Decimal("1.5"), None], pa.decimal256(40, 1)), types.decimal(38, 1), [Decimal("1.5"), None]),
)


@pytest.mark.parametrize("place", range(len(CONVERTED) - 1))
def test_other_layouts_of_the_same_values(place: int) -> None:
    array, type_, expected = CONVERTED[place]
    assert to_arrow(from_arrow(array, type_), type_).to_pylist() == expected


@pytest.mark.parametrize(("unit", "factor"), [("s", 1_000_000), ("ms", 1_000), ("us", 1)])
def test_times_of_coarser_units(unit: str, factor: int) -> None:
    for kind in (pa.timestamp(unit), pa.timestamp(unit, "Asia/Tokyo"), pa.duration(unit)):
        found = time_us(pa.array([-3, None, 0, 7], kind))
        assert found.type == pa.int64()
        assert found.to_pylist() == [-3 * factor, None, 0, 7 * factor]


def test_finer_times_are_cut_downwards() -> None:
    for kind in (pa.timestamp("ns"), pa.duration("ns")):
        assert time_us(pa.array([-1, -1000, None, 999, 1001], kind)).to_pylist() == [-1, -1, None, 0, 1]


def test_dates_are_times_at_midnight() -> None:
    days = [dt.date(1969, 12, 31), None, dt.date(1970, 1, 2)]
    for kind in (pa.date32(), pa.date64()):
        assert time_us(pa.array(days, kind)).to_pylist() == [-86_400_000_000, None, 86_400_000_000]


def test_decimals_beyond_64_bits_are_null() -> None:
    values = [Decimal(2**63 - 1), Decimal(2**63), Decimal(-(2**63)), Decimal(-(2**63) - 1), Decimal(10**37), None]
    operand = from_arrow(pa.array(values, pa.decimal128(38, 0)), types.decimal(38, 0))
    assert operand.valid is not None
    assert operand.valid.tolist() == [True, False, True, False, False, False]
    assert operand.values[[0, 2]].tolist() == [2**63 - 1, -(2**63)]


def test_vectors_keep_null_elements_as_nan() -> None:
    array = pa.array([[1.0, None], None, [float("nan"), 2.0]], pa.list_(pa.float32(), 2))
    operand = from_arrow(array.slice(0, 3), types.vector(2, 32))
    assert operand.form is Form.VECTOR
    assert operand.values.dtype == np.float32
    assert np.isnan(operand.values[0, 1])
    assert np.isnan(operand.values[2, 0])


def test_memory_is_shared_where_the_layout_allows() -> None:
    for array in (pa.array([1, 2, 3], pa.int32()), pa.array([0.5, 1.5]), pa.array([1, 2], pa.timestamp("us"))):
        operand = from_arrow(array, types.from_arrow(array.type))
        assert operand.values.ctypes.data == array.buffers()[1].address
    text = pa.array(["ab", "c"])
    assert from_arrow(text, types.VARCHAR).arrays[1].ctypes.data == text.buffers()[2].address
    vectors = pa.array([[1.0, 2.0]], pa.list_(pa.float64(), 2))
    assert from_arrow(vectors, types.vector(2, 64)).values.ctypes.data == vectors.values.buffers()[1].address


def test_sizes_are_those_of_the_arrays() -> None:
    assert from_arrow(pa.array([1, 2, 3], pa.int32()), types.INTEGER).nbytes == 12
    assert from_arrow(pa.array([1, None, 3], pa.int32()), types.INTEGER).nbytes == 15
    assert from_values(np.zeros((4, 2), np.float32)).nbytes == 32
    assert from_values(np.zeros((4, 2), np.float32)).form is Form.VECTOR


def test_token_sets_of_a_slice() -> None:
    lists = pa.array([[1], [2, 3], [], [9]], pa.large_list(pa.uint64()))
    for skip, expected in ((0, [1, 2, 0, 1]), (1, [2, 0, 1]), (4, [])):
        operand = tokens_operand(lists[skip:], None)
        assert len(operand) == len(expected)
        offsets, tokens = operand.arrays
        assert np.diff(offsets).tolist() == expected
        sets = [tokens[start:stop].tolist() for start, stop in pairwise(offsets)]
        assert sets == lists[skip:].to_pylist()


def test_computed_values_are_delivered_with_their_nulls() -> None:
    numbers = Operand(Form.NUMBER, (np.array([1, 2, 3], np.int64),), np.array([True, False, True]))
    assert to_arrow(numbers, types.BIGINT).to_pylist() == [1, None, 3]
    assert to_arrow(numbers, types.decimal(18, 1)).to_pylist() == [Decimal("0.1"), None, Decimal("0.3")]
    assert to_arrow(numbers, types.TIMESTAMPTZ).type == pa.timestamp("us", "UTC")
    assert to_arrow(numbers, types.TIMESTAMP).to_pylist()[1] is None
    floats = Operand(Form.NUMBER, (np.array([0.5, np.nan], np.float32),))
    assert to_arrow(floats, types.FLOAT).to_pylist() == [0.5, None]
    days = Operand(Form.NUMBER, (np.array([0, -1], np.int32),))
    assert to_arrow(days, types.DATE).to_pylist() == [dt.date(1970, 1, 1), dt.date(1969, 12, 31)]
    negative = Operand(Form.NUMBER, (np.array([-5], np.int64),))
    assert to_arrow(negative, types.decimal(20, 2)).to_pylist() == [Decimal("-0.05")]


def test_values_that_can_only_be_selected_are_refused() -> None:
    with pytest.raises(InputError, match=r"list<item: int64>.* can be selected but not computed with"):
        from_arrow(pa.array([[1]], pa.list_(pa.int64())), types.OTHER)
