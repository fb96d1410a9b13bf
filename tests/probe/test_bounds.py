"""Search values never leave out a row the predicate accepts: the one thing an index may not do."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.probe.bounds import joint_key, key_words, range_keys
from windrow.probe.evaluate import Evaluator
from windrow.query.expression import Column, Expression
from windrow.query.predicate import Range, searches_of
from windrow.query.sql import parse
from windrow.query.types import Kind
from windrow.store.operand import Array, Operand, from_arrow

pytestmark = pytest.mark.usefixtures("interpreted")

STREAMS = ("a", "b", "c")


class Combinations:
    """Rows of all streams side by side, as a frame."""

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        self.tables = tables

    def __len__(self) -> int:
        return len(self.tables["a"])

    def find(self, expression: Expression) -> Operand | None:
        if not isinstance(expression, Column):
            return None
        return from_arrow(self.tables[expression.stream].column(expression.name).combine_chunks(), expression.type)


KINDS = {
    "f": pa.float64(), "g": pa.float32(), "i": pa.int64(), "k": pa.int32(), "d": pa.decimal128(9, 2),
    "e": pa.decimal128(18, 4), "m": pa.timestamp("us"), "y": pa.date32(), "z": pa.timestamp("us", "UTC"),
}  # fmt: skip
SCHEMA = pa.schema([("ts", pa.timestamp("us")), *KINDS.items()])


def conjuncts_of(text: str) -> tuple[Expression, ...]:
    query = f"SELECT a.f AS out FROM t AS a, t AS b, t AS c WHERE {text} WINDOW 1 SECOND"
    return parse(query, {"t": SCHEMA}, time={"t": "ts"}).conjuncts


def check_ranges(conjunct: Expression, tables: Mapping[str, pa.Table]) -> tuple[int, int]:
    """Every row that matches has its key in range; how many ranges, and how many matches there were."""
    frame, evaluator = Combinations(tables), Evaluator()
    true = evaluator.is_true(conjunct, frame)
    ranges = [s for target in STREAMS for s in searches_of(conjunct, target) if isinstance(s, Range)]
    for each in ranges:
        low, high = range_keys([each], evaluator, frame)
        operand = evaluator.evaluate(each.key, frame)
        inside = (low <= operand.values) & (operand.values <= high)
        wrong = np.flatnonzero(true & ~inside)
        shown = {name: table.slice(wrong[0], 1).to_pylist() for name, table in tables.items()} if len(wrong) else {}
        assert not len(wrong), f"{conjunct}: {each.key} outside [{low[wrong[0]]}, {high[wrong[0]]}] for {shown}"
    return len(ranges), int(true.sum())


FLOAT_FORMS = (
    "abs({a} - {b}) <= 0.3", "abs({a} - {b}) <= {c}", "abs({a} - {b}) < {c}", "abs(({a} + {b}) - {c}) <= 0.1",
    "{a} <= {b}", "{a} > {b} + {c}", "{a} - {b} >= {c}", "{a} + {b} - {c} <= 0.3", "{a} + {b} = {c}",
    "abs({a} - {b}) = 0.2", "-{a} <= {b} - {c}",
    "0.1 <= {a} - {b}", "{a} - ({b} - {c}) > 0", "abs({a} * 3 - {b}) <= 0.9", "CAST({a} - {b} AS FLOAT) <= {c}",
    "CAST({a} - {b} AS FLOAT) >= {c}", "abs({a}) <= {b}", "{a} / 3 - {b} / 7 < {c} * 0.1",
)  # fmt: skip
FLOAT_COLUMNS = [("a.f", "b.f", "c.f"), ("a.g", "b.g", "c.g"), ("a.f", "b.g", "c.d"), ("a.g", "b.k", "c.f")]


def floats_near(seed: int, scale: float, kind: Any, rows: int) -> list[Array]:
    """Three columns, where the third is close to a sum or difference of the first two, a few steps off."""
    chosen = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        one, two = (np.round(chosen.normal(size=rows), 1) * scale for _ in range(2))
        one, two = one.astype(kind), two.astype(kind)
        three = np.choose(chosen.integers(0, 4, rows), [one - two, one + two, np.abs(one - two), two - one]).astype(
            kind
        )
        for _ in range(2):
            toward = np.choose(chosen.integers(0, 2, rows), [kind(np.inf), kind(-np.inf)])
            three = np.where(chosen.random(rows) < 0.4, np.nextafter(three, toward), three)
        awkward = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, np.finfo(kind).max, -np.finfo(kind).max, 5e-324], kind)
        columns = [one, two, three]
        for column in columns:
            spoiled = chosen.random(rows) < 0.08
            column[spoiled] = chosen.choice(awkward, int(spoiled.sum()))
    return columns


def tables_of(columns: list[dict[str, Any]]) -> dict[str, pa.Table]:
    return {
        name: pa.table({kind: pa.array(values, KINDS[kind], from_pandas=True) for kind, values in column.items()})
        for name, column in zip(STREAMS, columns, strict=True)
    }


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("columns", FLOAT_COLUMNS, ids="-".join)
def test_ranges_over_floats(columns: tuple[str, str, str]) -> None:
    matches = ranges = 0
    for form in FLOAT_FORMS:
        (conjunct,) = conjuncts_of(form.format(a=columns[0], b=columns[1], c=columns[2]))
        for seed, scale in enumerate((1.0, 1e-3, 3e7, 1e15, 1e300, 1e-310)):
            values = floats_near(seed, scale, np.float64, 400)
            with np.errstate(all="ignore"):
                single = [each.astype(np.float32) for each in floats_near(seed, min(scale, 1e37), np.float32, 400)]
            whole = [np.clip(np.nan_to_num(each), -(2.0**31), 2.0**31 - 1).astype(np.int32) for each in values]
            cents = [
                [Decimal(int(np.clip(x, -1e7, 1e7) * 10)).scaleb(-2) if np.isfinite(x) else None for x in each]
                for each in values
            ]
            by_kind = zip(values, single, whole, cents, strict=True)
            tables = tables_of([{"f": f, "g": g, "k": k, "d": d} for f, g, k, d in by_kind])
            found = check_ranges(conjunct, tables)
            ranges, matches = ranges + found[0], matches + found[1]
    assert ranges >= 60
    assert matches >= 1000


EDGES: dict[str, list[Any]] = {
    "f": [None, 0.0, 1.5, -1.5, 1e308, -1.7e308, 1.7976931348623157e308, float("inf"), float("-inf"), 5e-324],
    "g": [None, 0.0, 1.5, 3e38, -3e38, 3.4028234663852886e38, float("inf"), float("-inf"), 1e-45],
    "i": [None, 0, 1, -(2**63), 1 - 2**63, -(2**62), 2**53 + 1, 2**62, 2**63 - 2, 2**63 - 1, 9_200_000_000_000_000_001],
    "k": [None, 0, -(2**31), 2**31 - 1, 7],
    "d": [None, Decimal("0.00"), Decimal("9999999.99"), Decimal("-9999999.99"), Decimal("0.01")],
}
EDGE_FORMS = (
    "{a} <= {b}", "{a} >= {b}", "{a} < {b}", "{a} > {b}", "{a} = {b}", "{a} - {b} >= {c}", "{a} - {b} <= {c}",
    "{a} + {b} = {c}", "abs({a} - {b}) <= {c}", "{a} + {b} + {c} >= 1", "{a} - {b} + {c} <= -1",
)  # fmt: skip


OVERFLOWING = ("{a} + {b} + {c} >= 1.5e308", "{a} + {b} >= 1e300", "{a} - {b} > 1e308")
"""Sums that become infinite on the way, and then are more than the numbers add up to."""


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("kind", EDGES)
def test_ranges_at_the_edges_of_their_types(kind: str) -> None:
    rows = list(itertools.product(EDGES[kind], repeat=3))
    tables = tables_of([{kind: [row[place] for row in rows]} for place in range(3)])
    for form in EDGE_FORMS + (OVERFLOWING if kind in "fg" else ()):
        (conjunct,) = conjuncts_of(form.format(a=f"a.{kind}", b=f"b.{kind}", c=f"c.{kind}"))
        ranges, matches = check_ranges(conjunct, tables)
        assert ranges >= 2
        assert matches >= 1


WORD_FORMS = {
    "i": (
        "abs(a.i - b.i) <= 2", "a.i - b.i >= c.i", "a.i + b.i <= c.i + 1", "a.i BETWEEN b.i - 1 AND b.i + 1",
        "-a.i < b.i",
    ),
    "e": ("abs(a.e - b.e) <= 0.3", "a.e - b.e < c.e", "a.e + b.e = c.e", "CAST(a.e - b.e AS DOUBLE) <= c.e"),
    "m": ("a.m >= b.m - INTERVAL 5 SECONDS", "a.m - b.m <= INTERVAL 3 SECONDS", "abs(a.m - b.m) <= INTERVAL 1 DAY"),
    "z": ("a.z >= b.z", "a.z < b.z + INTERVAL 5 SECONDS", "a.z - b.z <= c.z - b.z"),
    "y": ("abs(a.y - b.y) <= 1", "a.y <= b.y + 3", "a.y - b.y >= 2", "a.y < b.y"),
}  # fmt: skip
WORDS = {
    "i": st.one_of(st.integers(-4, 4), st.integers(-(2**63), 2**63 - 1), st.integers(2**63 - 5, 2**63 - 1)),
    "e": st.one_of(st.integers(-9999, 9999), st.integers(1 - 10**18, 10**18 - 1)).map(lambda n: Decimal(n).scaleb(-4)),
    "m": st.one_of(st.integers(-9, 9), st.integers(-(10**17), 10**17)),
    "z": st.one_of(st.integers(-9, 9), st.integers(-(10**17), 10**17)),
    "y": st.one_of(st.integers(-9, 9), st.integers(-(10**6), 10**6)),
}


@pytest.mark.parametrize("kind", WORD_FORMS)
def test_ranges_over_words(kind: str) -> None:
    totals = [0, 0]
    column = st.lists(st.none() | WORDS[kind], min_size=40, max_size=40)
    conjuncts = [conjunct for form in WORD_FORMS[kind] for conjunct in conjuncts_of(form)]

    @settings(max_examples=30)
    @given(column, column, column)
    def check(one: list[Any], two: list[Any], three: list[Any]) -> None:
        tables = tables_of([{kind: one}, {kind: two}, {kind: three}])
        for conjunct in conjuncts:
            found = check_ranges(conjunct, tables)
            totals[0], totals[1] = totals[0] + found[0], totals[1] + found[1]

    check()
    assert totals[0] >= 30 * len(conjuncts)
    assert totals[1] >= 100


def test_ranges_are_tight_where_numbers_are_small() -> None:
    (conjunct,) = conjuncts_of("abs(a.f - b.f) <= 0.3")
    tables = tables_of([{"f": [0.0]}, {"f": [1.0]}, {"f": [0.0]}])
    (search,) = searches_of(conjunct, "a")
    assert isinstance(search, Range)
    low, high = range_keys([search], Evaluator(), Combinations(tables))
    assert (low[0], high[0]) == (pytest.approx(0.7), pytest.approx(1.3))
    assert 0.7 - 1e-13 < low[0] < 0.7
    (conjunct,) = conjuncts_of("abs(a.i - b.i) <= 3")
    (search,) = searches_of(conjunct, "a")
    assert isinstance(search, Range)
    low, high = range_keys([search], Evaluator(), Combinations(tables_of([{"i": [0]}, {"i": [10]}, {"i": [0]}])))
    assert 5 <= low[0] <= 7
    assert 13 <= high[0] <= 15


def test_ranges_over_one_key_meet_and_null_is_empty() -> None:
    conjuncts = conjuncts_of("a.i >= b.i AND a.i <= c.i")
    searches = [s for conjunct in conjuncts for s in searches_of(conjunct, "a") if isinstance(s, Range)]
    tables = tables_of([{"i": [0, 0, 0]}, {"i": [10, None, 3]}, {"i": [20, 5, None]}])
    low, high = range_keys(searches, Evaluator(), Combinations(tables))
    assert 8 <= low[0] <= 10
    assert 20 <= high[0] <= 22
    assert (low[1:] > high[1:]).all()


def test_float_ranges_of_null_hold_nothing() -> None:
    conjuncts = conjuncts_of("a.f >= b.f AND a.f <= c.f")
    searches = [s for conjunct in conjuncts for s in searches_of(conjunct, "a") if isinstance(s, Range)]
    tables = tables_of([{"f": [0.0] * 3}, {"f": [None, 1.0, float("nan")]}, {"f": [2.0, None, 2.0]}])
    low, high = range_keys(searches, Evaluator(), Combinations(tables))
    assert not ((low <= 1.5) & (high >= 1.5)).any()


def operand_of(array: pa.Array, name: str = "x") -> tuple[Column, Operand]:
    schema = pa.schema([("ts", pa.timestamp("us")), (name, array.type)])
    column = parse("SELECT a.x AS out FROM t AS a, t AS b WINDOW 1 SECOND", {"t": schema}).outputs[0].expression
    assert isinstance(column, Column)
    return column, from_arrow(array, column.type)


KEYS = (
    pa.array([1, -1, None, 1], pa.int8()),
    pa.array([2**63 - 1, -(2**63), None, 2**63 - 1], pa.int64()),
    pa.array([0.5, float("inf"), float("nan"), 0.5], pa.float32()),
    pa.array([0.0, 1.5, None, -0.0], pa.float64()),
    pa.array(["ab", "", None, "ab"]),
    pa.array([Decimal("1.50"), Decimal("-1.50"), None, Decimal("1.50")], pa.decimal128(20, 2)),
    pa.array([0, 5, None, 0], pa.timestamp("us")),
    pa.array([True, False, None, True]),
)


@pytest.mark.parametrize("array", KEYS, ids=lambda array: str(array.type))
def test_words_are_equal_where_values_are(array: pa.Array) -> None:
    column, operand = operand_of(array)
    words, valid = key_words(operand, column.type)
    assert words.dtype == np.int64
    assert valid is not None
    assert valid.tolist() == [True, True, False, True]
    assert words[0] == words[3]
    assert words[0] != words[1]
    joint, known = joint_key([column, column], [operand, operand])
    assert known is not None
    assert known.tolist() == [True, True, False, True]
    assert joint[0] == joint[3]
    assert joint[0] != joint[1]


def test_joint_keys_keep_the_order_of_their_parts() -> None:
    one, two = operand_of(pa.array([1, 2], pa.int64())), operand_of(pa.array([2, 1], pa.int64()))
    joint, known = joint_key([one[0], two[0]], [one[1], two[1]])
    assert joint[0] != joint[1]
    assert known is None
    assert one[0].type.kind is Kind.BIGINT
