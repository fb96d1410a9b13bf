"""Values and thresholds on the same decimal grid: where rounding decides, every way of searching must decide alike.

With `ABS(a.x - b.x) <= 0.3` on one-decimal data, whether 1.2 and 0.9 match is a matter of the last bit. An index may
propose what it likes; the predicate, evaluated once in DuckDB's types, decides. So neither method nor block nor batch
cut can be seen in the rows.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import windrow
from tests.oracle.arrivals import POLICIES, run, shuffled
from tests.oracle.duck import answer, difference, question
from windrow.probe import hashed, matrix, pairs, step
from windrow.probe import sorted as sorted_
from windrow.run import batch

ALLOWED: tuple[tuple[str, ...] | None, ...] = (
    None,
    ("loop",),
    ("loop", "sorted"),
    ("loop", "hashed"),
    ("loop", "matrix"),
)

CUTS = (7, 50, None)

LEAST_BATCHES = 20

BETWEEN_TWO = "SELECT a.id AS i, b.id AS j FROM s AS a, t AS b WHERE {} WINDOW 30 SECONDS LATENESS 1 DAYS"


def grid_table(rows: int, seed: int, *, digits: int, top: int = 40) -> pa.Table:
    """The same grid value in each kind of number: x (64 bits), y (32 bits), d (decimal), n (whole units)."""
    draw = np.random.default_rng(seed)
    units = draw.integers(-top, top + 1, rows)
    scale = 10**digits
    return pa.table(
        {
            "ts": pa.array(draw.integers(0, 60, rows), pa.timestamp("s")),
            "id": pa.array(range(rows), pa.int32()),
            "x": pa.array(units / scale, pa.float64()),
            "y": pa.array((units / scale).astype(np.float32), pa.float32()),
            "d": pa.array([Decimal(int(unit)).scaleb(-digits) for unit in units], pa.decimal128(6, digits)),
            "n": pa.array(units, pa.int32()),
        }
    )


def check(text: str, tables: dict[str, pa.Table], *, allowed: tuple[tuple[str, ...] | None, ...] = ALLOWED) -> None:
    """The same rows by every way; at least one run takes enough batches."""
    expected = answer(question(text), tables).rows
    assert expected.total() > 3
    query: Any = windrow.sql(text, streams=tables, time=dict.fromkeys(tables, "ts"))
    most = 0
    for place, methods in enumerate(allowed):
        for size in CUTS:
            policy = POLICIES[(place + (size or 0)) % len(POLICIES)]
            found = run(query, tables, shuffled(tables, place), size=size, policy=policy, methods=methods)
            assert difference(found.rows, expected) == "", (methods, size, policy)
            most = max(most, found.steps)
    assert most >= LEAST_BATCHES


BANDS = (
    "ABS(a.x - b.x) <= 0.3",
    "ABS(a.y - b.y) < 0.3",
    "ABS(a.x - b.y) <= 0.1",
    "ABS(a.d - b.d) <= 0.3",
    "ABS(a.d - b.x) <= 0.2",
    "ABS(a.n / 10 - b.x) <= 0.3",
    "a.x - b.x <= 0.3 AND b.x - a.x < 0.7",
    "a.y BETWEEN b.y - 0.1 AND b.y + 0.2",
    "a.x + 0.1 = b.x",
    "a.x * 3 = b.x + b.x + b.x",
    "0.3 >= ABS(a.x - b.x + 0.1)",
    "a.y = b.x",
)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("digits", [1, 2])
@pytest.mark.parametrize("condition", BANDS)
def test_thresholds_on_the_grid(condition: str, digits: int) -> None:
    if digits == 2:
        condition = condition.replace("0.", "0.0")
    tables = {"s": grid_table(90, 1, digits=digits), "t": grid_table(90, 2, digits=digits)}
    check(BETWEEN_TWO.format(condition), tables)


@pytest.mark.parametrize("condition", ["ABS(a.x - b.x) <= 0.3", "ABS(a.y - b.y) <= 0.3", "a.y = b.y"])
def test_compiled_predicates_decide_as_interpreted_ones(condition: str) -> None:
    tables = {"s": grid_table(90, 3, digits=1), "t": grid_table(90, 4, digits=1)}
    check(BETWEEN_TWO.format(condition), tables)


@pytest.mark.usefixtures("interpreted")
def test_three_streams_on_the_grid() -> None:
    tables = {name: grid_table(50, seed, digits=1) for seed, name in enumerate(("s", "t", "u"))}
    text = """
        SELECT a.id AS i, b.id AS j, c.id AS k FROM s AS a, t AS b, u AS c
        WHERE ABS(a.x - b.x) <= 0.3 AND ABS(b.y - c.y) <= 0.2 AND a.x + c.x <= b.x
        WINDOW 20 SECONDS LATENESS 1 DAYS"""
    check(text, tables)


def vector_table(rows: int, seed: int, *, bits: int, length: int) -> pa.Table:
    """Vectors of small whole numbers: many similarities are equal to a threshold, but for the last bit."""
    draw = np.random.default_rng(seed)
    kind = pa.float32() if bits == 32 else pa.float64()
    values = draw.integers(-2, 3, (rows, length)) / (10.0 if bits == 64 else 1.0)
    flat = pa.array(values.ravel(), kind)
    return pa.table(
        {
            "ts": pa.array(draw.integers(0, 60, rows), pa.timestamp("s")),
            "id": pa.array(range(rows), pa.int32()),
            "v": pa.FixedSizeListArray.from_arrays(flat, length),
        }
    )


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize(
    "condition", ["cosine(a.v, b.v) >= 0.5", "dot(a.v, b.v) >= {dot}", "l2(a.v, b.v) <= {far}", "cosine(a.v, b.v) < 0"]
)
def test_similarities_equal_to_the_threshold(condition: str, bits: int) -> None:
    tables = {"s": vector_table(90, 1, bits=bits, length=5), "t": vector_table(90, 2, bits=bits, length=5)}
    values = {"dot": "4" if bits == 32 else "0.04", "far": "3" if bits == 32 else "0.3"}
    text = f"""
        SELECT a.id AS i, b.id AS j FROM s AS a, t AS b
        WHERE {condition.format(**values)} WINDOW 30 SECONDS LATENESS 1 DAYS"""
    check(text, tables, allowed=(None, ("loop",), ("loop", "matrix")))


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("block", [1, 7, 64])
@pytest.mark.parametrize("condition", ["ABS(a.x - b.x) <= 0.3", "a.y = b.y", "dot(a.v, b.v) >= 0.04 AND a.x <= b.y"])
def test_blocks_cannot_be_seen(condition: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Candidates and partial results come in blocks of any size: none is lost and none comes twice between two."""
    pour: Any = pairs.pour
    scan: Any = matrix._scan_blocks
    for module in (sorted_, hashed):
        monkeypatch.setattr(module, "pour", lambda fill, _capacity: pour(fill, block))
    monkeypatch.setattr(matrix, "_scan_blocks", lambda *parts: scan(*parts[:-1], block))
    monkeypatch.setattr(matrix, "_STORED_BLOCK", block)
    monkeypatch.setattr(matrix, "_BLOCK_BYTES", 8 * 3 * block)
    monkeypatch.setattr(step, "CAPACITY", block)
    monkeypatch.setattr(batch, "BLOCK_ROWS", block)
    tables = {}
    for name, seed in (("s", 1), ("t", 2)):
        vectors = vector_table(90, seed, bits=64, length=5)
        tables[name] = grid_table(90, seed, digits=1).append_column("v", vectors["v"])
    check(BETWEEN_TWO.format(condition), tables)
