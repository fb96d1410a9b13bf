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
from typing import Literal

from windrow.errors import UsageError
from windrow.plan.drivers import AUTO, POLICIES, policy_named
from windrow.plan.methods import METHODS
from windrow.query.builder import Join, sql
from windrow.query.clauses import setting_for, span_us, split_clauses
from windrow.query.grammar import tokens_of
from windrow.query.spec import QuerySpec
from windrow.query.user_functions import load_functions
from windrow.run.backlog import RepairSettings
from windrow.streams import files
from windrow.streams.files import FileSource
from windrow.streams.recorded import RecordedStream, recorded
from windrow.streams.replay import Recorded


@dataclass(frozen=True, slots=True)
class Question:
    """A join, and the recordings it reads by the names its FROM uses."""

    join: Join
    spec: QuerySpec
    recorded: Mapping[str, RecordedStream]

    def columns(self) -> dict[str, list[str]]:
        """The columns the query uses of each recording."""
        used: dict[str, dict[str, None]] = {}
        for stream in self.spec.streams:
            names = (column.name for column in self.spec.used_columns(stream.name))
            used.setdefault(stream.source, {}).update(dict.fromkeys(names))
        return {source: list(names) for source, names in used.items()}

    def read(self) -> dict[str, Recorded]:
        """All rows of all recordings, with the columns the query uses."""
        found = self.recorded
        return {name: (found[name].read(columns), found[name].time, None) for name, columns in self.columns().items()}

    def files(self) -> Iterable[Path]:
        """Every file that is read."""
        return (file for recording in self.recorded.values() for file in files.files(recording.source))


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, and how it is to be run: the span of a batch (None: chosen), order of rows, policy, methods; how many
    times as fast as event time (None: as fast as can be), what share of the full work is done (None: all), and what
    becomes of the rest, and of stale results; the shape of a tree of joins.
    """

    question: Question
    batch_us: int | None = None
    as_arrived: bool = False
    policy: str = "timestamp"
    methods: Collection[str] | None = None
    pace: float | None = None
    throttle: float | Literal["auto"] | None = None
    shed: str = "drop"
    repair: RepairSettings | None = None
    stale: str = "suppress"
    shape: str = "mway"


def ask(query: str, streams: Sequence[str], functions: str | None = None, lateness: str | None = None) -> Question:
    """The question a command line asks; `lateness` is for the streams whose lateness the query leaves open."""
    text = query_text(query)
    found = {name: recorded(source) for name, source in parse_streams(streams).items()}
    join = sql(
        text,
        found,
        time={name: recording.time for name, recording in found.items()},
        functions=load_functions(functions) if functions is not None else (),
    )
    read = {stream.source for stream in join.streams}
    for name in found:
        if name not in read:
            hint = f"the query reads {', '.join(sorted(read))}; leave this one out"
            raise UsageError(f"the query does not read stream '{name}'", place=f"--stream {name}=…", hint=hint)
    if lateness is not None:
        join = _with_lateness(join, text, span_us(lateness))
    return Question(join, join.spec(), found)


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


def check_choices(policy: str, methods: Collection[str] | None, favour: str | None = None) -> str:
    """Policies and methods by names that exist; the policy as plans name it."""
    known = ("auto", *(name for name in POLICIES if name not in AUTO.values()))
    if policy not in known:
        raise UsageError(f"there is no policy '{policy}'", place="--policy", hint=f"choose one of {', '.join(known)}")
    if favour is not None and (policy != "auto" or favour not in AUTO):
        hint = f"favour {' or '.join(AUTO)}, with --policy auto"
        raise UsageError(f"'{favour}' cannot be favoured with the policy '{policy}'", place="--favour", hint=hint)
    for method in methods or ():
        if method not in METHODS:
            raise UsageError(
                f"there is no method '{method}'", place="--method", hint=f"choose among {', '.join(METHODS)}"
            )
    return policy_named(policy, favour)


def _with_lateness(join: Join, text: str, lateness_us: int) -> Join:
    _, clauses = split_clauses(tokens_of(text))
    streams = tuple(
        replace(stream, lateness_us=lateness_us) if setting_for(clauses.lateness, stream.name) is None else stream
        for stream in join.streams
    )
    return replace(join, streams=streams)
