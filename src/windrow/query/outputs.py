"""The SELECT list: what is delivered, and under which names.

An item's name is its alias; a plain column keeps its name where it is the only one of that name, else it is
`<stream>_<column>`; any other expression is named by its text.

    SELECT a.id, b.id, a.x - b.x, a.ts AS at      →      a_id, b_id, "a.x - b.x", at
    SELECT *                                      →      all columns of all streams, in FROM order
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from windrow.errors import QueryError
from windrow.query.bind import Binder
from windrow.query.expression import Call, Column, Expression
from windrow.query.grammar import text_of
from windrow.query.scope import Scope
from windrow.query.show import show
from windrow.query.spec import Output
from windrow.query.types import BIGINT, TIMESTAMP, TIMESTAMPTZ, Type


@dataclass(frozen=True, slots=True)
class Item:
    """One bound item of the SELECT list; `alias` is empty where none was given."""

    expression: Expression
    alias: str = ""


def name_outputs(items: Sequence[Item]) -> tuple[Output, ...]:
    """The items with their names; two of one name are an error, since no sink could tell them apart."""
    if not items:
        raise QueryError("nothing is selected", hint="write SELECT * or name columns")
    plain = Counter(
        item.expression.name.casefold() for item in items if isinstance(item.expression, Column) and not item.alias
    )
    taken = Counter(item.alias.casefold() for item in items if item.alias)
    outputs = tuple(Output(_name_of(item, plain, taken), item.expression) for item in items)
    seen: dict[str, Output] = {}
    for output in outputs:
        other = seen.setdefault(output.name.casefold(), output)
        if other is not output:
            place = f"{show(other.expression)} and {show(output.expression)}"
            raise QueryError(
                f"two result columns are named '{output.name}'", place=place, hint="give one of them an alias with AS"
            )
    return outputs


def items_of(node: exp.Expr, binder: Binder) -> list[Item]:
    """What one parsed item of a SELECT list stands for; a star for many columns."""
    if isinstance(node, exp.Star):
        _check_star(node, node)
        return [Item(column) for stream in binder.scope.streams for column in binder.scope.visible(stream).values()]
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
        _check_star(node.this, node)
        return [Item(column) for column in binder.scope.stream(node.text("table"), place=text_of(node)).columns]
    if isinstance(node, exp.Alias):
        return [Item(_value_of(node.this, binder), node.alias)]
    return [Item(_value_of(node, binder))]


def _value_of(node: exp.Expr, binder: Binder) -> Expression:
    called = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    if called not in ("result_ts", "result_id"):
        return binder.bind(node)
    if node.expressions:
        raise QueryError(f"{called} takes nothing", place=text_of(node), hint=f"write {called}()")
    return Call(called, (), result_time_type(binder.scope) if called == "result_ts" else BIGINT)


def result_time_type(scope: Scope) -> Type:
    """The type of a result's event time."""
    zoned = all(stream.column(stream.time).type == TIMESTAMPTZ for stream in scope.streams)
    return TIMESTAMPTZ if zoned else TIMESTAMP


def _name_of(item: Item, plain: Counter[str], taken: Counter[str]) -> str:
    if item.alias:
        return item.alias
    if not isinstance(item.expression, Column):
        return show(item.expression)
    name = item.expression.name
    alone = plain[name.casefold()] == 1 and not taken[name.casefold()]
    return name if alone else f"{item.expression.stream}_{name}"


def _check_star(star: exp.Expr, node: exp.Expr) -> None:
    if any(star.args.values()):
        raise QueryError("* takes no EXCLUDE, REPLACE or RENAME", place=text_of(node), hint="name the columns")
