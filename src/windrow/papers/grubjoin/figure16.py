"""Figure 16: rows that find no room in input buffers, over their size and the rate of the streams (section VI-B.7).

Buffers of 10 rows, of 1 s, of 2 s. The throttle is set to 1, and drops are counted for 20 s; Δ = 5 s. At 200 rows a
second, buffers of 1 s drop about 30 % less than those of 10 rows, buffers of 2 s about 50 % less.

Ours: nonaligned streams on the machine of `capacity`; `SETTLED_S` under control, so that windows are full and buffers
are not, then z = 1. Rows are taken from the buffers as soon as the join is ready, `BATCH_ROWS` of each stream at most,
at no cost a batch: nearly as the paper takes them one by one. The smallest buffer holds 10 rows more than are taken at
once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from windrow.papers.experiment import Chart, Claim, Experiment, Outcome, Series
from windrow.papers.grubjoin.capacity import Workload, machine, percent
from windrow.papers.grubjoin.scenario import Scenario
from windrow.papers.tables import Table
from windrow.run.local import LocalJoin
from windrow.run.simulate import Machine

RATES_HZ, QUICK_RATES_HZ = (100.0, 150.0, 200.0), (200.0,)
BUFFERS_S = (0.0, 1.0, 2.0)
PAPERS = {1.0: 0.3, 2.0: 0.5}
SETTLED_S, COUNTED_S = 40.0, 20.0
BATCH_S, BATCH_ROWS = 0.2, 50
RUNS, QUICK_RUNS = 3, 1
NEAR = 0.15


def run(quick: bool, seed: int) -> Outcome:
    """All buffers, all rates."""
    scenario = Scenario(RATES_HZ[-1], warm_up_s=SETTLED_S, run_s=SETTLED_S + COUNTED_S)
    seeds = range(seed, seed + (QUICK_RUNS if quick else RUNS))
    return buffers(scenario, QUICK_RATES_HZ if quick else RATES_HZ, seeds)


def buffers(scenario: Scenario, rates_hz: Sequence[float], seeds: range) -> Outcome:
    """The same at these rates, as means over these seeds; z is set to 1 when the warm-up is over."""
    rows = []
    for rate_hz in rates_hz:
        streams = replace(scenario, rate_hz=rate_hz)
        for buffer_s in BUFFERS_S:
            dropped = fmean(dropped_share(streams, buffer_s, seed) for seed in seeds)
            rows.append((rate_hz, buffer_s, _rows(streams, buffer_s), dropped))
    table = Table.of(("rate_hz", "buffer_s", "buffer_rows", "dropped"), rows)
    series = tuple(
        Series.of(table.where(rate_hz=rate_hz), f"{rate_hz:g} rows a second", x="buffer_s", y="dropped")
        for rate_hz in rates_hz
    )
    return Outcome(table, _claims(table), (Chart("buffer (s)", "share of rows dropped", series),))


def dropped_share(scenario: Scenario, buffer_s: float, seed: int) -> float:
    """Of the rows that come after z was set to 1, the share that finds no room."""
    work = Workload.of(scenario, seed, batch_s=BATCH_S)
    on = Machine(replace(machine().costs, batch_s=0.0))
    reset = Reset(scenario.warm_up_s)
    ran = work.grubjoin(on, before=reset, batch_rows=BATCH_ROWS, buffer_rows=_rows(scenario, buffer_s))
    lost = [step.dropped for step in ran.steps if step.begin_s <= scenario.run_s]
    before = [step.dropped for step in ran.steps if step.begin_s <= scenario.warm_up_s]
    return (lost[-1] - before[-1]) / (len(scenario.aliases) * scenario.rate_hz * (scenario.run_s - scenario.warm_up_s))


class Reset:
    """Sets the throttle to 1, once, as it was at the beginning."""

    def __init__(self, at_s: float) -> None:
        self.at_s = at_s
        self.first: Mapping[str, Any] | None = None
        self.done = False

    def __call__(self, join: LocalJoin, now_s: float) -> None:
        if join.controller is None or self.done:
            return
        held = join.controller.to_values()
        if self.first is None:
            self.first = held
        if now_s >= self.at_s and join.observation is not None:
            opened = {name: self.first[name] for name in ("throttle", "shedding", "batches")}
            join.controller.restore({**held, **opened, "decided_s": join.observation.now_s})
            self.done = True


def _rows(scenario: Scenario, buffer_s: float) -> int:
    return max(scenario.buffer_rows + BATCH_ROWS, round(buffer_s * scenario.rate_hz))


def _claims(table: Table) -> tuple[Claim, ...]:
    fastest = max(table.numbers("rate_hz"))
    of = table.where(rate_hz=fastest)
    dropped = dict(zip(of.numbers("buffer_s"), of.numbers("dropped"), strict=True))
    least = dropped[min(dropped)]
    cut = {buffer_s: 1 - dropped[buffer_s] / least if least > 0 else 0.0 for buffer_s in PAPERS}
    claims = [
        Claim(
            f"{fastest:g} rows a second: buffers of {buffer_s:g} s cut the drop rate by",
            f"about {papers:.0%}",
            f"{cut[buffer_s]:.0%}, from {least:.1%} to {dropped[buffer_s]:.1%}",
            abs(cut[buffer_s] - papers) <= NEAR,
        )
        for buffer_s, papers in PAPERS.items()
    ]
    shrinking = [
        list(found) == sorted(found, reverse=True)
        for rate_hz in dict.fromkeys(table.numbers("rate_hz"))
        for found in (table.where(rate_hz=rate_hz).numbers("dropped"),)
    ]
    told = ", ".join(percent(share).lstrip("+") for share in of.numbers("dropped"))
    return (*claims, Claim("the larger the buffer, the less is dropped", "yes", told, all(shrinking)))


EXPERIMENT = Experiment("grubjoin/figure16", "Rows dropped by small input buffers", run)
