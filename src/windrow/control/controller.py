"""The controller: what batches tell in, what the next ones leave out.

    monitor ─▶ throttle ─▶ learn ─▶ optimise ─▶ actuate          once every adaptation interval Δ
    rates       z from      lags,    which bins   portions of
                the load    yields   each step    each driver's rows

A pure object: no clock, no files, no Spark. It is told what each batch did (`observe`) and asked what the next one may
leave out (`decide`); the same observations give the same decisions, so that each can be replayed from a log. Its state
has a JSON form, which goes into commits.

With a `fixed` throttle that share of the full work is done, whatever the load; otherwise the throttle follows the load
(`windrow.control.throttle`). Between two intervals a decision comes early only when a batch took so long that the next
ones cannot keep up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from windrow.control.choice import Choice, Steps, choose, full_cost, path_statistics
from windrow.control.fit import CostFit
from windrow.control.lags import Learned, surprise
from windrow.control.memory import Exposure, Holding, directions_of
from windrow.control.observation import Joined, Observation, PathTally, summed
from windrow.control.pieces import Outlook
from windrow.control.rates import Rates
from windrow.control.regulating import Budget, budget_of, let_in_after, regulated, regulates, rows_of
from windrow.control.settings import DEFAULT, ControlSettings
from windrow.control.spending import Known, asked_s, growth, older_half
from windrow.control.throttle import Load, ThrottleRule, load_of
from windrow.plan.bins import Bins, lag_bins
from windrow.plan.cost import StepCost, StreamStatistics
from windrow.plan.holding import Stock
from windrow.plan.kept import KeptSpan
from windrow.plan.plan import Plan, path_name
from windrow.plan.random_drop import RandomDrop
from windrow.plan.shedding import Portion, Shedding, sampled
from windrow.plan.work import REFERENCE, WorkCosts
from windrow.query.spec import QuerySpec

__all__ = ["ControlSettings", "Controller"]

SCOUTING = 0.5
"""The share of the sampled rows that take other paths than the one taken, at most."""
OVERRUN = 1.25
"""A batch that takes so many times as long as it had, and half an interval, calls for a decision at once."""
LEAST_SLACK, MOST_SLACK = 0.1, 3.0
UNKNOWN = 0.25
"""How much of its part a path is given of which nothing is known."""


class Controller:
    """Controls one join. `costs` are a first guess at what work costs, which is fitted while running."""

    def __init__(
        self,
        spec: QuerySpec,
        plan: Plan,
        settings: ControlSettings = DEFAULT,
        costs: WorkCosts = REFERENCE,
    ) -> None:
        self.spec = spec
        self.settings = settings
        self.rule = ThrottleRule(settings.interval_s, settings.boost, target=settings.target)
        self.throttle = 1.0 if settings.fixed is None else settings.fixed
        self.rates = Rates()
        self.fit = CostFit.of(costs, plan)
        self.decisions = 0
        self.slack = 1.0
        self.expected: dict[str, float] = {}
        self.let_in = {stream.name: 1.0 for stream in spec.streams}
        self._take_plan(plan)
        self._batches: list[Observation] = []
        self._before: Observation | None = None
        self._decided_s: float | None = None
        self._began_s: float | None = None
        self.shedding = self._portions(None)

    def _take_plan(self, plan: Plan) -> None:
        self.plan = plan
        settings, names = self.settings, [path.driver for path in plan.firsts]
        self.paths = {path.name: path.targets for path in plan.paths}
        self.by_driver = {name: tuple(path.name for path in plan.paths if path.driver == name) for name in names}
        self.bins = {
            path.name: lag_bins(self.spec, path.driver, path.targets, settings.bins, settings.behind)
            for path in plan.paths
        }
        self.learned = {
            driver: Learned.empty(
                {path: self.paths[path] for path in paths},
                {target: held.size for target, held in zip(self.paths[driver], self.bins[driver], strict=True)},
            )
            for driver, paths in self.by_driver.items()
        }
        self.choice: Choice | None = None
        self.exposure = Exposure()
        self._holding: Holding | None = None
        self._split: dict[str, float] | None = None
        self.taken: tuple[int, ...] = ()
        self.path_costs: tuple[tuple[float, ...], ...] = ()

    def observe(self, batch: Observation) -> None:
        """Take in what a batch did."""
        self._batches.append(batch)
        self.fit = self.fit.observe(batch)
        self.rates = self.rates.after(batch, self.settings.interval_s)

    def decide(self, now_s: float) -> Shedding:
        """What a batch that begins at `now_s` leaves out."""
        if not self._batches:
            return self.shedding
        if self._decided_s is None:
            self._decided_s = self._began_s = self._batches[0].now_s - self._batches[0].span_s
        if now_s - self._decided_s < self.settings.interval_s and not self._is_overrun():
            return self.shedding
        self._adapt(now_s)
        return self.shedding

    def use_methods(self, plan: Plan) -> None:
        """Go on under a plan that differs in methods alone: what was learned of orders and lags stays good."""
        self.plan, self.fit = plan, self.fit.under(plan)

    def keep(self, stocks: Mapping[str, Stock], budget: float) -> tuple[KeptSpan, ...]:
        """What to keep of each store in so many bytes, by what was learned up to the last interval."""
        if self._holding is None:
            firsts = {driver: paths[0] for driver, paths in self.by_driver.items()}
            rates_hz = {name: self.rates.stream(self.spec.stream(name)).rate_hz for name in firsts}
            bins = {driver: self.bins[path] for driver, path in firsts.items()}
            portions = dict(self.shedding.portions)
            self._holding = Holding(
                self.settings.memory_policy,
                rates_hz,
                directions_of(self.learned, self.exposure, self.paths, bins, rates_hz, portions),
                sum(held.drivers * held.results_a_row for held in self.learned.values()),
                before=self._split,
            )
        return self._holding.spans(stocks, budget)

    def to_be_chosen(self) -> Known | None:
        """What is known of the streams, and of each path of each driver; None before all drivers were sampled."""
        if any(held.sampled == 0 for held in self.learned.values()):
            return None
        names = list(self.by_driver)
        streams = tuple(self.rates.stream(self.spec.stream(name)) for name in names)
        rows = dict(zip(names, (stream.rows for stream in streams), strict=True))
        options = []
        for driver, paths in self.by_driver.items():
            held, widths = self.learned[driver], self._widths(driver, rows)
            scores = held.scores(widths)
            options.append(
                tuple(path_statistics(held, path, names, rows, widths, scores, self.costs(path)) for path in paths)
            )
        return streams, tuple(options)

    def _widths(self, driver: str, rows: Mapping[str, float]) -> dict[str, tuple[float, ...]]:
        held = self.learned[driver]
        return {
            target: _widths(bins, held.newer_a_row(target) / max(rows[target], 1e-9))
            for target, bins in zip(self.paths[driver], self.bins[driver], strict=True)
        }

    def outlook(self) -> dict[str, tuple[Outlook, ...]] | None:
        """What is known of the steps of each path; None before all drivers were sampled. Scores are what was counted:
        nothing is chosen by them, so that there is no chance to be taken in by.
        """
        known = self.to_be_chosen()
        if known is None:
            return None
        streams, options = known
        return {
            path: tuple(
                Outlook(bins, streams[step.stream].rows, replace(step, scores=tuple(counted[target].tolist())))
                for bins, step, target in zip(self.bins[path], steps, self.paths[path], strict=True)
            )
            for driver, found in zip(self.by_driver, options, strict=True)
            for counted in [self.learned[driver].counted()]
            for path, steps in zip(self.by_driver[driver], found, strict=True)
        }

    def to_values(self) -> dict[str, Any]:
        """The state, as values that JSON knows."""
        return {
            "throttle": self.throttle,
            "rates": self.rates.to_values(),
            "fit": self.fit.to_values(),
            "decisions": self.decisions,
            "slack": self.slack,
            "learned": {driver: held.to_values() for driver, held in self.learned.items()},
            "expected": dict(self.expected),
            "let_in": dict(self.let_in),
            "split": None if self._split is None else dict(self._split),
            "exposure": self.exposure.to_values(),
            "taken": list(self.taken),
            "path_costs": [list(costs) for costs in self.path_costs],
            "batches": [batch.to_values() for batch in self._batches],
            "before": None if self._before is None else self._before.to_values(),
            "decided_s": self._decided_s,
            "began_s": self._began_s,
            "shedding": self.shedding.to_values(),
        }

    def restore(self, values: Mapping[str, Any]) -> None:
        """Go on from a state that `to_values` gave; what was learned over other paths or bins is left aside."""
        self.throttle = values["throttle"] if self.settings.fixed is None else self.settings.fixed
        self.rates = Rates.from_values(values["rates"])
        self.fit = CostFit.from_values(values["fit"]).under(self.plan)
        self.decisions, self.slack = values["decisions"], values["slack"]
        learned = {driver: Learned.from_values(held) for driver, held in values["learned"].items()}
        fits = learned.keys() == self.learned.keys() and all(
            held.paths == self.learned[driver].paths and _sizes(held) == _sizes(self.learned[driver])
            for driver, held in learned.items()
        )
        if fits:
            self.learned, self.expected = learned, dict(values["expected"])
            self.let_in = dict(values["let_in"])
            self._split = values["split"]
            self.exposure = Exposure.from_values(values["exposure"])
            self.shedding = Shedding.from_values(values["shedding"])
            self.taken = tuple(values["taken"])
            self.path_costs = tuple(map(tuple, values["path_costs"]))
        self._batches = [Observation.from_values(batch) for batch in values["batches"]] if fits else []
        self._before = None if values["before"] is None else Observation.from_values(values["before"])
        self._decided_s, self._began_s = values["decided_s"], values["began_s"]

    def costs(self, path: str) -> list[StepCost]:
        """What each step of a path is believed to cost."""
        return [self.fit.cost(path, step) for step in range(len(self.paths[path]))]

    def _is_overrun(self) -> bool:
        last = self._batches[-1]
        limit_s = max(OVERRUN * last.span_s, self.settings.interval_s / 2)
        return self.settings.fixed is None and last.busy_s > limit_s

    def _adapt(self, now_s: float) -> None:
        self.decisions += 1
        joined = summed(batch.joined for batch in self._batches)
        self._learn(joined, now_s)
        known = self.to_be_chosen()
        if self.settings.fixed is not None:
            self.slack = self._slack_after(joined)
            self.shedding = self._optimised(self.throttle, None, known)
        else:
            fixed_s, grown = sum(batch.fixed_s for batch in self._batches), self._growth(known, now_s)
            load = load_of(self._batches, before=self._before, fixed_s=fixed_s, growth=grown)
            aim = float(self.rule.aim(self._throttle_was(known), load, self.throttle))
            self.throttle = self.rule.bounded(aim)
            self.shedding = self._optimised(aim, load, known)
        self._before = self._batches[-1]
        self._batches = []
        self._split = self._split if self._holding is None else self._holding.split
        self._holding = None
        self._decided_s = now_s

    def _slack_after(self, joined: Joined) -> float:
        """How much more than the throttle to plan for, so that what is done comes to the throttle's share of all work.

        Sampled rows on the path that is taken tell what everything costs, whatever the model of it leaves out: windows
        that are not filled evenly, for one.
        """
        done = everything = 0.0
        for number, paths in enumerate(self.by_driver.values()):
            taken = paths[self.taken[number]] if self.taken else paths[0]
            spent = [
                {path: self._spent_s(path, tally) for path, tally in held.items() if path in paths}
                for held in (joined.sampled, joined.others)
            ]
            rows = sum(held[path].drivers for held in (joined.sampled, joined.others) for path in paths if path in held)
            seen = joined.sampled[taken].drivers if taken in joined.sampled else 0
            if seen:
                done += sum(sum(held.values()) for held in spent)
                everything += spent[0][taken] * rows / (seen * self.shedding.throttle)
        if done <= 0 or everything <= 0 or not self.shedding.restricts or self.shedding.keep:
            return self.slack
        share = done / everything
        return float(min(MOST_SLACK, max(LEAST_SLACK, self.slack * (self.throttle / share) ** 0.7)))

    def _spent_s(self, path: str, tally: PathTally) -> float:
        counts = zip(self.costs(path), tally.steps, strict=False)
        return sum(cost.seconds(step.probes, step.candidates, step.matches) for cost, step in counts)

    def _throttle_was(self, known: Known | None) -> float:
        """The throttle of the interval, by what is known now of what was done, and of what everything would cost.

        What is known changes; what was measured is the load of what was done.
        """
        if known is None or self.shedding.keep:
            return self.throttle
        streams, options = known
        everything = full_cost(streams, options)
        if everything <= 0:
            return self.throttle
        done = sum(
            portion.share * streams[number].rate_hz * self._asked_s(streams, options[number], portion, driver)
            for number, driver in enumerate(self.by_driver)
            for portion in self.shedding.of(driver)
        )
        return min(1.0, done / everything) if done > 0 else self.throttle

    def _asked_s(
        self, streams: Sequence[StreamStatistics], options: Sequence[Steps], part: Portion, driver: str
    ) -> float:
        bins = self.bins[path_name(driver, part.alternative)]
        return asked_s(streams, options, part, bins, self.shedding.throttle)

    def _growth(self, known: Known | None, now_s: float) -> float:
        """How many times as much work the next interval is as the last one, because windows fill for the first time."""
        if known is None or self._began_s is None:
            return 1.0
        streams = known[0]
        for_s, spent_s = now_s - self._began_s, sum(batch.span_s for batch in self._batches)
        if for_s <= spent_s / 2 or all(stream.window_s <= for_s for stream in streams):
            return 1.0
        olds = [[self._olds(driver, path, for_s) for path in paths] for driver, paths in self.by_driver.items()]
        return growth(known, olds, for_s, spent_s, self.settings.interval_s)

    def _olds(self, driver: str, path: str, for_s: float) -> list[float]:
        """For each step of a path, how much was found in the older half of what the store holds after such a time."""
        counted = self.learned[driver].counted()
        windows_s = [self.rates.stream(self.spec.stream(target)).window_s for target in self.paths[path]]
        return [
            older_half(counted[target], bins, bins.window * min(1.0, for_s / window_s))
            for target, bins, window_s in zip(self.paths[path], self.bins[path], windows_s, strict=True)
        ]

    def _learn(self, joined: Joined, now_s: float) -> None:
        decided_s = self._decided_s if self._decided_s is not None else now_s
        faded = 0.5 ** ((now_s - decided_s) / self.settings.memory_s)
        kept = {}
        windows_s = {name: self.rates.stream(self.spec.stream(name)).window_s for name in self.let_in}
        self.let_in = let_in_after(self.let_in, self.shedding, now_s - decided_s, windows_s)
        for driver, held in self.learned.items():
            there = float(np.prod([share for name, share in self.let_in.items() if name != driver]))
            sample, others = (
                {path: tally for path, tally in found.items() if path in held.paths}
                for found in (joined.sampled, joined.others)
            )
            off = abs(surprise(others, self.expected[driver] * there)) if driver in self.expected else 0.0
            keep = self.settings.forget if off > self.settings.surprise else faded
            self.learned[driver] = held.after(sample, others, self.shedding.throttle, keep, there)
            kept[driver] = keep
        self.exposure = self.exposure.after(joined, self.paths, self.by_driver, kept)

    def _optimised(self, aim: float, load: Load | None, known: Known | None) -> Shedding:
        if known is None:
            limited = self.settings.memory_bytes is not None
            self.expected = {name: held.results_a_row for name, held in self.learned.items()} if limited else {}
            return self._portions(None)
        streams, options = known
        rates = dict(zip(self.by_driver, (stream.rate_hz for stream in streams), strict=True))
        rows = rows_of(self._batches, self.plan, self.fit.costs, rates)
        budget = budget_of(aim, load, full_cost(streams, options), rows, bool(self.shedding.keep))
        throttle = self.rule.bounded(budget.harvest) if self.shedding.keep else self.throttle
        self.choice = choose(
            streams,
            options,
            min(1.0, throttle * self.slack) if throttle < 1 else 1.0,
            sample=self.settings.sample,
            current=self.taken,
            optimiser=self.settings.optimiser,
        )
        self.path_costs = self.choice.costs
        if throttle < 1 and self.settings.may_regulate:
            whole = choose(streams, options, 1.0, current=self.taken)
            drop, promised = regulated(whole.statistics, budget), self.choice.recall(throttle, self.settings.sample)
            if self.settings.policy == "drop" or regulates(promised, drop, budget, bool(self.shedding.keep)):
                return self._regulated(whole, drop, budget)
        self.throttle = throttle if self.settings.fixed is None else self.throttle
        return self._follow(self.choice)

    def _follow(self, choice: Choice) -> Shedding:
        self.choice, self.taken = choice, choice.paths
        self.expected = dict(zip(self.by_driver, choice.found, strict=True))
        return self._portions(choice)

    def _regulated(self, choice: Choice, drop: RandomDrop, budget: Budget) -> Shedding:
        """Fewer rows, which look everywhere."""
        if self.settings.fixed is None and budget.probing_s > 0:
            self.throttle = min(1.0, drop.probing / budget.probing_s)
        shares = tuple(zip(self.by_driver, drop.keep, strict=True))
        return replace(self._follow(choice), throttle=1.0, keep=shares, regulated=self.throttle)

    def _portions(self, choice: Choice | None) -> Shedding:
        """Sampled rows, on all paths, and the others by what was chosen."""
        sample, found = self.settings.sample, []
        for number, (driver, paths) in enumerate(self.by_driver.items()):
            taken = 0 if choice is None else choice.paths[number]
            steps = len(self.paths[driver])
            scouts = {k: share * sample for k, share in self._scouts(number, taken, len(paths)).items()}
            parts = [sampled(share, steps, k) for k, share in scouts.items() if share > 0]
            rest = 1.0 - sum(part.share for part in parts)
            if choice is None:
                parts.append(Portion(rest, (None,) * steps))
            else:
                for setting, drawn in zip(
                    choice.bins.settings, (1 - choice.bins.share, choice.bins.share), strict=True
                ):
                    if drawn > 0:
                        lags = _lags(self.bins[paths[taken]], setting.chosen[number])
                        parts.append(Portion(float(rest * drawn), lags, alternative=taken))
            found.append((driver, tuple(parts)))
        throttle = 1.0 if choice is None else self.throttle
        return Shedding(throttle, self.settings.seed, portions=tuple(found))

    def _scouts(self, number: int, taken: int, count: int) -> dict[int, float]:
        """How the sampled rows are shared out over a driver's paths: most take the one that is taken anyway, the others
        the less the dearer they are known to be.
        """
        if count == 1:
            return {0: 1.0}
        costs = self.path_costs[number] if self.path_costs else None
        each = SCOUTING / (count - 1)
        scouts = {
            k: each * (UNKNOWN if costs is None else min(1.0, (costs[taken] / max(costs[k], 1e-300)) ** 2))
            for k in range(count)
            if k != taken
        }
        return {taken: 1.0 - sum(scouts.values()), **scouts}


def _lags(bins: Sequence[Bins], chosen: Sequence[Sequence[int]]) -> tuple[tuple[tuple[int, int], ...] | None, ...]:
    return tuple(
        None if len(numbers) == held.size else held.ranges(numbers) for held, numbers in zip(bins, chosen, strict=True)
    )


def _widths(bins: Bins, newer: float) -> tuple[float, ...]:
    """The share of a window's rows in each bin, where one bin holds the rows that are newer than the driver's."""
    widths = bins.widths
    if bins.first_ahead:
        widths[: bins.first_ahead] = max(newer, 1e-6) / bins.first_ahead
    return tuple(np.maximum(widths, 1e-9).tolist())


def _sizes(learned: Learned) -> dict[str, int]:
    return {target: len(line) for target, line in learned.found.items()}
