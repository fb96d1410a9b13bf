"""Operands: literals as written take the type of what they stand beside, before any rule of types is asked.

    n + 1      n TINYINT: 1 fits, so it is a TINYINT       n + 300     300 does not, so it stays an INTEGER
    d = '2020-01-01'   d DATE: the text is a DATE          f < 0.3     a DECIMAL; the rule makes it a FLOAT

>>> from windrow.query.expression import Column
>>> from windrow.query.types import TINYINT
>>> n = Operand(Column("a", "n", TINYINT))
>>> [str(adapted([n, Operand(literals.integer(value), written=True)], texts=True)[1].type) for value in (1, 300)]
['TINYINT', 'INTEGER']
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from windrow.query import literals
from windrow.query.casts import coerce
from windrow.query.coercion import WIDEST_64_BIT_DECIMAL, common_type
from windrow.query.expression import Expression, Literal
from windrow.query.types import DOUBLE, NULL, VARCHAR, Kind, Type

WHOLE_BOUND: dict[str, Callable[[Fraction], int]] = {
    "less": math.ceil, "less_equal": math.floor, "greater": math.floor, "greater_equal": math.ceil,
}  # fmt: skip
"""Which whole number bounds whole numbers as a fraction on the right of each comparison does."""

_ARITHMETIC = frozenset(("add", "subtract", "multiply", "divide", "integer_divide", "modulo"))
_COMMON = frozenset(("equal", "not_equal", "greatest", "least", "coalesce"))

MIRRORED = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}


@dataclass(frozen=True, slots=True)
class Operand:
    """A bound operand, and whether it is a literal as written, whose type is still open."""

    expression: Expression
    written: bool = False

    @property
    def type(self) -> Type:
        return self.expression.type


def settled(name: str, operands: Sequence[Operand]) -> list[Operand]:
    """The operands of a function with the types of its literals settled, where the function lets its operands meet."""
    if name == "case":
        values = iter(adapted([*operands[1::2], operands[-1]], texts=True))
        last = len(operands) - 1
        return [next(values) if at % 2 or at == last else operand for at, operand in enumerate(operands)]
    if name in _ARITHMETIC:
        return adapted(operands, texts=False)
    if name in WHOLE_BOUND:
        return with_whole_bound(name, adapted(operands, texts=True))
    return adapted(operands, texts=True) if name in _COMMON else list(operands)


def user_argument(expression: Expression) -> Expression:
    """An argument of a user's function: values as they are, decimals (and what has no type) as DOUBLE."""
    return coerce(expression, DOUBLE) if expression.type.kind in (Kind.DECIMAL, Kind.NULL) else expression


def adapted(operands: Sequence[Operand], *, texts: bool) -> list[Operand]:
    """The operands, with whole numbers in the other operands' integer type where they fit, and texts in their type if
    `texts`."""
    fixed = common_types([operand.type for operand in operands if not _is_open(operand)])
    if texts:
        numbers = [operand.type for operand in operands if operand.written and operand.type not in (VARCHAR, NULL)]
        beside = fixed if fixed is not None else common_types(numbers)
        if beside is not None and beside != NULL:
            operands = [_text_as(operand, beside) for operand in operands]
    if fixed is not None and fixed.is_integer:
        operands = [_whole_as(operand, fixed) for operand in operands]
    return list(operands)


def common_types(types: Sequence[Type]) -> Type | None:
    """The type all of these compare in; None if there is none."""
    common: Type | None = types[0] if types else None
    for type_ in types[1:]:
        common = common_type(common, type_, booleans_as_numbers=True) if common is not None else None
    return common


def with_whole_bound(name: str, operands: list[Operand]) -> list[Operand]:
    """In a comparison of a wide integer with a decimal literal, the whole number that bounds it alike.

    `id > 0.5` would otherwise be computed in a DECIMAL(20,1), which a large `id` does not fit in 64 bits.
    """
    for at, comparison in ((1, name), (0, MIRRORED[name])):
        number, other = operands[at], operands[1 - at]
        literal = number.expression
        if not (
            number.written and isinstance(literal, Literal) and isinstance(literal.value, int) and other.type.is_integer
        ):
            continue
        both = common_type(other.type, number.type)
        if number.type.kind is Kind.DECIMAL and both is not None and both.width > WIDEST_64_BIT_DECIMAL:
            whole = WHOLE_BOUND[comparison](Fraction(literal.value, 10**number.type.scale))
            replaced = list(operands)
            replaced[at] = Operand(literals.integer(whole), written=True)
            return adapted(replaced, texts=False)
    return operands


def _is_open(operand: Operand) -> bool:
    return operand.written and (operand.type.is_integer or operand.type in (VARCHAR, NULL))


def _text_as(operand: Operand, type_: Type) -> Operand:
    if (
        not (operand.written and operand.type == VARCHAR and isinstance(operand.expression, Literal))
        or type_.kind is Kind.VECTOR
    ):
        return operand
    return Operand(literals.convert(operand.expression, type_))


def _whole_as(operand: Operand, type_: Type) -> Operand:
    literal = operand.expression
    if not (
        operand.written and operand.type.is_integer and isinstance(literal, Literal) and isinstance(literal.value, int)
    ):
        return operand
    return Operand(Literal(literal.value, type_)) if literals.fits(literal.value, type_) else operand
