"""Evaluation row by row: one expression over a frame of rows gives one operand.

Used wherever an expression is computed once a row: the leaves of a stream on entry, search values of partial results,
the SELECT list, and those conjuncts that call functions over arrays. The scalar semantics are those of the pair
kernels, because it is the same generated code; what works on whole texts is Arrow's.

    node                                       how
    what the frame already has                 taken
    arithmetic, logic, comparisons, …          one compiled kernel for the whole connected part of the tree
    LIKE, LOWER, LENGTH, text CASE, …          Arrow compute
    levenshtein, jaro_winkler                  rapidfuzz over the rows
    the user's functions                       `windrow.probe.opaque`
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rapidfuzz import process
from rapidfuzz.distance import JaroWinkler, Levenshtein

from windrow.errors import QueryError
from windrow.probe.compile import Source, compile_rows
from windrow.probe.opaque import call_user_function
from windrow.probe.rules import is_compiled
from windrow.probe.text import token_sets
from windrow.query import types
from windrow.query.expression import Call, Expression, Literal
from windrow.query.spec import UserFunction
from windrow.query.types import BOOLEAN, Kind
from windrow.store.operand import NUMPY, Array, Form, Operand, from_arrow, to_arrow, tokens_operand

Functions = Mapping[str, UserFunction]


class Frame(Protocol):
    """Rows to evaluate over: how many, and the operands at hand."""

    def __len__(self) -> int: ...

    def find(self, expression: Expression) -> Operand | None:
        """The operand of an expression the frame already has, else None."""


class Evaluator:
    """Evaluates expressions; counts overflows and divisions by zero in `faults`. An `interpreted` one has no machine
    code made, which suits a few rows.
    """

    def __init__(self, functions: Sequence[UserFunction] = (), interpreted: bool = False) -> None:
        self._interpreted = interpreted
        self.functions: Functions = {function.name: function for function in functions}
        self.faults = np.zeros(1, np.int64)

    def evaluate(self, expression: Expression, frame: Frame) -> Operand:
        """The values of `expression` over the rows of `frame`."""
        found = frame.find(expression)
        if found is not None:
            return found
        if isinstance(expression, Literal):
            return constant(expression, len(frame))
        if not isinstance(expression, Call):
            raise QueryError(
                f"column {expression} is not part of these rows", hint="this is a defect of the plan, please report it"
            )
        if is_compiled(expression):
            return self._compiled(expression, frame)
        return self._whole(expression, frame)

    def is_true(self, expression: Expression, frame: Frame) -> Array:
        """For which rows a condition is true (not NULL, not false)."""
        operand = self.evaluate(expression, frame)
        return operand.values if operand.valid is None else operand.values & operand.valid

    def _compiled(self, expression: Call, frame: Frame) -> Operand:
        leaves: dict[Expression, Operand] = {}
        self._collect(expression, frame, leaves)
        sources = {leaf: Source("row", operand.form, _may_be_null(leaf, operand)) for leaf, operand in leaves.items()}
        kernel = compile_rows(expression, tuple(sources.items()))
        values = np.empty(len(frame), NUMPY[expression.type.kind])
        valid = np.empty(len(frame), np.bool_)
        run = kernel.interpret if self._interpreted else kernel
        run(kernel.inputs(lambda _, leaf: leaves[leaf]), values, valid, self.faults)
        return Operand(Form.NUMBER, (values,), None if expression.type.is_float or valid.all() else valid)

    def _collect(self, node: Expression, frame: Frame, leaves: dict[Expression, Operand]) -> None:
        if isinstance(node, Literal) or node in leaves:
            return
        found = frame.find(node)
        if found is None and isinstance(node, Call) and is_compiled(node):
            for argument in node.arguments:
                self._collect(argument, frame, leaves)
            return
        leaves[node] = found if found is not None else self.evaluate(node, frame)

    def _whole(self, expression: Call, frame: Frame) -> Operand:
        operands = [self.evaluate(argument, frame) for argument in expression.arguments]
        if expression.function.startswith("udf:"):
            return call_user_function(self.functions[expression.function[4:]], expression, operands, len(frame))
        return _ARRAY_FUNCTIONS[expression.function](expression, operands)


def constant(literal: Literal, count: int) -> Operand:
    """A literal, once a row."""
    if literal.type.kind is Kind.VARCHAR:
        return from_arrow(pa.repeat(pa.scalar(literal.value, pa.string()), count), literal.type)
    missing = literal.value is None
    word = (np.nan if literal.type.is_float else 0) if literal.value is None else literal.value
    values = np.full(count, word, NUMPY[literal.type.kind])
    return Operand(Form.NUMBER, (values,), np.zeros(count, np.bool_) if missing and not literal.type.is_float else None)


def _may_be_null(leaf: Expression, operand: Operand) -> bool:
    return leaf.type.is_float or operand.valid is not None


def _text(operand: Operand) -> pa.Array:
    if operand.arrow is None:
        raise QueryError("a text is needed", hint="this is a defect of the plan, please report it")
    return operand.arrow


def _pattern(expression: Call, operands: Sequence[Operand]) -> Operand:
    pattern = expression.arguments[1]
    if not isinstance(pattern, Literal):
        raise QueryError(
            f"the pattern of LIKE has to be a constant, not {pattern}",
            place=str(expression),
            hint="write the pattern as 'text%'",
        )
    literal = str(pattern.value).replace(
        "\\", "\\\\"
    )  # in SQL a backslash stands for itself, unless declared otherwise
    matched = pc.match_like(_text(operands[0]), pattern=literal, ignore_case=expression.function == "ilike")
    return from_arrow(matched, BOOLEAN)


def _lower(expression: Call, operands: Sequence[Operand]) -> Operand:
    return from_arrow(pc.utf8_lower(_text(operands[0])), expression.type)


def _upper(expression: Call, operands: Sequence[Operand]) -> Operand:
    return from_arrow(pc.utf8_upper(_text(operands[0])), expression.type)


def _length(expression: Call, operands: Sequence[Operand]) -> Operand:
    return from_arrow(pc.cast(pc.utf8_length(_text(operands[0])), pa.int64()), expression.type)


def _distance(expression: Call, operands: Sequence[Operand]) -> Operand:
    """Edit distances over UTF-8 bytes, as in DuckDB."""
    scorer = Levenshtein.distance if expression.function == "levenshtein" else JaroWinkler.similarity
    left, right = (_text(operand).cast(pa.binary()) for operand in operands)
    valid = np.asarray(pc.and_(left.is_valid(), right.is_valid()))
    values = np.zeros(len(left), NUMPY[expression.type.kind])
    if valid.any():
        chosen = pa.array(valid)
        queries, choices = left.filter(chosen).to_pylist(), right.filter(chosen).to_pylist()
        values[valid] = process.cpdist(queries, choices, scorer=scorer, dtype=values.dtype.type, workers=1)
    if expression.function == "jaro_winkler":  # two empty texts have nothing in common
        values[np.asarray(pc.equal(pc.add(pc.binary_length(left), pc.binary_length(right)), 0).fill_null(False))] = 0.0
    if expression.type.is_float:
        return Operand(Form.NUMBER, (np.where(valid, values, np.nan),))
    return Operand(Form.NUMBER, (values,), None if valid.all() else valid)


def _tokens(_expression: Call, operands: Sequence[Operand]) -> Operand:
    sets = token_sets(_text(operands[0]))
    return tokens_operand(
        pa.LargeListArray.from_arrays(pa.array(sets.offsets), pa.array(sets.tokens)), operands[0].valid
    )


def _text_extreme(expression: Call, operands: Sequence[Operand]) -> Operand:
    """GREATEST and LEAST pass over NULLs."""
    choose = pc.max_element_wise if expression.function == "greatest" else pc.min_element_wise
    return from_arrow(choose(*(_text(operand) for operand in operands), skip_nulls=True), expression.type)


def _text_choice(expression: Call, operands: Sequence[Operand]) -> Operand:
    arrays = [
        to_arrow(operand, argument.type) for operand, argument in zip(operands, expression.arguments, strict=True)
    ]
    if expression.function == "coalesce":
        return from_arrow(pc.coalesce(*arrays), expression.type)
    chosen = arrays[-1]
    for test, value in reversed(list(zip(arrays[:-1:2], arrays[1::2], strict=False))):
        chosen = pc.if_else(pc.fill_null(test, False), value, chosen)
    return from_arrow(chosen.cast(types.to_arrow(expression.type)), expression.type)


def _cast_whole(expression: Call, operands: Sequence[Operand]) -> Operand:
    """Text to another type value by value: what cannot be read is NULL, as with TRY_CAST. Vectors change the width of
    their elements.
    """
    source = to_arrow(operands[0], expression.arguments[0].type)
    target = types.to_arrow(expression.type)
    if expression.type.kind is Kind.VECTOR:
        return from_arrow(source.cast(target), expression.type)
    if expression.type.kind is Kind.VARCHAR:
        return from_arrow(source.cast(pa.string()), expression.type)
    distinct = pc.unique(source)
    read = pa.array([_read(text, target) for text in distinct], target)
    return from_arrow(read.take(pc.index_in(source, distinct)), expression.type)


def _read(text: pa.Scalar, target: pa.DataType) -> object:
    try:
        return text.cast(target).as_py()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


_ARRAY_FUNCTIONS: dict[str, Callable[[Call, Sequence[Operand]], Operand]] = {
    "like": _pattern,
    "ilike": _pattern,
    "lower": _lower,
    "upper": _upper,
    "length": _length,
    "levenshtein": _distance,
    "jaro_winkler": _distance,
    "tokens": _tokens,
    "greatest": _text_extreme,
    "least": _text_extreme,
    "coalesce": _text_choice,
    "case": _text_choice,
    "cast": _cast_whole,
}
