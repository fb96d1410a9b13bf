"""Windows under a memory limit: what we find of the full output, beside the five strategies of the window-joins paper.

Streams are those of GrubJoin's section VI-B (values that rise and wrap around; lagged or aligned), and recorded quotes
of two venues where there are any. The limit is a part of the bytes the full windows take, indexes included; all
strategies run in the same engine, under the same limit, which is measured after each batch. They store the youngest
rows of each stream: all memory for the slowest stream, or the fastest, or shared out in proportion to rates, inversely,
or equally. Results of a first part of the run, in which windows fill and we learn, are not counted.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import windrow
from benchmarks.measure import ROOT, Row, in_child, larger, main, smaller
from windrow.control.memory import EXPECTED, POLICIES
from windrow.papers.grubjoin.scenario import Scenario
from windrow.run.keeper import with_memory
from windrow.streams.arrivals import Poisson
from windrow.streams.replay import Replay
from windrow.streams.synthetic import GrubJoinStream, generate

DESCRIPTION = "Output under a memory limit, beside the paper's strategies"
QUOTES = "fx_quotes.parquet"
HALF_A_PIP = 0.00005
NEVER_REACHED = 2**60
"""A limit for whole windows: with one, rows are stored in memory of their own, so that their bytes are all there is."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Generated streams: lags, noise and rates, one a stream."""

    name: str
    lags_s: tuple[float, ...]
    noise: tuple[float, ...]
    rates_hz: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many seeds, which settings, which limits (shares of the full windows), how long, whether on quotes too."""

    seeds: int
    settings: tuple[Setting, ...]
    limits: tuple[float, ...] = (0.1, 0.3, 0.6)
    run_s: float = 100.0
    warm_up_s: float = 50.0
    batch_s: float = 1.0
    quotes_hours: float = 6.0
    recorded: bool = True


@dataclass(frozen=True, slots=True)
class Case:
    """A query over rows, cut into batches; results up to `counted_from_s` are not counted."""

    query: str
    rows: Mapping[str, pa.Table]
    batch_s: float
    counted_from_s: float
    interval_s: float = 5.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """Results counted, and the most bytes there were after a batch."""

    results: int
    bytes: int


SETTINGS = (
    Setting("2 streams, aligned", (0, 0), (2, 50), (80, 80)),
    Setting("2 streams, lagged", (0, 5), (2, 20), (80, 80)),
    Setting("2 streams, lagged, rates 3:1", (0, 5), (2, 20), (120, 40)),
    Setting("2 streams, unrelated, rates 3:1", (0, 0), (2000, 2000), (120, 40)),
    Setting("3 streams, aligned", (0, 0, 0), (2, 2, 50), (40, 40, 40)),
    Setting("3 streams, lagged", (0, 5, 15), (2, 2, 50), (40, 40, 40)),
)
QUICK = Sizes(2, (SETTINGS[0], SETTINGS[1], SETTINGS[4], SETTINGS[5]), run_s=70.0, warm_up_s=40.0, quotes_hours=0.5)
FULL = Sizes(10, SETTINGS)


def run(quick: bool) -> list[Row]:
    """The rows of this bench."""
    return in_child("benchmarks.bench_memory_limit", quick)


def measure(sizes: Sizes) -> list[Row]:
    """Measure in this process."""
    rows: list[Row] = []
    for setting in sizes.settings:
        rows.extend(_rows(setting.name, [_case(setting, seed, sizes) for seed in range(sizes.seeds)], sizes.limits))
    quotes = Path(os.environ.get("WINDROW_DATA", ROOT.parent / "shared" / "data")) / QUOTES
    if sizes.recorded and quotes.exists():
        rows.extend(_rows("quotes of two venues", [_quotes(quotes, sizes.quotes_hours)], sizes.limits))
    return rows


def _rows(name: str, cases: list[Case], limits: tuple[float, ...]) -> Iterator[Row]:
    full = [_outcome(case, NEVER_REACHED, EXPECTED) for case in cases]
    for limit in limits:
        bounds = [max(1, int(limit * whole.bytes)) for whole in full]
        found = {
            policy: [_outcome(case, bound, policy) for case, bound in zip(cases, bounds, strict=True)]
            for policy in POLICIES
        }
        shares = {
            policy: [100 * one.results / max(whole.results, 1) for one, whole in zip(outcomes, full, strict=True)]
            for policy, outcomes in found.items()
        }
        means = {policy: statistics.mean(share) for policy, share in shares.items()}
        ours = means.pop(EXPECTED)
        best = max(means, key=lambda policy: means[policy])
        worst = min(
            mine / max(theirs) if max(theirs) > 0 else 1.0
            for mine, theirs in zip(
                shares[EXPECTED], zip(*(shares[policy] for policy in means), strict=True), strict=True
            )
        )
        others = ", ".join(f"{policy} {mean:.3g}" for policy, mean in means.items())
        yield larger(
            f"{name}, {limit:.0%} of the windows",
            ours=ours,
            peer=means[best],
            peer_name=best,
            unit="% of the results",
            goal=1.0,
            note=f"{others}; against the best strategy of each seed at least {worst:.3f}",
        )
        most = max(one.bytes / bound for one, bound in zip(found[EXPECTED], bounds, strict=True))
        yield smaller(f"{name}, {limit:.0%}: memory", ours=most, peer=None, unit="of the limit", goal=1.0)


def _outcome(case: Case, limit_bytes: int, policy: str) -> Outcome:
    """One run, to the end of the rows."""
    asked = windrow.sql(case.query, streams=case.rows)
    control = with_memory(None, limit_bytes, asked.spec())
    if control is not None:
        control = replace(control, memory_policy=policy, interval_s=case.interval_s)
    span_us = round(case.batch_s * 1e6)
    results = most = 0
    with windrow.local(asked, control=control) as join:
        replay = Replay({name: (rows, "ts", None) for name, rows in case.rows.items()}, batch_us=span_us)
        start_us: int | None = None
        for batch in replay:
            start_us = batch.end_us - span_us if start_us is None else start_us
            for source, table in batch.tables.items():
                join.push(source, table)
            found = join.step(now_s=batch.end_us / 1e6)
            if (batch.end_us - start_us) / 1e6 > case.counted_from_s:
                results += len(found)
            most = max(most, sum(store.memory_bytes for store in join.stores.values()))
    return Outcome(results, most)


def _case(setting: Setting, seed: int, sizes: Sizes) -> Case:
    scenario = Scenario(max(setting.rates_hz), setting.lags_s, setting.noise)
    streams = tuple(
        GrubJoinStream(stream.name, Poisson(rate_hz), stream.lag_s, stream.noise, stream.domain, stream.period_s)
        for stream, rate_hz in zip(scenario.streams(), setting.rates_hz, strict=True)
    )
    rows = generate(streams, sizes.run_s, seed)
    return Case(scenario.query(), rows, sizes.batch_s, sizes.warm_up_s)


def _quotes(path: Path, hours: float) -> Case:
    """Both venues' quotes of the same currency within half a pip of each other, within half an hour."""
    quotes = pq.read_table(path)
    start_us = pc.min(quotes["ts"].cast(pa.int64())).as_py()
    quotes = quotes.filter(pc.less(quotes["ts"].cast(pa.int64()), start_us + round(hours * 3600e6)))
    mid = np.asarray(pc.add(quotes["bid"], quotes["ask"])) / 2
    quotes = quotes.append_column("mid", pa.array(mid))
    rows = {venue: quotes.filter(pc.equal(quotes["venue"], venue)) for venue in ("fxcm", "oanda")}
    query = f"""SELECT a.ts AS a_ts, b.ts AS b_ts FROM fxcm AS a, oanda AS b
        WHERE a.symbol = b.symbol AND abs(a.mid - b.mid) <= {HALF_A_PIP:.5f} WINDOW {hours * 5:g} MINUTES"""
    return Case(query, rows, hours * 30, hours * 3600 / 4, interval_s=hours * 30)


if __name__ == "__main__":
    main(DESCRIPTION, run)
