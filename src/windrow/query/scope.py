"""Names: which stream and which column a query means, and what a stream must be like to be asked.

Names are matched as written first, then in any case, as DuckDB does. A name that fits two things is an error that lists
them, a name that fits nothing is an error that lists what there is and what comes near.

>>> from windrow.query.spec import Window
>>> schemas = [pa.schema([("ts", pa.timestamp("us")), (name, pa.int64())]) for name in ("x", "y")]
>>> a, b = (declare_stream(n, n, schema, window=Window(rows=9)) for n, schema in zip("ab", schemas, strict=True))
>>> str(Scope((a, b)).column("X")), str(Scope((a, b)).column("ts", "A"))
('a.x', 'a.ts')
>>> Scope((a, b)).column("ts")
Traceback (most recent call last):
    ...
windrow.errors.QueryError: 'ts' could be a.ts or b.ts (at: ts). Next: write the stream before it: a.ts
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeVar

import pyarrow as pa

from windrow.errors import QueryError
from windrow.query.expression import Column
from windrow.query.spec import UNBOUNDED, Stream, Window
from windrow.query.types import Kind, Type, from_arrow

Thing = TypeVar("Thing")


@dataclass(frozen=True, slots=True)
class Scope:
    """The streams names are looked up in; `merged` are columns that JOIN … USING made one with a column of an earlier
    stream."""

    streams: tuple[Stream, ...]
    merged: frozenset[tuple[str, str]] = frozenset()

    def stream(self, name: str, *, place: str = "") -> Stream:
        """The stream a query calls `name`."""
        found = matching(name, {stream.name: stream for stream in self.streams})
        if len(found) == 1:
            return found[0]
        known = [stream.name for stream in self.streams]
        if found:
            raise QueryError(
                f"'{name}' could be {_any_of(stream.name for stream in found)}",
                place=place,
                hint="write it in its own case",
            )
        raise QueryError(f"there is no stream '{name}'", place=place, hint=_known("streams", name, known))

    def column(self, name: str, table: str = "") -> Column:
        """The column a query calls `table.name`, or just `name` where that is unambiguous."""
        if table:
            place = f"{table}.{name}"
            return _column_of(self.stream(table, place=place), name, place)
        found = [column for stream in self.streams for column in matching(name, self.visible(stream))]
        exact = [column for column in found if column.name == name]
        found = exact or found
        if len(found) == 1:
            return found[0]
        if found:
            raise QueryError(
                f"'{name}' could be {_any_of(map(str, found))}",
                place=name,
                hint=f"write the stream before it: {found[0]}",
            )
        known = [column.name for stream in self.streams for column in stream.columns]
        raise QueryError(
            f"no stream has a column '{name}'", place=name, hint=_known("columns", name, list(dict.fromkeys(known)))
        )

    def visible(self, stream: Stream) -> dict[str, Column]:
        """The columns of a stream that `*` and names without a stream can mean."""
        return {column.name: column for column in stream.columns if (stream.name, column.name) not in self.merged}


def declare_stream(
    name: str,
    source: str,
    schema: pa.Schema,
    *,
    window: Window,
    time: str | None = None,
    lateness_us: int = 0,
    idle_us: int | None = None,
    freshness_us: int | None = None,
) -> Stream:
    """A stream of the query, checked: its columns have names of their own, its event time can be one, its spans
    agree."""
    for column_name in schema.names:
        if schema.names.count(column_name) > 1:
            raise QueryError(
                f"stream '{name}' has two columns named '{column_name}'", place=source, hint="rename one of them"
            )
    columns = tuple(Column(name, field.name, from_arrow(field.type)) for field in schema)
    _check_spans(name, window, lateness_us, idle_us, freshness_us)
    return Stream(name, source, columns, _event_time(name, columns, time), window, lateness_us, idle_us, freshness_us)


def matching(name: str, things: Mapping[str, Thing]) -> list[Thing]:
    """What is called `name`: exactly, or else in another case."""
    if name in things:
        return [things[name]]
    return [thing for known, thing in things.items() if known.casefold() == name.casefold()]


def source_named(name: str, schemas: Mapping[str, pa.Schema]) -> str:
    """The key of the source a FROM clause calls `name`."""
    found = matching(name, {known: known for known in schemas})
    if len(found) == 1:
        return found[0]
    if found:
        raise QueryError(f"'{name}' could be {_any_of(found)}", place=f"FROM {name}", hint="write it in its own case")
    raise QueryError(f"there is no stream '{name}'", place=f"FROM {name}", hint=_known("streams", name, list(schemas)))


def can_be_time(type_: Type) -> bool:
    """Whether a column of this type can be an event time; whole numbers are microseconds since 1970."""
    return type_.is_time or type_.kind is Kind.DATE or type_.is_integer


def _event_time(name: str, columns: tuple[Column, ...], wanted: str | None) -> str:
    by_name = {column.name: column for column in columns}
    if wanted is not None:
        column = _chosen_time(name, by_name, wanted)
    else:
        named = matching("ts", by_name)
        stamps = [column for column in columns if column.type.is_time]
        candidates = named if len(named) == 1 and can_be_time(named[0].type) else stamps
        if len(candidates) != 1:
            found = f"has {len(candidates)} timestamp columns" if candidates else "has no timestamp column"
            options = (
                ", ".join(column.name for column in (candidates or columns) if can_be_time(column.type))
                or "none can be one"
            )
            raise QueryError(
                f"stream '{name}' {found} and none named ts",
                place=name,
                hint=f"name its event time (time=…): {options}",
            )
        column = candidates[0]
    if not can_be_time(column.type):
        message = f"{column} is {column.type} and cannot be an event time"
        raise QueryError(message, place=name, hint="use a timestamp, a date, or whole microseconds since 1970")
    return column.name


def _chosen_time(name: str, by_name: dict[str, Column], wanted: str) -> Column:
    found = matching(wanted, by_name)
    if len(found) != 1:
        hint = _known("columns", wanted, list(by_name))
        raise QueryError(
            f"stream '{name}' has no column '{wanted}' for its event time", place=f"time={wanted}", hint=hint
        )
    return found[0]


def _check_spans(name: str, window: Window, lateness_us: int, idle_us: int | None, freshness_us: int | None) -> None:
    for what, span in (("lateness", lateness_us), ("idle timeout", idle_us), ("freshness", freshness_us)):
        if span is not None and not 0 <= span <= UNBOUNDED:
            raise QueryError(
                f"the {what} of stream '{name}' cannot be {span} microseconds", hint="give a span of zero or more"
            )
    if freshness_us is not None and window.span_us is not None and freshness_us < window.span_us:
        message = f"the freshness of stream '{name}' ({freshness_us} us) is below its window ({window.span_us} us)"
        raise QueryError(message, place=name, hint="ask for a freshness of at least the window, or shorten the window")


def _column_of(stream: Stream, name: str, place: str) -> Column:
    by_name = {column.name: column for column in stream.columns}
    found = matching(name, by_name)
    if len(found) == 1:
        return found[0]
    if found:
        raise QueryError(f"'{name}' could be {_any_of(map(str, found))}", place=place, hint="write it in its own case")
    raise QueryError(
        f"stream '{stream.name}' has no column '{name}'", place=place, hint=_known("columns", name, list(by_name))
    )


def _known(what: str, name: str, known: list[str]) -> str:
    folded = {each.casefold(): each for each in known}
    close = [folded[each] for each in get_close_matches(name.casefold(), folded, n=3, cutoff=0.6)]
    listed = ", ".join(known[:12]) + (", …" if len(known) > 12 else "")
    return (f"did you mean {_any_of(close)}? " if close else "") + f"known {what}: {listed or 'none'}"


def _any_of(names: Iterable[str]) -> str:
    return " or ".join(names)
