"""Segments and indexes as files that are mapped, not read: one Arrow IPC stream each, of one record batch.

A segment's file has the form of `windrow.store.codec`, which is also that of messages. After reading, numbers, texts,
vectors and token sets are views of the mapped file, so a segment costs no memory of its own and only the pages that
are looked at are read. A file can be read with another layout than it was written with, as long as it holds all that
is asked for.

Indexes are arrays of different lengths: a record batch of one row, each array a list in it. They lie beside their
segment, and its `SegmentFile` names them.

Files say which format they have; another one is refused. `SegmentFile` says of a segment what has to be known without
opening it, its size included: a file of another size is not opened.
"""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.errors import StateError
from windrow.store.codec import Derive, from_batch, plain_array, plain_values, to_batch
from windrow.store.operand import Array
from windrow.store.segment import Layout, Segment
from windrow.store.storage import Storage, telling

FORMAT_VERSION = 2

_NO_ROWS_US = (2**63 - 1, -(2**63))
_START_ANEW = "start with a new checkpoint, or with the query and version that wrote this one"


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """A segment in a file: what is known of it without opening it. `clocks` are first and last row numbers, `indexes`
    the bytes of the index files beside it, by the text of their keys.

    >>> file = SegmentFile("segments/b1", 2, 900, 10, 30, 0, {"a": (1, 2)}, {"sorted a.x": 96})
    >>> SegmentFile.from_json(file.to_json()) == file
    True
    >>> file.names
    ('segments/b1', 'segments/b1-index-abb60768')
    """

    name: str
    rows: int
    bytes: int
    first_us: int
    last_us: int
    level: int
    clocks: Mapping[str, tuple[int, int]]
    indexes: Mapping[str, int] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all its objects: the segment, then its indexes."""
        return (self.name, *(index_name(self.name, key) for key in self.indexes))

    @property
    def total_bytes(self) -> int:
        """What all its objects take."""
        return self.bytes + sum(self.indexes.values())

    def to_fields(self) -> dict[str, Any]:
        """The fields, fit for JSON; what is empty is left out."""
        kept = {name: getattr(self, name) for name in ("name", "rows", "bytes", "first_us", "last_us", "level")}
        return kept | {name: dict(held) for name in ("clocks", "indexes") if (held := getattr(self, name))}

    def to_json(self) -> str:
        """The fields as text."""
        return json.dumps(self.to_fields())

    @staticmethod
    def from_json(text: str) -> SegmentFile:
        """What `to_json` wrote."""
        try:
            return SegmentFile.from_fields(json.loads(text))
        except ValueError as error:
            raise StateError(f"the description of a segment is damaged: {error}", hint=_START_ANEW) from error

    @staticmethod
    def from_fields(fields: Mapping[str, Any]) -> SegmentFile:
        """What `to_fields` gave, after a passage through JSON."""
        try:
            clocks = {str(name): (int(first), int(last)) for name, (first, last) in fields.get("clocks", {}).items()}
            indexes = {str(key): int(size) for key, size in fields.get("indexes", {}).items()}
            return SegmentFile(**{**fields, "clocks": clocks, "indexes": indexes})
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise StateError(f"the description of a segment is damaged: {error}", hint=_START_ANEW) from error


def index_name(segment: str, key: str) -> str:
    """The name of the object that holds an index of a segment."""
    return f"{segment}-index-{sha256(key.encode()).hexdigest()[:8]}"


def write_segment(storage: Storage, name: str, segment: Segment) -> SegmentFile:
    """Write a segment as a new object; its indexes are not written with it."""
    size = _write(storage, name, to_batch(segment), "segment")
    first_us, last_us = (segment.first_us, segment.last_us) if len(segment) else _NO_ROWS_US
    clocks = {each: (int(clock[0]), int(clock[-1])) for each, clock in segment.clocks.items() if len(clock)}
    return SegmentFile(name, len(segment), size, first_us, last_us, segment.level, clocks)


def read_segment(storage: Storage, file: SegmentFile, layout: Layout, derive: Derive | None = None) -> Segment:
    """The segment of a file, as views of it; what `layout` asks for has to be in it, or to be had from `derive`."""
    batch = _read(storage, file.name, "segment", file.bytes)
    with _sound(storage, file.name):
        if batch.num_rows != file.rows:
            raise ValueError(f"{batch.num_rows} rows instead of {file.rows}")
        return from_batch(batch, layout, file.level, derive)


def write_index(storage: Storage, name: str, arrays: Mapping[str, Array]) -> int:
    """Write the arrays of an index as a new object; the bytes it takes."""
    lists = []
    shapes = []
    for each, array in arrays.items():
        flat = plain_array(array, f"array {each}")
        lists.append(pa.LargeListArray.from_arrays(pa.array([0, len(flat)], pa.int64()), flat))
        shapes.append((array.dtype.name, array.shape))
    batch = pa.RecordBatch.from_arrays(lists, names=list(arrays))
    return _write(storage, name, batch, "index", {"windrow.shapes": json.dumps(shapes)})


def read_index(storage: Storage, name: str, size: int | None = None) -> dict[str, Array]:
    """The arrays of an index, as views of its file; `size` is how many bytes it should have."""
    batch = _read(storage, name, "index", size)
    with _sound(storage, name):
        shapes = json.loads(batch.schema.metadata[b"windrow.shapes"])
        arrays = zip(batch.schema.names, batch.columns, shapes, strict=True)
        return {
            each: plain_values(held.values, np.dtype(dtype)).reshape(shape) for each, held, (dtype, shape) in arrays
        }


def _write(
    storage: Storage, name: str, batch: pa.RecordBatch, kind: str, details: Mapping[str, str] | None = None
) -> int:
    """Write a record batch as an object that says what it is."""
    metadata = {"windrow.format": str(FORMAT_VERSION), "windrow.kind": kind, **(details or {})}
    named = batch.replace_schema_metadata(metadata)
    with storage.writing(name) as sink:
        with pa.ipc.new_stream(sink, named.schema) as writer:
            writer.write_batch(named)
        return int(sink.tell())


def _read(storage: Storage, name: str, kind: str, size: int | None = None) -> pa.RecordBatch:
    """The record batch of a file, once it is known to be what is asked for."""
    path = storage.fetch(name)
    with telling(storage.address, name, "read"):
        found = path.stat().st_size
    if found == 0 or (size is not None and found != size):
        raise _damaged(storage, name, f"{found} bytes" + ("" if size is None else f" instead of {size}"))
    with telling(storage.address, name, "read"):
        source = _opened(path)
    with _sound(storage, name), source, pa.ipc.open_stream(source) as reader:
        _check(storage, name, kind, reader.schema.metadata or {})
        batch = reader.read_next_batch()
        batch.validate()
        if next(reader, None) is not None:
            raise ValueError("more than one record batch")
        return batch


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
    """Turns what reading a file that is not as it was written may raise into our errors, with its place."""
    try:
        yield
    except StateError as error:
        if error.place:
            raise
        raise StateError(f"'{name}': {error.message}", place=storage.place(name), hint=error.hint) from error
    except (
        OSError, pa.ArrowException, ValueError, KeyError, TypeError, IndexError, AttributeError, StopIteration
    ) as error:  # fmt: skip
        raise _damaged(storage, name, str(error).partition("\n")[0] or type(error).__name__) from error


def _damaged(storage: Storage, name: str, why: str) -> StateError:
    hint = "restore the file, or start with a new checkpoint"
    return StateError(f"'{name}' is damaged: {why}", place=storage.place(name), hint=hint)


def _refused(storage: Storage, name: str, why: str) -> StateError:
    return StateError(why, place=storage.place(name), hint=_START_ANEW)
