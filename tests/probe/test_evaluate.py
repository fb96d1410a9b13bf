"""Evaluation row by row: what a frame has is taken, the rest is computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.probe.scalars import Columns, bound
from windrow.errors import QueryError
from windrow.probe.evaluate import Evaluator, constant
from windrow.query import types
from windrow.query.expression import Call, Column, Expression, Literal
from windrow.query.predicate import with_token_sets
from windrow.store.operand import Form, Operand, from_values, to_arrow

pytestmark = pytest.mark.usefixtures("interpreted")

TABLE = pa.table({
    "ts": pa.array([0, 0, 0, 0], pa.timestamp("us")),
    "x": pa.array([1.0, None, 3.0, -1.0]),
    "n": pa.array([1, 2, None, 4], pa.int32()),
    "s": pa.array(["red pump", None, "Pump", ""]),
    "flag": pa.array([True, False, None, True]),
})  # fmt: skip


class Counting(Columns):
    """A frame that knows one expression more than its columns, and counts what is asked of it."""

    def __init__(self, table: pa.Table, known: dict[Expression, Operand]) -> None:
        super().__init__(table)
        self.known = known
        self.asked: list[str] = []

    def find(self, expression: Expression) -> Operand | None:
        self.asked.append(str(expression))
        return self.known.get(expression) or super().find(expression)


class Nothing:
    """A frame that has nothing."""

    def __len__(self) -> int:
        return 1

    def find(self, expression: Expression) -> Operand | None:
        return None


def test_what_the_frame_has_is_not_computed() -> None:
    part, whole = bound("a.x + 1e0", TABLE), bound("abs(a.x + 1e0) * 2", TABLE)
    frame = Counting(TABLE, {part: from_values(np.array([10.0, 20.0, -30.0, np.nan]))})
    found = Evaluator().evaluate(whole, frame)
    assert to_arrow(found, whole.type).to_pylist() == [20.0, 40.0, 60.0, None]
    assert "a.x" not in frame.asked


def test_only_what_is_sure_to_be_true_is_true() -> None:
    evaluator = Evaluator()
    for text, expected in {
        "a.flag": [True, False, False, True],
        "NOT a.flag": [False, True, False, False],
        "a.x > 0": [True, False, True, False],
        "a.n > 1": [False, True, False, True],
        "a.s LIKE '%pump'": [True, False, False, False],
        "NULL": [False] * 4,
        "TRUE": [True] * 4,
    }.items():
        assert evaluator.is_true(bound(text, TABLE), Columns(TABLE)).tolist() == expected, text


CONSTANTS = (
    Literal(3, types.TINYINT),
    Literal(None, types.BIGINT),
    Literal(0.5, types.FLOAT),
    Literal(None, types.DOUBLE),
    Literal(-150, types.decimal(5, 2)),
    Literal('it\'s\n"fine"', types.VARCHAR),
    Literal(None, types.VARCHAR),
    Literal(True, types.BOOLEAN),
    Literal(None, types.BOOLEAN),
    Literal(-1, types.DATE),
    Literal(1, types.TIMESTAMPTZ),
    Literal(-5, types.INTERVAL),
)


@pytest.mark.parametrize("literal", CONSTANTS, ids=repr)
@pytest.mark.parametrize("count", [0, 1, 3])
def test_constants_repeat(literal: Literal, count: int) -> None:
    operand = constant(literal, count)
    assert len(operand) == count
    array = to_arrow(operand, literal.type)
    assert array.type == types.to_arrow(literal.type)
    assert array.null_count == (count if literal.value is None else 0)
    assert len(set(map(str, array.to_pylist()))) == min(count, 1)


def test_conditions_over_constants_alone() -> None:
    two = Literal(2, types.INTEGER)
    condition = Call("less", (Literal(1, types.INTEGER), two), types.BOOLEAN)
    assert Evaluator().is_true(condition, Columns(TABLE)).tolist() == [True] * 4


def test_token_sets_are_ordered_lists_with_nulls_kept() -> None:
    node = with_token_sets(bound("jaccard(a.s, 'pump of RED')", TABLE))
    assert isinstance(node, Call)
    tokens = Evaluator().evaluate(node.arguments[0], Columns(TABLE))
    assert tokens.form is Form.TOKENS
    assert np.diff(tokens.arrays[0]).tolist() == [2, 0, 1, 0]
    assert tokens.valid is not None
    assert tokens.valid.tolist() == [True, False, True, True]
    values = to_arrow(Evaluator().evaluate(node, Columns(TABLE)), node.type).to_pylist()
    assert values == [2 / 3, None, 1 / 3, 0.0]


def test_text_functions_keep_nulls() -> None:
    expected: dict[str, list[Any]] = {
        "levenshtein(a.s, 'pump')": [4, None, 1, 4],
        "coalesce(a.s, upper('none'))": ["red pump", "NONE", "Pump", ""],
        "CASE WHEN a.n > 1 THEN a.s ELSE 'few' END": ["few", None, "few", ""],
        "length(a.s)": [8, None, 4, 0],
    }
    for text, values in expected.items():
        node = bound(text, TABLE)
        assert to_arrow(Evaluator().evaluate(node, Columns(TABLE)), node.type).to_pylist() == values, text


def test_columns_that_are_not_there_and_moving_patterns_are_refused() -> None:
    with pytest.raises(QueryError, match=r"a\.missing is not part"):
        Evaluator().evaluate(Column("a", "missing", types.DOUBLE), Nothing())
    moving = Call("like", (Column("a", "s", types.VARCHAR), Column("a", "s", types.VARCHAR)), types.BOOLEAN)
    with pytest.raises(QueryError, match="pattern of LIKE has to be a constant"):
        Evaluator().evaluate(moving, Columns(TABLE))
