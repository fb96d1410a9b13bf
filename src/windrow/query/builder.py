"""The query as Python: streams, conditions and result columns put together step by step.

A `Join` is a value: every step returns a new one, so a half-built join can be kept and finished in several ways.
Nothing is read and nothing runs; `spec()` checks all of it and gives the same frozen specification that SQL text does.

>>> reading = pa.schema([("ts", pa.timestamp("us")), ("id", pa.int64()), ("x", pa.float64())])
>>> two = join().stream("a", reading, window="20 seconds", lateness="2 s").stream("b", reading, window="5 minutes")
>>> spec = two.where("abs(a.x - b.x) <= 1").select("a.id AS a_id", "b.id AS b_id").spec()
>>> [str(conjunct) for conjunct in spec.conjuncts], [output.name for output in spec.outputs]
(['abs(a.x - b.x) <= 1'], ['a_id', 'b_id'])
>>> two.where(lambda x, y: x > y, on=("a.x", "b.x")).spec().functions[0].name
'condition_1'
>>> two
<Join of a, b: 0 conditions>
>>> sql("SELECT * FROM a, b WHERE a.x = b.x WINDOW 1 SECOND", {"a": reading, "b": reading})
<Join of a, b: 1 condition>
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import count
from typing import Any, Self, TypeAlias

import pyarrow as pa
from sqlglot import exp

from windrow.errors import QueryError
from windrow.query.bind import Binder
from windrow.query.clauses import span_us, window_of
from windrow.query.expression import Expression
from windrow.query.grammar import parse_condition, parse_item
from windrow.query.outputs import Item, items_of, name_outputs
from windrow.query.scope import Scope, declare_stream
from windrow.query.spec import Mode, Output, QuerySpec, Stream, Summary, UserFunction, Window
from windrow.query.sql import check_new_name, parse, specify
from windrow.query.types import BOOLEAN, Type
from windrow.query.user_functions import user_function

Span: TypeAlias = "str | timedelta"
"""A span of time: text such as "20 seconds", or a timedelta."""


@dataclass(frozen=True, slots=True)
class _FunctionCondition:
    """A function that has to be true of the values of some columns."""

    name: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Join:
    """A join being put together; see the module for an example.

    `sources` are what the streams read, by source name, as they were given.
    """

    sources: Mapping[str, Any] = field(default_factory=dict)
    streams: tuple[Stream, ...] = ()
    conditions: tuple[str | _FunctionCondition | Expression, ...] = ()
    selected: tuple[str | Output, ...] = ()
    functions: tuple[UserFunction, ...] = ()
    summary: Summary | None = None

    def stream(
        self,
        name: str,
        source: Any,
        time: str | None = None,
        *,
        window: Span | Window,
        lateness: Span | None = None,
        freshness: Span | None = None,
        idle: Span | None = None,
    ) -> Self:
        """The join with one more stream, called `name` in conditions.

        `source` is anything with an Arrow schema; `time` its event-time column (by default `ts`, else its only
        timestamp); `window` a span, or rows: "20 seconds", "rows 100".
        """
        check_new_name(name, (stream.name for stream in self.streams))
        declared = declare_stream(
            name,
            name,
            schema_of(source, name),
            window=_window(window),
            time=time,
            lateness_us=_span_us(lateness) or 0,
            idle_us=_span_us(idle),
            freshness_us=_span_us(freshness),
        )
        return replace(self, streams=(*self.streams, declared), sources={**self.sources, name: source})

    def where(self, condition: str | Callable[..., Any], on: Iterable[str] = (), mode: Mode = "auto") -> Self:
        """The join with one more condition; several hold together.

        It is text, or a function with the columns it is called with: `where(near, on=("a.x", "b.x"))`.
        """
        columns = (on,) if isinstance(on, str) else tuple(on)
        if isinstance(condition, str):
            if columns:
                raise QueryError("a condition in text names its columns itself", place=condition, hint="leave out on=")
            return replace(self, conditions=(*self.conditions, condition))
        if not columns:
            raise QueryError(
                "a function as a condition needs the columns to call it with", hint='write where(fn, on=("a.x", "b.x"))'
            )
        taken = {function.name for function in self.functions}
        name = next(each for each in (f"condition_{number}" for number in count(1)) if each not in taken)
        grown = self.function(name, condition, BOOLEAN, mode)
        return replace(grown, conditions=(*grown.conditions, _FunctionCondition(name, columns)))

    def select(self, *items: str) -> Self:
        """The join with these result columns after those selected so far; without any, all columns of all streams."""
        if self.summary is not None:
            raise QueryError("this query selects aggregates", place="select", hint="write the whole query in SQL")
        return replace(self, selected=(*self.selected, *items))

    def function(
        self, name: str, function: Callable[..., Any], returns: str | type | Type | None = None, mode: Mode = "auto"
    ) -> Self:
        """The join with a function that its conditions and result columns can call by `name`."""
        made = user_function(name, function, returns, mode)
        if any(known.name.casefold() == made.name.casefold() for known in self.functions):
            raise QueryError(f"there already is a function '{made.name}'", hint="give yours another name")
        return replace(self, functions=(*self.functions, made))

    def spec(self) -> QuerySpec:
        """The specification, checked as a whole."""
        binder = Binder(Scope(self.streams), self.functions)
        conjuncts = [part for condition in self.conditions for part in _conjuncts(condition, binder)]
        items = [item for selected in self.selected or ("*",) for item in _items(selected, binder)]
        return replace(specify(self.streams, conjuncts, name_outputs(items), self.functions), summary=self.summary)

    def __repr__(self) -> str:
        conditions = len(self.conditions)
        names = ", ".join(stream.name for stream in self.streams) or "no streams"
        return f"<Join of {names}: {conditions} condition{'' if conditions == 1 else 's'}>"

    def _repr_html_(self) -> str | None:
        try:
            return self.spec()._repr_html_()
        except QueryError:
            return None  # not complete yet: notebooks show its text


def join() -> Join:
    """A join without streams yet."""
    return Join()


def sql(
    text: str,
    streams: Mapping[str, Any],
    *,
    time: Mapping[str, str] | None = None,
    functions: Iterable[UserFunction] = (),
) -> Join:
    """The join a query in SQL asks for, over `streams`: what the names in its FROM stand for, anything with an Arrow
    schema.

    `time` names the event-time column of a stream where it is not `ts` or its only timestamp.
    """
    schemas = {name: schema_of(source, name) for name, source in streams.items()}
    known = tuple(functions)
    spec = parse(text, schemas, time=time, functions=known)
    sources = {stream.source: streams[stream.source] for stream in spec.streams}
    return Join(sources, spec.streams, spec.conjuncts, spec.outputs, known, spec.summary)


def schema_of(source: Any, name: str) -> pa.Schema:
    """The Arrow schema of a source: a schema, a mapping of columns to types, or anything that has one.

    >>> schema_of({"x": pa.int64()}, "a") == schema_of(pa.table({"x": [1]}), "a")
    True
    """
    schema = getattr(source, "schema", source)
    if isinstance(schema, pa.Schema):
        return schema
    if isinstance(source, Mapping) and all(isinstance(type_, pa.DataType) for type_ in source.values()):
        return pa.schema(list(source.items()))
    if hasattr(source, "__arrow_c_schema__"):
        return pa.schema(source)
    message = f"the source of stream '{name}' is {type(source).__name__}, which has no Arrow schema"
    raise QueryError(message, place=name, hint="give an Arrow table, dataset, reader or schema")


def _conjuncts(condition: str | _FunctionCondition | Expression, binder: Binder) -> tuple[Expression, ...]:
    if isinstance(condition, str):
        return binder.conjuncts(parse_condition(condition))
    if isinstance(condition, _FunctionCondition):
        called = exp.Anonymous(
            this=condition.name, expressions=[parse_condition(column) for column in condition.columns]
        )
        return binder.conjuncts(called)
    return (condition,)


def _items(selected: str | Output, binder: Binder) -> list[Item]:
    if isinstance(selected, Output):
        return [Item(selected.expression, selected.name)]
    return items_of(parse_item(selected), binder)


def _window(window: Span | Window) -> Window:
    if isinstance(window, Window):
        return window
    return window_of(window) if isinstance(window, str) else Window(span_us=_span_us(window))


def _span_us(span: Span | None) -> int | None:
    if span is None or isinstance(span, str):
        return None if span is None else span_us(span)
    if isinstance(span, timedelta):
        return span // timedelta(microseconds=1)
    raise QueryError(f"{span!r} is not a span of time", hint='write text such as "20 seconds", or a timedelta')
