"""The one form of a segment outside of memory, on the wire as in files: one Arrow record batch, fields by name.

    first field        event times: a column that says the same, else `:time`
    a.x DOUBLE         a column as results deliver it, under its typed text
    :leaf lower(…) …   a leaf that is no column: machine words, texts, vectors or token sets; NULL by Arrow's bits
    :clock NAME        row numbers of a row-windowed stream

What is read is picked by name, so it can have another layout than what was written. A leaf that is a column is a view
of it (booleans, decimals and what holds NULLs take a copy), and a column that is only searched can be delivered later.
What a leaf does not say exactly (wide decimals, vectors with unknown elements) stays a leaf.

Bytes are an Arrow IPC stream of one batch, which can be mapped: numbers, texts and vectors are read without a copy.

>>> from windrow.query.types import DOUBLE
>>> x = Column("a", "x", DOUBLE)
>>> written = Segment(Layout((), (x,)), np.array([7]), {}, (), (from_arrow(pa.array([0.5]), x.type),))
>>> from_bytes(to_bytes(to_batch(written))).schema.names
[':time', 'a.x DOUBLE']
>>> from_batch(to_batch(written), Layout((x,), ())).columns[0].to_pylist()
[0.5]
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from windrow.errors import StateError, UsageError
from windrow.query.expression import Column, Expression
from windrow.query.types import VARCHAR, Kind, Type
from windrow.store.operand import Array, Form, Operand, from_arrow, to_arrow, tokens_operand
from windrow.store.segment import Layout, Segment

_TIME = ":time"
_LEAF = ":leaf "
_CLOCK = ":clock "
_EXACT_DIGITS = 18
_TIMES = (pa.timestamp("us"), pa.timestamp("us", "UTC"))

Derive: TypeAlias = Callable[[Expression, pa.RecordBatch], Operand | None]
"""Computes a leaf from what a record batch holds; None if it cannot."""

_STORED: dict[np.dtype[np.generic], pa.DataType] = {
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
"""The types of NumPy that can be written, as Arrow's; truths are bytes, so that they can be viewed."""


def to_batch(segment: Segment) -> pa.RecordBatch:
    """A segment as one record batch; its indexes are not in it."""
    layout = segment.layout
    fields: dict[str, pa.Array] = dict(zip(layout.column_texts, segment.columns, strict=True))
    for text, leaf, operand in zip(layout.operand_texts, layout.operands, segment.operands, strict=True):
        if text in fields:
            continue
        if isinstance(leaf, Column) and _says_all(leaf.type):
            fields[text] = to_arrow(operand, leaf.type)
        else:
            fields[_LEAF + text] = _leaf_array(operand)
    for name, clock in segment.clocks.items():
        fields[_CLOCK + name] = plain_array(clock, f"clock {name}")
    time = _same_times(segment.time_us, fields)
    if time is None:
        time, fields[_TIME] = _TIME, plain_array(segment.time_us, "time")
    names = [time, *(name for name in fields if name != time)]
    return pa.RecordBatch.from_arrays([fields[name] for name in names], names=names)


def from_batch(batch: pa.RecordBatch, layout: Layout, level: int = 0, derive: Derive | None = None) -> Segment:
    """The rows of a record batch as a segment of a layout, which may be another than it was written with.

    A leaf that is not held is asked of `derive`.
    """
    names = batch.schema.names
    held: dict[str, pa.Array] = dict(zip(names, batch.columns, strict=True))
    if any(text not in held for text in layout.column_texts):
        raise _lacking(held, layout)
    columns = tuple([held[text] for text in layout.column_texts])
    operands = tuple(
        [
            _operand(held, text, leaf) if _is_held(held, text) else _derived(batch, text, leaf, derive)
            for text, leaf in zip(layout.operand_texts, layout.operands, strict=True)
        ]
    )
    clocks = {name.removeprefix(_CLOCK): plain_values(array) for name, array in held.items() if name.startswith(_CLOCK)}
    return Segment(layout, times_of(batch), clocks, columns, operands, level)


def times_of(batch: pa.RecordBatch) -> Array:
    """The event times of a segment's record batch."""
    return plain_values(batch.column(0), np.int64)


def part_of(layout: Layout, names: Sequence[str]) -> Layout:
    """What of a layout a record batch with these names of fields holds."""
    held = frozenset(names)
    if all(_is_held(held, text) for text in (*layout.column_texts, *layout.operand_texts)):
        return layout
    columns = zip(layout.columns, layout.column_texts, strict=True)
    operands = zip(layout.operands, layout.operand_texts, strict=True)
    return Layout(
        tuple(column for column, text in columns if text in held),
        tuple(leaf for leaf, text in operands if _is_held(held, text)),
    )


def to_bytes(batch: pa.RecordBatch) -> bytes:
    """A record batch as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def from_bytes(data: bytes | pa.Buffer) -> pa.RecordBatch:
    """The record batch of an Arrow IPC stream, on the same memory."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_next_batch()


def plain_array(array: Array, place: str) -> pa.Array:
    """The items of an array of any shape as an Arrow array on the same memory."""
    kind = _STORED.get(array.dtype)
    if kind is None:
        known = ", ".join(dtype.name for dtype in _STORED)
        raise UsageError(f"values of type {array.dtype} cannot be written", place=place, hint=f"known types: {known}")
    return pa.Array.from_buffers(kind, array.size, [None, pa.py_buffer(np.ascontiguousarray(array))])


def plain_values(array: pa.Array, dtype: type[np.generic] | np.dtype[np.generic] | None = None) -> Array:
    """The values of an Arrow array of fixed width, NULLs not regarded, on the same memory."""
    kind = np.dtype(array.type.to_pandas_dtype() if dtype is None else dtype)
    data = array.buffers()[1]
    if data is None or len(array) == 0:
        return np.zeros(0, kind)
    if array.type.bit_width != 8 * kind.itemsize:
        raise ValueError(f"{array.type} instead of {kind}")
    return np.frombuffer(data, kind, len(array), array.offset * kind.itemsize)


def _says_all(type_: Type) -> bool:
    """Whether the machine form of a column says all that the column does, NaN and NULL taken as the same."""
    if type_.kind is Kind.DECIMAL:
        return type_.width <= _EXACT_DIGITS
    return type_.kind is not Kind.VECTOR


def _is_held(names: Container[str], text: str) -> bool:
    return text in names or _LEAF + text in names


def _same_times(times_us: Array, fields: Mapping[str, pa.Array]) -> str | None:
    """The name of a field with exactly these times."""
    for name, field in fields.items():
        timed = field.type in _TIMES and not field.null_count
        if timed and np.array_equal(plain_values(field, np.int64), times_us):
            return name
    return None


def _leaf_array(operand: Operand) -> pa.Array:
    """A leaf in its machine form, with a bit a row where NULLs are."""
    missing = None if operand.valid is None else pa.array(~operand.valid)
    if operand.form is Form.TEXT:
        return operand.arrow
    if operand.form is Form.TOKENS:
        return _known_sets(operand)
    flat = plain_array(operand.values, "leaf")
    if operand.form is Form.VECTOR:
        return pa.FixedSizeListArray.from_arrays(flat, operand.values.shape[1], mask=missing)
    return pa.Array.from_buffers(flat.type, len(flat), [_bits(operand.valid), flat.buffers()[1]])


def _known_sets(operand: Operand) -> pa.Array:
    offsets = plain_array(operand.arrays[0], "token sets").buffers()[1]
    lists: Any = operand.arrow
    return pa.Array.from_buffers(lists.type, len(lists), [_bits(operand.valid), offsets], children=[lists.values])


def _bits(valid: Array | None) -> pa.Buffer | None:
    return None if valid is None else pa.array(valid).buffers()[1]


def _derived(batch: pa.RecordBatch, text: str, leaf: Expression, derive: Derive | None) -> Operand:
    found = None if derive is None else derive(leaf, batch)
    if found is None:
        hint = "start with a new checkpoint, or with the query that wrote this one"
        raise StateError(f"stored rows hold no {text}", hint=hint)
    return found


def _operand(held: Mapping[str, pa.Array], text: str, leaf: Expression) -> Operand:
    array = held.get(text)
    if array is not None:
        return from_arrow(array, leaf.type)
    array = held[_LEAF + text]
    if pa.types.is_string(array.type):
        return from_arrow(array, VARCHAR)
    valid = np.asarray(array.is_valid()) if array.null_count else None
    if pa.types.is_large_list(array.type):
        return tokens_operand(array, valid)
    if pa.types.is_fixed_size_list(array.type):
        width = array.type.list_size
        rows = plain_values(array.values.slice(array.offset * width, len(array) * width))
        return Operand(Form.VECTOR, (rows.reshape(len(array), width),), valid)
    truth = leaf.type.kind in (Kind.BOOLEAN, Kind.NULL)
    return Operand(Form.NUMBER, (plain_values(array, np.bool_ if truth else None),), valid)


def _lacking(held: Mapping[str, pa.Array], layout: Layout) -> StateError:
    """Which column a batch does not hold, and what it holds instead."""
    column, text = next(
        (column, text) for column, text in zip(layout.columns, layout.column_texts, strict=True) if text not in held
    )
    other = next((name for name in held if name.startswith(f"{column} ")), None)
    instead = "" if other is None else f", only {other}"
    hint = "select it no more, or start with a new checkpoint, which keeps every column with keep=all"
    return StateError(f"stored rows hold no column {text}{instead}", hint=hint)
