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
from dataclasses import dataclass
from itertools import islice, product

from windrow.errors import QueryError
from windrow.query.casts import coerce
from windrow.query.expression import Call, Column, Expression, Literal
from windrow.query.functions import FUNCTIONS, USER_PREFIX, resolve
from windrow.query.literals import negative, number
from windrow.query.operands import Operand, settled, user_argument
from windrow.query.types import NULL, Kind

_OR, _AND, _NOT, _COMPARED, _SUM, _PRODUCT, _SIGN, _ATOM = range(1, 9)

_PRECEDENCE = {
    "or": _OR, "and": _AND, "not": _NOT, "is_null": _COMPARED, "like": _COMPARED, "ilike": _COMPARED,
    "equal": _COMPARED, "not_equal": _COMPARED, "less": _COMPARED, "less_equal": _COMPARED, "greater": _COMPARED,
    "greater_equal": _COMPARED, "add": _SUM, "subtract": _SUM, "multiply": _PRODUCT, "divide": _PRODUCT,
    "integer_divide": _PRODUCT, "modulo": _PRODUCT, "negate": _SIGN,
}  # fmt: skip

_SAY_THEIR_TYPE = (Kind.BOOLEAN, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.INTERVAL)
_WRITABLE = (Kind.INTEGER, Kind.BIGINT, Kind.DECIMAL, Kind.DOUBLE, Kind.VARCHAR, Kind.NULL)
"""The kinds a literal can be written in without saying so."""

_MOST_SPELLINGS = 64

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
        text = _literal_text(expression)
        return text, _SIGN if text.startswith("-") else _ATOM
    if expression.function == "cast":
        inner = expression.arguments[0]
        text = inner.type.show(inner.value) if isinstance(inner, Literal) else show(inner)
        return f"CAST({text} AS {expression.type})", _ATOM
    return _call_text(expression.function, _spelled(expression))


def _literal_text(literal: Literal) -> str:
    """The literal as it has to be written to be of its type where nothing stands beside it."""
    text = str(literal)
    if literal.type.kind is Kind.DOUBLE and text[-1].isdigit() and "e" not in text:
        return f"{text.removesuffix('.0')}e0"
    return text if literal.type.kind is not Kind.FLOAT or literal.value is None else f"CAST({text} AS FLOAT)"


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


@dataclass(frozen=True, slots=True)
class _Spelling:
    """One way to write an argument, and what binding makes of it before its neighbours are looked at."""

    written: Expression
    read: Operand


def _spelled(call: Call) -> tuple[Expression, ...]:
    """The arguments in the shortest spelling that reads back as this very call."""
    if call.function in ("and", "or", "not"):
        return call.arguments
    for chosen in islice(product(*map(_spellings, call.arguments)), _MOST_SPELLINGS):
        if _reads_as(call, [spelling.read for spelling in chosen]):
            return tuple(spelling.written for spelling in chosen)
    return call.arguments


def _spellings(part: Expression) -> list[_Spelling]:
    """The ways to write an argument, shortest first: without its cast, without the zeros its type put there."""
    if isinstance(part, Call) and part.function == "cast":
        return [_Spelling(part.arguments[0], Operand(part.arguments[0])), _Spelling(part, Operand(part))]
    if not isinstance(part, Literal) or part.type.kind in _SAY_THEIR_TYPE:
        return [_Spelling(part, Operand(part))]
    shorter = [Literal(None, NULL)] if part.value is None else _shorter_numbers(part)
    cast = _Spelling(Call("cast", (part,), part.type), Operand(part))
    return [
        *(_Spelling(each, Operand(each, written=True)) for each in (*shorter, part) if each.type.kind in _WRITABLE),
        cast,
    ]


def _shorter_numbers(literal: Literal) -> list[Literal]:
    """The number with fewer digits: whole, then with as few after the point as keep its value, then with more."""
    text = str(literal)
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
    if not literal.type.is_numeric or not digits.replace(".", "").isdigit():
        return []
    texts = [digits]
    if "." in digits:
        plain = digits.rstrip("0").rstrip(".")
        texts = [plain] if "." in plain else [plain, f"{plain}.0"]
        zeros = range(1, len(digits) - len(plain) + 1) if literal.type.kind is Kind.DECIMAL else ()
        texts += [texts[-1] + "0" * count for count in zeros]
    return [negative(number(each)) if sign else number(each) for each in texts]


def _reads_as(call: Call, operands: list[Operand]) -> bool:
    try:
        if call.function.startswith(USER_PREFIX):
            return tuple(user_argument(operand.expression) for operand in operands) == call.arguments
        bound = [operand.expression for operand in settled(call.function, operands)]
        signature = resolve(call.function, tuple(part.type for part in bound))
        if signature is None or (signature.function or call.function, signature.result) != (call.function, call.type):
            return False
        return tuple(map(coerce, bound, signature.arguments)) == call.arguments
    except QueryError:
        return False
