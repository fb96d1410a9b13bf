"""Search values: what a probe row looks for in an index, as machine words.

A range is computed in float64 and widened by all the rounding that the predicate itself may do, so that no row the
predicate accepts lies outside. For a bound that is a sum of terms t, rounded `slack` times:

    margin = slack * unit roundoff * sum(|t|)      (every partial result is below the sum of magnitudes near a match)

What lies in the margin is decided by the predicate, like everything else that is proposed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from windrow.probe import hashed, text
from windrow.probe.evaluate import Evaluator, Frame
from windrow.query.expression import Expression
from windrow.query.predicate import Bound, Range
from windrow.query.types import Kind, Type
from windrow.store.operand import Array, Form, Operand

LARGEST, SMALLEST = 2**63 - 1, -(2**63)
ROUNDOFF = {False: 2.0**-52, True: 2.0**-23}
TINIEST = {False: 5e-324, True: 1.5e-45}
NEAR_OVERFLOW = {False: 2.0**1000, True: 2.0**120}
"""Beyond this a partial sum may be infinite, and then compare as no sum of numbers would: such a bound is left open."""

SURE = 9.2e18
"""A float that fits a word with all its roundings."""


def range_keys(ranges: Sequence[Range], evaluator: Evaluator, frame: Frame) -> tuple[Array, Array]:
    """The closed key range of each probe row: where all the ranges over one key meet. Empty where a term is NULL."""
    key = ranges[0].key.type
    low, high = _open(key, len(frame))
    for part in ranges:
        if part.low is not None:
            low = np.maximum(low, _bound(part.low, -1, key, evaluator, frame))
        if part.high is not None:
            high = np.minimum(high, _bound(part.high, +1, key, evaluator, frame))
    return low, high


def key_words(operand: Operand, type_: Type) -> tuple[Array, Array | None]:
    """Values as 64-bit keys that are equal where the values are, and which rows have one."""
    if operand.form is Form.TEXT:
        return text.hash_rows(*operand.arrays), operand.valid
    if type_.is_float:
        return hashed.float_bits(operand.values), ~np.isnan(operand.values)
    return operand.values.astype(np.int64, copy=False), operand.valid


def joint_key(expressions: Sequence[Expression], operands: Sequence[Operand]) -> tuple[Array, Array | None]:
    """The keys of several equalities as one; a row lacks a key where one of them is NULL."""
    words, valid = key_words(operands[0], expressions[0].type)
    if len(operands) == 1:
        return words, valid
    parts = [words]
    for expression, operand in zip(expressions[1:], operands[1:], strict=True):
        words, known = key_words(operand, expression.type)
        parts.append(words)
        valid = known if valid is None else valid if known is None else valid & known
    return hashed.combine(parts), valid


def _open(key: Type, count: int) -> tuple[Array, Array]:
    if key.is_float:
        return np.full(count, -np.inf), np.full(count, np.inf)
    return np.full(count, SMALLEST, np.int64), np.full(count, LARGEST, np.int64)


def _bound(bound: Bound, side: int, key: Type, evaluator: Evaluator, frame: Frame) -> Array:
    total, size = np.zeros(len(frame)), np.zeros(len(frame))
    missing = np.zeros(len(frame), np.bool_)
    with np.errstate(all="ignore"):
        for term in bound.terms:
            operand = evaluator.evaluate(term.expression, frame)
            real = _real(operand, term.expression.type)
            total += term.sign * real
            size += np.abs(real)
            missing |= np.isnan(real) if operand.valid is None else ~operand.valid
        value = total + side * bound.slack * (ROUNDOFF[bound.single] * size + TINIEST[bound.single])
    value[~(size < NEAR_OVERFLOW[bound.single])] = side * np.inf
    if key.is_float:
        value[missing] = np.nan
        return value
    words = _to_words(value * 10.0**key.scale if key.kind is Kind.DECIMAL else value, side)
    words[missing] = SMALLEST if side > 0 else LARGEST
    return words


def _real(operand: Operand, type_: Type) -> Array:
    values = operand.values.astype(np.float64)
    return values / 10.0**type_.scale if type_.kind is Kind.DECIMAL else values


def _to_words(value: Array, side: int) -> Array:
    """Integers that lie outside the exact value, kept within 64 bits."""
    with np.errstate(all="ignore"):
        widened = value + side * (1.0 + np.abs(value) * 2.0**-50)
        whole = np.floor(widened) if side < 0 else np.ceil(widened)
    words = np.clip(whole, -SURE, SURE).astype(np.int64)
    return np.where(whole * side > SURE, LARGEST if side > 0 else SMALLEST, words)
