"""Aggregates over results: which SELECT lists ask for them, and what they need of each result.

    SELECT a.kind, COUNT(*) AS n, SUM(b.v) FROM … WHERE … GROUP BY a.kind WINDOW 20 SECONDS EVERY 1 MINUTE

A span is of the results' event time, and begins at a multiple of its length; without EVERY the whole run is one. An
item is COUNT(*), COUNT, SUM or AVG of an expression, or a column of GROUP BY. The join below delivers what they are
computed from: the time of each result, the columns of GROUP BY, the arguments.

>>> aggregates = (Aggregate("n", "count"), Aggregate("total", "sum", 2))
>>> made = Summary(60_000_000, (("kind", 1),), aggregates, order=("kind", "n", "total"))
>>> made.columns
('span_start', 'kind', 'n', 'n_low', 'n_high', 'total', 'total_low', 'total_high')
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from windrow.errors import QueryError
from windrow.query.bind import Binder
from windrow.query.expression import Call, Column, Expression
from windrow.query.grammar import text_of
from windrow.query.outputs import result_time_type
from windrow.query.show import show
from windrow.query.spec import Aggregate, Output, Summary
from windrow.query.types import Kind

AGGREGATES = ("count", "sum", "avg")


def asks_for_summary(select: exp.Select, every_us: int | None) -> bool:
    """Whether a query asks for aggregates."""
    called = any(_called(_inner(node)) in AGGREGATES for node in select.expressions)
    return called or every_us is not None or select.args.get("group") is not None


def read_summary(select: exp.Select, every_us: int | None, binder: Binder) -> tuple[tuple[Output, ...], Summary]:
    """What the join has to deliver, and what becomes of it."""
    needed: list[Expression] = []
    if every_us is not None:
        if every_us == 0:
            raise QueryError("EVERY needs a span above zero", place="EVERY", hint="write EVERY 1 MINUTE")
        needed.append(Call("result_ts", (), result_time_type(binder.scope)))
    grouped = _grouped(select, binder)
    needed.extend(grouped)
    groups: list[tuple[str, int]] = []
    aggregates: list[Aggregate] = []
    order: list[str] = []
    for node in select.expressions:
        inner, alias = _inner(node), node.alias if isinstance(node, exp.Alias) else ""
        if _called(inner) in AGGREGATES:
            aggregates.append(_aggregate(inner, alias, binder, needed))
            order.append(aggregates[-1].name)
        else:
            groups.append(_group(inner, alias, binder, grouped, needed))
            order.append(groups[-1][0])
    if not aggregates:
        raise QueryError(
            "GROUP BY and EVERY need an aggregate", place=text_of(select)[:60], hint="add COUNT(*), SUM(…) or AVG(…)"
        )
    return _outputs(needed), Summary(every_us, tuple(groups), tuple(aggregates), tuple(order))


def _grouped(select: exp.Select, binder: Binder) -> list[Expression]:
    group = select.args.get("group")
    if group is None:
        return []
    if any(value for part, value in group.args.items() if part != "expressions"):
        raise QueryError("GROUP BY takes plain columns", place=text_of(group), hint="write GROUP BY a.kind")
    found = [binder.bind(node) for node in group.expressions]
    for expression, node in zip(found, group.expressions, strict=True):
        if not isinstance(expression, Column) or expression.type.kind in (Kind.OTHER, Kind.VECTOR):
            raise QueryError("GROUP BY takes plain columns", place=text_of(node), hint="write GROUP BY a.kind")
    return list(dict.fromkeys(found))


def _group(
    node: exp.Expr, alias: str, binder: Binder, grouped: Sequence[Expression], needed: Sequence[Expression]
) -> tuple[str, int]:
    expression = binder.bind(node) if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star) else None
    if expression not in grouped or not isinstance(expression, Column):
        hint = "beside aggregates select columns that GROUP BY names"
        raise QueryError("this is neither an aggregate nor in GROUP BY", place=text_of(node), hint=hint)
    return alias or expression.name, needed.index(expression)


def _aggregate(node: exp.Expr, alias: str, binder: Binder, needed: list[Expression]) -> Aggregate:
    kind = _called(node)
    if len(node.expressions) != 1:
        raise QueryError(f"{kind.upper()} takes one argument", place=text_of(node), hint=f"write {kind.upper()}(a.v)")
    argument = node.expressions[0]
    if isinstance(argument, exp.Star):
        if kind != "count":
            raise QueryError(f"{kind.upper()} takes an expression", place=text_of(node), hint="write SUM(a.v)")
        return Aggregate(alias or "count", kind)
    if isinstance(argument, exp.Distinct):
        raise QueryError("DISTINCT is not supported in an aggregate", place=text_of(node), hint="leave it out")
    value = binder.bind(argument)
    if kind != "count" and not value.type.is_numeric:
        raise QueryError(
            f"{kind.upper()} needs a number, not {value.type}", place=text_of(node), hint="cast it to a number"
        )
    if value not in needed:
        needed.append(value)
    return Aggregate(alias or f"{kind}({show(value)})", kind, needed.index(value))


def _outputs(needed: Sequence[Expression]) -> tuple[Output, ...]:
    return tuple(Output(f"{number} {show(expression)}", expression) for number, expression in enumerate(needed))


def _inner(node: exp.Expr) -> exp.Expr:
    return node.this if isinstance(node, exp.Alias) else node


def _called(node: exp.Expr) -> str:
    return node.name.lower() if isinstance(node, exp.Anonymous) else ""
