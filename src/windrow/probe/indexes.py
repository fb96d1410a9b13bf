"""Indexes of stored rows: which there are, how they are built, and their arrays, which can be written and mapped.

    ("sorted", (leaf,))         rows in the order of a leaf            windrow.probe.sorted
    ("hashed", (leaf, …))       rows in buckets by one or more leaves  windrow.probe.hashed

A segment holds its indexes by these keys. One that lies in a file is loaded when it is asked for, any other is built.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from windrow.probe import hashed
from windrow.probe import sorted as ordered
from windrow.probe.bounds import joint_key
from windrow.probe.hashed import HashedIndex
from windrow.probe.search import Ladder
from windrow.probe.sorted import SortedIndex
from windrow.query.expression import Expression
from windrow.store.operand import Array, Operand
from windrow.store.segment import Segment, typed_text

IndexKey: TypeAlias = tuple[str, tuple[Expression, ...]]
Index: TypeAlias = SortedIndex | HashedIndex


def hashed_index(segment: Segment, leaves: tuple[Expression, ...]) -> HashedIndex:
    """The rows of a segment in buckets by some of its leaves."""
    return segment.index(
        ("hashed", leaves), lambda: hashed.build(*joint_key(leaves, [_stored(segment, leaf) for leaf in leaves]))
    )


def sorted_index(segment: Segment, leaf: Expression) -> SortedIndex:
    """The rows of a segment in the order of one of its leaves."""
    operand = _stored(segment, leaf)
    return segment.index(("sorted", (leaf,)), lambda: ordered.build(operand.values, operand.valid))


def index_of(segment: Segment, key: IndexKey) -> Index:
    """The index of a segment under a key."""
    kind, leaves = key
    return hashed_index(segment, leaves) if kind == "hashed" else sorted_index(segment, leaves[0])


def key_text(key: IndexKey) -> str:
    """A key as text: two indexes with the same text find the same.

    >>> from windrow.query.expression import Column
    >>> from windrow.query.types import DOUBLE
    >>> key_text(("sorted", (Column("a", "x", DOUBLE),)))
    'sorted a.x DOUBLE'
    """
    kind, leaves = key
    return f"{kind} {', '.join(map(typed_text, leaves))}"


def arrays_of(index: Index) -> dict[str, Array]:
    """The arrays an index consists of."""
    if isinstance(index, HashedIndex):
        return dict(index._asdict())
    steps = index.ladder
    ladder = {"fences": steps.fences, "posts": steps.posts, "marks": steps.marks, "cells": np.array([steps.cells])}
    return {"keys": index.keys, "rows": index.rows, **ladder}


def index_from(key: IndexKey, arrays: Mapping[str, Array]) -> Index:
    """The index under a key, of the arrays it consists of."""
    if key[0] == "hashed":
        return HashedIndex(**arrays)
    ladder = Ladder(arrays["fences"], arrays["posts"], arrays["marks"], float(arrays["cells"][0]))
    return SortedIndex(arrays["keys"], arrays["rows"], ladder)


def _stored(segment: Segment, leaf: Expression) -> Operand:
    slot = segment.layout.slot(leaf)
    if slot is None:
        raise KeyError(str(leaf))
    return segment.operands[slot]
