"""Two keyed streams as the paper has them, joined by this engine with a method for each direction.

    Side a, Side b ──▶ rows at constant rates, keys at random ──▶ a plan with the join's two methods ──▶ batch by batch

The streams' keys are nested: the stream with fewer keys has the first of the other's, so that a pair matches with the
paper's σ = min(σ_a, σ_b). Times are those of the process: what others do on the machine is no part of them.

>>> a, b = Side(10, keys=5, window_s=2), Side(20, keys=5, window_s=2)
>>> outcome = played(a, b, "HNJ", Run(batch_s=1, warm_batches=2, batches=4))
>>> round(outcome.results_hz / (0.2 * 10 * 20 * 4), 1), outcome.busy_s > 0
(1.0, True)
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
import pyarrow as pa

import windrow
from windrow.plan.order import plan_query
from windrow.plan.plan import Plan
from windrow.plan.shedding import ALL
from windrow.plan.unit_time import JOINS, Side
from windrow.query.spec import QuerySpec
from windrow.streams.arrivals import SECOND_US, Constant
from windrow.streams.synthetic import MIDNIGHT_US, generator_for

LEAST_WINDOW_S = 1e-6
EVERYTHING: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Run:
    """How long a join runs: batches before it counts and after, each of so many seconds; rounds, of which the quickest
    time of each batch is taken.
    """

    batch_s: float
    warm_batches: int
    batches: int
    rounds: int = 1
    seed: int = 1

    @property
    def seconds(self) -> float:
        """The whole run."""
        return self.batch_s * (self.warm_batches + self.batches)


@dataclass(frozen=True, slots=True)
class Played:
    """What came of it, each second: results, and seconds of processor time."""

    results_hz: float
    busy_s: float


def played(a: Side, b: Side, join: str, run: Run, keep: Mapping[str, float] = EVERYTHING) -> Played:
    """Run a join of two streams; `keep` lets in only a share of a stream's rows."""
    text = (
        "SELECT a.ts AS a_ts, b.ts AS b_ts FROM a, b WHERE a.k = b.k "
        f"WINDOW a {_micros(a)} MICROSECONDS, b {_micros(b)} MICROSECONDS"
    )
    tables = {"a": rows("a", a, run), "b": rows("b", b, run)}
    spec = windrow.sql(text, streams=tables).spec()
    plan = replace(with_methods(spec, *JOINS[join]), shedding=replace(ALL, keep=tuple(keep.items())))
    rounds = [list(_batches(spec, plan, tables, run)) for _ in range(run.rounds)]
    seconds = run.batches * run.batch_s
    quickest = np.min([[spent for _, spent in batches] for batches in rounds], axis=0)
    return Played(sum(found for found, _ in rounds[0]) / seconds, float(quickest.sum()) / seconds)


def rows(name: str, side: Side, run: Run) -> pa.Table:
    """A stream of the run: `ts`, and `k`, drawn evenly from its keys."""
    times_us = Constant(side.rate_hz).times_us(MIDNIGHT_US, run.seconds, generator_for(name, run.seed, purpose=0))
    keys = generator_for(name, run.seed, purpose=1).integers(0, max(1, round(side.keys)), len(times_us))
    return pa.table({"ts": pa.array(times_us, pa.timestamp("us")), "k": keys})


def with_methods(spec: QuerySpec, in_a: str, in_b: str) -> Plan:
    """The plan by which rows of b search the window of a by one method, and rows of a that of b by another."""
    to_b, to_a = (plan_query(spec, methods=(method,)) for method in (in_b, in_a))
    return replace(to_b, paths=(to_b.path("a"), to_a.path("b")))


def _micros(side: Side) -> int:
    return round(max(LEAST_WINDOW_S, side.window_s or 0.0) * SECOND_US)


def _batches(spec: QuerySpec, plan: Plan, tables: Mapping[str, pa.Table], run: Run) -> Iterator[tuple[int, float]]:
    """Results and seconds of each batch that counts."""
    join = windrow.local(spec, plan=plan)
    cuts = MIDNIGHT_US + np.round(np.arange(1, run.warm_batches + run.batches + 1) * run.batch_s * SECOND_US)
    times = {name: table["ts"].cast(pa.int64()).to_numpy() for name, table in tables.items()}
    begins = dict.fromkeys(tables, 0)
    for number, end_us in enumerate(cuts):
        for name, table in tables.items():
            end = int(np.searchsorted(times[name], end_us))
            join.push(name, table.slice(begins[name], end - begins[name]))
            begins[name] = end
        started = time.process_time()
        found = len(join.step(now_s=float(end_us) / SECOND_US))
        spent = time.process_time() - started
        if number >= run.warm_batches:
            yield found, spent
