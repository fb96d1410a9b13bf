"""Expressions: the small typed tree that everything behind the parser works on.

Three nodes are enough: a `Column` of a stream, a `Literal`, and a `Call` of a named function. Trees come out of binding
with every implicit conversion written as a call of `cast`, so two operands of `add`, `less` … always have the same
type, and whoever evaluates a tree never has to know a promotion rule.

    abs(a.x - b.x) <= 0.3      Call less_equal (BOOLEAN)
                               ├─ Call abs (DOUBLE)
                               │  └─ Call subtract (DOUBLE)
                               │     ├─ Column a.x (DOUBLE)
                               │     └─ Column b.x (DOUBLE)
                               └─ Literal 0.3 (DOUBLE)

Nodes are frozen and compare by value, so they serve as keys of caches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from windrow.query.types import Type

Value: TypeAlias = bool | int | float | str | bytes | None
"""A literal in the form its type has inside: decimals as the unscaled integer, dates as days, times and intervals as
microseconds.
"""


@dataclass(frozen=True, slots=True)
class Column:
    """Column `name` of stream `stream`."""

    stream: str
    name: str
    type: Type

    def __str__(self) -> str:
        return f"{self.stream}.{self.name}"


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant; `value` is None for NULL."""

    value: Value
    type: Type

    def __str__(self) -> str:
        return self.type.show(self.value)


@dataclass(frozen=True, slots=True)
class Call:
    """Function `function` applied to `arguments`; names are those of `windrow.query.functions`."""

    function: str
    arguments: tuple[Expression, ...]
    type: Type

    def __str__(self) -> str:
        from windrow.query.functions import show_call

        return show_call(self)


Expression: TypeAlias = Column | Literal | Call


def walk(expression: Expression) -> Iterator[Expression]:
    """The node and everything below it, parents first, left to right."""
    yield expression
    if isinstance(expression, Call):
        for argument in expression.arguments:
            yield from walk(argument)


def columns_of(expression: Expression) -> tuple[Column, ...]:
    """The columns an expression reads, each once, in order of appearance."""
    return tuple(dict.fromkeys(node for node in walk(expression) if isinstance(node, Column)))


def streams_of(expression: Expression) -> frozenset[str]:
    """The streams an expression reads."""
    return frozenset(column.stream for column in columns_of(expression))


def conjuncts_of(expression: Expression) -> tuple[Expression, ...]:
    """The parts of a conjunction, nested ones flattened, in written order."""
    if isinstance(expression, Call) and expression.function == "and":
        return tuple(part for argument in expression.arguments for part in conjuncts_of(argument))
    return (expression,)
