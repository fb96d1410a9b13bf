"""Segments as tasks write and read them: with their indexes where that pays, and remembered by the worker.

    write_with_indexes ──▶ the segment's file, an index file for each key, a SegmentFile that names them all
    cached_segment     ◀── the segment, mapped once a worker; an index is mapped when a step asks for it, or built

When it pays: on two cores, ordering the keys of a segment took 0.4 ms at 25,000 rows, 1.7 ms at 100,000 and 20 ms at
400,000 (beyond the processor's caches); writing the index took 1.1, 1.7 and 5 ms, mapping it 0.2 ms. Hashing is alike.
So up to a hundred thousand rows every worker builds its own.

A worker remembers what it used last, up to a number of bytes and of segments, what it wrote included.

An index file that a commit names has to be there and whole; a segment without one is no error.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial

from windrow.errors import StateError
from windrow.probe.indexes import Index, IndexKey, arrays_of, index_from, index_of, key_text
from windrow.run.program import Program
from windrow.store.files import SegmentFile, index_name, read_index, read_segment, write_index, write_segment
from windrow.store.segment import Layout, Segment
from windrow.store.storage import Storage

INDEXED_ROWS = 1 << 17
CACHED_SEGMENTS = 4096
CACHED_BYTES = 2 * 2**30


def write_with_indexes(storage: Storage, name: str, segment: Segment, keys: Sequence[IndexKey]) -> SegmentFile:
    """Write a segment, and behind it the indexes under `keys` if they are worth a file; this worker remembers both."""
    file = write_segment(storage, name, segment)
    if segment.level > 0 and len(segment) >= INDEXED_ROWS:
        sizes = {}
        for key in keys:
            text = key_text(key)
            sizes[text] = write_index(storage, index_name(name, text), arrays_of(index_of(segment, key)))
        file = replace(file, indexes=sizes)
    remember_segment(storage, file, segment)
    return file


def read_with_indexes(storage: Storage, file: SegmentFile, program: Program, stream: str) -> Segment:
    """A stream's segment from its file; indexes that lie in files are loaded when a step asks for them."""
    segment = read_segment(storage, file, program.layouts[stream], program.derived)
    keys = program.indexes[stream] if file.indexes else ()
    stored: dict[object, Callable[[], Index]] = {
        key: partial(_load, storage, file, key) for key in keys if key_text(key) in file.indexes
    }
    return replace(segment, stored=stored) if stored else segment


def _load(storage: Storage, file: SegmentFile, key: IndexKey) -> Index:
    text = key_text(key)
    name = index_name(file.name, text)
    arrays = read_index(storage, name, file.indexes[text])
    try:
        return index_from(key, arrays)
    except (KeyError, TypeError, IndexError) as error:
        message = f"'{name}' is damaged: it is no index of the kind {key[0]}"
        hint = "restore the file, or start with a new checkpoint"
        raise StateError(message, place=storage.place(name), hint=hint) from error


class SegmentCache:
    """The segments a worker used last, by address and name: at most `most_bytes` of them, and `most_segments`."""

    def __init__(self, most_bytes: int, most_segments: int) -> None:
        self.most_bytes = most_bytes
        self.most_segments = most_segments
        self.nbytes = 0
        self._held: OrderedDict[tuple[str, str], tuple[Segment, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._held)

    def find(self, address: str, name: str, layout: Layout) -> Segment | None:
        """The segment, if it is here in that layout."""
        key = (address, name)
        held = self._held.get(key)
        if held is None or (held[0].layout is not layout and held[0].layout != layout):
            return None
        self._held.move_to_end(key)
        return held[0]

    def add(self, address: str, file: SegmentFile, segment: Segment) -> None:
        """Remember a segment; what was used longest ago goes if there is no room."""
        self._drop((address, file.name))
        self._held[address, file.name] = (segment, file.total_bytes)
        self.nbytes += file.total_bytes
        while len(self._held) > 1 and (self.nbytes > self.most_bytes or len(self._held) > self.most_segments):
            self._drop(next(iter(self._held)))

    def retain(self, address: str, names: Collection[str]) -> None:
        """Forget the segments of an address that are not among `names`."""
        for key in [key for key in self._held if key[0] == address and key[1] not in names]:
            self._drop(key)

    def _drop(self, key: tuple[str, str]) -> None:
        held = self._held.pop(key, None)
        self.nbytes -= 0 if held is None else held[1]


_caches: dict[int, SegmentCache] = {}


def _cache() -> SegmentCache:
    """The cache of this process; a forked one starts its own."""
    return _caches.setdefault(os.getpid(), SegmentCache(CACHED_BYTES, CACHED_SEGMENTS))


def cached_segment(storage: Storage, file: SegmentFile, program: Program, stream: str) -> Segment:
    """A stream's segment from its file, or as this worker remembers it, with the indexes it has got so far."""
    cache = _cache()
    segment = cache.find(storage.address, file.name, program.layouts[stream])
    if segment is None:
        segment = read_with_indexes(storage, file, program, stream)
        cache.add(storage.address, file, segment)
    return segment


def remember_segment(storage: Storage, file: SegmentFile, segment: Segment) -> None:
    """Remember a segment that this worker has written, so that it need not read it."""
    _cache().add(storage.address, file, segment)


def retain_segments(storage: Storage, names: Collection[str]) -> None:
    """Forget the segments of an address that are no longer live."""
    _cache().retain(storage.address, names)
