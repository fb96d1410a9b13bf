"""The plan as a picture: for each driver the chain of windows its rows visit.

    a ──hashed, 0.4 %──▶ b ──sorted, 2 %──▶ c ──▶ 0.8 results a row

In a tree of joins a chain may end in an inner node, which stores what it finds and has a chain of its own.

Beside each step: the method, what it searches by and why, how many of the pairs within reach it looks at, and how many
match.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from windrow.dashboard.batches import Asked, Batch, PathPlan, Planned, PortionNow
from windrow.dashboard.wording import window_text


def plan_view(batch: Batch, query: Asked, plan: Planned) -> dict[str, Any]:
    """What the page draws."""
    portions = dict(batch.shedding.portions)
    chains = []
    for first in plan.firsts:
        taken = _taken(portions.get(first.driver, ()), plan, first)
        chains.append(_chain(batch, query, taken))
    is_tree = any(path.into is not None for path in plan.paths)
    return {"policy": plan.policy, "shape": "tree" if is_tree else "m-way", "chains": chains}


def _taken(portions: Sequence[PortionNow], plan: Planned, first: PathPlan) -> PathPlan:
    """The path most of a driver's rows take."""
    shares: dict[int, float] = {}
    for portion in portions:
        if not portion.sampled:
            shares[portion.alternative] = shares.get(portion.alternative, 0.0) + portion.share
    if not shares:
        return first
    return plan.path(first.driver, max(shares, key=lambda number: shares[number])) or first


def _chain(batch: Batch, query: Asked, path: PathPlan) -> dict[str, Any]:
    total = batch.totals.paths.get(path.name)
    same = total is not None and list(total.targets) == [step.stream for step in path.steps]
    steps = []
    for number, step in enumerate(path.steps):
        did = total.steps[number] if total is not None and same and number < len(total.steps) else None
        asked = query.streams.get(step.stream)
        reached = did.searched if did is not None else 0
        steps.append({
            "store": step.stream,
            "window": None if asked is None else window_text(asked.window_us, asked.window_rows),
            "method": step.method,
            "why": step.why,
            "conditions": [query.conjuncts[conjunct].text for conjunct in step.order],
            "selectivity": did.matches / reached if did is not None and reached else None,
            "looked_at": min(1.0, did.candidates / reached) if did is not None and reached else None,
        })  # fmt: skip
    drivers = 0 if total is None else total.drivers
    return {
        "driver": path.driver,
        "into": path.into,
        "steps": steps,
        "rows": drivers,
        "results_a_row": total.results / drivers if total is not None and drivers else None,
    }
