"""What Figures 8, 9 and 10 share: random joins to time the search for settings on.

The paper does not say on which joins it measured times. Ours are those of `windrow.plan.harvest.instances`: random
rates, selectivities over two decades, lags flat or with one or two peaks, a third each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from windrow.papers.timing import median_ms
from windrow.plan.cost import CostModel, Counts
from windrow.plan.harvest.greedy import ascend, forward
from windrow.plan.harvest.instances import random_statistics

ROUNDING = 1e-9
"""All of the work, summed up in another order, may cost more in its last bit."""


def random_models(random: np.random.Generator, streams: int, bins: int, count: int) -> list[CostModel]:
    """Random joins, ready to be optimised."""
    return [CostModel.of(random_statistics(random, streams=streams, bins=bins)) for _ in range(count)]


def budget_of(model: CostModel, throttle: float) -> float:
    """What may be spent a second."""
    return throttle * model.full_cost * (1 + ROUNDING)


def time_ms(models: Sequence[CostModel], throttle: float, search: Callable[[CostModel, float], Counts]) -> float:
    """The median time of a search over these joins."""
    return median_ms([partial(search, model, budget_of(model, throttle)) for model in models])


def windows_put_in(models: Sequence[CostModel], throttle: float) -> float:
    """Basic windows the greedy search puts in, on average: what its time is made of, on any machine."""
    return float(np.mean([int(forward(model, budget_of(model, throttle)).sum()) for model in models]))


def settings_considered(models: Sequence[CostModel], throttle: float) -> float:
    """Settings the greedy search looks at, on average."""
    return float(np.mean([sum(ascend(model, budget_of(model, throttle)).considered) for model in models]))
