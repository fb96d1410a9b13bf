"""The controller of a join on Spark: what it is told of a batch, what it says of the next, what a commit keeps of it.

    batch k-1 done ──observe──▶ controller ──decide──▶ shedding of batch k, in its plan ──follow──▶ the job
                                    │
                                    └── to_values ──▶ commit k-1 ──restore──▶ after a restart

A batch that is run again follows the plan that was written for it, whatever the controller would say now. Its time is
the driver program's: from the begin of a batch to the end of its commit, and what Spark itself needs between two
batches that follow each other at once. Where tasks work side by side, their seconds are shared out.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from windrow.control.controller import Controller, ControlSettings
from windrow.control.foresight import Foresight
from windrow.control.observation import Observation
from windrow.control.recall import RecallMeter
from windrow.plan.bins import Bins
from windrow.plan.drivers import AUTO
from windrow.plan.plan import Plan
from windrow.plan.random_drop import keep_rates
from windrow.plan.shedding import ALL, Shedding
from windrow.plan.turns import Prospects
from windrow.plan.work import WorkCosts
from windrow.query.spec import QuerySpec
from windrow.run.events import told_bins
from windrow.run.report import Clocked

GAPS = 20
"""Between how many batches it is looked for the shortest gap, which is what Spark needs for itself."""


class Steering:
    """Steers one join; without `settings` everything is joined, and only observed.

    Batches are at least `trigger_s` apart: behind a batch that takes less nothing is needed, there is only waiting.

    `pace` is how many seconds of event time pass in one second of the clock: to the controller, which knows event time
    only, work takes so many times longer. Where drivers are chosen by prediction, what steps find and take is learned
    anew after a restart: until all have probed, orders go by the results so far.
    """

    def __init__(
        self,
        spec: QuerySpec,
        plan: Plan,
        settings: ControlSettings | None,
        costs: WorkCosts,
        pace: float = 1.0,
        trigger_s: float = 0.0,
        stopwatch: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.controller = None if settings is None else Controller(spec, plan, settings, costs)
        self.shedding = plan.shedding if settings is None else ALL
        self.foresight = Foresight.of(costs, plan) if plan.policy in AUTO.values() else None
        self.observation: Observation | None = None
        self.recall = RecallMeter()
        self.clocked = Clocked()
        self._told_bins = told_bins(spec, plan)
        self._pace = pace
        self._stopwatch = stopwatch
        self._trigger_s = trigger_s
        self._began_s = 0.0
        self._ended_s: float | None = None
        self._gaps_s: deque[float] = deque(maxlen=GAPS)
        self._commit_s = 0.0

    @property
    def bins(self) -> Mapping[str, tuple[Bins, ...]]:
        """The lag bins of each path: those of the controller, or of the events."""
        return self._told_bins if self.controller is None else self.controller.bins

    @property
    def prospects(self) -> Prospects | None:
        """What is expected of each driver's steps, where drivers are chosen by that."""
        return None if self.foresight is None else self.foresight.prospects()

    def begin(self) -> None:
        """A batch begins."""
        now_s = self._stopwatch()
        if self._ended_s is not None and self._ended_s - self._began_s >= self._trigger_s:
            self._gaps_s.append(now_s - self._ended_s)
        self._began_s = now_s

    def end(self, commit_s: float) -> None:
        """A batch has ended, with a commit that took so long."""
        self._commit_s = commit_s
        self._ended_s = self._stopwatch()

    def decide(self, now_s: float) -> Shedding:
        """What a batch that begins now leaves out."""
        return self.shedding if self.controller is None else self.controller.decide(now_s)

    def follow(self, shedding: Shedding) -> None:
        """Take what is written in a batch's plan as decided."""
        self.shedding = shedding
        if self.controller is not None:
            self.controller.shedding = shedding

    def observe(self, done: Observation, parallel: float = 1.0) -> None:
        """Take in what a batch did, with the seconds it took up to now; `parallel` seconds of tasks passed in one."""
        took = replace(done, busy_s=done.busy_s + self._commit_s + min(self._gaps_s, default=0.0))
        self.observation = took.slowed(self._pace, self._pace / max(1.0, parallel))
        self.recall.observe(self.observation)
        self.clocked = self.clocked.after(self.observation.span_s, self.observation.busy_s)
        if self.foresight is not None:
            self.foresight = self.foresight.observe(self.observation)
        if self.controller is not None:
            self.controller.observe(self.observation)

    def rival(self) -> tuple[float, float] | None:
        """While work is left out: the recall of the last batches, and the one that dropping rows at random would have
        at best for the same work, as the cost model has it.
        """
        recall, work = self.recall.recent.recall.recall, self.shedding.work
        if self.controller is None or self.controller.choice is None or work >= 1 or recall is None:
            return None
        return recall, keep_rates(self.controller.choice.statistics, work).recall

    def to_values(self) -> Any:
        """The state of controller and recall, as values that JSON knows; None where nothing is controlled."""
        if self.controller is None:
            return None
        return {**self.controller.to_values(), "recall": self.recall.to_values()}

    def restore(self, values: Any) -> None:
        """Go on from a state that a commit kept; there is none where nothing was controlled."""
        if self.controller is not None and values is not None:
            self.controller.restore(values)
            self.recall.restore(values["recall"])
