"""Constants in conditions: what is known before a row is read is decided while the query is bound.

Only what matters to a join is folded: a comparison of two literals, a NULL operand of a strict function, TRUE and FALSE
inside AND, OR and NOT. So `1 = 1` disappears from a predicate and `x = NULL` can be seen to select nothing.

>>> from windrow.query.literals import FALSE, TRUE, integer
>>> fold(Call("less", (integer(1), integer(2)), BOOLEAN)) == TRUE
True
>>> fold(Call("and", (TRUE, FALSE), BOOLEAN)) == FALSE
True
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from windrow.query.expression import Call, Expression, Literal
from windrow.query.functions import is_strict
from windrow.query.literals import FALSE, TRUE
from windrow.query.types import BOOLEAN

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "equal": operator.eq, "not_equal": operator.ne, "less": operator.lt, "less_equal": operator.le,
    "greater": operator.gt, "greater_equal": operator.ge,
}  # fmt: skip


def fold(call: Call) -> Expression:
    """The call, or the literal it always is, or the one argument that decides it."""
    if call.function in ("and", "or"):
        return _connective(call)
    values = [argument.value for argument in call.arguments if isinstance(argument, Literal)]
    if not values or call.function == "case":
        return call
    if None in values and is_strict(call.function):
        return Literal(None, call.type)
    if len(values) < len(call.arguments):
        return call
    if call.function == "is_null":
        return TRUE if values[0] is None else FALSE
    if call.function == "not":
        return FALSE if values[0] else TRUE
    if call.function in _COMPARISONS:
        left, right = (value.encode() if isinstance(value, str) else value for value in values)
        return TRUE if _COMPARISONS[call.function](left, right) else FALSE
    return call


def _connective(call: Call) -> Expression:
    """AND without its TRUEs and OR without its FALSEs, those inside it flattened, or the one literal that decides."""
    neutral, decisive = (TRUE, FALSE) if call.function == "and" else (FALSE, TRUE)
    if decisive in call.arguments:
        return decisive
    kept: list[Expression] = []
    for argument in call.arguments:
        inside = (
            argument.arguments if isinstance(argument, Call) and argument.function == call.function else (argument,)
        )
        kept += (part for part in inside if part != neutral)
    if not kept:
        return neutral
    if all(isinstance(part, Literal) for part in kept):
        return Literal(None, BOOLEAN)  # what is neither neutral nor decisive is NULL
    return kept[0] if len(kept) == 1 else Call(call.function, tuple(kept), BOOLEAN)
