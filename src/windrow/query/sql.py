"""SQL in, a specification out.

    text ─ tokens ─┬─ WINDOW, LATENESS, FRESHNESS, IDLE ──────────┐
                   └─ the rest ─ sqlglot ─ FROM ─ streams ────────┴─ WHERE, ON, USING ─ conjuncts ─ SELECT ─ outputs

What is understood is SELECT … FROM … WHERE … with inner joins of streams, and aggregates of what they find
(`windrow.query.summary`); anything else is refused by name, never ignored.

>>> cameras = {"cam1": pa.schema([("ts", pa.timestamp("us")), ("x", pa.float64())])}
>>> text = "SELECT * FROM cam1 AS a, cam1 AS b WHERE abs(a.x - b.x) <= 0.3 WINDOW a 20 SECONDS, b ROWS 10"
>>> spec = parse(text, cameras)
>>> [str(conjunct) for conjunct in spec.conjuncts], [stream.window for stream in spec.streams]
(['abs(a.x - b.x) <= 0.3'], [Window(span_us=20000000, rows=None), Window(span_us=None, rows=10)])
>>> parse("SELECT * FROM cam1 AS a, cam1 AS b WHERE a.x = b.x", cameras)
Traceback (most recent call last):
    ...
windrow.errors.QueryError: stream 'a' has no window. Next: add WINDOW 20 SECONDS, or WINDOW a 20 SECONDS for it alone
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from sqlglot import exp

from windrow.errors import QueryError
from windrow.query.bind import Binder
from windrow.query.clauses import Clauses, setting_for, split_clauses
from windrow.query.expression import Call, Expression, walk
from windrow.query.functions import USER_PREFIX
from windrow.query.grammar import parse_select, text_of, tokens_of
from windrow.query.outputs import items_of, name_outputs
from windrow.query.scope import Scope, declare_stream, matching, source_named
from windrow.query.spec import Output, QuerySpec, Stream, UserFunction
from windrow.query.summary import asks_for_summary, read_summary

_REFUSED = {
    "with_": "WITH", "distinct": "DISTINCT", "having": "HAVING", "order": "ORDER BY",
    "limit": "LIMIT", "offset": "OFFSET", "qualify": "QUALIFY", "windows": "a named window", "sample": "sampling",
    "laterals": "LATERAL", "pivots": "PIVOT", "into": "INTO", "locks": "FOR UPDATE",
}  # fmt: skip
_UNDERSTOOD = frozenset(("expressions", "from_", "joins", "where", "group"))


@dataclass(slots=True)
class _From:
    """What the FROM clause says: streams as (name, source), conditions of its joins, columns that USING merged."""

    named: list[tuple[str, str]] = field(default_factory=list)
    conditions: list[exp.Expr] = field(default_factory=list)
    using: list[tuple[int, str]] = field(default_factory=list)


def parse(
    text: str,
    schemas: Mapping[str, pa.Schema],
    *,
    time: Mapping[str, str] | None = None,
    functions: Iterable[UserFunction] = (),
) -> QuerySpec:
    """The specification of a query.

    `schemas` are what can be read, by the names FROM uses; `time` names the event-time column of a stream or of a
    source (by default the column `ts`, else the only timestamp); `functions` are the user's own.
    """
    tokens, clauses = split_clauses(tokens_of(text))
    select = parse_select(tokens, text)
    _check_select(select)
    asked = _read_from(select, schemas)
    streams = tuple(_declare(name, source, schemas, clauses, time or {}) for name, source in asked.named)
    _check_times(time or {}, asked, schemas)
    clauses.check_names(Scope(streams))
    scope, merged_conditions = _merge(streams, asked)
    known = tuple(functions)
    binder = Binder(scope, known)
    where = [select.args["where"].this] if select.args.get("where") else []
    conjuncts = [part for node in (*merged_conditions, *asked.conditions, *where) for part in binder.conjuncts(node)]
    if asks_for_summary(select, clauses.every_us):
        needed, summary = read_summary(select, clauses.every_us, binder)
        return replace(specify(streams, conjuncts, needed, known), summary=summary)
    items = [item for node in select.expressions for item in items_of(node, binder)]
    return specify(streams, conjuncts, name_outputs(items), known)


def specify(
    streams: Sequence[Stream],
    conjuncts: Sequence[Expression],
    outputs: Sequence[Output],
    functions: Sequence[UserFunction] = (),
) -> QuerySpec:
    """A specification, with the functions it calls and no others; a join needs two streams."""
    if len(streams) < 2:
        raise QueryError(
            "a join needs at least two streams", hint="name another stream in FROM; a stream can be joined with itself"
        )
    expressions = (*conjuncts, *(output.expression for output in outputs))
    called = {node.function for expression in expressions for node in walk(expression) if isinstance(node, Call)}
    used = tuple(function for function in functions if f"{USER_PREFIX}{function.name}" in called)
    return QuerySpec(tuple(streams), tuple(conjuncts), tuple(outputs), used)


def check_new_name(name: str, taken: Iterable[str]) -> None:
    """No two streams of a query share a name, in whatever case."""
    if any(name.casefold() == other.casefold() for other in taken):
        raise QueryError(
            f"two streams are named '{name}'", place=f"FROM … {name}", hint=f"give one another name: {name} AS {name}2"
        )


def _check_select(select: exp.Select) -> None:
    for part, value in select.args.items():
        if value and part not in _UNDERSTOOD:
            shown = text_of(value) if isinstance(value, exp.Expr) else ""
            hint = "join first, do the rest with the result"
            raise QueryError(f"{_REFUSED.get(part, part.upper())} is not supported", place=shown, hint=hint)
    if not select.args.get("from_"):
        raise QueryError("the query has no FROM", hint="write SELECT … FROM a, b WHERE … WINDOW 20 SECONDS")


def _read_from(select: exp.Select, schemas: Mapping[str, pa.Schema]) -> _From:
    asked = _From()
    _add_source(select.args["from_"].this, asked, schemas)
    for join in select.args.get("joins") or ():
        _check_join(join)
        _add_source(join.this, asked, schemas)
        if join.args.get("on") is not None:
            asked.conditions.append(join.args["on"])
        asked.using += [(len(asked.named) - 1, column.name) for column in join.args.get("using") or ()]
    return asked


def _check_join(join: exp.Expr) -> None:
    kind = " ".join(word for word in (join.text("method"), join.text("side"), join.text("kind")) if word).upper()
    if kind not in ("", "INNER", "CROSS"):
        raise QueryError(
            f"{kind} JOIN is not supported: inner joins only", place=text_of(join), hint="write JOIN … ON or CROSS JOIN"
        )
    for part, value in join.args.items():
        if value and part not in ("this", "kind", "on", "using"):
            raise QueryError(
                f"{part.upper()} is not supported in a join", place=text_of(join), hint="write JOIN … ON …"
            )


def _add_source(table: exp.Expr, asked: _From, schemas: Mapping[str, pa.Schema]) -> None:
    place = text_of(table)
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise QueryError("FROM takes streams by name, not subqueries or functions", place=place, hint="write FROM a, b")
    alias = table.args.get("alias")
    extras = [part for part, value in table.args.items() if value and part not in ("this", "alias")]
    if extras or (alias is not None and alias.args.get("columns")):
        raise QueryError("FROM takes plain streams with an alias", place=place, hint="write FROM cam1 AS a, cam2 AS b")
    source = source_named(table.this.name, schemas)
    name = table.alias or source
    check_new_name(name, (other for other, _ in asked.named))
    asked.named.append((name, source))


def _declare(
    name: str, source: str, schemas: Mapping[str, pa.Schema], clauses: Clauses, time: Mapping[str, str]
) -> Stream:
    window = setting_for(clauses.window, name)
    if window is None:
        hint = f"add WINDOW 20 SECONDS, or WINDOW {name} 20 SECONDS for it alone"
        raise QueryError(f"stream '{name}' has no window", hint=hint)
    lateness, freshness, idle = (
        setting_for(clause, name) for clause in (clauses.lateness, clauses.freshness, clauses.idle)
    )
    columns = matching(name, time) or matching(source, time)
    return declare_stream(
        name,
        source,
        schemas[source],
        window=window,
        time=columns[0] if columns else None,
        lateness_us=(lateness.span_us if lateness else None) or 0,
        idle_us=idle.span_us if idle else None,
        freshness_us=freshness.span_us if freshness else None,
    )


def _check_times(time: Mapping[str, str], asked: _From, schemas: Mapping[str, pa.Schema]) -> None:
    known = {name: name for name in (*schemas, *(name for name, _ in asked.named))}
    for name, column in time.items():
        if not matching(name, known):
            raise QueryError(
                f"there is no stream '{name}'",
                place=f"time of {name}: {column}",
                hint=f"known streams: {', '.join(known)}",
            )


def _merge(streams: tuple[Stream, ...], asked: _From) -> tuple[Scope, list[exp.Expr]]:
    """The scope with the columns USING makes one, and the equalities that say so."""
    merged: set[tuple[str, str]] = set()
    conditions: list[exp.Expr] = []
    for at, name in asked.using:
        earlier = Scope(streams[:at], frozenset(merged)).column(name)
        column = Scope(streams[at : at + 1]).column(name)
        merged.add((column.stream, column.name))
        sides = (exp.column(side.name, side.stream, quoted=True) for side in (earlier, column))
        conditions.append(exp.EQ(this=next(sides), expression=next(sides)))
    return Scope(streams, frozenset(merged)), conditions
