"""The specification of a query: one frozen value that SQL text and the builder both end in.

It says what is asked and nothing about how it is done. `streams` are in FROM order, `conjuncts` is the WHERE clause cut
at its ANDs (bound and typed, casts explicit), `outputs` the SELECT list.

    SELECT a.id AS a_id, b.id AS b_id          outputs   (Output("a_id", a.id), Output("b_id", b.id))
    FROM cam1 AS a, cam2 AS b                  streams   (Stream("a", source="cam1", …), Stream("b", source="cam2", …))
    WHERE ABS(a.x - b.x) <= 1 AND a.k = b.k    conjuncts (abs(a.x - b.x) <= 1, a.k = b.k)
    WINDOW 20 SECONDS                          each stream's window
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from windrow.errors import QueryError
from windrow.query.expression import Column, Expression, columns_of
from windrow.query.types import Type

UNBOUNDED = 2**63 - 1
"""A span that never ends, in microseconds or in rows."""


@dataclass(frozen=True, slots=True)
class Window:
    """How long a row can take part in results: a span of event time, or the newest `rows` rows of its stream.

    Exactly one of the two is set. A span is closed: a row of age exactly `span_us` is still in (w_i in the papers).
    """

    span_us: int | None = None
    rows: int | None = None

    def __post_init__(self) -> None:
        if (self.span_us is None) == (self.rows is None):
            message = "a window is either a time span or a number of rows"
            raise QueryError(message, place=repr(self), hint="give one of the two")
        if self.span_us is not None and self.span_us < 0:
            message = f"a window cannot be negative: {self.span_us} microseconds"
            raise QueryError(message, place="WINDOW", hint="give a span of zero or more")
        if self.rows is not None and self.rows < 1:
            message = f"a row window needs at least one row, not {self.rows}"
            raise QueryError(message, place=f"WINDOW ROWS {self.rows}", hint="write ROWS 1 or more")


@dataclass(frozen=True, slots=True)
class Stream:
    """One stream of the query.

    `name` is its alias in the query, `source` the name of what it reads (one source under two names is a self-join),
    `columns` its schema, `time` its event-time column.
    """

    name: str
    source: str
    columns: tuple[Column, ...]
    time: str
    window: Window
    lateness_us: int = 0
    idle_us: int | None = None
    freshness_us: int | None = None

    def column(self, name: str) -> Column:
        """The column of that name."""
        for column in self.columns:
            if column.name == name:
                return column
        known = ", ".join(column.name for column in self.columns)
        message = f"stream '{self.name}' has no column '{name}'"
        raise QueryError(message, place=f"{self.name}.{name}", hint=f"its columns are {known}")


@dataclass(frozen=True, slots=True)
class Output:
    """One column of the result."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate over results: a `count`, `sum` or `avg` of the output at `place`; None: of all results."""

    name: str
    kind: str
    place: int | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """What is delivered instead of results: for each span of their event time (`every_us`; None: the whole run) and
    each value of some outputs (`groups`, name and place), their aggregates. The time is the first output. `order` is
    that of the SELECT list, by name.
    """

    every_us: int | None
    groups: tuple[tuple[str, int], ...]
    aggregates: tuple[Aggregate, ...]
    order: tuple[str, ...]

    def __post_init__(self) -> None:
        names = [column.casefold() for column in self.columns]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            message = f"two result columns are named '{twice}'"
            raise QueryError(message, hint="give one of them an alias with AS")

    @property
    def places(self) -> tuple[int, ...]:
        """The outputs that are aggregated, each once."""
        return tuple(dict.fromkeys(each.place for each in self.aggregates if each.place is not None))

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of what is delivered."""
        computed = {aggregate.name for aggregate in self.aggregates}
        start = () if self.every_us is None else ("span_start",)
        return (*start, *(
            column for name in self.order
            for column in ((name, f"{name}_low", f"{name}_high") if name in computed else (name,))
        ))  # fmt: skip


Mode: TypeAlias = Literal["auto", "vectorised", "pair"]
CALL_LIMIT_S = 60.0
"""How long a call of a user function may take, if nothing else is said."""


@dataclass(frozen=True, slots=True)
class UserFunction:
    """A function of the user's own, callable in a query by `name`.

    `mode` says how it may be called: `vectorised` on NumPy arrays of candidates, `pair` once a pair in Python, `auto`:
    compiled with Numba where it compiles, else once a pair. A NULL argument gives NULL without a call. One call may
    take `limit_s` seconds.
    """

    name: str
    function: Callable[..., Any]
    result: Type
    mode: Mode = "auto"
    limit_s: float = CALL_LIMIT_S

    def __call__(self, *arguments: Any) -> Any:
        """The function itself, so that a declared function can still be called."""
        return self.function(*arguments)


@dataclass(frozen=True, slots=True)
class QuerySpec:
    """What is asked: streams, predicate, result columns, and the user's functions the expressions call. With a
    `summary`, not the results are delivered but their aggregates.
    """

    streams: tuple[Stream, ...]
    conjuncts: tuple[Expression, ...]
    outputs: tuple[Output, ...]
    functions: tuple[UserFunction, ...] = ()
    summary: Summary | None = None

    def stream(self, name: str) -> Stream:
        """The stream of that name."""
        for stream in self.streams:
            if stream.name == name:
                return stream
        known = ", ".join(stream.name for stream in self.streams)
        raise QueryError(f"there is no stream '{name}'", hint=f"the streams are {known}")

    def used_columns(self, name: str) -> tuple[Column, ...]:
        """The columns of a stream the query reads, its event time first."""
        expressions = (*self.conjuncts, *(output.expression for output in self.outputs))
        used = {column for expression in expressions for column in columns_of(expression) if column.stream == name}
        stream = self.stream(name)
        return tuple(dict.fromkeys((stream.column(stream.time), *(c for c in stream.columns if c in used))))

    @property
    def has_row_window(self) -> bool:
        return any(stream.window.rows is not None for stream in self.streams)

    def _repr_html_(self) -> str:
        from windrow.query.markup import table, titled

        spans = [
            f"{stream.window.rows} rows" if stream.window.span_us is None else f"{stream.window.span_us / 1e6:g} s"
            for stream in self.streams
        ]
        streams = [
            (stream.name, stream.source, stream.time, span, f"{stream.lateness_us / 1e6:g} s")
            for stream, span in zip(self.streams, spans, strict=True)
        ]
        return titled(
            "Query",
            table(("stream", "reads", "event time", "window", "lateness"), streams),
            table(("conditions",), [(conjunct,) for conjunct in self.conjuncts]),
            table(("result column", "type"), [(output.name, output.expression.type) for output in self.outputs]),
        )
