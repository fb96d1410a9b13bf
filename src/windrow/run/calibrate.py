"""Measuring what work costs on this machine, part by part, through the in-process runtime: medians of processor time.

    part                    measured as
    ----------------------  ------------------------------------------------------------------------------------
    a batch                 push and step of three streams with a row each
    a row let in            the slope of push and step over the number of rows
    a row merged, indexed   segments of a running join, merged and indexed
    a result                the SELECT list over the results of a batch, a row
    a decision              the optimiser on joins of three streams with ten bins a window
    a step, by method       batches of several shapes, fitted: seconds = call + probe * P + candidate * C + match * M

Shapes differ in rows that probe, candidates a probe, and matches a candidate, so that the fit can tell these apart.
Machine code and indexes are made before the clock starts. The clock counts the seconds this process has a processor, so
that other work on the machine does little to the figures. Inputs are seeded.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa

import windrow
from windrow.control.nonnegative import nonnegative
from windrow.plan.cost import CostModel, StepCost
from windrow.plan.harvest import optimise
from windrow.plan.harvest.instances import random_statistics
from windrow.plan.work import WorkCosts
from windrow.probe.indexes import index_of
from windrow.query.spec import UserFunction
from windrow.query.types import BOOLEAN
from windrow.run.batch import run_batch
from windrow.run.local import LocalJoin
from windrow.run.partial import Partial
from windrow.run.results import result_table
from windrow.store.segment import Segment, merge

Prepared = TypeVar("Prepared")

DIMENSIONS = 128
TOGETHER = 0.5
SCHEMA = pa.schema([("ts", pa.timestamp("us")), ("id", pa.int64()), ("x", pa.float64()), ("k", pa.int64())])
SCHEMA = SCHEMA.append(pa.field("y", pa.float64()))
VECTORS = pa.schema([("ts", pa.timestamp("us")), ("v", pa.list_(pa.float32(), DIMENSIONS))])
DIGITS = 3


@dataclass(frozen=True, slots=True)
class Shape:
    """A step: rows that probe, rows stored, candidates a probe (of an index), matches a candidate."""

    probes: int
    stored: int
    candidates: float
    share: float


def shapes(
    probes: Sequence[int], stored: Sequence[int], candidates: Sequence[float], shares: Sequence[float]
) -> tuple[Shape, ...]:
    """All combinations."""
    return tuple(Shape(p, s, c, m) for s in stored for c in candidates for p in probes for m in shares)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured: rounds a median is taken of, rows of a batch, results, joins decided on, and shapes."""

    rounds: int
    rows: tuple[int, int]
    results: int
    decisions: int
    steps: dict[str, tuple[Shape, ...]]


def _steps(scale: float) -> dict[str, tuple[Shape, ...]]:
    def of(*counts: int) -> tuple[int, ...]:
        return tuple(max(4, int(scale * count)) for count in counts)

    indexed = shapes(of(4_000, 40_000), of(200_000), (1, 30), (0.02, 0.9))
    return {
        "loop": shapes(of(1_000, 10_000), of(300, 6_000), (3,), (0.02, 0.9)),
        "sorted": indexed,
        "hashed": indexed,
        "matrix": shapes(of(200, 2_000), of(500, 10_000), (1,), (0.0, 0.02)),
        "opaque": shapes(of(40, 400), of(100, 1_000), (1,), (0.02, 0.9)),
    }


FULL = Sizes(rounds=9, rows=(20_000, 200_000), results=500_000, decisions=200, steps=_steps(1.0))
QUICK = Sizes(rounds=3, rows=(20_000, 100_000), results=200_000, decisions=50, steps=_steps(0.5))

QUERIES = {
    "loop": "ABS(a.x - b.x) <= 0.5 AND a.y < b.y",
    "sorted": "ABS(a.x - b.x) <= 0.5 AND a.y < b.y",
    "hashed": "a.k = b.k AND a.y < b.y",
    "matrix": f"cosine(a.v, b.v) >= {TOGETHER}",
    "opaque": "calibrated_less(a.y, b.y)",
}
_LESS = UserFunction("calibrated_less", lambda one, other: one < other, BOOLEAN, "pair")


@dataclass(frozen=True, slots=True)
class Measured:
    """The costs of this machine, and what building an index costs a row, kind by kind."""

    costs: WorkCosts
    index_rows_s: dict[str, float]


def measure(sizes: Sizes, tell: Callable[[str], None] = lambda _: None) -> Measured:
    """Measure everything; `tell` hears what is being measured."""
    tell("a batch")
    batch_s = _batch_s(sizes)
    tell("rows")
    row_s, merge_row_s = _row_s(sizes), _merge_row_s(sizes)
    index_rows_s = {method: _index_row_s(method, sizes) for method in ("sorted", "hashed")}
    tell("results")
    result_s = _result_s(sizes)
    tell("decisions")
    decision_s = _decision_s(sizes)
    steps = {}
    for method, tried in sizes.steps.items():
        tell(f"the method {method}")
        steps[method] = fitted([_sample(method, shape, sizes.rounds) for shape in tried])
    costs = WorkCosts(
        batch_s=rounded(batch_s),
        row_s=rounded(row_s),
        merge_row_s=rounded(merge_row_s),
        index_row_s=rounded(statistics.mean(index_rows_s.values())),
        result_s=rounded(result_s),
        decision_s=rounded(decision_s),
        steps=steps,
    )
    return Measured(costs, {method: rounded(value) for method, value in index_rows_s.items()})


def rounded(value: float) -> float:
    """A figure with as many digits as it deserves.

    >>> rounded(0.000123456)
    0.000123
    """
    return float(f"{value:.{DIGITS}g}")


@dataclass(frozen=True, slots=True)
class Sample:
    """One shape, measured."""

    probes: int
    candidates: int
    matches: int
    seconds: float


def fitted(samples: Sequence[Sample]) -> StepCost:
    """The costs that fit best, by relative error; what a call takes whatever its size belongs to the batch.

    >>> cost = StepCost(1e-6, 1e-8, 1e-7)
    >>> counts = [(p, p * c, p * m) for p in (100, 1000) for c in (10, 100) for m in (1, 5)]
    >>> fitted([Sample(*count, 1e-5 + cost.seconds(*count)) for count in counts]) == cost
    True
    """
    counts = np.array([(1, each.probes, each.candidates, each.matches) for each in samples], np.float64)
    seconds = np.array([each.seconds for each in samples])
    rows = counts / seconds[:, None]
    units = np.maximum(np.sqrt((rows**2).sum(axis=0)), 1e-300)
    scaled = rows / units
    found = nonnegative(scaled.T @ scaled + 1e-12 * np.eye(4), scaled.T @ np.ones(len(samples))) / units
    return StepCost(*(rounded(float(part)) for part in found[1:]))


def _timed(work: Callable[[Prepared], object], rounds: int, prepare: Callable[[], Prepared]) -> float:
    """The median of some rounds, after one that counts for nothing; what is prepared for each is not timed."""
    spent = []
    for _ in range(rounds + 1):
        prepared = prepare()
        started = time.process_time()
        work(prepared)
        spent.append(time.process_time() - started)
    return statistics.median(spent[1:])


def _repeated(work: Callable[[], object], rounds: int) -> float:
    return _timed(lambda _: work(), rounds, lambda: None)


def _rows(count: int, spread: float, below: float, seed: int = 0) -> pa.Table:
    """Rows of one moment; x and k are spread over that many values, y from `below` on to 1."""
    random = np.random.default_rng([5, seed])
    columns = [
        np.zeros(count, np.int64),
        np.arange(count),
        random.uniform(0, spread, count),
        random.integers(0, max(1, int(spread)), count),
        random.uniform(below, 1, count),
    ]
    return pa.table([pa.array(c, kind) for c, kind in zip(columns, SCHEMA.types, strict=True)], schema=SCHEMA)


def _vectors(count: int, share: float, seed: int) -> pa.Table:
    """Vectors of one moment: a part of them point the same way, so that about `share` of all pairs are close."""
    random = np.random.default_rng([6, seed])
    values = random.standard_normal((count, DIMENSIONS)).astype(np.float32)
    close = int(count * share**0.5)
    values[:close] = values[:close] * 0.1 + 1
    lists = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), DIMENSIONS)
    return pa.table([pa.array(np.zeros(count, np.int64), pa.timestamp("us")), lists], schema=VECTORS)


def _joined(select: str, methods: Sequence[str], schema: pa.Schema = SCHEMA) -> LocalJoin:
    names = ("a", "b", "c") if " c " in select else ("a", "b")
    query = windrow.sql(f"{select} WINDOW 10 SECONDS", streams=dict.fromkeys(names, schema), functions=(_LESS,))
    return windrow.local(query, methods=methods, clock=lambda: 0.0)


def _step(join: LocalJoin, **tables: pa.Table) -> pa.Table:
    for name, table in tables.items():
        join.push(name, table)
    return join.step()


def _batch_s(sizes: Sizes) -> float:
    join = _joined("SELECT a.id FROM a, b , c WHERE a.k = b.k AND b.k = c.k AND a.y < c.y", ("hashed",))
    row = _rows(1, 1, 1.0)
    return _repeated(lambda: _step(join, a=row, b=row, c=row), 20 * sizes.rounds)


def _row_s(sizes: Sizes) -> float:
    few, many = sizes.rows
    seconds = []
    for count in (few, many):
        table = _rows(count, count, 0.0)
        select = "SELECT a.id, a.y FROM a, b WHERE a.k = b.k AND a.y < b.y AND a.x > 0.5"
        seconds.append(_timed(partial(_step, a=table), sizes.rounds, partial(_joined, select, ("hashed",))))
    return max(0.0, seconds[1] - seconds[0]) / (many - few)


def _index_row_s(method: str, sizes: Sizes) -> float:
    join = _joined(f"SELECT a.id, b.id AS other FROM a, b WHERE {QUERIES[method]}", (method,))
    segment = join.entry.admit({"a": [_rows(sizes.rows[1], sizes.rows[1], 0.0)]}, 0)["a"]
    (key,) = join.program.indexes["a"]
    return _repeated(lambda: index_of(replace(segment, indexes={}), key), sizes.rounds) / len(segment)


def _merge_row_s(sizes: Sizes) -> float:
    join = _joined("SELECT a.id, b.id AS other FROM a, b WHERE a.k = b.k AND a.x < b.x", ("hashed",))
    table = _rows(sizes.rows[1] // 16, sizes.rows[1], 0.0)
    segments = [join.entry.admit({"a": [table]}, 0)["a"] for _ in range(16)]
    return _repeated(lambda: merge(segments, 0), sizes.rounds) / sum(map(len, segments))


def _result_s(sizes: Sizes) -> float:
    join = _joined("SELECT a.id, a.x, b.id AS other, b.y FROM a, b WHERE a.k = b.k", ("hashed",))
    per_row = 10
    fresh, stored = _both(join, _rows(sizes.results // per_row, 1, 0.0), _rows(per_row, 1, 0.0))
    blocks = list(_blocks(join, stored, fresh))
    return _repeated(lambda: result_table(join.program, blocks), sizes.rounds) / sum(map(len, blocks))


def _decision_s(sizes: Sizes) -> float:
    random = np.random.default_rng(7)
    known = [random_statistics(random, streams=3, bins=10) for _ in range(sizes.decisions)]
    return _repeated(lambda: [optimise(CostModel.of(each), 0.3) for each in known], sizes.rounds) / len(known)


def _sample(method: str, shape: Shape, rounds: int) -> Sample:
    join = _joined(
        f"SELECT a.ts FROM a, b WHERE {QUERIES[method]}", (method,), VECTORS if method == "matrix" else SCHEMA
    )
    if method == "matrix":
        probing, window = (_vectors(count, shape.share, k) for k, count in enumerate((shape.probes, shape.stored)))
    else:
        spread = max(1.0, shape.stored / shape.candidates)
        probing = _rows(shape.probes, spread, 1.0 - shape.share, seed=1)
        probing = probing.set_column(4, "y", pa.array(np.full(shape.probes, 1.0 - shape.share)))
        window = _rows(shape.stored, spread, 0.0, seed=2)
    fresh, stored = _both(join, probing, window)
    matches = sum(map(len, _blocks(join, stored, fresh)))
    seconds = _repeated(partial(_exhaust, join, stored, fresh), rounds)
    return Sample(shape.probes, candidates_of(method, probing, window), matches, seconds)


def candidates_of(method: str, probing: pa.Table, window: pa.Table) -> int:
    """How many pairs a method looks at: those in the band or with the same key, or all."""
    if method == "sorted":
        kept, sought = np.sort(window["x"].to_numpy()), probing["x"].to_numpy()
        return int((np.searchsorted(kept, sought + 0.5, "right") - np.searchsorted(kept, sought - 0.5)).sum())
    if method == "hashed":
        held = np.bincount(window["k"].to_numpy(), minlength=1 + int(probing["k"].to_numpy().max()))
        return int(held[probing["k"].to_numpy()].sum())
    return len(probing) * len(window)


def _both(join: LocalJoin, probing: pa.Table, window: pa.Table) -> tuple[dict[str, Segment], dict[str, list[Segment]]]:
    """A batch in which the rows of a probe those that b has stored."""
    _step(join, b=window)
    fresh = join.entry.admit({"a": [probing]}, 0)
    return fresh, {name: store.segments for name, store in join.stores.items()}


def _blocks(join: LocalJoin, stored: dict[str, list[Segment]], fresh: dict[str, Segment]) -> Iterator[Partial]:
    return run_batch(join.program, stored, fresh, None)


def _exhaust(join: LocalJoin, stored: dict[str, list[Segment]], fresh: dict[str, Segment]) -> None:
    for _ in _blocks(join, stored, fresh):
        pass
