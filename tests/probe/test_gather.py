"""Gathering rows of many segments against picking them one by one."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from windrow.errors import UsageError
from windrow.probe.gather import gather, gather_arrow, handles_of

MOMENT = datetime.datetime(2024, 2, 29, 12, 30, 15, 123456)

SAMPLES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int8": (pa.int8(), [-128, 0, 127]),
    "uint16": (pa.uint16(), [0, 1, 65535]),
    "int32": (pa.int32(), [-(2**31), 5, 2**31 - 1]),
    "int64": (pa.int64(), [-(2**63), 0, 2**63 - 1]),
    "float": (pa.float32(), [0.5, -1.5, 3.0]),
    "double": (pa.float64(), [0.1, float("inf"), -0.5]),
    "date": (pa.date32(), [MOMENT.date(), datetime.date(1950, 1, 1)]),
    "timestamp": (pa.timestamp("us"), [MOMENT, datetime.datetime(1950, 1, 1)]),
    "zoned": (pa.timestamp("us", "UTC"), [MOMENT.replace(tzinfo=datetime.UTC)]),
    "duration": (pa.duration("us"), [datetime.timedelta(days=-1), datetime.timedelta(seconds=1)]),
    "decimal": (pa.decimal128(20, 2), [decimal.Decimal("1.25"), decimal.Decimal("-123456789012345678.01")]),
    "bytes of three": (pa.binary(3), [b"abc", b"xyz"]),
    "bool": (pa.bool_(), [True, False]),
    "string": (pa.string(), ["", "a", "long enough to be more than a word", "ä"]),
    "binary": (pa.binary(), [b"", b"\0\0", b"abc"]),
    "large string": (pa.large_string(), ["", "a"]),
    "vector": (pa.list_(pa.float32(), 3), [[1.0, 2.0, 3.0], [-1.0, 0.0, 0.5]]),
    "vector with gaps": (pa.list_(pa.float64(), 2), [[1.0, None], [0.0, 0.5]]),
    "list": (pa.list_(pa.int32()), [[], [1], [1, 2]]),
    "struct": (pa.struct([("x", pa.int32())]), [{"x": 1}, {"x": None}]),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), ["a", "b"]),
    "null": (pa.null(), [None]),
}


@st.composite
def columns(draw: st.DrawFn, kind: str) -> tuple[list[pa.Array], list[tuple[int, int]]]:
    """Segments, some cut out of longer arrays, and places in them."""
    dtype, values = SAMPLES[kind]
    value = st.sampled_from(values)
    arrays = []
    for _ in range(draw(st.integers(1, 4))):
        items = draw(st.lists(draw(st.sampled_from([value, value | st.none()])), max_size=20))
        start = draw(st.integers(0, len(items)))
        arrays.append(pa.array(items, dtype)[start : draw(st.integers(start, len(items)))])
    filled = [number for number, array in enumerate(arrays) if len(array)]
    place = st.sampled_from(filled or [0]).flatmap(
        lambda number: st.tuples(st.just(number), st.integers(0, max(0, len(arrays[number]) - 1)))
    )
    return arrays, draw(st.lists(place, max_size=20)) if filled else []


@pytest.mark.parametrize("kind", SAMPLES)
@given(data=st.data())
def test_every_arrow_type(kind: str, data: st.DataObject) -> None:
    arrays, places = data.draw(columns(kind))
    handles = handles_of([segment for segment, _ in places], [row for _, row in places])
    found = gather_arrow(arrays, handles)
    found.validate(full=True)
    assert found.type == arrays[0].type
    assert found.to_pylist() == [arrays[segment][row].as_py() for segment, row in places]


def test_vectors_on_a_cut_child() -> None:
    child = pa.array(np.arange(21, dtype=np.float32))[3:]
    array = pa.FixedSizeListArray.from_arrays(child, 2)[1:6]
    found = gather_arrow([array, array], handles_of([1, 0], [4, 0]))
    assert found.to_pylist() == [array[4].as_py(), array[0].as_py()]


@pytest.mark.parametrize(
    "dtype", [np.bool_, np.int8, np.float16, np.int32, np.float32, np.float64, np.uint64, "M8[us]"]
)
@pytest.mark.parametrize("width", [None, 0, 1, 2, 3, 128])
def test_arrays_and_matrices(dtype: Any, width: int | None) -> None:
    chance = np.random.default_rng(4)
    shape = () if width is None else (width,)
    arrays = [chance.integers(0, 100, (size, *shape)).astype(dtype) for size in (5, 0, 30)]
    segment = chance.choice([0, 2], 50)
    row = chance.integers(0, np.array([5, 0, 30])[segment])
    found = gather(arrays, handles_of(segment, row))
    assert found.dtype == arrays[0].dtype
    assert found.shape == (50, *shape)
    assert all((found[at] == arrays[segment[at]][row[at]]).all() for at in range(50))


def test_strided_arrays_and_no_handles() -> None:
    grid = np.arange(12).reshape(4, 3)
    assert gather([grid[:, 1]], handles_of(0, [3, 0])).tolist() == [10, 1]
    assert gather([grid[:, 1]], handles_of(0, [])).tolist() == []


def test_handles_hold_large_rows_and_segments() -> None:
    assert handles_of(3, 2**31 - 1).tolist() == 3 * 2**32 + 2**31 - 1


def test_mixed_kinds_are_refused() -> None:
    mixed: list[NDArray[Any]] = [np.zeros(1, np.int32), np.zeros(1)]
    with pytest.raises(UsageError, match="2 different kinds"):
        gather(mixed, handles_of([0], [0]))
    with pytest.raises(UsageError, match="arrays of 2 types"):
        gather_arrow([pa.array([1]), pa.array(["a"])], handles_of([0], [0]))
    with pytest.raises(UsageError, match="0 different kinds"):
        gather([], handles_of([], []))
