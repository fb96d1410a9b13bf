"""Every rule against DuckDB's scalar result, over grids of edge values and types.

Interpreted and compiled are the same generated code; the grids run interpreted, and one expression a rule runs both
ways. Decimals keep to what 64 bits hold here: beyond that they are NULL by definition (`test_wide_decimals_…`).
"""

from __future__ import annotations

import itertools
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.oracle.duck import plain
from tests.probe.scalars import Columns, bound, combinations, computed, disagreements
from windrow.probe.evaluate import Evaluator
from windrow.probe.rules import RULES, is_compiled, is_compiled_whole
from windrow.query.expression import Call, walk
from windrow.query.predicate import with_token_sets
from windrow.query.sql import parse

NUMBERS = ("t8", "s16", "i32", "i64", "u8", "u16", "u32", "f32", "f64", "d52", "d183", "d20")
MIXED = (
    ("t8", "i64"), ("i64", "t8"), ("s16", "u16"), ("u8", "t8"), ("u32", "i32"), ("i32", "f32"), ("i64", "f64"),
    ("f32", "f64"), ("f64", "d52"), ("d52", "f32"), ("d52", "d183"), ("d20", "d52"), ("u16", "d183"), ("n64", "d52"),
    ("d20", "n64"), ("i32", "d20"),
)  # fmt: skip
BINARY = (
    "a.x + a.y", "a.x - a.y", "a.x * a.y", "a.x / a.y", "a.x // a.y", "a.x % a.y", "a.x = a.y", "a.x <> a.y",
    "a.x < a.y", "a.x <= a.y", "a.x > a.y", "a.x >= a.y", "greatest(a.x, a.y)", "least(a.x, a.y, 1)",
    "coalesce(a.x, a.y)", "CASE WHEN a.x < a.y THEN a.x ELSE a.y END", "a.x BETWEEN a.y AND 3", "nullif(a.x, a.y)",
)  # fmt: skip
UNARY = (
    "-a.x", "abs(a.x)", "floor(a.x)", "ceil(a.x)", "sqrt(a.x)", "a.x IS NULL", "a.x IS NOT NULL", "a.x IN (1, 3, NULL)",
    "a.x NOT IN (1, 3)", "a.x NOT IN (1, NULL)", "a.x + 1", "a.x * 2", "a.x - 1e0", "a.x // 2", "a.x % 3", "a.x % 0",
    "a.x / 0", "a.x / 3", "a.x < 1e0", "coalesce(a.x, 7)", "CASE WHEN a.x > 0 THEN 1 WHEN a.x < 0 THEN 2.5 END",
    "CASE a.x WHEN 1 THEN 'one' WHEN 3 THEN 'three' ELSE 'other' END",
)  # fmt: skip
TARGETS = (
    "BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "FLOAT", "DOUBLE",
    "DECIMAL(4,1)", "DECIMAL(18,3)",
)  # fmt: skip

pytestmark = pytest.mark.filterwarnings("error")


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("kinds", [*((kind, kind) for kind in NUMBERS), *MIXED], ids="-".join)
def test_two_numbers(kinds: tuple[str, str]) -> None:
    assert disagreements(BINARY, {"x": kinds[0], "y": kinds[1]}) == []


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("kind", NUMBERS)
def test_one_number(kind: str) -> None:
    texts = [*UNARY, *(f"CAST(a.x AS {target})" for target in TARGETS)]
    if kind != "i64":
        texts += ["a.x < 0.3", "a.x = 0.3", "a.x + 0.3", "a.x * 2.5"]
    assert disagreements(texts, {"x": kind}) == []


TIMES = ("day", "at", "atz")
UNITS = ("microsecond", "millisecond", "second", "minute", "hour", "day", "month", "quarter", "year")


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("kinds", list(itertools.product(TIMES, TIMES)), ids="-".join)
def test_two_times(kinds: tuple[str, str]) -> None:
    texts = ["a.x - a.y", "a.x < a.y", "a.x = a.y", *(f"date_diff('{unit}', a.x, a.y)" for unit in UNITS)]
    assert disagreements(texts, {"x": kinds[0], "y": kinds[1]}) == []


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("kind", TIMES)
def test_times_moved_and_compared(kind: str) -> None:
    assert disagreements(["a.x + a.y", "a.x - a.y"], {"x": kind, "y": "span"}) == []
    texts = [
        "a.x + INTERVAL 1 DAY", "a.x - INTERVAL 90 SECONDS", "a.x < '2020-02-29'", "a.x = DATE '1969-12-31'",
        "a.x >= TIMESTAMP '2020-03-01 00:00:00'", "CAST(a.x AS DATE)", "CAST(a.x AS TIMESTAMP)",
        "CAST(a.x AS TIMESTAMPTZ)", "a.x IS NULL", "greatest(a.x, DATE '2020-01-01')",
    ]  # fmt: skip
    assert disagreements(texts, {"x": kind}) == []


@pytest.mark.usefixtures("interpreted")
def test_days_and_spans() -> None:
    assert disagreements(["a.x + a.y", "a.x - a.y"], {"x": "day", "y": "i32"}) == []
    assert disagreements(["a.x + a.y", "a.x - a.y", "a.x < a.y", "a.x = a.y", "-a.x"], {"x": "span", "y": "span"}) == []


@pytest.mark.usefixtures("interpreted")
def test_texts() -> None:
    texts = [
        "a.x = a.y", "a.x <> a.y", "a.x < a.y", "a.x <= a.y", "a.x > a.y", "a.x >= a.y", "coalesce(a.x, a.y)",
        "levenshtein(a.x, a.y)", "jaro_winkler(a.x, a.y)", "jaccard(a.x, a.y)", "greatest(a.x, a.y)",
        "nullif(a.x, a.y)", "least(a.x, a.y, 'b')", "CASE WHEN a.x < a.y THEN a.x ELSE a.y END",
        "CASE WHEN a.x < a.y THEN a.x END", "lower(a.x) = lower(a.y)",
        "length(a.x) + length(a.y)", "a.x IN (a.y, 'é', NULL)",
    ]  # fmt: skip
    assert disagreements(texts, {"x": "s", "y": "s"}) == []
    patterns = ["a%", "%_%", "%b", "", "%", "zz%%", "zz\\%", "x_y", "É%", "a''%"]
    texts = [f"a.x {word} '{pattern}'" for word in ("LIKE", "NOT LIKE", "ILIKE") for pattern in patterns]
    texts += ["lower(a.x)", "upper(a.x)", "length(a.x)", "a.x IS NULL", "a.x BETWEEN 'A' AND 'b'", "a.x < 'b'"]
    assert disagreements(texts, {"x": "s"}) == []


@pytest.mark.usefixtures("interpreted")
def test_truth_tables() -> None:
    texts = [
        "a.x AND a.y", "a.x OR a.y", "NOT a.x", "NOT (a.x AND a.y)", "NOT (a.x OR NOT a.y)", "a.x = a.y", "a.x < a.y",
        "a.x <> a.y", "a.x IS NULL", "a.x AND NULL", "a.x OR NULL", "(a.x AND a.y) IS NULL", "a.x IN (TRUE, NULL)",
        "a.x AND a.y AND a.x", "coalesce(a.x, a.y)", "CASE WHEN a.x THEN a.y ELSE NOT a.y END", "greatest(a.x, a.y)",
        "CASE WHEN a.x THEN 1 END", "CASE a.x WHEN a.y THEN 'same' ELSE 'other' END", "CAST(a.x AS INTEGER)",
        "CASE WHEN a.x THEN NULL WHEN a.y THEN TRUE END", "coalesce(a.x AND a.y, a.x OR a.y, FALSE)",
    ]  # fmt: skip
    assert disagreements(texts, {"x": "flag", "y": "flag"}) == []


@pytest.mark.usefixtures("interpreted")
def test_truth_of_nan_and_null_in_conditions() -> None:
    texts = [
        "NOT (a.x < a.y)", "a.x < a.y OR a.x >= a.y", "a.x = a.x", "(a.x = a.y) IS NULL", "a.x <> a.y",
        "coalesce(a.x < a.y, TRUE)", "CASE WHEN a.x <> a.y THEN 1 ELSE 0 END", "(a.x < 1) = (a.y < 1)",
    ]  # fmt: skip
    assert disagreements(texts, {"x": "f32", "y": "f64"}) == []


EACH_RULE = (
    "a.i + a.j * 2 - a.i % 3 // 2 + CAST(a.f AS BIGINT)",
    "-a.f / a.g + abs(a.f) * sqrt(a.g) - floor(a.f) + ceil(a.g) + a.f % a.g + a.i / a.j",
    "(a.f = a.g OR a.f <> 1 AND a.i < a.j) AND NOT (a.i <= 0) OR a.f > 2 AND a.g >= -1 OR a.i IS NULL",
    "CASE WHEN a.i > a.j THEN greatest(a.f, a.g) WHEN a.t = a.u THEN least(a.f, 1) ELSE coalesce(a.g, 7) END",
    "a.t < a.u OR a.t = 'a' OR a.t >= 'zz''\"' OR a.t IS NULL",
    "date_diff('month', a.m, a.n) + date_diff('hour', a.n, a.m)",
    "a.d * a.e + a.i - CAST(a.f AS DECIMAL(9, 2)) - a.e % 7",
    "haversine_m(a.i % 90, a.j % 180, a.d / 20, 7) + jaccard(a.t, a.u) * 100",
    "CAST(a.f AS FLOAT) / 3 + CAST(a.d AS FLOAT) - CAST(CAST(a.i AS TINYINT) AS FLOAT)",
    "dot(a.v, a.w) + l2(a.v, a.w) - cosine(a.v, a.w)",
)


def awkward_rows() -> pa.Table:
    kinds = {"i": "i32", "j": "n64", "f": "f64", "g": "f32", "t": "s", "u": "s", "m": "at", "n": "at"}
    kinds |= {"d": "d52", "e": "d183"}
    chosen = np.random.default_rng(5)
    columns = {}
    for name, kind in kinds.items():
        column = combinations({name: kind}).column(name)
        columns[name] = column.take(pa.array(chosen.integers(0, len(column), 300)))
    for name, kind in (("v", pa.float32()), ("w", pa.float64())):
        values = pa.array(chosen.integers(-3, 4, 900).astype(np.float64)).cast(kind)
        columns[name] = pa.FixedSizeListArray.from_arrays(values, 3)
    return pa.table({**columns, "ts": pa.array([0] * 300, pa.timestamp("us"))})


def test_each_rule_interpreted_compiled_and_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    table = awkward_rows()
    used: set[str] = set()
    for text in EACH_RULE:
        used |= {node.function for node in walk(with_token_sets(bound(text, table))) if isinstance(node, Call)}
        outcomes = []
        for switch in ("0", "1"):
            monkeypatch.setenv("WINDROW_COMPILE", switch)
            evaluator = Evaluator()
            outcomes.append((plain(computed(text, table, evaluator)), int(evaluator.faults[0])))
        assert outcomes[0] == outcomes[1], text
        assert any(value is not None for value in outcomes[0][0]), text
    assert set(RULES) <= used


@pytest.mark.usefixtures("interpreted")
def test_wide_decimals_beyond_64_bits_are_null_and_counted() -> None:
    wide = pa.decimal128(38, 0)
    values = [Decimal(2**63 - 1), Decimal(2**63), Decimal(-(2**63)), Decimal(10**37), None]
    table = pa.table({"x": pa.array(values, wide), "ts": pa.array([0] * 5, pa.timestamp("us"))})
    evaluator = Evaluator()
    assert computed("a.x", table).to_pylist() == [values[0], None, values[2], None, None]
    assert computed("a.x + 1", table, evaluator).to_pylist() == [None, None, Decimal(1 - 2**63), None, None]
    assert evaluator.faults[0] == 1


FAULTS: dict[str, tuple[pa.DataType, list[tuple[Any, Any]], int]] = {
    "a.x + a.y": (pa.int8(), [(127, 1), (1, 1), (None, 127), (-128, -1)], 2),
    "a.x * a.y": (pa.int64(), [(2**62, 2), (2**62, None), (2**31, 2**31), (-(2**62), 2)], 1),
    "a.x // a.y": (pa.int32(), [(1, 0), (None, 0), (-(2**31), -1), (4, 2)], 2),
    "a.x / a.y": (pa.float64(), [(1.0, 0.0), (1.0, 2.0), (0.0, 0.0), (1.0, None)], 2),
    "CASE WHEN a.y > 0 THEN a.x / a.y END": (pa.float64(), [(1.0, 0.0), (1.0, 2.0)], 0),
    "CAST(a.x + a.y AS TINYINT)": (pa.int64(), [(100, 27), (100, 28), (None, 5)], 1),
    "abs(a.x)": (pa.int64(), [(-(2**63), 0), (5, 0)], 1),
    "CAST(a.x AS FLOAT)": (pa.float64(), [(1e300, 0.0), (1.0, 0.0), (None, 0.0)], 1),
}


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("text", FAULTS)
def test_overflow_and_division_by_zero_are_counted_once_a_row(text: str) -> None:
    kind, rows, faults = FAULTS[text]
    columns = {name: pa.array([row[place] for row in rows], kind) for place, name in enumerate(("x", "y"))}
    table = pa.table({**columns, "ts": pa.array([0] * len(rows), pa.timestamp("us"))})
    evaluator = Evaluator()
    computed(text, table, evaluator)
    assert evaluator.faults[0] == faults


def test_what_compiles() -> None:
    schema = pa.schema([("ts", pa.timestamp("us")), ("x", pa.float64()), ("s", pa.string())])
    text = """SELECT a.x AS out FROM t AS a, t AS b
        WHERE abs(a.x - b.x) < 1 AND lower(a.s) = upper(b.s) AND levenshtein(a.s, b.s) < 2 AND a.s LIKE 'x%'
        AND length(coalesce(a.s, b.s)) = 1 WINDOW 1 SECOND"""
    conjuncts = parse(text, {"t": schema}).conjuncts
    assert [is_compiled_whole(conjunct) for conjunct in conjuncts] == [True, True, False, True, False]
    assert [is_compiled(conjunct) for conjunct in conjuncts] == [True, True, True, False, True]


@pytest.mark.usefixtures("interpreted")
def test_no_rows() -> None:
    table = awkward_rows().slice(0, 0)
    for text in EACH_RULE:
        assert len(computed(text, table)) == 0
    assert len(Columns(table)) == 0
