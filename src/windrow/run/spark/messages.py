"""What travels between the tasks of a batch: rows of five columns, whose payload is Arrow.

    kind       slice            path      what the payload holds
    store      where it lives   stream    new rows of a stream, as a segment
    probe      where it probes  driver    partial results: the members' rows they refer to, and the references
    kept       the same         stream    the name of a segment written in this batch (JSON)
    result     any              -         few rows of the SELECT list, as they are
    staged     any              -         the name of a file of results (JSON)
    count      0                stream    statistics of the entrance (JSON)
    done       0                -         what the task took (JSON)

A partial result is shipped with copies of just the rows it refers to, as small segments, so the receiver gathers
columns from them by the same handles and the same code as in one process.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from windrow.probe.gather import gather, handles_of
from windrow.query.expression import Column
from windrow.query.types import VARCHAR
from windrow.run.partial import Partial, View
from windrow.run.program import Program
from windrow.store.operand import Array, Form, Operand, from_arrow, tokens_operand
from windrow.store.segment import Layout, Segment

STORE, PROBE, KEPT, RESULT, COUNT, STAGED, DONE = range(7)

SCHEMA = pa.schema(
    [("slice", pa.int32()), ("kind", pa.int8()), ("path", pa.string()), ("rows", pa.int64()), ("payload", pa.binary())]
)
SPARK_SCHEMA = "slice int, kind tinyint, path string, rows bigint, payload binary"


class Message(NamedTuple):
    """One row between tasks."""

    slice: int
    kind: int
    path: str
    rows: int
    payload: bytes


def as_batch(messages: list[Message]) -> pa.RecordBatch:
    """Messages as Spark takes them."""
    columns = zip(*messages, strict=True) if messages else ([],) * len(SCHEMA)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def to_bytes(batch: pa.RecordBatch) -> bytes:
    """A record batch as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def table_bytes(table: pa.Table) -> bytes:
    """A table as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def from_bytes(data: bytes | pa.Buffer) -> pa.RecordBatch:
    """The record batch of an Arrow IPC stream."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_next_batch()


def segment_batch(segment: Segment) -> pa.RecordBatch:
    """A segment as one record batch: time, clocks, delivered columns, then the leaves that are not among them."""
    arrays: dict[str, pa.Array] = {"time": pa.array(segment.time_us)}
    arrays.update({f"clock {name}": pa.array(clock) for name, clock in segment.clocks.items()})
    arrays.update({f"column {k}": column for k, column in enumerate(segment.columns)})
    for slot, (expression, operand) in enumerate(zip(segment.layout.operands, segment.operands, strict=True)):
        if isinstance(expression, Column) and expression in segment.layout.columns:
            continue
        arrays[f"operand {slot}"] = _operand_array(operand)
        if operand.valid is not None:
            arrays[f"valid {slot}"] = pa.array(operand.valid)
    return pa.RecordBatch.from_pydict(arrays)


def batch_segment(batch: pa.RecordBatch, layout: Layout, level: int = 0) -> Segment:
    """The segment of a record batch."""
    held = dict(zip(batch.schema.names, batch.columns, strict=True))
    columns = tuple(held[f"column {k}"] for k in range(len(layout.columns)))
    clocks = {name[6:]: np.asarray(array) for name, array in held.items() if name.startswith("clock ")}
    operands = []
    for slot, expression in enumerate(layout.operands):
        if isinstance(expression, Column) and expression in layout.columns:
            operands.append(from_arrow(columns[layout.columns.index(expression)], expression.type))
            continue
        valid = np.asarray(held[f"valid {slot}"]) if f"valid {slot}" in held else None
        operands.append(_array_operand(held[f"operand {slot}"], valid))
    return Segment(layout, np.asarray(held["time"]), clocks, columns, tuple(operands), level)


def partial_bytes(partial: Partial) -> bytes:
    """Partial results with the rows they refer to."""
    core: dict[str, pa.Array] = {
        "turn": pa.array(partial.turn_us),
        "newest": pa.array(partial.newest_us),
        "dies": pa.array(partial.dies_us),
    }
    for name in partial.newest_clock:
        core[f"newest {name}"] = pa.array(partial.newest_clock[name])
        core[f"dies {name}"] = pa.array(partial.dies_clock[name])
    parts: dict[str, bytes] = {}
    for name, handles in partial.handles.items():
        distinct, places = np.unique(handles, return_inverse=True)
        core[f"member {name}"] = pa.array(places.astype(np.int64))
        parts[name] = to_bytes(segment_batch(_picked(partial.views[name], distinct)))
    parts["\0"] = to_bytes(pa.RecordBatch.from_pydict(core))
    return to_bytes(pa.RecordBatch.from_pydict({name: pa.array([part], pa.binary()) for name, part in parts.items()}))


def bytes_partial(data: bytes, program: Program, views: Mapping[str, View]) -> Partial:
    """The partial results of a message; members come with their own views, other streams keep those in `views`."""
    parts = from_bytes(data)
    held = {name: parts.column(k)[0].as_buffer() for k, name in enumerate(parts.schema.names)}
    core = from_bytes(held.pop("\0"))
    arrays = {name: np.asarray(core.column(k)) for k, name in enumerate(core.schema.names)}
    seen = dict(views)
    for name, buffer in held.items():
        segment = batch_segment(from_bytes(buffer), program.layouts[name])
        seen[name] = View(program.spec.stream(name), (segment,), None)
    return Partial(
        seen,
        {name: handles_of(0, arrays[f"member {name}"]) for name in held},
        arrays["turn"],
        arrays["newest"],
        arrays["dies"],
        {name[7:]: array for name, array in arrays.items() if name.startswith("newest ")},
        {name[5:]: array for name, array in arrays.items() if name.startswith("dies ")},
    )


def _picked(view: View, handles: Array) -> Segment:
    """The rows that handles name, as a small segment (in the order of the handles, so not always of time)."""
    segments = view.segments
    layout = segments[0].layout
    columns = tuple(view.column(place, handles) for place in range(len(layout.columns)))
    operands = tuple(view.operand(slot, leaf, handles) for slot, leaf in enumerate(layout.operands))
    clocks = {name: gather([segment.clocks[name] for segment in segments], handles) for name in segments[0].clocks}
    return Segment(layout, gather([segment.time_us for segment in segments], handles), clocks, columns, operands)


def _operand_array(operand: Operand) -> pa.Array:
    if operand.arrow is not None and operand.form is not Form.NUMBER:
        return operand.arrow
    if operand.form is Form.VECTOR:
        flat = pa.array(np.ascontiguousarray(operand.values).reshape(-1))
        return pa.FixedSizeListArray.from_arrays(flat, operand.values.shape[1])
    return pa.array(operand.values)


def _array_operand(array: pa.Array, valid: Array | None) -> Operand:
    if pa.types.is_string(array.type):
        return from_arrow(array, VARCHAR)
    if pa.types.is_large_list(array.type):
        return tokens_operand(array, valid)
    if pa.types.is_fixed_size_list(array.type):
        width = array.type.list_size
        rows = np.asarray(array.values.slice(array.offset * width, len(array) * width)).reshape(len(array), width)
        return Operand(Form.VECTOR, (rows,), valid, array)
    return Operand(Form.NUMBER, (np.asarray(array),), valid)
