"""How recorded rows reach a join: one order of arrival over all streams, cut into batches, pushed and stepped.

rows of a      a0 a1 a2 …  ┐
                           ├─ one order of arrival ── batches of n rows ── push, push, step ── … ── finish
rows of b      b0 b1 …     ┘
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import windrow
from tests.oracle.duck import rows_of

BATCH_SIZES: tuple[int | None, ...] = (1, 2, 7, 49, 50, 51, 100, None)
"""Rows in a batch over all streams; None is everything at once."""

POLICIES = (
    "timestamp", "round_robin", "consumption_rate", "initial_output_size", "output_rate", "auto_total", "auto_early",
)  # fmt: skip

Arrivals = Sequence[tuple[str, int]]
"""(stream, row number) in order of arrival."""


@dataclass(frozen=True)
class Run:
    """What a join delivered: its rows as a multiset, its schema, how many steps it took, and its report."""

    rows: Counter[tuple[Any, ...]]
    schema: pa.Schema
    steps: int
    report: Any


def shuffled(tables: Mapping[str, pa.Table], seed: int) -> Arrivals:
    """Every row somewhere: no order at all."""
    arrivals = [(name, row) for name, table in tables.items() for row in range(len(table))]
    random.Random(seed).shuffle(arrivals)
    return arrivals


def in_time(tables: Mapping[str, pa.Table], *, time: str = "ts", jitter_us: int = 0, seed: int = 0) -> Arrivals:
    """By event time, each row put back by up to `jitter_us`; rows without an event time come first."""
    draw = np.random.default_rng(seed)
    stamped = []
    for name, table in tables.items():
        stamps = (
            table[time].cast(pa.timestamp("us", getattr(table[time].type, "tz", None))).cast(pa.int64()).to_pylist()
        )
        delays = draw.integers(0, jitter_us + 1, len(stamps)).tolist()
        lowest = -(2**63)
        stamped += [
            (lowest if s is None else s + d, name, row) for row, (s, d) in enumerate(zip(stamps, delays, strict=True))
        ]
    return [(name, row) for _, name, row in sorted(stamped)]


def batches(tables: Mapping[str, pa.Table], arrivals: Arrivals, size: int | None) -> Iterator[dict[str, pa.Table]]:
    """The tables of each batch, by stream; a stream without rows in a batch is left out of it."""
    width = len(arrivals) if size is None else size
    for start in range(0, len(arrivals), max(width, 1)):
        rows: dict[str, list[int]] = {}
        for name, row in arrivals[start : start + width]:
            rows.setdefault(name, []).append(row)
        yield {name: tables[name].take(pa.array(numbers, pa.int64())) for name, numbers in rows.items()}


def run(
    query: Any,
    tables: Mapping[str, pa.Table],
    arrivals: Arrivals,
    *,
    size: int | None,
    policy: str = "timestamp",
    methods: tuple[str, ...] | None = None,
    **options: Any,
) -> Run:
    """The whole input through `windrow.local`, a step a batch, and the rest that `finish` brings."""
    found: Counter[tuple[Any, ...]] = Counter()
    steps = 0
    with windrow.local(query, policy=policy, methods=methods, **options) as join:
        for batch in batches(tables, arrivals, size):
            for name, table in batch.items():
                join.push(name, table)
            found += rows_of(join.step())
            steps += 1
        rest = join.finish()
        found += rows_of(rest)
        return Run(found, rest.schema, steps, join.report)
