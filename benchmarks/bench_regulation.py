"""Regulated streams or harvested windows under a CPU limit: what the controller chooses, beside always either.

All runs have the virtual clock. Streams are those of GrubJoin's section VI-B, whose values agree at once, after a lag,
or by chance alone. There is time for a share of the work besides what batches themselves take. Conditions are dear, as
a function of the user's is, or rows are: then merging and indexing them is most of the work, which only letting fewer
in can save.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

import windrow
from benchmarks.measure import Row, in_child, larger, main
from benchmarks.shedding import DEARER, found
from windrow.control.controller import ControlSettings
from windrow.papers.grubjoin.scenario import Scenario
from windrow.plan.cost import StepCost
from windrow.plan.work import REFERENCE, WorkCosts
from windrow.query.builder import Join
from windrow.run.simulate import Machine, Simulated, simulate
from windrow.streams.arrivals import Poisson
from windrow.streams.synthetic import GrubJoinStream, generate

DESCRIPTION = "Regulation or harvesting under a CPU limit: the output of what is chosen, beside the better of the two"
LEAST = 0.97
BUSY = 0.98
SHARES = (0.1, 0.3, 0.6)
UNRELATED = 2000.0
ALWAYS = ("harvest", "drop")
KINDS: Mapping[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "aligned": ((0, 0, 0), (2, 2, 20)),
    "lagged": ((0, 5, 12), (2, 2, 20)),
    "unrelated": ((0, 0, 0), (UNRELATED,) * 3),
}
"""Lags and noise."""
RATES: Mapping[str, tuple[float, ...]] = {
    "2 streams, rates 1:1": (60, 60),
    "2 streams, rates 1:10": (20, 200),
    "3 streams, rates 1:1:1": (30, 30, 30),
    "3 streams, rates 1:10:10": (8, 80, 80),
}
DEAR_ROWS = WorkCosts(
    batch_s=3e-3,
    row_s=1e-6,
    merge_row_s=1e-4,
    index_row_s=5e-4,
    result_s=1e-6,
    decision_s=7e-5,
    steps={**REFERENCE.steps, "sorted": StepCost(per_probe=2e-4, per_candidate=1e-6, per_result=1e-6)},
)


@dataclass(frozen=True, slots=True)
class Setting:
    """Streams of a kind, with their rates, and what is dear."""

    kind: str
    rates: str
    method: str = "loop"

    @property
    def name(self) -> str:
        return f"{self.rates}, {self.kind}{'' if self.method == 'loop' else ', rows dear'}"

    @property
    def costs(self) -> WorkCosts:
        return REFERENCE.scaled(DEARER) if self.method == "loop" else DEAR_ROWS


@dataclass(frozen=True, slots=True)
class Sizes:
    """Which settings, how many seeds, and how long."""

    settings: tuple[Setting, ...]
    seeds: int
    shares: tuple[float, ...] = SHARES
    run_s: float = 80.0
    warm_up_s: float = 30.0


CONDITIONS = tuple(Setting(kind, rates) for rates in RATES for kind in KINDS)
ROWS = tuple(Setting("unrelated", rates, "sorted") for rates in RATES if rates.startswith("2"))
FULL = Sizes(CONDITIONS + ROWS, seeds=10)
QUICK = Sizes((*CONDITIONS[:6], *ROWS), seeds=1)


def run(quick: bool) -> list[Row]:
    """The rows of this bench."""
    return in_child("benchmarks.bench_regulation", quick)


def measure(sizes: Sizes) -> list[Row]:
    """Measure in this process; all but the number of seeds is the same on every machine."""
    return [row for setting in sizes.settings for row in _rows(setting, sizes)]


def _rows(setting: Setting, sizes: Sizes) -> Iterator[Row]:
    parts: dict[float, list[dict[str, float]]] = {share: [] for share in sizes.shares}
    for seed in range(1, sizes.seeds + 1):
        query, tables = _streams(setting, sizes.run_s, seed)
        machine = Machine(setting.costs)
        full = simulate(query, tables, machine, methods=[setting.method])
        everything = found(full, sizes.warm_up_s)
        for share, taken in parts.items():
            slow = _with_time_for(share, machine, full, sizes.warm_up_s)
            runs = {policy: _shed(query, tables, slow, setting, policy, seed) for policy in ("auto", *ALWAYS)}
            taken.append(
                {policy: 100 * found(one, sizes.warm_up_s) / max(1.0, everything) for policy, one in runs.items()}
            )
    for share, taken in parts.items():
        means = {policy: statistics.mean(one[policy] for one in taken) for policy in ("auto", *ALWAYS)}
        better = max(ALWAYS, key=lambda policy: means[policy])
        lowest = min(one["auto"] / max(one[policy] for policy in ALWAYS) for one in taken)
        yield larger(
            f"{setting.name}, time for {share:g}",
            ours=means["auto"],
            peer=means[better],
            peer_name=better,
            unit="% of the results",
            goal=LEAST,
            note=f"harvest {means['harvest']:.3g}, drop {means['drop']:.3g}; seeds: {len(taken)}, lowest {lowest:.3f}",
        )


def _streams(setting: Setting, run_s: float, seed: int) -> tuple[Join, dict[str, pa.Table]]:
    rates_hz = RATES[setting.rates]
    lags_s, noise = (held[: len(rates_hz)] for held in KINDS[setting.kind])
    scenario = Scenario(max(rates_hz), lags_s, noise, run_s=run_s)
    streams = tuple(
        GrubJoinStream(stream.name, Poisson(rate_hz), stream.lag_s, stream.noise, stream.domain, stream.period_s)
        for stream, rate_hz in zip(scenario.streams(), rates_hz, strict=True)
    )
    tables = generate(streams, run_s, seed)
    return windrow.sql(scenario.query(), streams=tables), tables


def _with_time_for(share: float, machine: Machine, full: Simulated, after_s: float) -> Machine:
    """So slow a machine that there is time for a share of the work, and for the batches themselves."""
    fixed = machine.costs.batch_s
    return replace(machine, speed=machine.speed * (share * (full.load(after_s) - fixed) + fixed) / BUSY)


def _shed(
    query: Join, tables: Mapping[str, pa.Table], machine: Machine, setting: Setting, policy: str, seed: int
) -> Simulated:
    control = ControlSettings(seed=seed, policy=policy)
    told = (REFERENCE if setting.method == "loop" else DEAR_ROWS).slowed(1 / machine.speed)
    return simulate(query, tables, machine, methods=[setting.method], throttle="auto", control=control, costs=told)


if __name__ == "__main__":
    main(DESCRIPTION, run)
