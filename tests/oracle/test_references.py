"""The references themselves: DuckDB's answer is the definition's, by hand and by trying every combination."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from tests.oracle.duck import answer, difference, question
from tests.oracle.naive import Row, Watermarks, join, row_counts
from tests.oracle.queries import Case, cases
from tests.oracle.tables import table_of


def stamped(seconds: list[int | None], **columns: list[Any]) -> pa.Table:
    return pa.table({"ts": pa.array(seconds, pa.timestamp("s")), **columns})


def test_a_window_is_closed_and_each_stream_has_its_own() -> None:
    tables = {"s": stamped([0], x=[1]), "t": stamped([-3, -2, 0, 5, 6], x=[10, 11, 12, 13, 14])}
    asked = question("SELECT b.x AS bx FROM s AS a, t AS b WINDOW a 5 SECONDS, b 2 SECONDS")
    assert answer(asked, tables).rows == Counter({(11,): 1, (12,): 1, (13,): 1})


def test_windows_of_years_at_the_ends_of_time_do_not_overflow() -> None:
    ends = pa.table({"ts": pa.array([-(2**63) + 2, 2**63 - 3], pa.timestamp("us")), "x": [1, 2]})
    asked = question("SELECT a.x AS ax, b.x AS bx FROM s AS a, s AS b WINDOW 100000000 DAYS")
    assert answer(asked, {"s": ends}).rows == Counter({(1, 1): 1, (2, 2): 1})


def test_nan_is_null_and_rows_without_event_time_are_no_input() -> None:
    table = stamped([0, 0, None], x=[float("nan"), 1.0, 1.0])
    asked = question("SELECT a.x AS ax, b.x AS bx FROM s AS a, s AS b WHERE a.x = b.x OR a.x IS NULL WINDOW 1 SECONDS")
    assert answer(asked, {"s": table}).rows == Counter({(1.0, 1.0): 1, (None, 1.0): 1, (None, None): 1})


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a.x / b.x", None),
        ("a.x // b.x", None),
        ("cosine(a.v, a.v)", 1.0),
        ("cosine(a.v, b.v)", None),
        ("dot(a.v, a.v)", 25.0),
        ("l2(a.v, b.v)", 5.0),
        ("jaccard(a.s, b.s)", 1 / 3),
        ("jaccard(a.s, '...')", 0.0),
        ("jaccard('', '...')", None),
        ("levenshtein('ä', 'a')", 2),
        ("jaro_winkler('abc', 'abd')", 0.8222222222222222),
        ("haversine_m(0, 0, 0, 180)", 6371008.8 * np.pi),
    ],
)
def test_functions_by_hand(expression: str, expected: float | None) -> None:
    vectors = [pa.array([value], pa.list_(pa.float32(), 2)) for value in ([3.0, 4.0], [0.0, 0.0])]
    tables = {
        "s": stamped([0], x=[1], v=vectors[0], s=["Red, green"]),
        "t": stamped([0], x=[0], v=vectors[1], s=["RED; é red"]),
    }
    asked = question(f"SELECT {expression} AS value FROM s AS a, t AS b WINDOW 1 SECONDS")
    ((found,),) = answer(asked, tables).rows
    assert found == (None if expected is None else pytest.approx(expected, rel=1e-15))


def test_row_clocks_by_hand() -> None:
    """The picture in `oracle.naive`."""
    tables = {"a": stamped([0, 1, 1], x=[0, 1, 2]), "b": stamped([0, 2], x=[0, 1])}
    counts = row_counts(tables, {"a": ("ts", "x"), "b": ("ts",)}, ("a", "b"))
    assert counts["a"]["a"].tolist() == [1, 2, 3]
    assert counts["b"]["a"].tolist() == [1, 3]
    assert counts["b"]["b"].tolist() == [1, 2]
    asked = question("SELECT a.x AS ax, b.x AS bx FROM a AS a, b AS b WINDOW a ROWS 2, b 1 DAYS")
    assert answer(asked, tables, counts=counts).rows == Counter({(0, 0): 1, (1, 0): 1, (2, 0): 1, (1, 1): 1, (2, 1): 1})


@pytest.mark.parametrize("seed", range(8))
def test_duckdb_agrees_with_trying_every_combination(seed: int) -> None:
    draw = np.random.default_rng(seed)
    tables = {
        name: stamped(draw.integers(0, 12, 9).tolist(), x=draw.integers(0, 4, 9).tolist(), n=list(range(9)))
        for name in ("a", "b", "c")
    }
    used = {"a": ("ts", "x", "n"), "b": ("ts", "x", "n"), "c": ("ts", "n")}
    windows = {"a": 3, "c": 2} if seed % 2 else {"b": 4}
    counts = row_counts(tables, used, tuple(windows))
    clauses = [f"{name} ROWS {windows[name]}" if name in windows else f"{name} {seed + 1} SECONDS" for name in tables]
    asked = question(
        "SELECT a.n AS i, b.n AS j, c.n AS k FROM a AS a, b AS b, c AS c"
        f" WHERE a.x <= b.x AND a.x + b.x <> 3 WINDOW {', '.join(clauses)}"
    )
    rows: dict[str, list[Row]] = {
        name: [{**row, "time_us": int(row["ts"].timestamp())} for row in table.to_pylist()]
        for name, table in tables.items()
    }
    expected = join(
        {name: [{"x": row["x"], "time_us": row["time_us"]} for row in listed] for name, listed in rows.items()},
        lambda a, b, c: bool(a["x"] <= b["x"] and a["x"] + b["x"] != 3),
        {name: seed + 1 for name in tables if name not in windows},
        windows,
        counts,
    )
    assert expected
    assert difference(answer(asked, tables, counts=counts).rows, expected) == ""


def test_the_watermark_moves_after_its_batch_and_never_back() -> None:
    twin = Watermarks({"s": 2_000_000})
    first = twin.admit({"s": stamped([10, 5, None])})
    second = twin.admit({"s": stamped([7, 8, 9])})
    third = twin.admit({"s": stamped([8, 7, 1000])}, limit_us=100_000_000)
    assert [len(part["s"]) for part in (first, second, third)] == [2, 2, 1]
    assert (twin.late["s"], twin.bad["s"], twin.reached_us["s"]) == (2, 2, 8_000_000)


def test_generated_questions_match_often_enough() -> None:
    """Half a run that matches nothing would prove nothing."""
    totals: list[int] = []

    @settings(max_examples=60)
    @given(cases())
    def ask(case: Case) -> None:
        totals.append(answer(case.question, case.tables).rows.total())

    ask()
    assert sum(1 for total in totals if total) >= len(totals) // 4
    assert max(totals) < 200_000


def test_tables_hold_every_awkward_value() -> None:
    table = table_of(60, 7)
    assert table["f32"].null_count
    assert np.isnan(table["f64"].drop_null().to_numpy()).any()
    assert np.isinf(table["f64"].drop_null().to_numpy()).any()
    assert table.group_by(table.column_names[:3]).aggregate([]).num_rows < len(table)
