"""Where the results of which batches are: one small file in the state, for whoever follows a query.

    batches   0 … 41     folder /data/results       schema of the SELECT list then
              42 …       kept in the checkpoint     schema of the SELECT list now

The sink and the SELECT list of a query may change at a restart, so the file names a span of batches for each.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import pyarrow as pa

from windrow.errors import StateError, UsageError
from windrow.run.spark.publish import FolderSink, inside
from windrow.run.spark.sinks import FormatSink, FunctionSink
from windrow.store.storage import Storage, open_storage, shown

FILE = "results.json"
FORMAT_VERSION = 1
_COMMIT = re.compile(r"commits/(\d+)\b.*")


@dataclass(frozen=True)
class Span:
    """Batches from `first` on: `what` holds their results, and where. `address` is empty where it is not recorded."""

    first: int
    what: Literal["folder", "kept", "elsewhere"]
    address: str
    schema: pa.Schema

    @property
    def is_readable(self) -> bool:
        return self.what != "elsewhere"

    def folder(self, state: Storage, moved_to: str = "") -> Storage:
        """The folder with the batches."""
        if self.what == "kept":
            return inside(state, "results")
        if moved_to or self.address:
            return open_storage(moved_to or self.address)
        raise UsageError(
            "the folder of the results is not recorded, since its address has a password",
            hint="give it as the option 'folder'",
        )


def span_of(sink: object, first: int, schema: pa.Schema) -> Span:
    """Where a sink has the results of the batches from `first` on."""
    if isinstance(sink, FolderSink):
        address = sink.folder.address
        if sink.kept:
            return Span(first, "kept", "", schema)
        return Span(first, "folder", address if shown(address) == address else "", schema)
    if isinstance(sink, FormatSink):
        return Span(first, "elsewhere", f"format '{sink.chosen.name}'", schema)
    return Span(first, "elsewhere", f"function {sink.name}" if isinstance(sink, FunctionSink) else "a sink", schema)


def read_spans(state: Storage) -> tuple[Span, ...]:
    """All spans, in order; none if no query has begun in this state."""
    found = state.find(FILE)
    if found is None:
        return ()
    try:
        value: dict[str, Any] = json.loads(found)
        if value["version"] != FORMAT_VERSION:
            message = f"'{FILE}' has version {value['version']}, this is {FORMAT_VERSION}"
            raise StateError(message, place=state.place(FILE), hint="use the version of Windrow that wrote it")
        return tuple(Span(**{**each, "schema": _schema(each["schema"])}) for each in value["spans"])
    except (ValueError, KeyError, TypeError, pa.ArrowException) as error:
        message = f"'{FILE}' is damaged: {error}"
        raise StateError(message, place=state.place(FILE), hint="restore it from a copy") from error


def begin_span(state: Storage, span: Span) -> None:
    """Note from which batch on a sink has the results, unless it has had them before."""
    spans = read_spans(state)
    if spans and replace(span, first=spans[-1].first) == spans[-1]:
        return
    kept = [each for each in spans if each.first < span.first]
    written = [{**asdict(each), "schema": _text(each.schema)} for each in (*kept, span)]
    state.put(FILE, json.dumps({"version": FORMAT_VERSION, "spans": written}).encode())


def last_commit(state: Storage) -> int:
    """The number of the last batch that is committed, -1 if none is."""
    found = (_COMMIT.fullmatch(name) for name in state.list("commits"))
    return max((int(match[1]) for match in found if match), default=-1)


def _text(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def _schema(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
