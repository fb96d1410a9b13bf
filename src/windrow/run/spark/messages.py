"""What travels between the tasks of a batch: rows of six columns, whose payload is Arrow.

    kind       slice            path      what the payload holds
    store      where it lives   stream    new rows of a stream, as a segment
    probe      where it probes  driver    partial results: the members' rows they refer to, and the references
    kept       the same         stream    the name of a segment written in this batch (JSON)
    result     any              -         few rows of the SELECT list, as they are
    staged     any              -         the name of a file of results (JSON)
    count      0                stream    statistics of the entrance (JSON)
    noted      0                -         what probing did: a clerk's notes (JSON)
    done       0                -         what the task took (JSON)
    came       0                stream    rows of each portion, for the ledger (JSON)
    seek       where it looks   -         nothing: rows of pieces are to be found there
    summed     any              -         what results add up to, where sums are asked for: a tally (summed.py)
    aged       any              -         results held back as stale, and how old the others are (JSON)

`portion` says which portion of its driver's rows a partial result belongs to (`windrow.plan.shedding`); in a repair
(`windrow.run.spark.mending`) which piece of the job.

A partial result is shipped with copies of just the rows it refers to, as small segments (`windrow.store.codec`), so
the receiver gathers columns from them by the same handles and the same code as in one process. What of them travels is
what later steps and the SELECT list read (`Program.carried`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from windrow.probe.gather import gather, handles_of
from windrow.query.expression import Column
from windrow.run.partial import Partial, Times, View, known
from windrow.run.program import Program
from windrow.store.codec import from_batch, to_batch
from windrow.store.operand import Array, from_arrow
from windrow.store.segment import Layout, Segment

STORE, PROBE, KEPT, RESULT, COUNT, STAGED, DONE, NOTED, CAME, SEEK, SUMMED, AGED = range(12)

SCHEMA = pa.schema([
    ("slice", pa.int32()), ("kind", pa.int8()), ("path", pa.string()), ("rows", pa.int64()), ("payload", pa.binary()),
    ("portion", pa.int16()),
])  # fmt: skip
SPARK_SCHEMA = "slice int, kind tinyint, path string, rows bigint, payload binary, portion smallint"


class Message(NamedTuple):
    """One row between tasks."""

    slice: int
    kind: int
    path: str
    rows: int
    payload: bytes
    portion: int = 0


def as_batch(messages: list[Message]) -> pa.RecordBatch:
    """Messages as Spark takes them."""
    columns = zip(*messages, strict=True) if messages else ([],) * len(SCHEMA)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def table_bytes(table: pa.Table) -> bytes:
    """A table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def partial_bytes(partial: Partial, layouts: Mapping[str, Layout] | None = None) -> bytes:
    """Partial results with the rows they refer to; of each member what `layouts` asks for (by default all there is).

    One Arrow stream after the other: the references, then the rows of each member.
    """
    core: dict[str, pa.Array] = {
        "turn": pa.array(partial.turn_us),
        "newest": pa.array(partial.newest_us),
        "dies": pa.array(partial.dies_us),
    }
    for name in partial.newest_clock:
        core[f"newest {name}"] = pa.array(partial.newest_clock[name])
        core[f"dies {name}"] = pa.array(partial.dies_clock[name])
    batches = []
    for name, handles in partial.handles.items():
        distinct, places = np.unique(handles, return_inverse=True)
        core[f"member {name}"] = pa.array(places.astype(np.int64))
        layout = None if layouts is None else layouts[name]
        batches.append(to_batch(_picked(partial.views[name], distinct, layout)))
    sink = pa.BufferOutputStream()
    for batch in (pa.RecordBatch.from_arrays(list(core.values()), names=list(core)), *batches):
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
    return bytes(sink.getvalue())


def bytes_partial(data: bytes | pa.Buffer, program: Program, views: Mapping[str, View]) -> Partial:
    """The partial results of a message; members come with their own views, other streams keep those in `views`."""
    source = pa.BufferReader(data)
    core = _next_batch(source)
    arrays = {name: np.asarray(array) for name, array in zip(core.schema.names, core.columns, strict=True)}
    seen = dict(views)
    handles = {}
    for name in [name.removeprefix("member ") for name in arrays if name.startswith("member ")]:
        rows = _next_batch(source)
        segment = from_batch(rows, program.part(name, tuple(rows.schema.names)))
        seen[name] = View(program.spec.stream(name), (segment,), None)
        handles[name] = handles_of(0, arrays[f"member {name}"])
    times = Times(
        arrays["turn"],
        arrays["newest"],
        arrays["dies"],
        {name[7:]: array for name, array in arrays.items() if name.startswith("newest ")},
        {name[5:]: array for name, array in arrays.items() if name.startswith("dies ")},
    )
    return Partial(seen, handles, known(times))


def _next_batch(source: pa.BufferReader) -> pa.RecordBatch:
    """The one batch of the Arrow stream that begins here; read to its end, where the next one begins."""
    with pa.ipc.open_stream(source) as reader:
        (batch,) = reader
        return batch


def _picked(view: View, handles: Array, layout: Layout | None) -> Segment:
    """The rows that handles name, as a small segment (in the order of the handles, so not always of time)."""
    segments = view.segments
    held = segments[0].layout
    layout = held if layout is None else layout
    columns = {column: view.column(held.columns.index(column), handles) for column in layout.columns}
    operands = tuple(
        from_arrow(columns[leaf], leaf.type)
        if isinstance(leaf, Column) and leaf in columns
        else view.operand(held.operands.index(leaf), leaf, handles)
        for leaf in layout.operands
    )
    clocks = {name: gather([segment.clocks[name] for segment in segments], handles) for name in segments[0].clocks}
    times_us = gather([segment.time_us for segment in segments], handles)
    return Segment(layout, times_us, clocks, tuple(columns.values()), operands)
