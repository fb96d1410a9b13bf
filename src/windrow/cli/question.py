"""What is asked on a command line: the query's text, the files its streams read, and the join they make.

    QUERY.sql ─ text ──────────────────────┐
    --stream NAME=PATH ─ files ─ schemas ──┼─▶ Question(join, sources) ─ read ─▶ rows for the replay
    --udf FILE.py ─ functions ─────────────┘

Event time that a file holds as a number becomes a timestamp, in the schema and in the rows, where its unit is given or
the number is a float; an integer without a unit stays an integer, of microseconds.

>>> parse_streams(["cam1=logs/cam1.csv?time=at&unit=ms"])
{'cam1': FileSource(path='logs/cam1.csv', time='at', unit='ms')}
>>> parse_streams(["logs/cam1.csv"])
Traceback (most recent call last):
    ...
windrow.errors.UsageError: 'logs/cam1.csv' names no stream (at: --stream). Next: write --stream NAME=PATH
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from windrow.errors import UsageError
from windrow.plan.drivers import POLICIES
from windrow.plan.methods import METHODS
from windrow.query.builder import Join, sql
from windrow.query.clauses import setting_for, span_us, split_clauses
from windrow.query.grammar import tokens_of
from windrow.query.spec import QuerySpec
from windrow.query.user_functions import load_functions
from windrow.streams import files
from windrow.streams.event_time import event_time_us, time_column
from windrow.streams.files import FileSource
from windrow.streams.replay import Recorded

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
        if self.converted:
            place = table.column_names.index(self.time)
            stamps = event_time_us(table.column(self.time), self.source.unit).cast(_STAMP)
            table = table.set_column(place, pa.field(self.time, _STAMP), stamps)
        return table


@dataclass(frozen=True, slots=True)
class Question:
    """A join, and the recordings it reads by the names its FROM uses."""

    join: Join
    spec: QuerySpec
    recorded: Mapping[str, RecordedStream]

    def read(self) -> dict[str, Recorded]:
        """All rows of all recordings, with the columns the query uses."""
        used: dict[str, dict[str, None]] = {}
        for stream in self.spec.streams:
            columns = (column.name for column in self.spec.used_columns(stream.name))
            used.setdefault(stream.source, {}).update(dict.fromkeys(columns))
        return {
            name: (self.recorded[name].read(columns), self.recorded[name].time, None) for name, columns in used.items()
        }

    def files(self) -> Iterable[Path]:
        """Every file that is read."""
        return (file for recording in self.recorded.values() for file in files.files(recording.source))


def ask(query: str, streams: Sequence[str], functions: str | None = None, lateness: str | None = None) -> Question:
    """The question a command line asks; `lateness` is for the streams whose lateness the query leaves open."""
    text = query_text(query)
    recorded = {name: _recorded(source) for name, source in parse_streams(streams).items()}
    join = sql(
        text,
        {name: recording.schema for name, recording in recorded.items()},
        time={name: recording.time for name, recording in recorded.items()},
        functions=load_functions(functions) if functions is not None else (),
    )
    read = {stream.source for stream in join.streams}
    for name in recorded:
        if name not in read:
            hint = f"the query reads {', '.join(sorted(read))}; leave this one out"
            raise UsageError(f"the query does not read stream '{name}'", place=f"--stream {name}=…", hint=hint)
    if lateness is not None:
        join = _with_lateness(join, text, span_us(lateness))
    return Question(join, join.spec(), recorded)


def query_text(query: str) -> str:
    """The text of a query, from a file or from standard input."""
    try:
        text = sys.stdin.read() if query == "-" else Path(query).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        hint = "give the path of a text file with SQL, or - and the text on standard input"
        raise UsageError(f"the query '{query}' cannot be read: {reason}", place="QUERY.sql", hint=hint) from error
    if not text.strip():
        raise UsageError("the query is empty", place=query, hint="write SELECT … FROM a, b WHERE … WINDOW 20 SECONDS")
    return text


def parse_streams(texts: Sequence[str]) -> dict[str, FileSource]:
    """The sources of `NAME=PATH` texts."""
    sources: dict[str, FileSource] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not equals or not name or not path:
            raise UsageError(f"'{text}' names no stream", place="--stream", hint="write --stream NAME=PATH")
        if name in sources:
            hint = "give each stream once; a folder or a pattern stands for many files"
            raise UsageError(f"stream '{name}' is given twice", place=f"--stream {text}", hint=hint)
        sources[name] = files.parse_source(path)
    return sources


def check_choices(policy: str, methods: Collection[str] | None) -> None:
    """Policies and methods by names that exist."""
    if policy not in POLICIES:
        raise UsageError(
            f"there is no policy '{policy}'", place="--policy", hint=f"choose one of {', '.join(POLICIES)}"
        )
    for method in methods or ():
        if method not in METHODS:
            raise UsageError(
                f"there is no method '{method}'", place="--method", hint=f"choose among {', '.join(METHODS)}"
            )


def _recorded(source: FileSource) -> RecordedStream:
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


def _with_lateness(join: Join, text: str, lateness_us: int) -> Join:
    _, clauses = split_clauses(tokens_of(text))
    streams = tuple(
        replace(stream, lateness_us=lateness_us) if setting_for(clauses.lateness, stream.name) is None else stream
        for stream in join.streams
    )
    return replace(join, streams=streams)
