"""Bands: several ranges over one key put together, and how wide they are where that can be read off the query.

    b.x BETWEEN a.x - 1 AND a.x + 2         two ranges over b.x
    from the side of b                      low [+a.x -1]   high [+a.x +2]           3 wide
    from the side of a                      keys a.x - 1 and a.x + 2: the same but for a constant

A key that differs from another by a constant alone holds the same rows in the same order, so a range over one is a
range over the other. What is added to its bounds is rounded once more, hence a larger `slack`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from windrow.query.expression import Call, Expression, Literal, walk
from windrow.query.predicate import Bound, Range, Term
from windrow.query.types import BITS, DOUBLE, SIGNED, Kind, Type

Constants = tuple[Term, ...]


def same_words(expression: Expression) -> Expression:
    """The expression without conversions that keep the machine word of every value."""
    while isinstance(expression, Call) and expression.function == "cast":
        inner = expression.arguments[0]
        if not _keeps_words(inner.type, expression.type):
            break
        expression = inner
    return expression


def ranges_over(key: Expression, ranges: Iterable[Range]) -> list[Range]:
    """Those of the ranges that say something about `key`, put as ranges over it."""
    base, shift = _base(key)
    found = []
    for each in ranges:
        other, away = _base(each.key)
        if other == base:
            constants = () if away == shift else (*_negated(away), *shift)
            low, high = (None if bound is None else _moved(bound, key, constants) for bound in (each.low, each.high))
            found.append(Range(key, low, high))
    return found


def width_of(ranges: Sequence[Range]) -> float | None:
    """The width of the band that ranges over one key leave, in words of the key; None where it is not constant."""
    lows = [linear(each.low.terms) for each in ranges if each.low is not None]
    highs = [linear(each.high.terms) for each in ranges if each.high is not None]
    widths = [high[1] - low[1] for low in lows for high in highs if low[0] == high[0]]
    return max(0.0, min(widths)) * 10.0 ** ranges[0].key.type.scale if widths else None


def linear(terms: Iterable[Term]) -> tuple[Counter[Expression], float]:
    """A sum as its variable parts, each with its factor, and a constant."""
    factors: Counter[Expression] = Counter()
    constant = 0.0
    waiting = list(terms)
    while waiting:
        term = waiting.pop()
        node = same_words(term.expression)
        if isinstance(node, Literal):
            constant += term.sign * _real(node)
        elif isinstance(node, Call) and node.function in ("add", "subtract"):
            left, right = node.arguments
            sign = term.sign if node.function == "add" else -term.sign
            waiting += (Term(term.sign, left), Term(sign, right))
        elif isinstance(node, Call) and node.function == "negate":
            waiting.append(Term(-term.sign, node.arguments[0]))
        else:
            factors[node] += term.sign
    return Counter({part: factor for part, factor in factors.items() if factor}), constant


def _base(key: Expression) -> tuple[Expression, Constants]:
    """A key as what varies and the constants added to it."""
    constants: list[Term] = []
    node = same_words(key)
    while isinstance(node, Call) and node.function in ("add", "subtract"):
        left, right = node.arguments
        if node.function == "add" and isinstance(left, Literal):
            left, right = right, left
        if not isinstance(right, Literal) or right.value is None or not _same_unit(left.type, node.type):
            break
        constants.append(Term(1 if node.function == "add" else -1, right))
        node = same_words(left)
    return node, tuple(constants)


def _moved(bound: Bound, key: Expression, constants: Constants) -> Bound:
    single = bound.single or any(node.type.kind is Kind.FLOAT for node in walk(key))
    return replace(bound, terms=(*bound.terms, *constants), slack=bound.slack + 2 * len(constants), single=single)


def _negated(constants: Constants) -> Constants:
    return tuple(Term(-term.sign, term.expression) for term in constants)


def _same_unit(before: Type, after: Type) -> bool:
    if before.is_numeric:
        return before.is_float == after.is_float and before.scale == after.scale
    return before == after


def _real(literal: Literal) -> float:
    if not isinstance(literal.value, (bool, int, float)):
        return float("nan")
    return literal.value / 10.0**literal.type.scale


def _keeps_words(before: Type, after: Type) -> bool:
    if before.is_integer and after.is_integer:
        if (before.kind in SIGNED) == (after.kind in SIGNED):
            return BITS[before.kind] <= BITS[after.kind]
        return after.kind in SIGNED and BITS[before.kind] < BITS[after.kind]
    if before.kind is Kind.DECIMAL and after.kind is Kind.DECIMAL:
        return before.scale == after.scale and before.width <= after.width
    return before.is_float and after == DOUBLE
