"""How honest recall is: seeded runs of throttled joins beside the exact one.

For each join the data stay the same and what is sampled is drawn anew, run by run. The interval has to hold the true
recall, COUNT, SUM and AVG in 90 to 99 of 100 runs, and its half-width (but AVG's) may be 1.3 times what the estimate's
real deviation asks for at most.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

import windrow
from benchmarks.measure import Row, in_child, main, smaller
from windrow.control.controller import ControlSettings
from windrow.control.recall import Recall, RecallMeter
from windrow.papers.grubjoin.scenario import Scenario
from windrow.plan.order import plan_query
from windrow.plan.shedding import Portion, Shedding, sampled
from windrow.plan.work import REFERENCE
from windrow.query.builder import Join
from windrow.run.local import LocalJoin
from windrow.run.simulate import Machine, simulate
from windrow.store.operand import time_us

DESCRIPTION = "Recall of throttled joins: how often its interval holds the truth, and how wide it is"
THROTTLES = (0.5, 0.2, 0.05)
SPAN_S, WINDOW_S, SHARE = 30, 10, 0.1
CONFIDENT = 1.96
METHOD, COMPARISON_S = "loop", 2.5e-7
MACHINES = {
    "comparisons are dear": Machine(
        replace(
            REFERENCE, steps={**REFERENCE.steps, METHOD: replace(REFERENCE.step(METHOD), per_candidate=COMPARISON_S)}
        )
    ),
    "a compiled loop": Machine(),
}
"""The work of which a throttle is a share: as in GrubJoin's experiments (`windrow.papers.grubjoin.capacity`) nearly all
comparisons, or by the built-in costs mostly matches, so that about the throttle's share of them can be found.
"""
QUANTITIES = {"n": "COUNT", "s": "SUM", "m": "AVG"}
Tables = Mapping[str, pa.Table]


@dataclass(frozen=True, slots=True)
class Sizes:
    """Seeded runs of each join, rows of a stream for two and for three streams, batches, and runs of GrubJoin's join
    at its rate.
    """

    runs: int
    rows: Mapping[int, int]
    batches: int
    scenario_runs: int
    rate_hz: float


QUICK = Sizes(runs=20, rows={2: 1000, 3: 400}, batches=6, scenario_runs=2, rate_hz=40)
FULL = Sizes(runs=200, rows={2: 1000, 3: 400}, batches=6, scenario_runs=12, rate_hz=100)


def run(quick: bool) -> list[Row]:
    """The rows of this bench."""
    return in_child("benchmarks.bench_recall", quick)


def measure(sizes: Sizes) -> list[Row]:
    """Measure in this process."""
    found = []
    for streams in (2, 3):
        for kind in ("uniform", "heavy-tailed"):
            tables = {name: _table(kind, sizes.rows[streams], number) for number, name in enumerate("abc"[:streams])}
            for throttle in THROTTLES:
                for quantity, runs in _harvested(tables, throttle, sizes).items():
                    name = f"m = {streams}, {kind}, z = {throttle:g}: {quantity}"
                    found += _rows(name, runs, with_width=quantity != QUANTITIES["m"])
    for machine in MACHINES:
        for throttle in (0.3, 0.5):
            found.append(_scenario_row(machine, throttle, sizes))
    return found


def _table(kind: str, count: int, seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    times = np.sort(random.integers(0, SPAN_S * 1_000_000, count))
    keys = random.integers(0, 20, count) if kind == "uniform" else np.minimum(random.zipf(1.5, count), 50)
    weights = random.lognormal(0, 1, count)
    return pa.table({"ts": pa.array(times, pa.timestamp("us")), "k": keys, "id": np.arange(count), "w": weights})


@dataclass(frozen=True, slots=True)
class Told:
    """What a run said of some quantity: an estimate and where it lies, None where that was too little to tell; and the
    truth.
    """

    true: float
    estimate: float | None
    low: float | None
    high: float | None


Runs = dict[str, list[Told]]


def _harvested(tables: Tables, throttle: float, sizes: Sizes) -> Runs:
    """What was told of each quantity, run by run: rows look at the newer half of each window."""
    names = tuple(tables)
    condition = " AND ".join(f"a.k = {name}.k" for name in names[1:])
    selected = "COUNT(*) AS n, SUM(b.w) AS s, AVG(b.w) AS m"
    text = f"SELECT {selected} FROM {', '.join(names)} WHERE {condition} WINDOW {WINDOW_S} SECONDS"
    query = windrow.sql(text, streams=dict(tables))
    plan = plan_query(query.spec())
    steps = len(names) - 1
    portions = (sampled(SHARE, steps), Portion(1 - SHARE, (((0, WINDOW_S * 500_000),),) * steps))

    def join(seed: int) -> LocalJoin:
        shedding = Shedding(throttle, seed, portions=tuple((name, portions) for name in names))
        return windrow.local(query, plan=replace(plan, shedding=shedding))

    return _told(query, join, tables, sizes.batches, sizes.runs)


def _told(query: Join, join: Callable[[int], LocalJoin], tables: Tables, batches: int, runs: int) -> Runs:
    cuts = _cuts(tables, batches)
    exact, lines = _run(windrow.local(query), cuts)
    found: Runs = {"recall": []}
    for seed in range(runs):
        told, estimates = _run(join(seed), cuts)
        found["recall"].append(Told(told.emitted / exact.emitted, told.recall, told.low, told.high))
        for name in QUANTITIES if query.summary is not None else ():
            estimate, low, high = (estimates[f"{name}{end}"][0].as_py() for end in ("", "_low", "_high"))
            found.setdefault(QUANTITIES[name], []).append(Told(lines[name][0].as_py(), estimate, low, high))
    return found


def _cuts(tables: Tables, batches: int) -> list[dict[str, pa.Table]]:
    """The rows of all streams, cut into batches by event time."""
    times = {name: np.asarray(time_us(table["ts"].combine_chunks())) for name, table in tables.items()}
    first, last = min(int(held[0]) for held in times.values()), max(int(held[-1]) for held in times.values())
    edges = np.linspace(first, last + 1, batches + 1).astype(np.int64)
    places = {name: np.searchsorted(held, edges) for name, held in times.items()}
    return [
        {name: table.slice(places[name][k], places[name][k + 1] - places[name][k]) for name, table in tables.items()}
        for k in range(batches)
    ]


def _run(join: LocalJoin, cuts: Sequence[Mapping[str, pa.Table]]) -> tuple[Recall, pa.Table]:
    """The recall of a run, and its last results: where aggregates were asked for, they."""
    for number, cut in enumerate(cuts):
        for name, table in cut.items():
            join.push(name, table)
        join.step(now_s=float(number + 1))
    last = join.finish()
    return join.recall.whole, last


@dataclass(frozen=True, slots=True)
class Judged:
    """Runs in which there was enough to tell: how often the interval held, its half-width, and the deviation of the
    error, both as shares of the truth's mean.
    """

    told: int
    held: float
    half_width: float
    deviation: float
    true: float

    @staticmethod
    def of(runs: Sequence[Told]) -> Judged:
        told = [(r.true, r.estimate, r.low, r.high) for r in runs if r.low is not None]
        if not told:
            return Judged(0, 0.0, 0.0, 0.0, 0.0)
        true, estimate, low, high = np.array(told, np.float64).T
        held, scale = ((low <= true) & (true <= high)).mean(), true.mean()
        width, deviation = float(np.median(high - low) / 2 / scale), float((estimate - true).std() / scale)
        return Judged(len(told), float(held), width, deviation, float(scale))


def _rows(name: str, runs: Sequence[Told], *, with_width: bool = True) -> list[Row]:
    judged = Judged.of(runs)
    needed = CONFIDENT * judged.deviation
    covered: Row = {
        **smaller(f"{name}: intervals that hold the truth", ours=100 * judged.held, peer=None, unit="%", goal=99),
        "goal": "90 to 99 %",
        "met": 0.9 <= judged.held <= 0.99,
        "note": f"{judged.told} of {len(runs)} runs had 30 sampled results; the truth is {judged.true:.3g}",
    }
    width = smaller(
        f"{name}: half-width",
        ours=100 * judged.half_width,
        peer=100 * needed or None,
        unit="%",
        goal=1.3,
        peer_name="1.96 deviations",
        note="of the truth",
    )
    return [covered, width] if with_width else [covered]


def _scenario_row(machine: str, throttle: float, sizes: Sizes) -> Row:
    """GrubJoin's nonaligned streams, under control: a run of a minute in batches of a second, on a virtual clock."""
    scenario = Scenario(rate_hz=sizes.rate_hz)
    tables = scenario.tables(seed=1)
    query = windrow.sql(scenario.query(), streams=tables)
    exact = simulate(query, tables, MACHINES[machine], methods=(METHOD,)).results
    runs = []
    for seed in range(sizes.scenario_runs):
        control = ControlSettings(fixed=throttle, sample=scenario.shredded, seed=seed)
        meter = RecallMeter()
        for step in simulate(query, tables, MACHINES[machine], control=control, methods=(METHOD,)).steps:
            meter.observe(step.observation)
        told = meter.whole
        runs.append(Told(told.emitted / exact, told.recall, told.low, told.high))
    judged = Judged.of(runs)
    return smaller(
        f"GrubJoin's streams, {machine}, z = {throttle:g}: half-width",
        ours=100 * judged.half_width * judged.true,
        peer=None,
        unit="%",
        goal=1.5,
        note=f"median of {judged.told}; {100 * judged.held:.0f} % hold the truth; true recall {100 * judged.true:.1f}"
        f" %, deviation of the error {100 * judged.deviation * judged.true:.2f} %",
    )


if __name__ == "__main__":
    main(DESCRIPTION, run)
