"""Segments: immutable, columnar, time-ordered blocks of rows of one store.

        time_us   ascending event times
        clocks    one ascending row number a row-windowed stream (row windows are windows on another clock)
        columns   what results deliver, as Arrow arrays
        operands  what predicates read, one a leaf expression; a leaf that is a delivered column shares its memory
        indexes   built on first use, or loaded where they are stored, and kept with the segment

A segment of an inner node of a tree of joins has the newest times and counts of its rows' members, and besides:

        dies_us, dies_clocks    the last time, and counts of row windows, at which a row can still be part of a result

Order: a segment is made once, sorted, and never changed. Merging makes a new one from several; rows that can no
longer take part in a result are left behind then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from windrow.query.expression import Column, Expression, Literal
from windrow.query.types import VARCHAR
from windrow.store.operand import Array, Form, Operand, from_arrow, tokens_operand

Index = TypeVar("Index")


def typed_text(expression: Expression) -> str:
    """An expression with the types of all its parts: two with the same text compute the same.

    >>> from windrow.query.types import DOUBLE
    >>> typed_text(Column("a", "x", DOUBLE))
    'a.x DOUBLE'
    """
    if isinstance(expression, Column | Literal):
        return f"{expression} {expression.type}"
    return f"{expression.function}({', '.join(map(typed_text, expression.arguments))}) {expression.type}"


@dataclass(frozen=True)
class Layout:
    """What the segments of a stream hold: the columns results deliver and the leaf expressions predicates read."""

    columns: tuple[Column, ...]
    operands: tuple[Expression, ...]

    @cached_property
    def column_texts(self) -> tuple[str, ...]:
        """The columns as typed text: their names in files and messages."""
        return tuple(map(typed_text, self.columns))

    @cached_property
    def operand_texts(self) -> tuple[str, ...]:
        """The leaves as typed text."""
        return tuple(map(typed_text, self.operands))

    def slot(self, expression: Expression) -> int | None:
        """The place of a leaf among the operands."""
        return self.operands.index(expression) if expression in self.operands else None


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Rows in order of event time; `level` counts the merges behind it, `stored` loads indexes that lie in files."""

    layout: Layout
    time_us: Array
    clocks: Mapping[str, Array]
    columns: tuple[pa.Array, ...]
    operands: tuple[Operand, ...]
    level: int = 0
    indexes: dict[object, Any] = field(default_factory=dict)
    stored: Mapping[object, Callable[[], Any]] = field(default_factory=dict)
    dies_us: Array | None = None
    dies_clocks: Mapping[str, Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.time_us)

    @property
    def first_us(self) -> int:
        return int(self.time_us[0])

    @property
    def last_us(self) -> int:
        return int(self.time_us[-1])

    @property
    def nbytes(self) -> int:
        """Bytes of rows, without indexes; shared memory counts once."""
        shared = {id(operand.arrow) for operand in self.operands if operand.arrow is not None}
        operands = sum(operand.nbytes for operand in self.operands)
        columns = sum(column.nbytes for column in self.columns if id(column) not in shared)
        clocks = sum(clock.nbytes for held in (self.clocks, self.dies_clocks) for clock in held.values())
        dies = 0 if self.dies_us is None else self.dies_us.nbytes
        return int(self.time_us.nbytes + dies + clocks + operands + columns)

    def index(self, key: object, build: Callable[[], Index]) -> Index:
        """The index known under `key`: loaded or built on first use."""
        if key not in self.indexes:
            self.indexes[key] = self.stored.get(key, build)()
        found: Index = self.indexes[key]
        return found


def merge(segments: Sequence[Segment], keep_from_us: int) -> Segment:
    """One segment with the rows of all, by time (equal times in the order of `segments`), older rows left out."""
    time_us = np.concatenate([segment.time_us for segment in segments])
    order = _order(segments, time_us)
    if order is not None:
        time_us = time_us[order]
    first = int(np.searchsorted(time_us, keep_from_us))
    if first:
        order = np.arange(first, len(time_us)) if order is None else order[first:]
        time_us = time_us[first:].copy()
    layout = segments[0].layout
    columns = tuple(_merged([segment.columns[k] for segment in segments], order) for k in range(len(layout.columns)))
    by_column = dict(zip(layout.columns, columns, strict=True))
    operands = []
    for slot, expression in enumerate(layout.operands):
        parts = [segment.operands[slot] for segment in segments]
        shared = by_column.get(expression) if isinstance(expression, Column) else None
        operands.append(_merged_operand(parts, order) if shared is None else from_arrow(shared, expression.type))
    clocks = {name: _taken([segment.clocks[name] for segment in segments], order) for name in segments[0].clocks}
    level = max(segment.level for segment in segments) + 1
    ends = [segment.dies_us for segment in segments if segment.dies_us is not None]
    dies_us = _taken(ends, order) if ends else None
    dies = {name: _taken([each.dies_clocks[name] for each in segments], order) for name in segments[0].dies_clocks}
    return Segment(layout, time_us, clocks, columns, tuple(operands), level, dies_us=dies_us, dies_clocks=dies)


def _order(segments: Sequence[Segment], time_us: Array) -> Array | None:
    """The rows of several segments by time, equal times in the order of the segments; None where they are so already.
    Rows of nodes whose time is the same go by their counts, which grow together.
    """
    clocks = list(segments[0].clocks)
    if segments[0].dies_us is not None and clocks:
        counts = [np.concatenate([segment.clocks[name] for segment in segments]) for name in clocks]
        return np.lexsort((np.sum(counts, axis=0), time_us))
    return np.argsort(time_us, kind="stable") if (time_us[1:] < time_us[:-1]).any() else None


def pick(segment: Segment, rows: Array) -> Segment:
    """Some rows of a segment, in their order, in memory of their own."""
    layout = segment.layout
    columns = tuple(_merged([column], rows) for column in segment.columns)
    by_column = dict(zip(layout.columns, columns, strict=True))
    operands = []
    for expression, operand in zip(layout.operands, segment.operands, strict=True):
        shared = by_column.get(expression) if isinstance(expression, Column) else None
        operands.append(_merged_operand([operand], rows) if shared is None else from_arrow(shared, expression.type))
    clocks = {name: clock[rows] for name, clock in segment.clocks.items()}
    dies_us = None if segment.dies_us is None else segment.dies_us[rows]
    dies = {name: clock[rows] for name, clock in segment.dies_clocks.items()}
    time_us, level = segment.time_us[rows], segment.level
    return Segment(layout, time_us, clocks, columns, tuple(operands), level, dies_us=dies_us, dies_clocks=dies)


def bytes_of_indexes(segment: Segment) -> int:
    """What the indexes built so far take besides the rows."""
    return sum(_bytes_in(index) for index in segment.indexes.values())


def _bytes_in(index: Any) -> int:
    if isinstance(index, np.ndarray):
        return int(index.nbytes)
    return sum(map(_bytes_in, index)) if isinstance(index, tuple) else 0


def _merged(arrays: Sequence[pa.Array], order: Array | None) -> pa.Array:
    joined = pa.concat_arrays(arrays)
    return joined if order is None else joined.take(pa.array(order))


def _merged_operand(parts: Sequence[Operand], order: Array | None) -> Operand:
    flags = [part.valid for part in parts]
    valid = None
    if any(flag is not None for flag in flags):
        valid = _taken([np.ones(len(p), np.bool_) if p.valid is None else p.valid for p in parts], order)
    if parts[0].form in (Form.TEXT, Form.TOKENS):
        arrow = _merged([part.arrow for part in parts], order)
        if parts[0].form is Form.TOKENS:
            return tokens_operand(arrow, valid)
        return from_arrow(arrow, VARCHAR)
    return Operand(parts[0].form, (_taken([part.values for part in parts], order),), valid)


def _taken(arrays: Sequence[Array], order: Array | None) -> Array:
    joined = np.concatenate(arrays)
    return joined if order is None else joined[order]
