"""Expressions as SQL text that reads like what the user wrote.

Casts that binding added are left out: a cast is printed only where reading the text back without it would give another
expression. Parentheses stand where precedence needs them and nowhere else.

>>> from windrow.query.expression import Column, Literal
>>> from windrow.query.types import BOOLEAN, DOUBLE, INTEGER
>>> wide = Call("cast", (Column("a", "n", INTEGER),), DOUBLE)
>>> show(Call("less", (Call("add", (wide, Column("b", "x", DOUBLE)), DOUBLE), Literal(0.5, DOUBLE)), BOOLEAN))
'a.n + b.x < 0.5'
>>> show(wide)
'CAST(a.n AS DOUBLE)'
"""

from __future__ import annotations

import re

from windrow.query.expression import Call, Column, Expression, Literal
from windrow.query.functions import FUNCTIONS, USER_PREFIX, resolve
from windrow.query.literals import INTEGER_BIGGEST
from windrow.query.types import INTEGER, Kind, decimal

_OR, _AND, _NOT, _COMPARED, _SUM, _PRODUCT, _SIGN, _ATOM = range(1, 9)

_PRECEDENCE = {
    "or": _OR, "and": _AND, "not": _NOT, "is_null": _COMPARED, "like": _COMPARED, "ilike": _COMPARED,
    "equal": _COMPARED, "not_equal": _COMPARED, "less": _COMPARED, "less_equal": _COMPARED, "greater": _COMPARED,
    "greater_equal": _COMPARED, "add": _SUM, "subtract": _SUM, "multiply": _PRODUCT, "divide": _PRODUCT,
    "integer_divide": _PRODUCT, "modulo": _PRODUCT, "negate": _SIGN,
}  # fmt: skip

_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def show(expression: Expression) -> str:
    """The expression as SQL text."""
    return _text(expression)[0]


def quoted(name: str) -> str:
    """A name as it has to be written in a query."""
    return name if _PLAIN_NAME.fullmatch(name) else '"' + name.replace('"', '""') + '"'


def _text(expression: Expression) -> tuple[str, int]:
    """The text and how tightly its outermost operator binds."""
    if isinstance(expression, Column):
        return f"{quoted(expression.stream)}.{quoted(expression.name)}", _ATOM
    if isinstance(expression, Literal):
        text = str(expression)
        return text, _SIGN if text.startswith("-") else _ATOM
    if expression.function == "cast":
        return f"CAST({show(expression.arguments[0])} AS {expression.type})", _ATOM
    return _call_text(expression.function, _without_casts(expression))


def _call_text(name: str, arguments: tuple[Expression, ...]) -> tuple[str, int]:
    binding = _PRECEDENCE.get(name)
    if name == "case":
        return _case_text(arguments), _ATOM
    if binding is None:
        called = quoted(name.removeprefix(USER_PREFIX)) if name.startswith(USER_PREFIX) else FUNCTIONS[name].called[0]
        return f"{called}({', '.join(show(argument) for argument in arguments)})", _ATOM
    operator = FUNCTIONS[name].operator
    if name == "negate":
        return f"-{_inside(arguments[0], _ATOM)}", _SIGN
    if name == "is_null":
        return f"{_inside(arguments[0], _SUM)} IS NULL", _COMPARED
    if name == "not":
        return _negation_text(arguments[0])
    if name in ("and", "or"):
        return f" {operator} ".join(_inside(argument, binding + 1) for argument in arguments), binding
    first = binding + 1 if binding == _COMPARED else binding
    return f"{_inside(arguments[0], first)} {operator} {_inside(arguments[1], binding + 1)}", binding


def _inside(expression: Expression, least: int) -> str:
    """The text, in parentheses if it binds less tightly than `least`."""
    text, binding = _text(expression)
    return text if binding >= least else f"({text})"


def _negation_text(negated: Expression) -> tuple[str, int]:
    if isinstance(negated, Call) and negated.function == "is_null":
        return f"{_inside(negated.arguments[0], _SUM)} IS NOT NULL", _COMPARED
    if isinstance(negated, Call) and negated.function in ("like", "ilike"):
        left, right = negated.arguments
        return f"{_inside(left, _SUM)} NOT {FUNCTIONS[negated.function].operator} {_inside(right, _SUM)}", _COMPARED
    return f"NOT {_inside(negated, _NOT)}", _NOT


def _case_text(arguments: tuple[Expression, ...]) -> str:
    branches = zip(arguments[:-1:2], arguments[1::2], strict=True)
    body = " ".join(f"WHEN {show(when)} THEN {show(then)}" for when, then in branches)
    return f"CASE {body} ELSE {show(arguments[-1])} END"


def _without_casts(call: Call) -> tuple[Expression, ...]:
    """The arguments, without the casts that the types of what is inside them bring about anyway."""
    bare = tuple(
        part.arguments[0] if isinstance(part, Call) and part.function == "cast" else part for part in call.arguments
    )
    if call.function.startswith(USER_PREFIX):
        return tuple(
            inner if inner.type.kind is Kind.DECIMAL else part for inner, part in zip(bare, call.arguments, strict=True)
        )
    for shorter in (tuple(_plainer(part) for part in bare), bare):
        signature = resolve(call.function, tuple(part.type for part in shorter))
        if signature is not None and signature.arguments == tuple(part.type for part in call.arguments):
            return shorter
    return call.arguments


def _plainer(expression: Expression) -> Expression:
    """A number without the zeros after its point that only its type put there."""
    if not isinstance(expression, Literal) or expression.value is None:
        return expression
    type_, value = expression.type, expression.value
    if type_.is_float and isinstance(value, float) and value.is_integer() and abs(value) <= INTEGER_BIGGEST:
        return Literal(int(value), INTEGER)
    if type_.kind is Kind.DECIMAL and isinstance(value, int):
        scale = type_.scale
        while scale and value % 10 == 0:
            value, scale = value // 10, scale - 1
        if scale:
            return Literal(value, decimal(max(len(str(abs(value))), scale + 1), scale))
        return Literal(value, INTEGER) if abs(value) <= INTEGER_BIGGEST else expression
    return expression
