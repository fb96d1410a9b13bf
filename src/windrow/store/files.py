"""Segments and indexes as files that are mapped, not read: one Arrow IPC file each, one record batch.

    time                  event times, unless a delivered timestamp column says the same
    clock NAME            row numbers of a row-windowed stream
    column K              a column that results deliver
    operand K, valid K    what predicates read: values in their machine form, and one byte a row where NULLs are

A leaf that is a delivered column is not written twice: it is a view of the column, whose NULL places hold what the
operand has there. (Not where their forms differ: booleans are bits in a column, decimals have twice the width.) After
reading, numbers, texts, vectors, token sets and flags are views of the mapped file, so a segment costs no memory of
its own and only the pages that are looked at are read.

Indexes are arrays of different lengths: a record batch of one row, each array a list in it.

Files say which format and, segments, which layout they were written for; another one is refused with what differs.
`SegmentFile` says of a segment what has to be known without opening it, its size included: a file of another size is
not opened.
"""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.errors import StateError, UsageError
from windrow.query import types
from windrow.query.expression import Column, Expression, Literal
from windrow.query.types import Kind, Type
from windrow.store.operand import Array, Form, Operand, list_parts, tokens_operand
from windrow.store.segment import Layout, Segment
from windrow.store.storage import Storage, telling

FORMAT_VERSION = 1

_NO_ROWS_US = (2**63 - 1, -(2**63))
_START_ANEW = "start with a new checkpoint, or with the query and version that wrote this one"

_STORED: dict[np.dtype[Any], pa.DataType] = {
    np.dtype(np.bool_): pa.uint8(),
    np.dtype(np.int8): pa.int8(),
    np.dtype(np.int16): pa.int16(),
    np.dtype(np.int32): pa.int32(),
    np.dtype(np.int64): pa.int64(),
    np.dtype(np.uint8): pa.uint8(),
    np.dtype(np.uint16): pa.uint16(),
    np.dtype(np.uint32): pa.uint32(),
    np.dtype(np.uint64): pa.uint64(),
    np.dtype(np.float32): pa.float32(),
    np.dtype(np.float64): pa.float64(),
}
"""The types of NumPy that files can hold, as Arrow's; truths are bytes, so that they can be viewed."""


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """A segment in a file: what is known of it without opening it. `clocks` are first and last row numbers.

    >>> file = SegmentFile("segments/b1", 2, 900, 10, 30, 0, {"a": (1, 2)})
    >>> SegmentFile.from_json(file.to_json()) == file
    True
    """

    name: str
    rows: int
    bytes: int
    first_us: int
    last_us: int
    level: int
    clocks: Mapping[str, tuple[int, int]]

    def to_json(self) -> str:
        """The fields as text."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> SegmentFile:
        """What `to_json` wrote."""
        try:
            return SegmentFile.from_fields(json.loads(text))
        except ValueError as error:
            raise StateError(f"the description of a segment is damaged: {error}", hint=_START_ANEW) from error

    @staticmethod
    def from_fields(fields: Mapping[str, Any]) -> SegmentFile:
        """What `dataclasses.asdict` gave, after a passage through JSON."""
        try:
            clocks = {str(name): (int(first), int(last)) for name, (first, last) in fields["clocks"].items()}
            return SegmentFile(**{**fields, "clocks": clocks})
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise StateError(f"the description of a segment is damaged: {error}", hint=_START_ANEW) from error


def write_segment(storage: Storage, name: str, segment: Segment) -> SegmentFile:
    """Write a segment as a new object; its indexes are not written with it."""
    fields, parts = _taken_apart(segment)
    metadata = {**_kind("segment"), "windrow.layout": fingerprint(segment.layout)}
    details = {"windrow.parts": json.dumps(parts), "windrow.texts": json.dumps(_texts(segment.layout))}
    size = _write(storage, name, fields, metadata, details)
    first_us, last_us = (segment.first_us, segment.last_us) if len(segment) else _NO_ROWS_US
    clocks = {each: (int(clock[0]), int(clock[-1])) for each, clock in segment.clocks.items() if len(clock)}
    return SegmentFile(name, len(segment), size, first_us, last_us, segment.level, clocks)


def read_segment(storage: Storage, file: SegmentFile, layout: Layout) -> Segment:
    """The segment of a file, as views of it; `layout` has to be the one it was written with."""
    batch, details = _read(storage, file.name, "segment", file.bytes, layout)
    with _sound(storage, file.name):
        if batch.num_rows != file.rows:
            raise ValueError(f"{batch.num_rows} rows instead of {file.rows}")
        parts = json.loads(details[b"windrow.parts"])
        columns = tuple(batch.column(f"column {k}") for k in range(len(layout.columns)))
        operands = tuple(_operand(batch, *part) for part in parts["operands"])
        if len(operands) != len(layout.operands):
            raise ValueError(f"{len(operands)} operands instead of {len(layout.operands)}")
        clocks = {each: _view(batch.column(f"clock {each}"), "int64") for each in parts["clocks"]}
        return Segment(layout, _view(batch.column(parts["time"]), "int64"), clocks, columns, operands, file.level)


def write_index(storage: Storage, name: str, arrays: Mapping[str, Array]) -> int:
    """Write the arrays of an index as a new object; the bytes it takes."""
    fields = {}
    shapes = {}
    for each, array in arrays.items():
        flat = _stored(array, f"array {each}")
        fields[each] = pa.LargeListArray.from_arrays(pa.array([0, len(flat)], pa.int64()), flat)
        shapes[each] = (array.dtype.name, array.shape)
    return _write(storage, name, fields, _kind("index"), {"windrow.arrays": json.dumps(shapes)})


def read_index(storage: Storage, name: str) -> dict[str, Array]:
    """The arrays of an index, as views of its file."""
    batch, details = _read(storage, name, "index")
    with _sound(storage, name):
        shapes = json.loads(details[b"windrow.arrays"])
        return {each: _view(batch.column(each).values, dtype).reshape(shape) for each, (dtype, shape) in shapes.items()}


@lru_cache(maxsize=256)
def fingerprint(layout: Layout) -> str:
    """A hash of what a layout holds, that is of the texts of its columns and leaves."""
    return sha256(json.dumps(_texts(layout)).encode()).hexdigest()[:16]


def typed_text(expression: Expression) -> str:
    """An expression with the types of all its parts: two with the same text compute the same.

    >>> typed_text(Column("a", "x", types.DOUBLE))
    'a.x DOUBLE'
    """
    if isinstance(expression, Column | Literal):
        return f"{expression} {expression.type}"
    return f"{expression.function}({', '.join(map(typed_text, expression.arguments))}) {expression.type}"


def _texts(layout: Layout) -> list[list[str]]:
    return [[typed_text(each) for each in layout.columns], [typed_text(each) for each in layout.operands]]


def _kind(kind: str) -> dict[str, str]:
    return {"windrow.format": str(FORMAT_VERSION), "windrow.kind": kind}


def _taken_apart(segment: Segment) -> tuple[dict[str, pa.Array], dict[str, Any]]:
    """The arrays to write, by name, and which of them make up the time, the clocks and each operand."""
    fields = {f"column {k}": column for k, column in enumerate(segment.columns)}
    operands = []
    for slot, (leaf, operand) in enumerate(zip(segment.layout.operands, segment.operands, strict=True)):
        values, valid = f"operand {slot}", None
        shared = None
        if leaf in segment.layout.columns:
            column = f"column {segment.layout.columns.index(leaf)}"
            shared = _shared(fields[column], operand, leaf.type)
        if shared is None:
            fields[values] = _values_of(operand, values)
        else:
            fields[column], values = shared, column
        if operand.valid is not None:
            valid = f"valid {slot}"
            fields[valid] = _stored(operand.valid, valid)
        operands.append((operand.form.value, operand.arrays[0].dtype.name, values, valid))
    for name, clock in segment.clocks.items():
        fields[f"clock {name}"] = _stored(clock, f"clock {name}")
    time = _same_as(segment.time_us, fields)
    if time is None:
        time = "time"
        fields[time] = _stored(segment.time_us, time)
    return fields, {"time": time, "clocks": list(segment.clocks), "operands": operands}


def _shared(column: pa.Array, operand: Operand, type_: Type) -> pa.Array | None:
    """A delivered column laid out so that the operand is a view of it; None where it cannot be one."""
    if column.type != types.to_arrow(type_) or type_.kind in (Kind.BOOLEAN, Kind.DECIMAL, Kind.NULL):
        return None
    if operand.form is Form.TEXT:
        return column
    known = np.asarray(column.is_valid())
    bitmap = pa.array(known).buffers()[1] if column.null_count else None
    flat = _stored(operand.values, "operand")
    if operand.form is Form.NUMBER:
        if flat.type.bit_width != column.type.bit_width:
            return None
        return pa.Array.from_buffers(column.type, len(column), [bitmap, flat.buffers()[1]])
    if flat.type != column.type.value_type:
        return None
    elements = column.values.slice(column.offset * type_.length, len(column) * type_.length)
    if elements.null_count and np.asarray(elements.is_null()).reshape(-1, type_.length)[known].any():
        return None  # NaN to predicates, NULL to results
    return pa.Array.from_buffers(column.type, len(column), [bitmap], children=[flat])


def _values_of(operand: Operand, place: str) -> pa.Array:
    if operand.form in (Form.TEXT, Form.TOKENS):
        return operand.arrow
    flat = _stored(operand.values, place)
    return flat if operand.form is Form.NUMBER else pa.FixedSizeListArray.from_arrays(flat, operand.values.shape[1])


def _same_as(times_us: Array, fields: Mapping[str, pa.Array]) -> str | None:
    """The name of a field with exactly these times."""
    for name, field in fields.items():
        timed = field.type in (pa.timestamp("us"), pa.timestamp("us", "UTC")) and not field.null_count
        if timed and np.array_equal(field.view(pa.int64()).to_numpy(), times_us):
            return name
    return None


def _operand(batch: pa.RecordBatch, form: str, dtype: str, values: str, valid: str | None) -> Operand:
    array = batch.column(values)
    flags = None if valid is None else _view(batch.column(valid), "bool")
    if form == Form.TEXT.value:
        return Operand(Form.TEXT, list_parts(array), flags, array)
    if form == Form.TOKENS.value:
        return tokens_operand(array, flags)
    if form == Form.VECTOR.value:
        rows = _view(array.values, dtype).reshape(len(array), array.type.list_size)
        return Operand(Form.VECTOR, (rows,), flags, array if values.startswith("column") else None)
    return Operand(Form(form), (_view(array, dtype),), flags)


def _stored(array: Array, place: str) -> pa.Array:
    """The items of an array of any shape as an Arrow array on the same memory."""
    kind = _STORED.get(array.dtype)
    if kind is None:
        known = ", ".join(dtype.name for dtype in _STORED)
        raise UsageError(f"values of type {array.dtype} cannot be written", place=place, hint=f"known types: {known}")
    return pa.Array.from_buffers(kind, array.size, [None, pa.py_buffer(np.ascontiguousarray(array))])


def _view(array: pa.Array, dtype: str) -> Array:
    """The values of an Arrow array of fixed width, NULLs not regarded, on the same memory."""
    data = array.buffers()[1]
    kind = np.dtype(dtype)
    if data is None or len(array) == 0:
        return np.zeros(0, kind)
    if array.type.bit_width != 8 * kind.itemsize:
        raise ValueError(f"{array.type} instead of {dtype}")
    return np.frombuffer(data, kind, len(array), array.offset * kind.itemsize)


def _write(
    storage: Storage,
    name: str,
    fields: Mapping[str, pa.Array],
    metadata: Mapping[str, str],
    details: Mapping[str, str],
) -> int:
    """Write one record batch. What a schema says is written twice, so `details` go with the batch."""
    schema = pa.schema([(each, array.type) for each, array in fields.items()], metadata)
    batch = pa.RecordBatch.from_arrays(list(fields.values()), schema=schema)
    with storage.writing(name) as sink:
        with pa.ipc.new_file(sink, schema) as writer:
            writer.write_batch(batch, custom_metadata=details)
        return int(sink.tell())


def _read(
    storage: Storage, name: str, kind: str, size: int | None = None, layout: Layout | None = None
) -> tuple[pa.RecordBatch, Mapping[bytes, bytes]]:
    """The record batch of a file and its details, once it is known to be what is asked for."""
    path = storage.fetch(name)
    with telling(storage.address, name, "read"):
        found = path.stat().st_size
    if found == 0 or (size is not None and found != size):
        raise _damaged(storage, name, f"{found} bytes" + ("" if size is None else f" instead of {size}"))
    with telling(storage.address, name, "read"):
        source = _opened(path)
    with _sound(storage, name), source:
        reader = pa.ipc.open_file(source)
        _check(storage, name, kind, reader.schema.metadata or {})
        if reader.num_record_batches != 1:
            raise ValueError(f"{reader.num_record_batches} record batches instead of 1")
        batch, details = reader.get_batch_with_custom_metadata(0)
        batch.validate()
        if layout is not None and reader.schema.metadata[b"windrow.layout"].decode() != fingerprint(layout):
            raise _other_layout(storage, name, json.loads(details[b"windrow.texts"]), _texts(layout))
        return batch, details


def _check(storage: Storage, name: str, kind: str, metadata: Mapping[bytes, bytes]) -> None:
    version, found = metadata.get(b"windrow.format"), metadata.get(b"windrow.kind")
    if version is None or found is None:
        raise _refused(storage, name, f"'{name}' was not written by Windrow")
    if version.decode() != str(FORMAT_VERSION):
        raise _refused(storage, name, f"'{name}' has format version {version.decode()}, this is {FORMAT_VERSION}")
    if found.decode() != kind:
        raise _refused(storage, name, f"'{name}' is a file of kind {found.decode()}, not {kind}")


def _opened(path: Path) -> Any:
    """A file, mapped; or read, if the address space is limited: then memory that is counted is memory that is used."""
    if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        return pa.memory_map(str(path))
    with pa.OSFile(str(path)) as source:
        return pa.BufferReader(source.read_buffer())


@contextmanager
def _sound(storage: Storage, name: str) -> Iterator[None]:
    """Turns what reading a file that is not as it was written may raise into our errors."""
    try:
        yield
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise _damaged(storage, name, str(error).partition("\n")[0]) from error


def _damaged(storage: Storage, name: str, why: str) -> StateError:
    hint = "restore the file, or start with a new checkpoint"
    return StateError(f"'{name}' is damaged: {why}", place=storage.place(name), hint=hint)


def _refused(storage: Storage, name: str, why: str) -> StateError:
    return StateError(why, place=storage.place(name), hint=_START_ANEW)


def _other_layout(
    storage: Storage, name: str, written: Sequence[Sequence[str]], wanted: Sequence[Sequence[str]]
) -> StateError:
    """What a file lacks and has too much, columns and leaves apart."""
    differences = []
    for what, held, asked in zip(("column", "operand"), written, wanted, strict=True):
        differences += [f"lacks {what} {text}" for text in asked if text not in held]
        differences += [f"has {what} {text}" for text in held if text not in asked]
    why = "; ".join(differences) or "has the same columns and operands in another order"
    return _refused(storage, name, f"'{name}' was written for another query: it {why}")
