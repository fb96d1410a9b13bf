"""Load shedding in the simulator: what window harvesting finds under overload, beside optimal random dropping and the
clairvoyant plan, on GrubJoin's streams; and how soon it is back after a change.

Random dropping at its best keeps the share 1 / overload of the results, so the gain over it is overload * recall - 1.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

import windrow
from benchmarks.measure import Row, in_child, main
from benchmarks.shedding import Rows, Shares, found, shares, shed, survey
from windrow.papers.grubjoin.scenario import Scenario
from windrow.streams.arrivals import SECOND_US
from windrow.streams.synthetic import MIDNIGHT_US, generate

DESCRIPTION = "Load shedding under a virtual clock: gain over random dropping, share of the clairvoyant plan's output"
DEBUG = True
BINS = 20
CLAIRVOYANT_GOAL, LEVEL_GOAL = 85.0, -6.0
GAIN_GOALS = {2.0: 85.0, 4.0: 230.0, 8.0: 450.0}
LAGS_S = (0.0, 5.0, 15.0, 10.0, 2.5)
UNRELATED = 2000.0
INTERVAL_S, BACK, CHANGE_S, AFTER_S, LATER, FEW = 5.0, 0.9, 60.0, 60.0, 1000, 0.2


@dataclass(frozen=True, slots=True)
class Setting:
    """Streams, and how many times too much work they are."""

    name: str
    scenario: Scenario
    overloads: tuple[float, ...] = (2.0, 4.0)
    related: bool = True


@dataclass(frozen=True, slots=True)
class Change:
    """Streams that change: their lags, or their rate, by a factor."""

    name: str
    lags_s: tuple[float, ...] | None = None
    factor: float = 1.0


@dataclass(frozen=True, slots=True)
class Sizes:
    """Which settings and changes, and how many seeds each."""

    settings: tuple[Setting, ...]
    changes: tuple[Change, ...]
    seeds: int


def _three(kappa: float, aligned: bool) -> Setting:
    scenario = Scenario(rate_hz=100, noise=(2, 2, kappa))
    name = f"3 streams, {'' if aligned else 'non'}aligned, noise {kappa:g}"
    return Setting(name, scenario.aligned() if aligned else scenario, (2.0, 4.0, 8.0))


def _more(streams: int, rate_hz: float, aligned: bool) -> Setting:
    scenario = Scenario(rate_hz=rate_hz, lags_s=LAGS_S[:streams], noise=(2.0,) * streams)
    return Setting(f"{streams} streams, {'' if aligned else 'non'}aligned", scenario.aligned() if aligned else scenario)


SETTINGS = (
    *(_three(kappa, aligned) for aligned in (True, False) for kappa in (25, 50, 75)),
    *(_more(streams, rate, aligned) for streams, rate in ((4, 40), (5, 25)) for aligned in (True, False)),
    Setting("3 streams, unrelated", Scenario(100, (0, 0, 0), (UNRELATED,) * 3), related=False),
)
CHANGES = (
    Change("rates rise by half", factor=1.5),
    Change("rates fall by a third", factor=2 / 3),
    Change("lags change places", lags_s=(0.0, 15.0, 5.0)),
)
FULL = Sizes(SETTINGS, CHANGES, seeds=20)
QUICK = Sizes(tuple(replace(setting, overloads=setting.overloads[1:2]) for setting in SETTINGS), CHANGES, seeds=1)


def run(quick: bool) -> list[Row]:
    """The rows of this bench."""
    return in_child("benchmarks.bench_shedding", quick)


def measure(sizes: Sizes) -> list[Row]:
    """Measure in this process; all but the number of seeds is the same on every machine."""
    rows = [row for setting in sizes.settings for row in _rows(setting, sizes.seeds)]
    return rows + [_reaction(change, sizes.seeds) for change in sizes.changes]


def _rows(setting: Setting, seeds: int) -> Iterator[Row]:
    by_overload: dict[float, list[Shares]] = {overload: [] for overload in setting.overloads}
    for seed in range(1, seeds + 1):
        scenario = setting.scenario
        tables = scenario.tables(seed)
        query = windrow.sql(scenario.query(), streams=tables)
        truth = survey(query, tables, BINS, scenario.warm_up_s)
        for overload, taken in by_overload.items():
            taken.append(shares(truth, query, tables, overload, scenario.warm_up_s, seed))
    for overload, taken in by_overload.items():
        gains = [100 * (overload * one.ours - 1) for one in taken]
        ratios = [100 * one.ours / one.clairvoyant for one in taken]
        name = f"{setting.name}, {overload:g} times too much"
        random = statistics.median(one.random for one in taken)
        goal = GAIN_GOALS[overload] if setting.related else LEVEL_GOAL
        yield _at_least(f"{name}: gain", gains, goal, f"random dropping finds {random:.3f} of all")
        if setting.related:
            yield _at_least(f"{name}: of the clairvoyant plan", ratios, CLAIRVOYANT_GOAL, "")


def _at_least(name: str, values: Sequence[float], goal: float, note: str) -> Row:
    """The median over the seeds, judged; the lowest value is noted."""
    median = statistics.median(values)
    lowest = f"lowest of {len(values)} seeds {min(values):.0f} %"
    return _row(name, round(median, 1), "%", f">= {goal:g} %", median >= goal, f"{lowest}; {note}" if note else lowest)


def _reaction(change: Change, seeds: int) -> Row:
    """From when on no interval in which there is much to find has less than nine tenths of the recall of later ones."""
    times = [_back_after_s(change, seed) for seed in range(1, seeds + 1)]
    median, goal = statistics.median(times), 4 * INTERVAL_S
    note = f"longest of {seeds} seeds {max(times):g} s; 4 times too much work"
    return _row(f"{change.name}: back after", median, "s", f"<= {goal:g} s", median <= goal, note)


def _back_after_s(change: Change, seed: int) -> float:
    scenario = replace(Scenario(rate_hz=50 if change.factor == 1 else 100 / max(1.0, change.factor)), run_s=CHANGE_S)
    tables = _changed(scenario, change, seed)
    query = windrow.sql(scenario.query(), streams=tables)
    truth = survey(query, tables, BINS, CHANGE_S + scenario.window_s)
    machine = truth.machine.overloaded(truth.full, 4.0, CHANGE_S + scenario.window_s)
    ours = shed(query, tables, machine, seed, BINS)

    ends = [CHANGE_S + INTERVAL_S * number for number in range(1, int(AFTER_S / INTERVAL_S) + 1)]
    there = [found(truth.full, end - INTERVAL_S, end) for end in ends]
    recalls = [found(ours, end - INTERVAL_S, end) / max(1, results) for end, results in zip(ends, there, strict=True)]
    steady = statistics.mean(recalls[len(recalls) // 2 :])
    low = [
        end
        for end, recall, results in zip(ends, recalls, there, strict=True)
        if recall < BACK * steady and results > FEW * there[-1]
    ]
    return max(low, default=CHANGE_S) - CHANGE_S


def _changed(scenario: Scenario, change: Change, seed: int) -> Rows:
    """Streams that are one thing for a while, and then another."""
    later = replace(scenario, lags_s=change.lags_s or scenario.lags_s, rate_hz=scenario.rate_hz * change.factor)
    start_us = MIDNIGHT_US + int(CHANGE_S * SECOND_US)
    after = generate(later.streams(), AFTER_S, seed + LATER, start_us)
    return {name: pa.concat_tables([table, after[name]]) for name, table in scenario.tables(seed).items()}


def _row(name: str, ours: float, unit: str, goal: str, met: bool, note: str) -> Row:
    return {
        "name": name,
        "peer_name": "",
        "ours": ours,
        "peer": None,
        "unit": unit,
        "ratio": None,
        "goal": goal,
        "met": met,
        "note": note,
    }


if __name__ == "__main__":
    main(DESCRIPTION, run)
