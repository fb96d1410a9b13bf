"""Tables that make a join match, tie, overflow and go unknown: few distinct values of every kind, and the awkward ones.

Event times lie on a grid of ticks, so that rows fall exactly on the edge of a window; a few rows are there twice.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

WORDS = ("", "a", "b", "ab", "Ab", "a b", "b a c", "B, a!", "é", "É b", "x_y", "a%", "zz")


def _choices(draw: np.random.Generator, values: tuple[Any, ...], rows: int, kind: pa.DataType) -> pa.Array:
    picked = [values[i] for i in draw.integers(0, len(values), rows)]
    return pa.array([None if draw.random() < 0.08 else value for value in picked], kind)


def table_of(
    rows: int, seed: int, *, base_us: int = 0, tick_us: int = 1_000_000, span: int = 20, null_times: bool = False
) -> pa.Table:
    """Rows with few distinct values of every kind; event times on a grid of `span` ticks, a few rows there twice."""
    draw = np.random.default_rng(seed)
    stamps = [base_us + tick_us * int(tick) for tick in draw.integers(0, span + 1, rows)]
    inf, nan = float("inf"), float("nan")
    floats = (0.0, -0.0, 0.1, 0.2, 0.3, 1.0, 1.5, -1.5, 2.5, nan, inf, -inf)
    moments = tuple(1_583_020_800_000_000 + step for step in (0, 1, 1_000_000, 3_000_000, 86_400_000_000, -5))
    vectors = (
        [1.0, 0.0, 0.0],
        [0.0, 1.0, 0.0],
        [1.0, 1.0, 0.0],
        [3.0, 4.0, 0.0],
        [0.0, 0.0, 0.0],
        [0.1, 0.2, 0.3],
        [-1.0, 0.5, nan],
    )
    columns = {
        "ts": pa.array([None if null_times and draw.random() < 0.1 else stamp for stamp in stamps], pa.timestamp("us")),
        "id": pa.array(draw.permutation(rows).tolist(), pa.int64()),
        "t8": _choices(draw, (-128, -3, -1, 0, 1, 2, 7, 127), rows, pa.int8()),
        "s16": _choices(draw, (-3, 0, 1, 2, 300, 32767), rows, pa.int16()),
        "i32": _choices(draw, (-2, -1, 0, 1, 2, 3, 16777217, 2**31 - 1), rows, pa.int32()),
        "i64": _choices(draw, (-2, 0, 1, 2, 3, 5, 2**40 + 1), rows, pa.int64()),
        "big": _choices(draw, (-(2**63), -1, 0, 1, 2**62, 2**63 - 1), rows, pa.int64()),
        "u8": _choices(draw, (0, 1, 2, 3, 255), rows, pa.uint8()),
        "u16": _choices(draw, (0, 1, 2, 65535), rows, pa.uint16()),
        "u32": _choices(draw, (0, 1, 2, 3, 2**32 - 1), rows, pa.uint32()),
        "f32": _choices(draw, (*floats, 16777216.0), rows, pa.float32()),
        "f64": _choices(draw, (*floats, 0.1 + 0.2, 1e300), rows, pa.float64()),
        "d52": _choices(
            draw,
            tuple(map(Decimal, ("0.00", "0.10", "0.30", "1.00", "1.50", "-1.50", "2.25"))),
            rows,
            pa.decimal128(5, 2),
        ),
        "d18": _choices(
            draw, tuple(map(Decimal, ("0.000", "0.300", "1.000", "1.005", "-7.125"))), rows, pa.decimal128(18, 3)
        ),
        "s": _choices(draw, WORDS, rows, pa.string()),
        "k": _choices(draw, ("x", "y", "z"), rows, pa.string()).dictionary_encode(),
        "flag": _choices(draw, (True, False), rows, pa.bool_()),
        "day": _choices(
            draw, (*(dt.date(2020, 2, day) for day in (27, 28, 29)), dt.date(1969, 12, 31)), rows, pa.date32()
        ),
        "at": _choices(draw, moments, rows, pa.timestamp("us")),
        "atz": _choices(draw, moments, rows, pa.timestamp("us", "UTC")),
        "v": _choices(draw, vectors, rows, pa.list_(pa.float32(), 3)),
        "w": _choices(draw, vectors, rows, pa.list_(pa.float64(), 3)),
    }
    table = pa.table(columns)
    twice = pa.array([row for row in range(rows) for _ in range(2 if draw.random() < 0.05 else 1)][:rows], pa.int64())
    return table.take(twice)
