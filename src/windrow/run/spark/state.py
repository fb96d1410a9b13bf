"""The state of a query between batches: what a commit says.

    live        the segments of each slice and stream, as files (`SegmentFile`)
    gates       of each stream: newest event time, watermark, when it was heard last, counters
    question    what has to stay the same (`windrow.run.spark.question`)
    query, run  Spark's id of the query, which stays, and of the run, which a restart changes
    slices, controller, memory, ledger, outputs, freshness      values in JSON that others read and write

As text a commit is whole, or says only how its live segments differ from those of an earlier, whole one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from windrow.errors import StateError
from windrow.run.spark.question import Question
from windrow.store.files import SegmentFile

FORMAT_VERSION = 3

Live = Mapping[int, Mapping[str, tuple[SegmentFile, ...]]]
"""The segments of each slice and stream."""

Pieces = Mapping[int, Mapping[str, Iterable[SegmentFile]]]

_START_ANEW = "restore it from a copy, or start with a new checkpoint"


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
    """The state after batch `batch`; -1 before the first. `dying` are objects that this batch was the last to need."""

    batch: int
    question: Question
    query: str = ""
    run: str = ""
    now_us: int = 0
    results: int = 0
    gates: Mapping[str, Gate] = field(default_factory=dict)
    live: Live = field(default_factory=dict)
    dying: tuple[str, ...] = ()
    slices: Any = None
    controller: Any = None
    memory: Any = None
    ledger: Any = None
    outputs: tuple[Mapping[str, Any], ...] = ()
    freshness: Any = None

    def names(self) -> set[str]:
        """The names of all objects that live segments consist of."""
        return {name for _, _, file in each_file(self.live) for name in file.names}

    def to_json(self, base: Commit | None = None) -> str:
        """The commit as text, with the version of its format: whole, or by its difference from `base`."""
        fields = {**vars(self), "version": FORMAT_VERSION, "question": self.question.to_fields()}
        fields["gates"] = {name: vars(gate) for name, gate in self.gates.items()}
        fields.pop("live")
        if base is None:
            fields["live"] = _rows(self.live)
        else:
            fields["base"] = base.batch
            fields["removed"], fields["added"] = difference(base.live, self.live)
            fields["added"] = _rows(fields["added"])
        return json.dumps(fields, separators=(",", ":"))

    @staticmethod
    def from_json(text: str, base: Commit | None = None) -> Commit:
        """The commit that `to_json` wrote, with the same base; another version is refused, and so is a damaged one."""
        try:
            fields: dict[str, Any] = json.loads(text)
            version = fields["version"]
            if version != FORMAT_VERSION:
                message = f"the checkpoint has format version {version}, this is {FORMAT_VERSION}"
                raise StateError(message, hint="start with a new checkpoint, or with the version that wrote this one")
            return _commit(fields, base)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StateError(f"a commit is damaged: {type(error).__name__} {error}", hint=_START_ANEW) from error


def base_of(text: str) -> int | None:
    """The batch of the whole commit that the text of a commit builds on; None if it is whole itself."""
    try:
        found = json.loads(text).get("base")
        return None if found is None else int(found)
    except (ValueError, TypeError, AttributeError) as error:
        raise StateError(f"a commit is damaged: {type(error).__name__} {error}", hint=_START_ANEW) from error


def each_file(live: Pieces) -> Iterator[tuple[int, str, SegmentFile]]:
    """All live segments, with slice and stream."""
    for place, streams in live.items():
        for name, files in streams.items():
            for file in files:
                yield place, name, file


def bytes_by_slice(live: Live) -> dict[str, dict[int, int]]:
    """The bytes of each stream's window on each slice, indexes included."""
    found: dict[str, dict[int, int]] = {}
    for place, name, file in each_file(live):
        held = found.setdefault(name, {})
        held[place] = held.get(place, 0) + file.total_bytes
    return found


def difference(before: Live, after: Live) -> tuple[list[str], dict[int, dict[str, list[SegmentFile]]]]:
    """The names of the segments that are gone, and the new ones."""
    held = {file.name for _, _, file in each_file(before)}
    kept = {file.name for _, _, file in each_file(after)}
    added: dict[int, dict[str, list[SegmentFile]]] = {}
    for place, name, file in each_file(after):
        if file.name not in held:
            added.setdefault(place, {}).setdefault(name, []).append(file)
    return sorted(held - kept), added


def changed(before: Live, removed: Iterable[str], added: Pieces) -> Live:
    """Live segments without those removed and with those added, behind the others of their slice and stream."""
    gone = frozenset(removed)
    live: dict[int, dict[str, tuple[SegmentFile, ...]]] = {}
    for part in (before, added):
        for place, streams in part.items():
            for name, files in streams.items():
                held = live.setdefault(place, {}).get(name, ())
                live[place][name] = (*held, *(file for file in files if file.name not in gone))
    filled = {place: {name: files for name, files in streams.items() if files} for place, streams in live.items()}
    return {place: streams for place, streams in filled.items() if streams}


def _rows(live: Pieces) -> dict[str, Any]:
    return {
        str(place): {name: [_row(file) for file in files] for name, files in streams.items()}
        for place, streams in live.items()
    }


def _row(file: SegmentFile) -> list[Any]:
    """A segment's fields without their names: there are many segments."""
    row = [file.name, file.rows, file.bytes, file.first_us, file.last_us, file.level]
    return [*row, dict(file.clocks), dict(file.indexes)] if file.clocks or file.indexes else row


def _files(rows: Iterable[Iterable[Any]]) -> tuple[SegmentFile, ...]:
    names = ("name", "rows", "bytes", "first_us", "last_us", "level", "clocks", "indexes")
    return tuple(SegmentFile.from_fields(dict(zip(names, row, strict=False))) for row in rows)


def _live(value: Mapping[str, Mapping[str, Any]]) -> Live:
    return {int(place): {name: _files(rows) for name, rows in streams.items()} for place, streams in value.items()}


def _commit(fields: dict[str, Any], base: Commit | None) -> Commit:
    if "live" in fields:
        live = _live(fields["live"])
    elif base is None or base.batch != fields["base"]:
        raise ValueError(f"it builds on commit {fields['base']}")
    else:
        live = changed(base.live, fields["removed"], _live(fields["added"]))
    return Commit(
        batch=int(fields["batch"]),
        question=Question.from_fields(fields["question"]),
        query=str(fields["query"]),
        run=str(fields["run"]),
        now_us=int(fields["now_us"]),
        results=int(fields["results"]),
        gates={name: Gate(**gate) for name, gate in fields["gates"].items()},
        live=live,
        dying=tuple(map(str, fields["dying"])),
        slices=fields["slices"],
        controller=fields["controller"],
        memory=fields["memory"],
        ledger=fields["ledger"],
        outputs=tuple(dict(each) for each in fields["outputs"]),
        freshness=fields["freshness"],
    )
