"""Segment and index files: what is read is what was written, without a copy; anything else is refused."""

from __future__ import annotations

import json
import random
import resource
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracle.tables import table_of
from tests.store.object_store import object_storage
from tests.store.segments import array_of, rows_of
from windrow.errors import SourceError, StateError, UsageError
from windrow.probe import hashed
from windrow.query import types
from windrow.query.expression import Call, Column, Expression, Literal
from windrow.query.predicate import TOKENS
from windrow.store import files
from windrow.store.files import (
    SegmentFile,
    read_index,
    read_segment,
    write_index,
    write_segment,
)
from windrow.store.operand import Array, Form, Operand, from_arrow, from_values, tokens_operand
from windrow.store.segment import Layout, Segment, merge, typed_text
from windrow.store.storage import LocalStorage

TABLE = table_of(60, 7)
COLUMNS = tuple(Column("a", field.name, types.from_arrow(field.type)) for field in TABLE.schema)
BY_NAME = {column.name: column for column in COLUMNS}
TEXTS, SETS = Call("lower", (BY_NAME["s"],), types.VARCHAR), Call(TOKENS, (BY_NAME["s"],), types.OTHER)
WIDE = Call("cast", (BY_NAME["t8"],), types.BIGINT)
VECTORS = Call("cast", (BY_NAME["v"],), types.vector(2, 64))
LAYOUT = Layout(COLUMNS, (*COLUMNS, TEXTS, SETS, WIDE, VECTORS))
SEARCHED_ONLY = Layout((), LAYOUT.operands)


def token_sets(rows: int, seed: int) -> tuple[pa.LargeListArray, Array]:
    draw = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(draw.integers(0, 4, rows))])
    tokens = draw.integers(0, 2**63, offsets[-1]).astype(np.uint64)
    lists = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), pa.array(tokens))
    return lists, draw.random(rows) < 0.8


def segment_of(start: int = 0, stop: int = 60, layout: Layout = LAYOUT) -> Segment:
    """Rows `start` to `stop` of a segment with leaves of every form: slices wherever Arrow has slices."""
    arrays = {column: array_of(TABLE, column.name).slice(start, stop - start) for column in COLUMNS}
    leaves: dict[Expression, Operand] = {column: from_arrow(array, column.type) for column, array in arrays.items()}
    leaves[TEXTS] = from_arrow(
        pa.array([f"t{k}" * (k % 3) for k in range(60)]).slice(start, stop - start), types.VARCHAR
    )
    sets, flags = token_sets(60, 3)
    leaves[SETS] = tokens_operand(sets.slice(start, stop - start), flags[start:stop])
    leaves[WIDE] = from_values(np.arange(120, dtype=np.int64)[::2][start:stop], np.arange(start, stop) % 3 > 0)
    leaves[VECTORS] = from_values(np.arange(120.0).reshape(60, 2)[start:stop], np.arange(start, stop) % 4 > 0)
    clocks = {"a": np.arange(start, stop), "b": np.arange(start, stop) // 2}
    operands = tuple(leaves[leaf] for leaf in layout.operands)
    return Segment(layout, np.arange(start, stop) * 5 - 9, clocks, tuple(arrays[c] for c in layout.columns), operands)


def known_of(operand: Operand) -> list[bool]:
    return [True] * len(operand) if operand.valid is None else operand.valid.tolist()


def assert_same(found: Segment, expected: Segment) -> None:
    assert rows_of(found) == rows_of(expected)
    assert found.time_us.tolist() == expected.time_us.tolist()
    assert found.level == expected.level
    for ours, theirs in zip(found.operands, expected.operands, strict=True):
        assert ours.form is theirs.form
        assert ours.arrays[0].dtype == theirs.arrays[0].dtype
        assert known_of(ours) == known_of(theirs)
        if ours.form in (Form.NUMBER, Form.VECTOR):
            known = slice(None) if ours.valid is None else ours.valid
            assert ours.values[known].tobytes() == theirs.values[known].tobytes()
        else:
            assert ours.arrow is not None
    for column, expected_column in zip(found.columns, expected.columns, strict=True):
        column.validate(full=True)
        assert column.type == expected_column.type
        assert column.null_count == expected_column.null_count


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path / "state")


@pytest.mark.parametrize("layout", [LAYOUT, SEARCHED_ONLY, Layout(COLUMNS, ()), Layout((), ())])
@pytest.mark.parametrize("cut", [(0, 60), (7, 41), (13, 14), (9, 9), (60, 60)], ids=str)
def test_there_and_back(storage: LocalStorage, layout: Layout, cut: tuple[int, int]) -> None:
    segment = segment_of(*cut, layout)
    file = write_segment(storage, "segments/b1", segment)
    assert_same(read_segment(storage, file, layout), segment)
    path = storage.local(file.name)
    assert (file.name, file.rows, file.level) == ("segments/b1", cut[1] - cut[0], 0)
    assert file.bytes == path.stat().st_size


def test_an_object_store_does_as_well(tmp_path: Path) -> None:
    remote = object_storage(tmp_path)
    segment = segment_of()
    file = write_segment(remote, "segments/b1", segment)
    assert_same(read_segment(remote, file, LAYOUT), segment)
    assert_same(read_segment(remote, file, LAYOUT), segment)
    assert remote.filesystem.handler.calls == {"put": 1, "get": 1}


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)).map(sorted), min_size=1, max_size=4))
def test_merging_what_was_read_is_merging_what_was_written(tmp_path_factory: Any, cuts: list[list[int]]) -> None:
    storage = LocalStorage(tmp_path_factory.mktemp("state"))
    segments = [segment_of(first, last) for first, last in cuts]
    written = [write_segment(storage, f"s{k}", segment) for k, segment in enumerate(segments)]
    merged = merge([read_segment(storage, file, LAYOUT) for file in written], 0)
    expected = merge(segments, 0)
    assert_same(merged, expected)
    again = write_segment(storage, "merged", merged)
    assert again.level == 1
    assert_same(read_segment(storage, again, LAYOUT), expected)


def mapped_ranges(path: Path) -> list[tuple[int, int]]:
    """Where a file is mapped into this process."""
    lines = [line.split() for line in Path("/proc/self/maps").read_text().splitlines() if line.endswith(str(path))]
    found = [line[0].split("-") for line in lines]
    return [(int(first, 16), int(last, 16)) for first, last in found]


MAPPED = Layout((BY_NAME["id"], BY_NAME["s"]), (BY_NAME["id"], BY_NAME["s"], TEXTS, SETS, WIDE, VECTORS))
"""What can be viewed: no floats with NULL, no booleans, no decimals."""


def test_nothing_is_copied_but_flags(storage: LocalStorage) -> None:
    file = write_segment(storage, "s", segment_of(layout=MAPPED))
    segment = read_segment(storage, file, MAPPED)
    places: list[tuple[int, int]] = [
        (array.ctypes.data, array.nbytes) for array in (segment.time_us, *segment.clocks.values())
    ]
    places += [(array.ctypes.data, array.nbytes) for operand in segment.operands for array in operand.arrays]
    for column in segment.columns:
        places += [(buffer.address, buffer.size) for buffer in column.buffers() if buffer is not None]
    ranges = mapped_ranges(storage.local("s"))
    assert len(ranges) == 1
    outside = [(start, size) for start, size in places if not ranges[0][0] <= start <= start + size <= ranges[0][1]]
    assert len(places) > 2 * len(MAPPED.operands)
    assert outside == []


def test_arrays_are_read_only_and_files_are_closed(storage: LocalStorage) -> None:
    file = write_segment(storage, "s", segment_of(layout=MAPPED))
    open_before = len(list(Path("/proc/self/fd").iterdir()))
    held = [read_segment(storage, file, MAPPED) for _ in range(20)]
    assert len(list(Path("/proc/self/fd").iterdir())) == open_before
    assert not any(array.flags.writeable for segment in held for each in segment.operands for array in each.arrays)


def test_a_removed_file_can_still_be_read_where_it_is_mapped(storage: LocalStorage) -> None:
    file = write_segment(storage, "s", segment_of())
    segment = read_segment(storage, file, LAYOUT)
    storage.delete("s")
    assert_same(segment, segment_of())


def test_files_are_read_where_the_address_space_is_limited(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_segment(storage, "s", segment_of())
    monkeypatch.setattr(resource, "getrlimit", lambda _kind: (2**40, 2**40))
    segment = read_segment(storage, file, LAYOUT)
    assert mapped_ranges(storage.local("s")) == []
    assert_same(segment, segment_of())


def bytes_of(storage: LocalStorage, columns: tuple[Column, ...], leaves: tuple[Expression, ...], rows: int) -> int:
    """Bytes of a file of many rows beyond those of one with none."""
    table = table_of(rows, 1)
    arrays = [array_of(table, column.name) for column in columns]
    everything = {column: from_arrow(array_of(table, column.name), column.type) for column in COLUMNS}
    operands = tuple(everything[leaf] for leaf in leaves if isinstance(leaf, Column))
    whole = Segment(Layout(columns, leaves), np.arange(rows), {}, tuple(arrays), operands)
    none = replace(
        whole,
        time_us=whole.time_us[:0],
        columns=tuple(array[:0] for array in arrays),
        operands=tuple(from_arrow(pa.array([], types.to_arrow(leaf.type)), leaf.type) for leaf in leaves),
    )
    return write_segment(storage, "whole", whole).bytes - write_segment(storage, "none", none).bytes


@pytest.mark.parametrize("name", ["i64", "f64", "s", "v", "day", "at"])
def test_a_leaf_that_is_delivered_is_not_written_twice(storage: LocalStorage, name: str) -> None:
    column = BY_NAME[name]
    flags = 0 if column.type.is_float else 4096
    once = bytes_of(storage, (column,), (), 4096)
    assert once <= bytes_of(storage, (column,), (column,), 4096) <= once + flags + 512


def test_times_that_are_delivered_are_not_written_twice(storage: LocalStorage) -> None:
    times = np.arange(1000) * 10
    column = Column("a", "ts", types.TIMESTAMP)
    delivered = pa.array(times, pa.timestamp("us"))
    with_times = Segment(Layout((column,), ()), times, {}, (delivered,), ())
    shifted = Segment(Layout((column,), ()), times + 1, {}, (delivered,), ())
    small, large = write_segment(storage, "small", with_times), write_segment(storage, "large", shifted)
    assert large.bytes - small.bytes >= 8000
    assert read_segment(storage, small, with_times.layout).time_us.tolist() == times.tolist()
    assert read_segment(storage, large, with_times.layout).time_us.tolist() == (times + 1).tolist()


def test_vectors_with_unknown_elements_keep_them(storage: LocalStorage) -> None:
    column = Column("a", "v", types.vector(2, 64))
    array = pa.array([[1.0, None], None, [2.0, 3.0]], pa.list_(pa.float64(), 2))
    layout = Layout((column,), (column,))
    segment = Segment(layout, np.arange(3), {}, (array,), (from_arrow(array, column.type),))
    found = read_segment(storage, write_segment(storage, "s", segment), layout)
    assert found.columns[0].to_pylist() == [[1.0, None], None, [2.0, 3.0]]
    assert np.isnan(found.operands[0].values[0]).tolist() == [False, True]


def test_columns_that_are_only_delivered_can_be_of_any_type(storage: LocalStorage) -> None:
    arrays = [
        pa.array([{"x": 1}, None, {"x": 3}, {"x": 4}]),
        pa.array([[1], None, [], [2, 3]]),
        pa.array(["x", None, "x", "y"]).dictionary_encode(),
        pa.array([b"1", None, b"", b"\0"]),
        pa.array([1, 2, 3, None], pa.uint64()),
        pa.nulls(4),
    ]
    layout = Layout(tuple(Column("a", f"c{k}", types.OTHER) for k in range(len(arrays))), ())
    for first, last in ((0, 4), (1, 3), (2, 2)):
        columns = tuple(array[first:last] for array in arrays)
        segment = Segment(layout, np.arange(first, last), {}, columns, ())
        found = read_segment(storage, write_segment(storage, "s", segment), layout)
        assert [column.to_pylist() for column in found.columns] == [column.to_pylist() for column in columns]
        assert [column.type for column in found.columns] == [column.type for column in columns]


def test_what_is_known_without_opening(storage: LocalStorage) -> None:
    file = write_segment(storage, "s", replace(segment_of(10, 20), level=3))
    assert (file.first_us, file.last_us, file.rows, file.level) == (41, 86, 10, 3)
    assert file.clocks == {"a": (10, 19), "b": (5, 9)}
    assert SegmentFile.from_json(file.to_json()) == file
    assert SegmentFile.from_fields(json.loads(json.dumps(asdict(file)))) == file
    assert read_segment(storage, file, LAYOUT).level == 3
    empty = write_segment(storage, "none", segment_of(5, 5))
    assert empty.first_us > empty.last_us
    assert empty.clocks == {}
    assert SegmentFile.from_json(empty.to_json()) == empty


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"name": "s"}', '{"clocks": {"a": 1}}', '{"clocks": {}, "size": 1}'])
def test_damaged_descriptions_are_refused(text: str) -> None:
    with pytest.raises(StateError, match="the description of a segment is damaged"):
        SegmentFile.from_json(text)


def test_a_missing_file_is_a_matter_of_the_source(storage: LocalStorage) -> None:
    file = write_segment(storage, "s", segment_of())
    storage.delete("s")
    with pytest.raises(SourceError, match="there is no 's'"):
        read_segment(storage, file, LAYOUT)
    with pytest.raises(SourceError, match="there is no 'i'"):
        read_index(storage, "i")


def test_a_column_that_a_file_lacks_is_named(storage: LocalStorage) -> None:
    x, y = Column("a", "x", types.BIGINT), Column("a", "y", types.DOUBLE)
    numbers = pa.array([1, 2])
    segment = Segment(Layout((x,), (x,)), np.arange(2), {}, (numbers,), (from_arrow(numbers, x.type),))
    file = write_segment(storage, "s", segment)
    with pytest.raises(StateError) as caught:
        read_segment(storage, file, Layout((x, y), ()))
    assert caught.value.message == "'s': stored rows hold no column a.y DOUBLE"
    assert caught.value.place == storage.place("s")
    assert caught.value.hint


def test_typed_texts_see_types_inside_leaves() -> None:
    leaves = [Call("cast", (Column("a", "x", kind),), types.DOUBLE) for kind in (types.BIGINT, types.INTEGER)]
    assert typed_text(leaves[0]) == "cast(a.x BIGINT) DOUBLE"
    assert typed_text(leaves[0]) != typed_text(leaves[1])
    assert typed_text(Literal(1, types.INTEGER)) != typed_text(Literal(1, types.BIGINT))


def test_another_version_is_refused(storage: LocalStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(files, "FORMAT_VERSION", 99)
        file = write_segment(storage, "s", segment_of())
        write_index(storage, "i", {"keys": np.arange(3)})
    for read in (lambda: read_segment(storage, file, LAYOUT), lambda: read_index(storage, "i")):
        with pytest.raises(StateError, match=f"has format version 99, this is {files.FORMAT_VERSION}"):
            read()


def test_files_of_another_kind_are_refused(storage: LocalStorage) -> None:
    size = write_index(storage, "i", {"keys": np.arange(3)})
    with pytest.raises(StateError, match="'i' is a file of kind index, not segment"):
        read_segment(storage, SegmentFile("i", 3, size, 0, 0, 0, {}), LAYOUT)
    with storage.writing("foreign") as sink, pa.ipc.new_stream(sink, pa.schema([])):
        pass
    with pytest.raises(StateError, match="'foreign' was not written by Windrow"):
        read_index(storage, "foreign")


def test_another_size_or_number_of_rows_is_refused(storage: LocalStorage) -> None:
    file = write_segment(storage, "s", segment_of())
    with pytest.raises(StateError, match=rf"'s' is damaged: {file.bytes} bytes instead of {file.bytes + 1} \(at: "):
        read_segment(storage, replace(file, bytes=file.bytes + 1), LAYOUT)
    with pytest.raises(StateError, match="'s' is damaged: 60 rows instead of 61"):
        read_segment(storage, replace(file, rows=61), LAYOUT)


def test_truncated_files_are_refused(storage: LocalStorage) -> None:
    file = write_segment(storage, "s", segment_of())
    write_index(storage, "i", {"keys": np.arange(100), "rows": np.arange(3, dtype=np.int32)})
    whole, index = storage.get("s"), storage.get("i")
    for share in range(20):
        cut = whole[: len(whole) * share // 20]
        storage.put("s", cut)
        for described in (file, replace(file, bytes=len(cut))):
            with pytest.raises(StateError, match="'s' is damaged"):
                read_segment(storage, described, LAYOUT)
        storage.put("i", index[: len(index) * share // 20])
        with pytest.raises(StateError, match="'i' is damaged"):
            read_index(storage, "i")


def test_overwritten_places_are_refused_or_only_change_values(storage: LocalStorage) -> None:
    file = write_segment(storage, "s", segment_of())
    whole = storage.get("s")
    draw = random.Random(5)
    refused = 0
    for _ in range(150):
        start = draw.randrange(len(whole))
        noise = draw.randbytes(min(draw.randrange(1, 200), len(whole) - start))
        storage.put("s", whole[:start] + noise + whole[start + len(noise) :])
        try:
            read = read_segment(storage, file, LAYOUT)
        except StateError:
            refused += 1
        else:
            assert len(read) == 60
    assert refused > 20


ARRAYS: Mapping[str, Array] = {
    "keys": np.array([3, -1, 2**62]),
    "halves": np.array([0.5, np.nan, -np.inf, 1.0]),
    "marks": np.arange(9, dtype=np.uint16),
    "flags": np.array([True, False]),
    "none": np.zeros(0, np.int32),
    "matrix": np.arange(12, dtype=np.float32).reshape(4, 3),
    "strided": np.arange(12, dtype=np.uint64)[::3],
    "flat": np.zeros((0, 3)),
}


def test_arrays_of_an_index_come_back_as_they_were(storage: LocalStorage) -> None:
    assert write_index(storage, "i", ARRAYS) == storage.local("i").stat().st_size
    found = read_index(storage, "i")
    assert list(found) == list(ARRAYS)
    ranges = mapped_ranges(storage.local("i"))
    for name, array in ARRAYS.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert found[name].tobytes() == array.tobytes()
        if array.size:
            assert not found[name].flags.writeable
            assert any(first <= found[name].ctypes.data < last for first, last in ranges)
    write_index(storage, "empty", {})
    assert read_index(storage, "empty") == {}


def test_arrays_that_cannot_be_mapped_are_refused(storage: LocalStorage) -> None:
    for array in (np.array(["a"]), np.array([1j]), np.array([1], ">i8")):
        with pytest.raises(UsageError, match="cannot be written"):
            write_index(storage, "i", {"keys": array})
    assert storage.list() == ()


def hashed_pairs(index: Any, keys: Array) -> list[tuple[int, int]]:
    found = hashed.propose(index, hashed.prepare(keys))
    return sorted((int(p), int(r)) for pairs in found for p, r in zip(pairs.probe, pairs.row, strict=True))


def test_an_index_answers_from_its_file(storage: LocalStorage) -> None:
    draw = np.random.default_rng(2)
    keys, sought = draw.integers(0, 50, 200), draw.integers(0, 50, 30)
    index = hashed.build(keys)
    write_index(storage, "i", index._asdict())
    expected = hashed_pairs(index, sought)
    assert len(expected) > 30
    assert hashed_pairs(hashed.HashedIndex(**read_index(storage, "i")), sought) == expected
