"""Fewer rows, or parts of the windows: the two ways to do less, compared by the output that is predicted of each.

    time there is ─┬─▶ all rows are let in, what is left goes into bins        harvested: results a second
                   └─▶ fewer rows are let in, and look everywhere              regulated: results a second
                                                                                   │
                                                            the way taken ◀────────┘  another one if clearly better

Harvesting spends on the parts of windows that promise most, so it is the better way wherever lags tell anything, and
where probing is what takes time. But each row that is let in is merged and indexed, whatever it probes. Where that is
much of the work, or more than there is time for, regulated streams give more: rates as window-joins (section 4.2) has
them for two streams, generalised by the model's optimum to any number and any costs (`windrow.plan.random_drop`).

>>> from windrow.plan.cost import Statistics, StepCost, StepStatistics, StreamStatistics
>>> streams = (StreamStatistics(5, 4), StreamStatistics(100, 4))
>>> cheap = StepCost(1e-9, 0.0, 0.0)
>>> steps = (StepStatistics(1, 0.01, (1.0,), cost=cheap),), (StepStatistics(0, 0.01, (1.0,), cost=cheap),)
>>> budget = Budget(probing_s=105e-9, rows_s=(5e-2, 100e-2), room_s=50e-2)       # a hundredth of a second a row
>>> [round(share * rate) for share, rate in zip(regulated(Statistics(streams, steps), budget).keep, (5, 100))]
[5, 45]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from windrow.control.observation import Observation
from windrow.control.throttle import Load
from windrow.plan.cost import Statistics
from windrow.plan.plan import Plan, driver_of
from windrow.plan.random_drop import RandomDrop, keep_rates
from windrow.plan.shedding import Shedding
from windrow.plan.work import WorkCosts

INDEXED = ("sorted", "hashed")
FLOOR = 0.005
"""The least share of the probing that is planned for, whatever time there is."""
LEAST = 1e-3
CLEARLY = 1.03
"""How many times as much the other way has to promise to be taken: windows have to fill anew after a change."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Seconds of work in a second: `probing_s` if everything is probed, `rows_s` if all rows of each stream are let in.
    There is `room_s` for both together (less than 0 if not even the `rest_s` fits, which nothing changes).
    """

    probing_s: float
    rows_s: tuple[float, ...]
    room_s: float
    rest_s: float = 0.0

    @property
    def harvest(self) -> float:
        """The share of the probing that there is time for when all rows are let in; it may be 0 or less."""
        return (self.room_s - sum(self.rows_s)) / self.probing_s if self.probing_s > 0 else 1.0

    def kept_up(self, spent_s: float) -> float:
        """How much of what comes in a second gets its turn in it, if that takes `spent_s` besides the rest."""
        needed_s, there_s = spent_s + self.rest_s, max(0.0, self.room_s + self.rest_s)
        return min(1.0, there_s / needed_s) if needed_s > 0 else 1.0


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one stream, once they are let in: what one costs, how many come a second, and how many of these are let
    in of late.
    """

    cost_s: float
    rate_hz: float
    let_in_hz: float


def rows_of(
    batches: Sequence[Observation], plan: Plan, costs: WorkCosts, rates_hz: Mapping[str, float]
) -> tuple[Rows, ...]:
    """What is known of the rows of each stream, from the batches of an interval: they are copied when segments merge,
    and indexed, again after each merge, where some step asks for it.
    """
    searched = {step.stream for path in plan.paths for step in path.steps if step.method in INDEXED}
    span_s = sum(batch.span_s for batch in batches)
    let_in = dict.fromkeys(rates_hz, 0)
    for batch in batches:
        for held in (batch.joined.sampled, batch.joined.others):
            for path, tally in held.items():
                let_in[driver_of(path)] += tally.drivers
    merged = sum(batch.merged for batch in batches) / max(1, sum(let_in.values()))
    return tuple(
        Rows(
            costs.merge_row_s * merged + (costs.index_row_s * (1 + merged) if name in searched else 0.0),
            rate_hz,
            let_in[name] / span_s if span_s > 0 else 0.0,
        )
        for name, rate_hz in rates_hz.items()
    )


def budget_of(aim: float, load: Load | None, probing_s: float, rows: Sequence[Rows], regulated: bool) -> Budget:
    """What there is to spend when a throttle of `aim` fits besides what was spent: on rows let in (which were all of
    them if not `regulated`), and on the rest. Without a load the throttle is one of the probing alone.
    """
    if load is None:
        return Budget(probing_s, (0.0,) * len(rows), aim * probing_s)
    rows_s = tuple(each.cost_s * each.rate_hz for each in rows)
    now_s = sum(each.cost_s * each.let_in_hz for each in rows) if regulated else sum(rows_s)
    fixed_s = load.demand * min(1.0, load.fixed_s / load.busy_s) if load.demand and load.busy_s else 0.0
    return Budget(probing_s, rows_s, aim * probing_s + now_s, max(0.0, fixed_s - now_s))


def let_in_after(
    held: Mapping[str, float], shedding: Shedding, passed_s: float, windows_s: Mapping[str, float]
) -> dict[str, float]:
    """Of the rows that windows would hold, the share that was let in, some time later: it follows what is let in.

    >>> let_in_after({"a": 1.0, "b": 0.5}, Shedding(keep=(("a", 0.5),)), 5.0, {"a": 10.0, "b": 5.0})
    {'a': 0.75, 'b': 1.0}
    """
    now = dict(shedding.keep)
    return {
        name: max(LEAST, before + min(1.0, passed_s / windows_s[name]) * (now.get(name, 1.0) - before))
        for name, before in held.items()
    }


def regulated(statistics: Statistics, budget: Budget) -> RandomDrop:
    """The rates that give the most output in the time there is; next to nothing where there is none."""
    full_s = budget.probing_s + sum(budget.rows_s)
    share = max(budget.room_s, FLOOR * budget.probing_s) / full_s if full_s > 0 else 1.0
    return keep_rates(statistics, min(1.0, share), budget.rows_s)


def regulates(harvested: float, drop: RandomDrop, budget: Budget, before: bool) -> bool:
    """Whether to let in fewer rows; `harvested` is the recall that harvesting promises, `before` what is done now.

    >>> drop = RandomDrop((0.5, 0.5), cost=0.2, output=5.0, recall=0.25, probing=0.1)
    >>> budget = Budget(probing_s=0.4, rows_s=(0.1, 0.1), room_s=0.2)
    >>> [regulates(harvested, drop, budget, before=False) for harvested in (0.24, 0.26)]
    [True, False]
    """
    share = max(FLOOR, min(1.0, budget.harvest))
    kept = harvested * budget.kept_up(share * budget.probing_s + sum(budget.rows_s))
    dropped = drop.recall * budget.kept_up(drop.cost)
    return dropped * CLEARLY >= kept if before else dropped > kept * CLEARLY
