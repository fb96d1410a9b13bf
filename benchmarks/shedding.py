"""Shedding in the simulator, judged: the same rows in full, shed by Windrow, by who knows everything, and at random.

    full          the cheapest exact plan: says what there is to find, and how much work that is
    ours          the controller, which knows nothing at the beginning; told costs of a machine like this one, but
                  not how dear the conditions of this query are
    clairvoyant   the best setting for the true lags, selectivities, rates and costs, kept to from the beginning
    random        rows dropped at random, at the rates that are best for the true statistics

All of a setting's runs have the same machine, so slow that full would take `overload` times the time there is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from windrow.control.choice import Choice, Steps, choose
from windrow.control.controller import Controller, ControlSettings
from windrow.errors import UsageError
from windrow.plan.bins import lag_bins
from windrow.plan.cost import StreamStatistics
from windrow.plan.order import plan_query, with_alternatives
from windrow.plan.plan import Plan
from windrow.plan.random_drop import keep_rates
from windrow.plan.shedding import Portion, Shedding
from windrow.plan.work import REFERENCE
from windrow.query.builder import Join
from windrow.query.spec import QuerySpec
from windrow.run.simulate import Machine, Simulated, simulate

METHODS = ("loop",)
DEARER = 1000.0
"""A condition takes so many times as long as a comparison of numbers: about as long as a function of the user's."""
SURVEYED = 0.5
ENDLESS_S = 1e12
BUSY = 0.99

Rows = Mapping[str, pa.Table]


@dataclass(frozen=True, slots=True)
class Truth:
    """What there is to know of a query over some rows, and what it gives in full."""

    spec: QuerySpec
    plan: Plan
    streams: tuple[StreamStatistics, ...]
    options: tuple[tuple[Steps, ...], ...]
    bins: int
    machine: Machine
    full: Simulated

    def best(self, throttle: float, optimiser: str = "exact") -> Choice:
        """The best paths and bins for a share of the full work."""
        return choose(self.streams, self.options, throttle, optimiser=optimiser)

    def under(self, choice: Choice) -> Plan:
        """The plan that keeps to a choice."""
        return replace(self.plan, shedding=_shedding(self.spec, self.plan, self.bins, choice))


@dataclass(frozen=True, slots=True)
class Shares:
    """Of the results that there are, the share each way of shedding found."""

    ours: float
    clairvoyant: float
    random: float


def survey(query: Join, rows: Rows, bins: int, after_s: float, machine: Machine | None = None) -> Truth:
    """Look at everything, half of the rows on all paths, and see what the cheapest paths take."""
    machine = machine or Machine(REFERENCE.scaled(DEARER))
    spec = query.spec()
    settings = ControlSettings(fixed=1.0, sample=SURVEYED, memory_s=ENDLESS_S, bins=bins)
    plan = with_alternatives(spec, plan_query(spec, methods=METHODS), METHODS)
    run = simulate(query, rows, machine, control=settings, methods=METHODS)
    controller = Controller(spec, plan, settings, machine.pace)
    steps = [step for step in run.steps if step.begin_s > after_s]
    for step in steps:
        controller.observe(step.observation)
    controller.decide(steps[-1].observation.now_s + ENDLESS_S)
    known = controller.to_be_chosen()
    if known is None:
        raise UsageError("nothing was seen of a direction", hint="give longer streams")
    cheapest = _shedding(spec, plan, bins, choose(*known, 1.0))
    full = simulate(query, rows, machine, plan=replace(plan, shedding=cheapest))
    return Truth(spec, plan, *known, bins, machine, full)


def shares(truth: Truth, query: Join, rows: Rows, overload: float, after_s: float, seed: int) -> Shares:
    """What each way finds of what came after a warm-up."""
    machine = truth.machine.overloaded(truth.full, overload, after_s)
    throttle = affordable(machine, overload)
    kept = keep_rates(truth.best(1.0).statistics, throttle).keep
    names = [stream.name for stream in truth.spec.streams]
    at_random = truth.under(truth.best(1.0))
    at_random = replace(at_random, shedding=replace(at_random.shedding, keep=tuple(zip(names, kept, strict=True))))
    runs = (
        shed(query, rows, machine, seed, truth.bins),
        simulate(query, rows, machine, plan=truth.under(truth.best(throttle))),
        simulate(query, rows, machine, plan=at_random),
    )
    everything = found(truth.full, after_s)
    return Shares(*(found(run, after_s) / everything for run in runs))


def shed(query: Join, rows: Rows, machine: Machine, seed: int, bins: int) -> Simulated:
    """Windrow's own run."""
    told = REFERENCE.slowed(1 / machine.speed)
    control = ControlSettings(seed=seed, bins=bins)
    return simulate(query, rows, machine, methods=METHODS, throttle="auto", control=control, costs=told)


def affordable(machine: Machine, overload: float) -> float:
    """The share of the full probing that just fits, when a batch costs something by itself."""
    fixed = machine.pace.batch_s
    return (BUSY - fixed) / (overload - fixed)


def found(run: Simulated, from_s: float, to_s: float = float("inf")) -> float:
    """Results of the rows that came in a span of time; those of a batch are spread over the time its rows came in. Rows
    that were never reached give none.
    """
    total = 0.0
    for step in run.steps:
        came_s = step.observation.span_s or step.begin_s
        inside_s = min(step.begin_s, to_s) - max(step.begin_s - came_s, from_s)
        total += step.observation.results * max(0.0, inside_s) / came_s
    return total


def _shedding(spec: QuerySpec, plan: Plan, bins: int, choice: Choice) -> Shedding:
    portions = []
    for number, first in enumerate(plan.firsts):
        taken = choice.paths[number]
        path = next(path for path in plan.paths if path.driver == first.driver and path.alternative == taken)
        stores = lag_bins(spec, path.driver, path.targets, bins)
        parts = []
        for setting, share in zip(choice.bins.settings, (1 - choice.bins.share, choice.bins.share), strict=True):
            lags = tuple(
                None if len(chosen) == store.size else store.ranges(chosen)
                for store, chosen in zip(stores, setting.chosen[number], strict=True)
            )
            if share > 0:
                parts.append(Portion(share, lags, alternative=taken))
        portions.append((path.driver, tuple(parts)))
    return Shedding(portions=tuple(portions))
