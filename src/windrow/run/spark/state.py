"""The state of a query between batches: segments in files, and one small commit file a batch.

    plans/K        written before batch K runs: its clock, its order of drivers, the merges to make
    segments/…     written by tasks, never changed; part of the state once a commit names them
    waiting/K-…    rows that row windows hold back after batch K
    commits/K      written when batch K is done: live segments, watermarks, counters

If commit K exists, batch K is not run again. A commit holds the whole state, so a restart reads one file; folders are
never listed to find out what is live. What a batch makes superfluous is deleted one batch later, when nothing can be
run again that needs it.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from windrow.errors import StateError
from windrow.store.files import SegmentFile, read_segment
from windrow.store.segment import Layout, Segment
from windrow.store.storage import Storage

FORMAT_VERSION = 1
CACHED_SEGMENTS = 4096

Live = Mapping[int, Mapping[str, tuple[SegmentFile, ...]]]
"""The segments of each slice and stream."""


@dataclass(frozen=True)
class Gate:
    """What is remembered of a stream's entrance."""

    newest_us: int
    watermark_us: int
    heard_us: int | None
    counted: int
    counts: Mapping[str, int]


@dataclass(frozen=True)
class Commit:
    """The state after batch `batch`; -1 before the first."""

    batch: int
    fingerprint: str
    now_us: int = 0
    results: int = 0
    gates: Mapping[str, Gate] = field(default_factory=dict)
    live: Live = field(default_factory=dict)
    dying: tuple[str, ...] = ()

    def to_json(self) -> str:
        """The commit as text, with the version of its format."""
        live = {
            str(place): {name: [json.loads(file.to_json()) for file in files] for name, files in streams.items()}
            for place, streams in self.live.items()
        }
        gates = {name: vars(gate) for name, gate in self.gates.items()}
        return json.dumps({**vars(self), "version": FORMAT_VERSION, "live": live, "gates": gates})

    @staticmethod
    def from_json(text: str) -> Commit:
        """The commit that `to_json` wrote; another version is refused, and so is a damaged one."""
        try:
            value: dict[str, Any] = json.loads(text)
            version = value.pop("version")
            if version != FORMAT_VERSION:
                message = f"the checkpoint has format version {version}, this is {FORMAT_VERSION}"
                raise StateError(message, hint="start with a new checkpoint, or with the version that wrote this one")
            live = {
                int(place): {
                    name: tuple(SegmentFile.from_fields(file) for file in files) for name, files in streams.items()
                }
                for place, streams in value.pop("live").items()
            }
            gates = {name: Gate(**gate) for name, gate in value.pop("gates").items()}
            return Commit(
                batch=int(value["batch"]),
                fingerprint=str(value["fingerprint"]),
                now_us=int(value["now_us"]),
                results=int(value["results"]),
                gates=gates,
                live=live,
                dying=tuple(value["dying"]),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, StateError):
                raise
            message = f"a commit file is damaged: {type(error).__name__} {error}"
            raise StateError(message, hint="restore it from a copy, or start with a new checkpoint") from error

    def names(self) -> set[str]:
        """The names of all live segments."""
        return {file.name for streams in self.live.values() for files in streams.values() for file in files}


class Ledgers:
    """Plans and commits below a checkpoint's address."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage

    def plan(self, batch: int) -> dict[str, Any] | None:
        """The plan that was written for a batch."""
        name = f"plans/{batch}.json"
        found = self.storage.find(name)
        with self._sound(name):
            return None if found is None else dict(json.loads(found))

    def write_plan(self, batch: int, plan: Mapping[str, Any]) -> None:
        self.storage.put(f"plans/{batch}.json", json.dumps(plan).encode())

    def commit(self, batch: int) -> Commit | None:
        """The commit of a batch."""
        name = f"commits/{batch}.json"
        found = self.storage.find(name)
        with self._sound(name):
            return None if found is None else Commit.from_json(found.decode())

    def write_commit(self, commit: Commit) -> None:
        self.storage.put(f"commits/{commit.batch}.json", commit.to_json().encode())

    def waiting(self, batch: int, stream: str) -> pa.Table | None:
        """The rows of a stream that were held back after a batch."""
        name = f"waiting/{batch}-{stream}"
        found = self.storage.find(name)
        with self._sound(name):
            return None if found is None else pa.ipc.open_stream(found).read_all()

    def write_waiting(self, batch: int, stream: str, rows: pa.Table) -> None:
        with self.storage.writing(f"waiting/{batch}-{stream}") as file, pa.ipc.new_stream(file, rows.schema) as writer:
            writer.write_table(rows)

    def forget(self, batch: int, streams: tuple[str, ...], segments: tuple[str, ...]) -> None:
        """Delete what belongs to a batch that cannot be run again, and segments nobody names any more."""
        for name in (
            f"plans/{batch}.json",
            f"commits/{batch}.json",
            *(f"waiting/{batch}-{s}" for s in streams),
            *segments,
        ):
            self.storage.delete(name)

    @contextmanager
    def _sound(self, name: str) -> Iterator[None]:
        """Turns what reading a file that is not as it was written may raise into our error, with its place."""
        try:
            yield
        except StateError as error:
            raise StateError(error.message, place=self.storage.place(name), hint=error.hint) from error
        except (ValueError, TypeError, OSError, StopIteration, pa.ArrowException) as error:
            message = f"'{name}' is damaged: {str(error).partition(chr(10))[0]}"
            hint = "restore it from a copy, or start with a new checkpoint"
            raise StateError(message, place=self.storage.place(name), hint=hint) from error


_cache: OrderedDict[tuple[str, str], Segment] = OrderedDict()


def cached_segment(storage: Storage, file: SegmentFile, layout: Layout) -> Segment:
    """A segment from its file. A worker keeps the ones it used last, with the indexes it built on them."""
    key = (storage.place(file.name), file.name)
    if key not in _cache:
        _cache[key] = read_segment(storage, file, layout)
        while len(_cache) > CACHED_SEGMENTS:
            _cache.popitem(last=False)
    _cache.move_to_end(key)
    return _cache[key]


def remember_segment(storage: Storage, file: SegmentFile, segment: Segment) -> None:
    """Keep a segment that this worker has just written, so that it need not be read."""
    _cache[(storage.place(file.name), file.name)] = segment
