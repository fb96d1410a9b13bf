"""A look at some of a join's rows: they are joined once, in full, to learn what plans cost and find.

    recorded rows ─ the first so many, by event time ─▶ simulated join, all of it sampled ─▶ Known ─▶ forecast

Rates are those of the whole recordings. Time is made up (`windrow.run.simulate`), so a look says the same on every
machine.

>>> import windrow
>>> from windrow.streams.synthetic import cameras, generate
>>> rows = generate(cameras(100, (0, 2), (2, 2)), duration_s=60, seed=1)
>>> text = "SELECT a.id AS i, b.id AS j FROM cam1 AS a, cam2 AS b WHERE ABS(a.x - b.x) <= 1 WINDOW 10 SECONDS"
>>> seen = look(windrow.sql(text, streams=rows), rows, most_rows=6000)
>>> seen.rows, round(seen.known.streams[0].rate_hz), round(seen.known.streams[0].rows, -2)
(6000, 101, 1000.0)
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from windrow.control.choice import Steps
from windrow.control.controller import ControlSettings
from windrow.control.forecast import Known
from windrow.control.lags import Learned
from windrow.control.rates import Rates
from windrow.plan.work import REFERENCE, WorkCosts
from windrow.query.builder import Join
from windrow.query.spec import QuerySpec
from windrow.run.local import LocalJoin
from windrow.run.simulate import Machine, simulate
from windrow.store.operand import time_us

MOST_ROWS = 20_000
_BATCHES = 20
_SAMPLE = 0.9


@dataclass(frozen=True)
class Look:
    """What a look saw: so many rows of so many seconds of event time, and what is known from them. `is_long` says
    whether it was longer than the longest window, so that all lags were seen.
    """

    rows: int
    span_s: float
    results: int
    is_long: bool
    known: Known


def look(
    query: Join,
    rows: Mapping[str, pa.Table],
    *,
    most_rows: int = MOST_ROWS,
    methods: Collection[str] | None = None,
    costs: WorkCosts = REFERENCE,
) -> Look | None:
    """Look at the first `most_rows` of a query's rows, by source; None if a stream has none there."""
    asked = replace(query, summary=None)
    spec = asked.spec()
    ordered = {stream.source: _in_order(rows[stream.source], stream.time) for stream in spec.streams}
    if any(not len(times) for _, times in ordered.values()):
        return None
    end_us = _end_us([times for _, times in ordered.values()], most_rows)
    seen = {source: (table, times[times <= end_us]) for source, (table, times) in ordered.items()}
    if any(not len(times) for _, times in seen.values()):
        return None
    start_us = min(int(times[0]) for _, times in seen.values())
    span_s = max(1e-3, (end_us - start_us) / 1e6)
    join, results = _joined(
        asked, {source: table.slice(0, len(times)) for source, (table, times) in seen.items()}, span_s, methods, costs
    )
    known = _known(spec, join, costs, {source: _rate_hz(times) for source, (_, times) in ordered.items()})
    if known is None:
        return None
    spans = [stream.window.span_us for stream in spec.streams if stream.window.span_us is not None]
    is_long = span_s >= max(spans, default=0) / 1e6
    return Look(sum(len(times) for _, times in seen.values()), span_s, results, is_long, known)


def _in_order(table: pa.Table, time: str) -> tuple[pa.Table, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """The rows that have an event time, in its order, and these times."""
    chunks = table.column(time).chunks
    words = pa.concat_arrays([time_us(chunk) for chunk in chunks]) if chunks else pa.array([], pa.int64())
    present = table.filter(words.is_valid()) if words.null_count else table
    times = np.asarray(words.drop_null())
    order = np.argsort(times, kind="stable")
    return present.take(pa.array(order)), times[order]


def _end_us(times: list[np.ndarray[tuple[int], np.dtype[np.int64]]], most_rows: int) -> int:
    """The event time at which so many rows have come."""
    merged = np.sort(np.concatenate(times))
    return int(merged[min(most_rows, len(merged)) - 1])


def _rate_hz(times: np.ndarray[tuple[int], np.dtype[np.int64]]) -> float:
    span_s = (int(times[-1]) - int(times[0])) / 1e6
    return len(times) / span_s if span_s > 0 else float(len(times))


def _joined(
    query: Join, rows: Mapping[str, pa.Table], span_s: float, methods: Collection[str] | None, costs: WorkCosts
) -> tuple[LocalJoin, int]:
    """The join after it has run over rows in full, with all that its controller could learn."""
    settings = ControlSettings(
        interval_s=span_s / 4, sample=_SAMPLE, fixed=1.0, memory_s=math.inf, surprise=math.inf, behind=False
    )
    joins: list[LocalJoin] = []
    ran = simulate(
        query,
        rows,
        Machine(costs),
        batch_s=span_s / _BATCHES,
        before=lambda join, _: joins.append(join),
        control=settings,
        throttle=1.0,
        methods=methods,
    )
    join = joins[-1]
    if join.controller is not None and join.observation is not None:
        join.controller.decide(join.observation.now_s + settings.interval_s)
    return join, ran.results


def _known(spec: QuerySpec, join: LocalJoin, costs: WorkCosts, rates_hz: Mapping[str, float]) -> Known | None:
    controller = join.controller
    if controller is None:
        return None
    # A store holds rows beyond its window until their segment goes; a window is judged by what it is asked to hold.
    controller.rates = Rates(controller.rates.hz)
    if (found := controller.to_be_chosen()) is None:
        return None
    streams, drivers = found
    options = tuple(
        tuple(_as_searched(controller.learned[driver], path, steps) for path, steps in zip(paths, known, strict=True))
        for (driver, paths), known in zip(controller.by_driver.items(), drivers, strict=True)
    )
    names = tuple(stream.name for stream in spec.streams)
    row_bytes = {name: store.memory_bytes / len(store) if len(store) else 0.0 for name, store in join.stores.items()}
    by_rows = frozenset(stream.name for stream in spec.streams if stream.window.rows is not None)
    is_indexed = any(step.method in ("sorted", "hashed") for path in join.plan.paths for step in path.steps)
    known = Known(names, streams, options, row_bytes, costs, by_rows, is_indexed)
    return known.at({stream.name: rates_hz[stream.source] for stream in spec.streams})


def _as_searched(learned: Learned, path: str, steps: Steps) -> Steps:
    """Steps with the selectivity of the pairs that were in reach: windows fill up at first, so that results a row are
    fewer than they will be.
    """
    found = []
    for number, step in enumerate(steps):
        passing = learned.passing(path, number)
        found.append(step if passing is None else replace(step, selectivity=passing))
    return tuple(found)
