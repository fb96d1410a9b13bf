"""A recorded stream as a query sees it: its columns, its event-time column, and its rows with times as timestamps.

Times recorded as numbers become timestamps here, once, so that a query, its results and every runtime see the same.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa

from windrow.errors import UsageError
from windrow.streams import files
from windrow.streams.event_time import event_time_us, time_column
from windrow.streams.files import FileSource

_STAMP = pa.timestamp("us")


@dataclass(frozen=True, slots=True)
class RecordedStream:
    """Where a stream is recorded, its schema as the query sees it, and its event-time column."""

    source: FileSource
    schema: pa.Schema
    time: str
    converted: bool

    def read(self, columns: Collection[str]) -> pa.Table:
        """The rows, with these columns."""
        table = files.read(self.source, list(columns))
        if self.converted and self.time in table.column_names:
            place = table.column_names.index(self.time)
            stamps = event_time_us(table.column(self.time), self.source.unit).cast(_STAMP)
            table = table.set_column(place, pa.field(self.time, _STAMP), stamps)
        return table


def recorded(source: FileSource) -> RecordedStream:
    """The stream recorded in some files; their columns are looked up, no rows are read."""
    found = files.schema(source)
    time = time_column(found, source.time, place=source.path)
    kind = found.field(time).type
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if source.unit is not None and not number:
        hint = "leave out unit: it is for times recorded as numbers"
        raise UsageError(f"time column '{time}' is {kind}, which has its own unit", place=source.path, hint=hint)
    converted = number and (source.unit is not None or pa.types.is_floating(kind) or kind == pa.uint64())
    if converted:
        found = found.set(found.get_field_index(time), pa.field(time, _STAMP))
    return RecordedStream(source, found, time, converted)
