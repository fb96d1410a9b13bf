"""The form of segments outside of memory: what is read is what was written, whatever of it is asked for."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.oracle.duck import plain
from tests.store.segments import DELIVERED, KINDS, LAYOUT, SEARCHED, rows_of, segment_of, values_of
from windrow.errors import StateError
from windrow.query import types
from windrow.query.expression import Call, Column, Expression
from windrow.store.codec import from_batch, from_bytes, part_of, times_of, to_batch, to_bytes
from windrow.store.operand import Form, Operand, from_arrow, from_values
from windrow.store.segment import Layout, Segment, merge

pytestmark = pytest.mark.usefixtures("interpreted")


def contents(segment: Segment) -> list[list[Any]]:
    """All values of a segment, in order."""
    parts: list[list[Any]] = [segment.time_us.tolist(), *(clock.tolist() for clock in segment.clocks.values())]
    parts += [[repr(value) for value in plain(column)] for column in segment.columns]
    pairs = zip(segment.operands, segment.layout.operands, strict=True)
    return parts + [values_of(operand, leaf) for operand, leaf in pairs]


def received(segment: Segment, layout: Layout | None = None, level: int = 0) -> Segment:
    return from_batch(from_bytes(to_bytes(to_batch(segment))), layout or segment.layout, level)


@pytest.mark.parametrize("first_clock", [None, 7])
@pytest.mark.parametrize("rows", [0, 1, 60])
def test_segments_arrive_as_they_were_sent(rows: int, first_clock: int | None) -> None:
    sent = segment_of(list(range(-5, rows - 5)), seed=rows, first_clock=first_clock)
    found = received(sent, level=3)
    assert contents(found) == contents(sent)
    assert (found.level, list(found.clocks)) == (3, list(sent.clocks))
    assert {operand.form for operand in found.operands} == set(Form)
    for before, after in zip(sent.operands, found.operands, strict=True):
        assert [array.dtype for array in after.arrays] == [array.dtype for array in before.arrays]
    if rows == 60:
        assert sum(operand.valid is not None for operand in sent.operands) >= 4  # NULLs were among them


def test_rows_taken_from_a_segment_arrive_as_well() -> None:
    sent = segment_of(list(range(60)), seed=2, first_clock=1)
    rows = [3, 4, 31, 59]
    found = from_batch(from_bytes(to_bytes(to_batch(sent).take(pa.array(rows)))), LAYOUT)
    assert contents(found) == [[values[row] for row in rows] for values in contents(sent)]
    part = from_batch(from_bytes(to_bytes(to_batch(sent).slice(11, 20))), LAYOUT)
    assert contents(part) == [values[11:31] for values in contents(sent)]


def test_a_leaf_that_is_a_column_is_written_once_and_shares_memory() -> None:
    sent = segment_of(list(range(60)), seed=4)
    names = to_batch(sent).schema.names
    shared = [column for column in DELIVERED if column in SEARCHED]
    assert len(shared) == 2
    assert len(names) == len(set(names)) == 1 + len(DELIVERED) + len(SEARCHED) - len(shared)
    found = received(sent)
    text = LAYOUT.operands.index(Column("a", "s", types.VARCHAR))
    assert found.operands[text].arrow is found.columns[2]


@pytest.mark.parametrize("seed", [1, 2])
def test_another_layout_takes_what_it_needs(seed: int) -> None:
    """Columns as leaves, leaves as columns, fewer and in another order: all values are those that were written."""
    sent = segment_of(list(range(60)), seed=seed, first_clock=1)
    by_column = dict(zip(DELIVERED, sent.columns, strict=True))
    by_leaf = dict(zip(SEARCHED, sent.operands, strict=True))
    delivered_too = tuple(leaf for leaf in SEARCHED if isinstance(leaf, Column) and leaf.name in ("k", "i32", "d52"))
    asked = Layout((DELIVERED[3], *delivered_too, DELIVERED[0]), (*reversed(DELIVERED), SEARCHED[6], SEARCHED[5]))
    found = received(sent, asked)
    assert found.layout is asked
    for column, array in zip(asked.columns, found.columns, strict=True):
        expected = values_of(by_leaf[column], column) if column in delivered_too else texts(by_column[column])
        assert texts(array) == expected, column
        assert array.type == types.to_arrow(column.type)
    for leaf, operand in zip(asked.operands, found.operands, strict=True):
        written = by_leaf[leaf] if leaf in by_leaf else from_arrow(by_column[leaf], leaf.type)  # type: ignore[index]
        assert values_of(operand, leaf) == values_of(written, leaf), leaf
    assert found.clocks["a"].tolist() == sent.clocks["a"].tolist()


def texts(array: pa.Array) -> list[str]:
    return [repr(value) for value in plain(array)]


def test_segments_of_several_layouts_merge_in_one_that_all_of_them_hold() -> None:
    one, two = segment_of([1, 2, 3], seed=1), segment_of([2, 4], seed=2)
    narrow = Layout(DELIVERED[:2], (DELIVERED[1], DELIVERED[2]))
    merged = merge([received(one, narrow), received(received(two, Layout(DELIVERED, ())), narrow)], -(2**63))
    assert rows_of(merged) == rows_of(received(one, narrow), received(two, narrow))


@pytest.mark.parametrize(
    ("asked", "message", "hint"),
    [
        (Layout((Column("a", "new", types.DATE),), ()), "stored rows hold no column a.new DATE", "select it no more"),
        (
            Layout((Column("a", "id", types.INTEGER),), ()),
            "stored rows hold no column a.id INTEGER, only a.id BIGINT",
            "select it no more",
        ),
        (Layout((Column("a", "v", types.vector(3, 32)),), ()), "stored rows hold no column a.v FLOAT[3]", "select"),
        (
            Layout((), (Call("lower", (Column("a", "k", types.VARCHAR),), types.VARCHAR),)),
            "stored rows hold no lower(a.k VARCHAR) VARCHAR",
            "start with a new checkpoint",
        ),
    ],
)
def test_what_is_not_held_is_named(asked: Layout, message: str, hint: str) -> None:
    with pytest.raises(StateError) as caught:
        received(segment_of([1, 2]), asked)
    assert caught.value.message == message
    assert hint in caught.value.hint


def test_a_leaf_that_is_not_held_can_be_derived() -> None:
    leaf = Call("twice", (DELIVERED[0],), types.BIGINT)

    def derive(asked: Expression, batch: pa.RecordBatch) -> Operand | None:
        return from_values(2 * times_of(batch)) if asked == leaf else None

    batch = to_batch(segment_of([1, 2, 7]))
    found = from_batch(batch, Layout(DELIVERED[:1], (leaf, DELIVERED[0])), derive=derive)
    assert found.operands[0].values.tolist() == [2, 4, 14]
    assert found.operands[1].values.tolist() == found.columns[0].to_pylist()
    nothing = from_batch(batch.slice(0, 0), Layout((), (leaf,)), derive=derive)
    assert len(nothing.operands[0]) == 0
    other = Call("thrice", (DELIVERED[0],), types.BIGINT)
    with pytest.raises(StateError, match="stored rows hold no thrice"):
        from_batch(batch, Layout((), (leaf, other)), derive=derive)


def searched_only(array: pa.Array, type_: types.Type) -> tuple[Column, Segment]:
    column = Column("a", "x", type_)
    segment = Segment(Layout((), (column,)), np.arange(len(array)), {}, (), (from_arrow(array, type_),))
    return column, segment


def test_what_a_leaf_does_not_say_exactly_cannot_be_delivered_from_it() -> None:
    wide = pa.array([Decimal(10) ** 25, Decimal(1)], pa.decimal128(38, 0))
    loose = pa.array([[1.0, None], [2.0, 3.0]], pa.list_(pa.float64(), 2))
    for array, type_ in ((wide, types.decimal(38, 0)), (loose, types.vector(2, 64))):
        column, segment = searched_only(array, type_)
        again = received(segment).operands[0]
        assert again.values.tobytes() == segment.operands[0].values.tobytes()
        with pytest.raises(StateError, match="stored rows hold no column"):
            received(segment, Layout((column,), ()))


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        ([1.5, None, -0.0], types.DOUBLE),
        ([True, None, False], types.BOOLEAN),
        ([Decimal("1.25"), None, Decimal("-3.50")], types.decimal(5, 2)),
        (["x", None, "ü"], types.VARCHAR),
        ([1, None, 3], types.TIMESTAMP),
        ([1, None, 3], types.INTERVAL),
    ],
)
def test_a_column_that_was_only_searched_can_be_delivered(values: list[Any], type_: types.Type) -> None:
    array = pa.array(values, types.to_arrow(type_))
    column, segment = searched_only(array, type_)
    assert received(segment, Layout((column,), ())).columns[0].to_pylist() == array.to_pylist()


def test_times_that_are_delivered_are_written_once_and_found() -> None:
    times = np.arange(100) * 10
    early, late = (Column("a", name, types.TIMESTAMP) for name in ("early", "late"))
    arrays = (pa.array(times - 5, pa.timestamp("us")), pa.array(times, pa.timestamp("us")))
    layout = Layout((early, late), (late,))
    segment = Segment(layout, times, {}, arrays, (from_arrow(arrays[1], late.type),))
    batch = to_batch(segment)
    assert batch.schema.names == ["a.late TIMESTAMP", "a.early TIMESTAMP"]
    for asked in (layout, Layout((early,), ()), Layout((), (late,))):
        assert from_batch(batch, asked).time_us.tolist() == times.tolist()
    unknown = Segment(layout, times, {}, (arrays[0], pa.nulls(100, pa.timestamp("us"))), segment.operands)
    assert from_batch(to_batch(unknown), layout).time_us.tolist() == times.tolist()


def test_a_batch_tells_what_of_a_layout_it_holds() -> None:
    sent = segment_of(list(range(9)))
    assert part_of(LAYOUT, to_batch(sent).schema.names) is LAYOUT
    part = Layout(DELIVERED[3:], (SEARCHED[2], SEARCHED[3], SEARCHED[6]))
    assert part_of(LAYOUT, to_batch(received(sent, part)).schema.names) == part
    assert part_of(LAYOUT, (":time",)) == Layout((), ())


def test_columns_of_any_type_are_carried() -> None:
    arrays = [pa.array([{"x": 1}, None]), pa.array([[1], []]), pa.array(["x", None]).dictionary_encode(), pa.nulls(2)]
    layout = Layout(tuple(Column("a", f"c{k}", types.OTHER) for k in range(len(arrays))), ())
    found = received(Segment(layout, np.arange(2), {}, tuple(arrays), ()))
    assert [column.to_pylist() for column in found.columns] == [array.to_pylist() for array in arrays]
    assert len(KINDS) == len(DELIVERED)
