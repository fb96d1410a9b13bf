"""Indexes as arrays: one that was taken apart and put together again finds what the original does."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from windrow.probe import hashed
from windrow.probe import sorted as ordered
from windrow.probe.hashed import HashedIndex
from windrow.probe.indexes import IndexKey, arrays_of, index_from, index_of, key_text
from windrow.probe.sorted import SortedIndex
from windrow.query import types
from windrow.query.expression import Column
from windrow.store.operand import Array, from_arrow
from windrow.store.segment import Layout, Segment

pytestmark = pytest.mark.usefixtures("interpreted")

X, K, S = Column("a", "x", types.DOUBLE), Column("a", "k", types.INTEGER), Column("a", "s", types.VARCHAR)
KEYS: list[IndexKey] = [("sorted", (X,)), ("sorted", (K,)), ("hashed", (K,)), ("hashed", (K, S))]


def segment_of(rows: int) -> Segment:
    draw = np.random.default_rng(rows)
    missing = draw.random(rows) < 0.2
    arrays = (
        pa.array(draw.random(rows), mask=missing),
        pa.array(draw.integers(0, 20, rows).astype(np.int32), mask=missing),
        pa.array([f"s{n}" for n in draw.integers(0, 3, rows)], pa.string()),
    )
    operands = tuple(from_arrow(array, column.type) for array, column in zip(arrays, (X, K, S), strict=True))
    return Segment(Layout((), (X, K, S)), np.arange(rows), {}, (), operands)


def found(index: SortedIndex | HashedIndex, sought: Array) -> list[tuple[int, int]]:
    if isinstance(index, HashedIndex):
        pairs = hashed.propose(index, hashed.prepare(sought.astype(np.int64)))
    else:
        low = sought.astype(index.keys.dtype)
        pairs = ordered.propose(index, ordered.prepare(low, low + low.dtype.type(1)))
    return sorted((int(p), int(r)) for part in pairs for p, r in zip(part.probe, part.row, strict=True))


@pytest.mark.parametrize("rows", [0, 1, 300])
@pytest.mark.parametrize("key", KEYS, ids=key_text)
def test_an_index_put_together_again_finds_the_same(key: IndexKey, rows: int) -> None:
    segment = segment_of(rows)
    index = index_of(segment, key)
    assert index_of(segment, key) is index
    again = index_from(key, arrays_of(index))
    sought = np.array([0, 3, 7, 40])
    if key == ("hashed", (K, S)):
        sought = index.keys[:: max(1, len(index.keys) // 5)]
    assert found(again, sought) == found(index, sought)
    assert rows < 300 or len(found(index, sought)) > 3
    for before, after in zip(arrays_of(index).values(), arrays_of(again).values(), strict=True):
        assert before.tobytes() == after.tobytes()


def test_a_stored_index_is_loaded_when_it_is_asked_for() -> None:
    segment = segment_of(50)
    built = index_of(segment, KEYS[0])
    loads: list[int] = []

    def load() -> SortedIndex:
        loads.append(1)
        index = index_from(KEYS[0], arrays_of(built))
        assert isinstance(index, SortedIndex)
        return index

    stored = Segment(segment.layout, segment.time_us, {}, (), segment.operands, stored={KEYS[0]: load})
    assert loads == []
    assert index_of(stored, KEYS[0]) is index_of(stored, KEYS[0])
    assert isinstance(index_of(stored, KEYS[2]), HashedIndex)
    assert loads == [1]
    assert len(key_text(KEYS[3]).split(",")) == 2
