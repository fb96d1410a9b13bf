"""Segments with columns of every kind, and their rows as a multiset."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa

from tests.oracle.duck import plain
from tests.oracle.tables import table_of
from windrow.probe.evaluate import Evaluator
from windrow.query import types
from windrow.query.expression import Call, Column, Expression
from windrow.query.predicate import TOKENS
from windrow.store.operand import Form, Operand, from_arrow, to_arrow
from windrow.store.segment import Layout, Segment

KINDS = {"id": types.BIGINT, "f64": types.DOUBLE, "s": types.VARCHAR, "flag": types.BOOLEAN, "day": types.DATE}
DELIVERED = tuple(Column("a", name, type_) for name, type_ in KINDS.items())
SEARCHED: tuple[Expression, ...] = (
    Column("a", "f64", types.DOUBLE),
    Column("a", "s", types.VARCHAR),
    Column("a", "k", types.VARCHAR),
    Column("a", "i32", types.INTEGER),
    Column("a", "d52", types.decimal(5, 2)),
    Column("a", "v", types.vector(3, 32)),
    Call(TOKENS, (Column("a", "s", types.VARCHAR),), types.OTHER),
)
LAYOUT = Layout(DELIVERED, SEARCHED)


class _Rows:
    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __len__(self) -> int:
        return len(self.table)

    def find(self, expression: Expression) -> Operand | None:
        if not isinstance(expression, Column):
            return None
        return from_arrow(array_of(self.table, expression.name), expression.type)


def array_of(table: pa.Table, name: str) -> pa.Array:
    array = table[name].combine_chunks()
    array = array.chunk(0) if isinstance(array, pa.ChunkedArray) else array
    return array.cast(pa.string()) if pa.types.is_dictionary(array.type) else array


def segment_of(times_us: list[int], seed: int = 0, first_clock: int | None = None) -> Segment:
    """A segment with these event times (ordered) and columns of every kind; `first_clock` numbers its rows."""
    table = table_of(len(times_us), seed)
    frame = _Rows(table)
    arrays = {column.name: array_of(table, column.name) for column in DELIVERED}
    operands = []
    for expression in SEARCHED:
        known = isinstance(expression, Column) and expression in DELIVERED
        shared = (
            from_arrow(arrays[expression.name], expression.type) if known and isinstance(expression, Column) else None
        )
        operands.append(shared or Evaluator().evaluate(expression, frame))
    clocks = {} if first_clock is None else {"a": np.arange(first_clock, first_clock + len(times_us), dtype=np.int64)}
    return Segment(LAYOUT, np.array(times_us, np.int64), clocks, tuple(arrays.values()), tuple(operands))


def values_of(operand: Operand, expression: Expression) -> list[Any]:
    """The values of an operand as Python values."""
    if operand.form is Form.TOKENS:
        known = [True] * len(operand) if operand.valid is None else operand.valid.tolist()
        offsets, tokens = operand.arrays
        spans = zip(offsets[:-1].tolist(), offsets[1:].tolist(), known, strict=True)
        return [tuple(tokens[start:stop].tolist()) if here else None for start, stop, here in spans]
    return [repr(value) for value in plain(to_arrow(operand, expression.type))]


def rows_of(*segments: Segment) -> Counter[tuple[Any, ...]]:
    """All there is of each row: event time, clock, columns, operands."""
    found: Counter[tuple[Any, ...]] = Counter()
    for segment in segments:
        parts: list[list[Any]] = [segment.time_us.tolist()]
        parts += [clock.tolist() for clock in segment.clocks.values()]
        parts += [[repr(value) for value in plain(column)] for column in segment.columns]
        pairs = zip(segment.operands, segment.layout.operands, strict=True)
        parts += [values_of(operand, expression) for operand, expression in pairs]
        found.update(zip(*parts, strict=True))
    return found
