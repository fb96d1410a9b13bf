"""A machine of fixed capacity, and what GrubJoin and RandomDrop find on it: what the figures on output rates share.

    scenario, seed ── full join, at leisure ──▶ load, output ─┬─▶ throttled by Windrow's controller ──▶ GrubJoin
                                                              └─▶ keep rates, once ──▶ full join ─────▶ RandomDrop

Runs are Windrow's own, under a virtual clock (`windrow.run.simulate`), in batches of a second. Joins are nested loops,
as in the paper. The built-in costs hold, those of a compiled loop, with two exceptions. A comparison takes longer: as
long as lets the full join of the aligned streams at 100 rows a second, the dearer ones, take the share `FULL` of the
time ("there is no need for load shedding until the rates reach 100 tuples/seconds"; the paper does not say what a
comparison took, here it is a quarter of a microsecond). And a choice of what to harvest takes what the paper reports,
10 ms for m = 5 and n = 20, in proportion to n and to m to the fourth.

RandomDrop is the paper's: drop operators before the join, whose rates come from a static optimisation. Ours knows what
the full join of these very rows costs and finds, step by step, and takes the best keep rates there are for the time a
throttle aims at (`windrow.plan.random_drop`); it has nothing to learn, so it is as strong an opponent as can be. Both
begin with the orders of `Scenario.orders`. Input buffers hold what comes in two batches (the paper's: 10 rows, taken
one by one), so that a start that is too dear is not paid for later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from statistics import fmean
from typing import Any

import windrow
from windrow.control.controller import ControlSettings
from windrow.control.observation import StepTally, summed
from windrow.control.throttle import ThrottleRule
from windrow.papers.grubjoin.scenario import Scenario
from windrow.plan.cost import CostModel, Statistics, StepCost, StepStatistics, StreamStatistics
from windrow.plan.order import plan_query
from windrow.plan.plan import Plan
from windrow.plan.random_drop import keep_rates
from windrow.plan.shedding import ALL, Shedding
from windrow.plan.work import REFERENCE
from windrow.query.builder import Join
from windrow.run.simulate import Machine, Simulated, simulate
from windrow.streams.arrivals import Arrivals

FITTING_HZ, FULL = 100.0, 0.85
METHOD = "loop"
BATCH_S, BUFFER_BATCHES = 1.0, 2.0
AT_LEISURE = Machine(REFERENCE)
"""A compiled loop: fast enough for every full join here."""


@dataclass(frozen=True, eq=False)
class Workload:
    """One scenario's rows and query, and the ways to join them."""

    scenario: Scenario
    query: Join
    plan: Plan
    batch_s: float = BATCH_S

    @staticmethod
    def of(scenario: Scenario, seed: int, arrivals: Arrivals | None = None, batch_s: float = BATCH_S) -> Workload:
        """Rows as the seed draws them."""
        query = windrow.sql(scenario.query(), streams=scenario.tables(seed, arrivals))
        return Workload(scenario, query, plan_query(query.spec(), methods=[METHOD], orders=scenario.orders()), batch_s)

    @cached_property
    def full(self) -> Simulated:
        """The full join, at leisure."""
        return simulate(self.query, dict(self.query.sources), AT_LEISURE, batch_s=self.batch_s, plan=self.plan)

    def load(self, machine: Machine) -> float:
        """The share of a machine's time that the full join would take, with windows full."""
        return self._fixed_load + _step_load(self.statistics(machine))

    def grubjoin(self, machine: Machine, **options: Any) -> Simulated:
        """Throttled, so that there is time for it; with options of `windrow.local`."""
        return self._run(machine, **{"throttle": "auto", "control": self.control(), "methods": [METHOD], **options})

    def control(self) -> ControlSettings:
        """How the scenario has it controlled."""
        scenario = self.scenario
        return ControlSettings(interval_s=scenario.interval_s, sample=scenario.shredded, bins=scenario.bins)

    def random_drop(self, machine: Machine) -> Simulated:
        """With the best keep rates for this machine, from the first row on."""
        statistics = self.statistics(machine)
        spare = ThrottleRule().target - self._fixed_load
        kept = keep_rates(statistics, min(1.0, spare / _step_load(statistics)))
        return self._run(machine, Shedding(keep=tuple(zip(self.scenario.aliases, kept.keep, strict=True))))

    def statistics(self, machine: Machine) -> Statistics:
        """What each step of the full join meets and finds, with windows full; costs are the machine's."""
        scenario, cost = self.scenario, machine.costs.step(METHOD)
        rows = scenario.rate_hz * scenario.window_s
        numbers = {alias: number for number, alias in enumerate(scenario.aliases)}
        joined = summed(step.observation.joined for step in self.full.steps if step.begin_s > scenario.warm_up_s)
        directions = (
            tuple(
                _as_step(numbers[target], tally, rows, cost)
                for target, tally in zip(path.targets, joined.others[path.name].steps, strict=True)
            )
            for path in self.plan.firsts
        )
        return Statistics((StreamStatistics(scenario.rate_hz, scenario.window_s),) * len(numbers), tuple(directions))

    @cached_property
    def _fixed_load(self) -> float:
        """Seconds a second that are not spent on steps."""
        warm_up_s = self.scenario.warm_up_s
        steps = [step.observation for step in self.full.steps if step.begin_s > warm_up_s]
        paths = [path for step in steps for path in step.joined.others.values()]
        spent_s = sum(step.seconds for path in paths for step in path.steps)
        return self.full.load(warm_up_s) - spent_s / sum(step.span_s for step in steps)

    def _run(self, machine: Machine, shedding: Shedding = ALL, **options: Any) -> Simulated:
        scenario = self.scenario
        costs = replace(machine.costs, decision_s=decision_s(len(scenario.aliases), scenario.bins))
        usual = {"buffer_rows": round(BUFFER_BATCHES * self.batch_s * scenario.rate_hz), "costs": costs}
        return simulate(
            self.query,
            dict(self.query.sources),
            Machine(costs),
            batch_s=self.batch_s,
            plan=replace(self.plan, shedding=shedding),
            **{**usual, **options},
        )


@dataclass(frozen=True, slots=True)
class Compared:
    """Results a second after the warm-up; `load` is the share of the machine's time the full join would take."""

    load: float
    full_hz: float
    grubjoin_hz: float
    random_drop_hz: float

    @property
    def gain(self) -> float:
        """What GrubJoin finds more than RandomDrop, as a share of that."""
        return self.grubjoin_hz / self.random_drop_hz - 1 if self.random_drop_hz > 0 else float("inf")

    @property
    def row(self) -> tuple[float, ...]:
        """As `COLUMNS` has it."""
        return self.load, self.full_hz, self.grubjoin_hz, self.random_drop_hz, self.gain


COLUMNS = ("load", "full_hz", "grubjoin_hz", "random_drop_hz", "gain")
"""Of a table with a row for each comparison."""


@cache
def machine(comparison: float = 1.0) -> Machine:
    """The machine of all these figures, or one on which a comparison takes `comparison` times as long."""
    usual = fitted(Workload.of(Scenario(FITTING_HZ).aligned(), seed=0), FULL)
    return Machine(usual.costs.scaled(comparison))


def fitted(work: Workload, load: float) -> Machine:
    """One whose comparisons take as long as lets this full join take so much of the time."""
    once, twice = (work.load(Machine(REFERENCE.scaled(times))) for times in (1.0, 2.0))
    return Machine(REFERENCE.scaled(1.0 + (load - once) / (twice - once)))


def decision_s(streams: int, bins: int) -> float:
    """What choosing what to harvest takes.

    >>> decision_s(5, 20), round(decision_s(3, 10), 6)
    (0.01, 0.000648)
    """
    return 10e-3 * bins / 20 * (streams / 5) ** 4


def compared(scenario: Scenario, on: Machine, seeds: Sequence[int]) -> Compared:
    """Means over several runs."""
    found = []
    for seed in seeds:
        work = Workload.of(scenario, seed)
        runs = (work.full, work.grubjoin(on), work.random_drop(on))
        found.append((work.load(on), *(output_hz(scenario, run) for run in runs)))
    return Compared(*(fmean(column) for column in zip(*found, strict=True)))


def output_hz(scenario: Scenario, run: Simulated) -> float:
    """Results a second from the warm-up to the end of the input."""
    return run.found(scenario.warm_up_s, scenario.run_s) / (scenario.run_s - scenario.warm_up_s)


def percent(share: float) -> str:
    """A gain or a loss.

    >>> percent(1.5), percent(-0.031)
    ('+150 %', '-3 %')
    """
    return f"{100 * share:+.0f} %"


def _as_step(other: int, tally: StepTally, rows: float, cost: StepCost) -> StepStatistics:
    pairs = max(1, tally.probes) * rows
    return StepStatistics(other, tally.matches / pairs, (1.0,), (), tally.candidates / pairs, cost)


def _step_load(statistics: Statistics) -> float:
    return CostModel.of(statistics).full_cost
