"""Figure 5: the steps of the greedy search, and how settings are frozen (section V-A).

Three streams, all harvest fractions at .2, steps of .1. In the first step six settings are looked at; raising z31 or
z32 is not affordable, so both are frozen, and z21 is raised. In the second step four are left, two of them not
affordable. In the third step neither of the last two is, and the search ends.

What the streams are like is not said. Ours: rates of 10, 100 and 100 rows a second, n = 10, costly steps in direction
3, a budget of 1.15 times the first setting's cost.
"""

from __future__ import annotations

import numpy as np

from windrow.papers.experiment import Claim, Experiment, Outcome
from windrow.papers.tables import Table
from windrow.plan.cost import CostModel, Statistics, StepStatistics, StreamStatistics
from windrow.plan.harvest.greedy import ascend

BINS = 10
START = ((2, 2), (2, 2), (2, 2))
BUDGET = 1.15
RATES_HZ = (10.0, 100.0, 100.0)
CONSIDERED = (6, 4, 2)


def run(quick: bool, seed: int) -> Outcome:  # noqa: ARG001 - a worked example has one size and nothing random
    """The worked example."""
    model = join()
    budget = BUDGET * model.tally(START)[0]
    walk = ascend(model, budget, start=START)
    frozen = [_named(i, j) for i in range(3) for j in range(2) if model.tally(_one_more(i, j))[0] > budget]
    raised = {_named(i, j): int(more) for (i, j), more in np.ndenumerate(walk.counts - np.array(START)) if more}
    table = Table.of(("step", "settings_considered"), list(enumerate(walk.considered, start=1)))
    told = ", ".join(f"{name} by .{more}" for name, more in raised.items())
    return Outcome(
        table,
        (
            Claim(
                "settings looked at in each step", "6, 4, 2", _listed(walk.considered), walk.considered == CONSIDERED
            ),
            Claim("frozen in the first step", "z31, z32", _listed(frozen), frozen == ["z31", "z32"]),
            Claim("increments from first to last setting", "2, z21 first", told, raised == {"z21": 2}),
        ),
    )


def join() -> CostModel:
    """A join in which the search does what the figure shows."""
    flat, steep = (0.1,) * BINS, tuple(0.5**k for k in range(BINS))
    steps = (
        (StepStatistics(1, 0.01, flat), StepStatistics(2, 0.003, flat)),
        (StepStatistics(0, 0.003, flat), StepStatistics(2, 0.01, steep)),
        (StepStatistics(0, 0.03, flat), StepStatistics(1, 0.03, flat)),
    )
    return CostModel.of(Statistics(tuple(StreamStatistics(hz, 10.0) for hz in RATES_HZ), steps))


def _one_more(direction: int, step: int) -> list[list[int]]:
    return [[n + ((i, j) == (direction, step)) for j, n in enumerate(row)] for i, row in enumerate(START)]


def _named(direction: int, step: int) -> str:
    return f"z{direction + 1}{step + 1}"


def _listed(values: object) -> str:
    return ", ".join(str(value) for value in np.asarray(values).tolist())


EXPERIMENT = Experiment("grubjoin/figure5", "The steps of the greedy search", run)
