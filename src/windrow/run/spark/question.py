"""What has to stay the same for a checkpoint to be of use, and in words what does not.

    stays         streams in their order: source, event-time column, schema, window; the conditions; what is kept;
                  aggregates, whose open spans are kept
    may change    SELECT list without them, sink, throttle, and limits: lateness, idle timeouts, freshness, how far
                  ahead rows may be

Conditions are compared as text, in any order; the types in them follow from the schemas.

>>> before = Question({"b": Asked("b", "ts", "20 seconds", {"x": "DOUBLE"})}, ("a.x < b.x",), "all")
>>> now = Question({"b": Asked("b", "ts", "30 seconds", {"x": "FLOAT"})}, ("a.x < b.x",), "all")
>>> before.differences(now)
("window of stream 'b' was 20 seconds, is 30 seconds", "column x of stream 'b' was DOUBLE, is FLOAT")
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from windrow.errors import StateError
from windrow.query.show import show
from windrow.query.spec import UNBOUNDED, QuerySpec, Stream, Window
from windrow.query.types import Kind
from windrow.run.program import Program

_UNITS_US = (
    ("day", 86_400_000_000),
    ("hour", 3_600_000_000),
    ("minute", 60_000_000),
    ("second", 1_000_000),
    ("millisecond", 1_000),
    ("microsecond", 1),
)


@dataclass(frozen=True)
class Asked:
    """What is asked of one stream; `columns` are the types of its columns by name."""

    source: str
    time: str
    window: str
    columns: Mapping[str, str]


@dataclass(frozen=True)
class Question:
    """A query as its checkpoint remembers it."""

    streams: Mapping[str, Asked]
    conditions: tuple[str, ...]
    keep: str
    summed: str = "nothing"

    def to_fields(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return asdict(self)

    @staticmethod
    def from_fields(fields: Mapping[str, Any]) -> Question:
        """What `to_fields` gave, after a passage through JSON."""
        streams = {str(name): Asked(**asked) for name, asked in fields["streams"].items()}
        return Question(
            streams, tuple(map(str, fields["conditions"])), str(fields["keep"]), str(fields.get("summed", "nothing"))
        )

    def differences(self, now: Question) -> tuple[str, ...]:
        """What differs in another question, one sentence each."""
        return (
            *_of_streams(self.streams, now.streams),
            *_of_conditions(Counter(self.conditions), Counter(now.conditions)),
            *_changed("what is kept of rows", f"'{self.keep}'", f"'{now.keep}'"),
            *_changed("what is added up", self.summed, now.summed),
        )


def question_of(program: Program) -> Question:
    """The question a program answers."""
    spec = program.spec
    streams = {stream.name: _asked(stream, program) for stream in spec.streams}
    return Question(streams, tuple(str(conjunct) for conjunct in spec.conjuncts), program.keep, _summed_text(spec))


def check_same(before: Question, now: Question) -> None:
    """Refuse to go on from a checkpoint with another question, and say what differs."""
    differences = before.differences(now)
    if differences:
        message = f"the checkpoint belongs to another query: {'; '.join(differences)}"
        raise StateError(message, hint="start with a new checkpoint, or ask what this one was made for")


def _asked(stream: Stream, program: Program) -> Asked:
    columns = {}
    for column in stream.columns:
        arrow = program.arrow_types.get(column) if column.type.kind is Kind.OTHER else None
        columns[column.name] = str(column.type if arrow is None else arrow)
    return Asked(stream.source, stream.time, _window_text(stream.window), columns)


def _summed_text(spec: QuerySpec) -> str:
    summary = spec.summary
    if summary is None:
        return "nothing"
    shown = [show(output.expression) for output in spec.outputs]
    summed = ", ".join(f"{a.kind}({'*' if a.place is None else shown[a.place]})" for a in summary.aggregates)
    by = f" by {', '.join(shown[place] for _, place in summary.groups)}" if summary.groups else ""
    every = "" if summary.every_us is None else f" every {_span_text(summary.every_us)}"
    return f"{summed}{by}{every}"


def _window_text(window: Window) -> str:
    if window.span_us is None:
        return f"{window.rows} row" if window.rows == 1 else f"{window.rows} rows"
    if window.span_us == UNBOUNDED:
        return "without end"
    if window.span_us == 0:
        return "0 seconds"
    return _span_text(window.span_us)


def _span_text(span_us: int) -> str:
    unit, unit_us = next(each for each in _UNITS_US if span_us % each[1] == 0)
    count = span_us // unit_us
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"


def _of_streams(before: Mapping[str, Asked], now: Mapping[str, Asked]) -> Iterator[str]:
    if list(before) != list(now):
        yield f"streams were {_listed(before)}, are {_listed(now)}"
    for name in [each for each in before if each in now]:
        was, asked = before[name], now[name]
        yield from _changed(f"source of stream '{name}'", was.source, asked.source)
        yield from _changed(f"event time of stream '{name}'", was.time, asked.time)
        yield from _changed(f"window of stream '{name}'", was.window, asked.window)
        for column in dict.fromkeys((*was.columns, *asked.columns)):
            kinds = was.columns.get(column, "not there"), asked.columns.get(column, "not there")
            yield from _changed(f"column {column} of stream '{name}'", *kinds)


def _of_conditions(before: Counter[str], now: Counter[str]) -> Iterator[str]:
    yield from (f"condition {text} is gone" for text in before - now)
    yield from (f"condition {text} is new" for text in now - before)


def _changed(what: str, before: str, now: str) -> Iterator[str]:
    if before != now:
        yield f"{what} was {before}, is {now}"


def _listed(streams: Mapping[str, Asked]) -> str:
    return ", ".join(f"'{name}'" for name in streams)
