"""What a predicate offers to a search: leaves, implied filters, and the searches a conjunct can lead.

A conjunct that spans streams is evaluated on pairs. Seen from the stream that is being probed (the *target*), it may
also say where its matches lie:

    a.k = b.k + 1                     Equality(key=a.k, value=b.k + 1)                         a hash index
    abs(a.x - b.x) <= 0.3             Range(key=a.x, low=[+b.x -0.3], high=[+b.x +0.3])        a sorted index
    a.ts >= b.ts - INTERVAL 5 s       Range(key=a.ts, low=[+b.ts -5 s], high=None)             the time order itself
    cosine(a.v, b.v) >= 0.9           Similarity(cosine, key=a.v, value=b.v, 0.9, at least)    a matrix product

A search proposes, the conjunct decides, so a search may return too much but never too little: a bound is a sum of
signed terms over the other streams, and `slack` counts the roundings that have to be allowed for on top (see
`windrow.probe.bounds`).
"""

from __future__ import annotations

import typing
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from windrow.query.expression import Call, Column, Expression, Literal, streams_of, walk
from windrow.query.functions import is_strict
from windrow.query.types import OTHER, Kind


@dataclass(frozen=True, slots=True)
class Term:
    """A signed summand of a bound: `sign` is +1 or -1."""

    sign: int
    expression: Expression


@dataclass(frozen=True, slots=True)
class Bound:
    """The sum of `terms`, rounded `slack` times, with 32-bit roundings where `single` is set."""

    terms: tuple[Term, ...]
    slack: int
    single: bool


@dataclass(frozen=True, slots=True)
class Equality:
    """Matches have `key` (of the target) equal to `value` (of the others); `exact`: equal keys need no check."""

    key: Expression
    value: Expression
    exact: bool


@dataclass(frozen=True, slots=True)
class Range:
    """Matches have `key` (of the target) between `low` and `high`; None is open."""

    key: Expression
    low: Bound | None
    high: Bound | None


Measure: TypeAlias = typing.Literal["cosine", "dot", "l2"]


@dataclass(frozen=True, slots=True)
class Similarity:
    """Matches have `function(key, value)` at least (or at most) `threshold`."""

    function: Measure
    key: Expression
    value: Expression
    threshold: Expression
    at_least: bool


Search = Equality | Range | Similarity

FLIPPED = {
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
    "equal": "equal",
}
TOKENS = "tokens"
SIMILARITIES: dict[str, Measure] = {"cosine": "cosine", "dot": "dot", "l2": "l2"}


def searches_of(conjunct: Expression, target: str) -> tuple[Search, ...]:
    """The searches over `target` a conjunct can lead, once all its other streams are known."""
    if not isinstance(conjunct, Call) or conjunct.function not in FLIPPED:
        return ()
    left, right = conjunct.arguments
    found: list[Search] = []
    for subject, operator, other in ((left, conjunct.function, right), (right, FLIPPED[conjunct.function], left)):
        if target not in streams_of(subject) or target in streams_of(other):
            continue
        found.extend(_search(subject, operator, other, target))
    return tuple(found)


def searches_into(conjunct: Expression, streams: frozenset[str]) -> tuple[Search, ...]:
    """The searches a conjunct can lead over any of several streams whose rows are stored together, once all others are
    known.
    """
    found = (search for target in sorted(streams) for search in searches_of(conjunct, target))
    return tuple(search for search in found if not _sought(search) & streams)


def _sought(search: Search) -> frozenset[str]:
    """The streams whose rows say what is searched for."""
    if isinstance(search, Range):
        bounds = (bound for bound in (search.low, search.high) if bound is not None)
        return frozenset(stream for bound in bounds for stream in _streams(bound.terms))
    rest = (search.value,) if isinstance(search, Equality) else (search.value, search.threshold)
    return frozenset(stream for expression in rest for stream in streams_of(expression))


def _search(subject: Expression, operator: str, other: Expression, target: str) -> Iterable[Search]:
    if streams_of(subject) == {target} and operator == "equal" and streams_of(other):
        yield Equality(subject, other, exact=_is_word(subject))
    if isinstance(subject, Call) and subject.function in SIMILARITIES and operator != "equal":
        yield from _similarity(subject, operator, other, target)
    linear = _linear(_unscaled(subject), target)
    if linear is None or not streams_of(other) | _streams(linear.terms):
        return
    symmetric = linear.symmetric
    if symmetric and operator not in ("less", "less_equal", "equal"):
        return
    single = any(node.type.kind is Kind.FLOAT for node in (*walk(subject), *walk(other)))
    slack = 4 + sum(1 for _ in walk(subject)) + sum(1 for _ in walk(other))
    rest = tuple(Term(-linear.sign * term.sign, term.expression) for term in linear.terms)
    upper = Bound((*rest, Term(linear.sign, other)), slack, single)
    lower = Bound((*rest, Term(-linear.sign, other)), slack, single)
    below = operator in ("less", "less_equal") if linear.sign > 0 else operator in ("greater", "greater_equal")
    if symmetric:
        low, high = (lower, upper) if linear.sign > 0 else (upper, lower)
        found = Range(linear.key, low, high)
    elif operator == "equal":
        found = Range(linear.key, upper, upper)
    else:
        found = Range(linear.key, None if below else upper, upper if below else None)
    yield found
    yield from _unshifted(found)


def _unshifted(found: Range) -> Iterable[Range]:
    """A range of `time + constant` as one of the time itself, so that it can narrow the rows by their order."""
    key = found.key
    if isinstance(key, Call) and key.function in ("add", "subtract") and key.type.is_time:
        time, shift = key.arguments
        if isinstance(time, Column) and time.type == key.type and isinstance(shift, Literal):
            away = Term(-1 if key.function == "add" else 1, shift)
            low, high = (None if b is None else replace(b, terms=(*b.terms, away)) for b in (found.low, found.high))
            yield Range(time, low, high)


def _similarity(subject: Call, operator: str, other: Expression, target: str) -> Iterable[Search]:
    first, second = subject.arguments
    key, value = (first, second) if streams_of(first) == {target} else (second, first)
    if streams_of(key) == {target} and target not in streams_of(value) and streams_of(value):
        yield Similarity(
            SIMILARITIES[subject.function], key, value, other, at_least=operator in ("greater", "greater_equal")
        )


@dataclass(frozen=True, slots=True)
class _Linear:
    """sign * key + terms, the form a range can be read off; `symmetric`: its absolute value is what is compared."""

    sign: int
    key: Expression
    terms: tuple[Term, ...]
    symmetric: bool = False

    def plus(self, sign: int, other: Expression) -> _Linear:
        return replace(self, terms=(*self.terms, Term(sign, other)))

    def negated(self) -> _Linear:
        return _Linear(-self.sign, self.key, tuple(Term(-term.sign, term.expression) for term in self.terms))


def _linear(expression: Expression, target: str) -> _Linear | None:
    """The expression as one key of the target plus signed terms of other streams; below an `abs` only at its top."""
    if isinstance(expression, Call) and expression.function == "abs" and streams_of(expression) != {target}:
        inner = _sum(expression.arguments[0], target)
        return None if inner is None else replace(inner, symmetric=True)
    return _sum(expression, target)


def _sum(expression: Expression, target: str) -> _Linear | None:
    if streams_of(expression) == {target}:
        return _Linear(1, expression, ()) if _is_ordered(expression) else None
    expression = _unscaled(expression)
    if not isinstance(expression, Call):
        return None
    if expression.function == "negate":
        inner = _sum(expression.arguments[0], target)
        return None if inner is None else inner.negated()
    if expression.function not in ("add", "subtract"):
        return None
    left, right = expression.arguments
    right_sign = 1 if expression.function == "add" else -1
    if target in streams_of(left) and target not in streams_of(right):
        inner = _sum(left, target)
        return None if inner is None else inner.plus(right_sign, right)
    if target in streams_of(right) and target not in streams_of(left):
        inner = _sum(right, target)
        return None if inner is None else (inner if right_sign > 0 else inner.negated()).plus(1, left)
    return None


def _unscaled(expression: Expression) -> Expression:
    """The expression without conversions that keep its value up to rounding, so that a difference under a cast is still
    a range.
    """
    while isinstance(expression, Call) and expression.function == "cast":
        inner = expression.arguments[0]
        widening = inner.type.is_numeric and (expression.type.is_float or _digits_kept(inner, expression))
        if not widening or len(streams_of(inner)) < 2:
            break
        expression = inner
    return expression


def _digits_kept(inner: Expression, outer: Expression) -> bool:
    if outer.type.kind is Kind.DECIMAL:
        return not inner.type.is_float and outer.type.scale >= inner.type.scale
    return outer.type.is_integer and inner.type.is_integer


def _is_ordered(expression: Expression) -> bool:
    return expression.type.is_numeric or expression.type.is_time or expression.type.kind in (Kind.DATE, Kind.INTERVAL)


def _is_word(expression: Expression) -> bool:
    """Whether equal machine words are equal values, so that a hash index on the word needs no check."""
    return not (expression.type.is_float or expression.type.kind in (Kind.VARCHAR, Kind.VECTOR))


def _streams(terms: tuple[Term, ...]) -> frozenset[str]:
    return frozenset(stream for term in terms for stream in streams_of(term.expression))


def rejects_null(conjunct: Expression, leaf: Expression) -> bool:
    """Whether the conjunct cannot be true where `leaf` is NULL, so that such rows need not enter a window."""
    if isinstance(conjunct, Call) and conjunct.function == "and":
        return any(rejects_null(part, leaf) for part in conjunct.arguments)
    if isinstance(conjunct, Call) and conjunct.function == "or":
        return all(rejects_null(part, leaf) for part in conjunct.arguments)
    return _null_with(conjunct, leaf)


def _null_with(expression: Expression, leaf: Expression) -> bool:
    if expression == leaf:
        return True
    if isinstance(expression, (Column, Literal)) or not (
        expression.function == TOKENS or is_strict(expression.function)
    ):
        return False
    return any(_null_with(argument, leaf) for argument in expression.arguments)


def leaves_of(expression: Expression) -> tuple[Expression, ...]:
    """The largest parts that read one stream only: computed once a row, not once a pair."""
    return tuple(dict.fromkeys(_leaves(expression)))


def _leaves(expression: Expression) -> Iterable[Expression]:
    if isinstance(expression, Literal):
        return
    if len(streams_of(expression)) == 1:
        yield expression
    elif isinstance(expression, Call):
        for argument in expression.arguments:
            yield from _leaves(argument)


def with_token_sets(expression: Expression) -> Expression:
    """The expression with the texts of `jaccard` as token sets, so that a text is cut into tokens once a row, not once
    a pair.
    """
    if not isinstance(expression, Call):
        return expression
    arguments = tuple(with_token_sets(argument) for argument in expression.arguments)
    if expression.function == "jaccard":
        arguments = tuple(Call(TOKENS, (argument,), OTHER) for argument in arguments)
    return replace(expression, arguments=arguments)
