"""Ways to leave something out, made by lot: for every driver of a plan portions that are whole, restricted, sampled."""

from __future__ import annotations

import numpy as np

from windrow.plan.bins import lag_bins
from windrow.plan.order import plan_query, with_alternatives
from windrow.plan.plan import Plan
from windrow.plan.shedding import Portion, Shedding, sampled
from windrow.query.spec import QuerySpec


def alternatives(spec: QuerySpec, policy: str = "timestamp", methods: tuple[str, ...] | None = None) -> Plan:
    """The plan with all orders."""
    return with_alternatives(spec, plan_query(spec, policy=policy, methods=methods), methods)


def drawn_shedding(spec: QuerySpec, plan: Plan, seed: int, behind: bool = True) -> Shedding:
    """Something is left out of every driver's rows, something else of each."""
    random = np.random.default_rng(seed)
    portions = []
    for first in plan.firsts:
        paths = [path for path in plan.paths if path.driver == first.driver]
        shares = random.dirichlet((1.0, 1.0, 1.0))
        shares[-1] = 1.0 - shares[:-1].sum()
        parts = [sampled(float(shares[0]), len(first.steps), int(random.integers(len(paths))))]
        for share in shares[1:]:
            path = paths[int(random.integers(len(paths)))]
            stores = lag_bins(spec, path.driver, path.targets, 6, behind)
            lags = tuple(
                None if random.uniform() < 0.3 else bins.ranges(np.flatnonzero(random.uniform(size=bins.size) < 0.6))
                for bins in stores
            )
            parts.append(Portion(float(share), lags, alternative=path.alternative))
        portions.append((first.driver, tuple(parts)))
    return Shedding(float(random.uniform(0.2, 0.8)), seed, portions=tuple(portions))
