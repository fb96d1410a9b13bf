"""The query of a checkpoint, as text: what `windrow repair` needs to run pieces where the program that asked is gone.

    start ── write_asked ──▶ query.json: streams and their schemas, conditions, SELECT list, plan, sink
                                 └──▶ read_asked ──▶ Asked: specification, plan, where results go

Only a query that reads back as it was is written down; functions of the user's are known by name, and given anew.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from windrow.errors import StateError, UsageError, WindrowError
from windrow.plan.plan import Plan
from windrow.query.builder import Join
from windrow.query.expression import Column
from windrow.query.scope import declare_stream
from windrow.query.spec import QuerySpec, UserFunction, Window
from windrow.run.program import Keep
from windrow.run.spark.publish import FolderSink
from windrow.run.spark.setting import Setting
from windrow.run.spark.sinks import Format, FormatSink
from windrow.store.storage import Storage, shown

FILE = "query.json"
FORMAT_VERSION = 1
_ANEW = 'restart the query with shed="repair": it repairs while it runs'


@dataclass(frozen=True)
class Asked:
    """A query as its checkpoint knows it; `sink` is None where results go where it is not recorded."""

    spec: QuerySpec
    plan: Plan
    arrow_types: Mapping[Column, pa.DataType]
    keep: Keep
    sink: str | Format | None


def write_asked(setting: Setting, sink: object) -> None:
    """Write a query down, if it reads back as it is."""
    spec, functions = setting.spec, setting.spec.functions
    values = {
        "version": FORMAT_VERSION,
        "streams": [
            {
                "name": stream.name,
                "source": stream.source,
                "time": stream.time,
                "window": asdict(stream.window),
                "schema": _text(pa.schema([(c.name, setting.arrow_types[c]) for c in stream.columns])),
                "lateness_us": stream.lateness_us,
                "idle_us": stream.idle_us,
                "freshness_us": stream.freshness_us,
            }
            for stream in spec.streams
        ],
        "conditions": [str(conjunct) for conjunct in spec.conjuncts],
        "outputs": [[output.name, str(output.expression)] for output in spec.outputs],
        "functions": [function.name for function in functions],
        "plan": setting.plan.to_json(),
        "keep": setting.keep,
        "sink": _sink_values(sink),
    }
    try:
        is_read_back = _spec(values, functions) == spec
    except WindrowError:
        is_read_back = False
    if is_read_back:
        setting.storage.put(FILE, json.dumps(values).encode())
    else:
        setting.storage.delete(FILE)


def read_asked(storage: Storage, functions: Sequence[UserFunction] = ()) -> Asked:
    """The query of a checkpoint; `functions` are those of the user's that it calls."""
    found = storage.find(FILE)
    if found is None:
        raise UsageError("the checkpoint does not say what its query asks", place=shown(storage.address), hint=_ANEW)
    try:
        values = json.loads(found)
        version = values["version"]
        missing = sorted({*values["functions"]} - {function.name for function in functions})
    except (ValueError, KeyError, TypeError) as error:
        message = f"'{FILE}' is damaged: {type(error).__name__} {error}"
        raise StateError(message, place=storage.place(FILE), hint=_ANEW) from error
    if version != FORMAT_VERSION:
        message = f"'{FILE}' has version {version}, this is {FORMAT_VERSION}"
        raise StateError(message, place=storage.place(FILE), hint="use the version of Windrow that wrote it")
    if missing:
        hint = "give a file that defines it: --udf FILE.py, or functions=…"
        raise UsageError(f"the query calls '{missing[0]}', which is not known here", hint=hint)
    spec = _spec(values, functions)
    types = {
        column: field.type
        for stream, held in zip(spec.streams, values["streams"], strict=True)
        for column, field in zip(stream.columns, _schema(held["schema"]), strict=True)
    }
    return Asked(spec, Plan.from_json(values["plan"]), types, values["keep"], _sink(values["sink"]))


def _spec(values: Mapping[str, Any], functions: Sequence[UserFunction]) -> QuerySpec:
    streams = tuple(
        declare_stream(
            held["name"],
            held["source"],
            _schema(held["schema"]),
            window=Window(**held["window"]),
            time=held["time"],
            lateness_us=held["lateness_us"],
            idle_us=held["idle_us"],
            freshness_us=held["freshness_us"],
        )
        for held in values["streams"]
    )
    selected = tuple(f'{text} AS "{name}"' for name, text in values["outputs"])
    used = tuple(function for function in functions if function.name in values["functions"])
    return Join(streams=streams, conditions=tuple(values["conditions"]), selected=selected, functions=used).spec()


def _sink_values(sink: object) -> dict[str, Any] | None:
    if isinstance(sink, FolderSink) and not sink.kept and shown(sink.folder.address) == sink.folder.address:
        return {"folder": sink.folder.address}
    if isinstance(sink, FormatSink):
        return {"format": sink.chosen.name, "options": dict(sink.chosen.options), "mode": sink.chosen.mode}
    return None


def _sink(values: Mapping[str, Any] | None) -> str | Format | None:
    if values is None:
        return None
    if "folder" in values:
        return str(values["folder"])
    return Format(values["format"], values["options"], values["mode"])


def _text(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def _schema(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
