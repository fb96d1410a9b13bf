"""What a portion of a driver's rows left out, as disjoint pieces, and the work each would be.

    step          1          2          3                  L_j: the lags the portion looked at in step j
    prompt      in L_1     in L_2     in L_3
    piece 0   outside L_1   whole      whole
    piece 1     in L_1   outside L_2   whole               the last line and the first two never share a result,
    piece 2     in L_1     in L_2   outside L_3            and nothing is in none of them

A step that is not restricted has no piece, and after a step that looked nowhere there is no other. Sampled rows are
restricted in the first step: to their strata, of which another draw tells the rest.

>>> part = Portion(0.5, (((0, 10),), None, ((0, 5), (20, 30))))
>>> restricted_steps(part, throttle=0.3), restricted_steps(Portion(0.5, ((), ((0, 5),))), throttle=0.3)
((0, 2), (0,))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from windrow.plan.bins import Bins, lies_in
from windrow.plan.cost import StepCost, StepStatistics
from windrow.plan.plan import Plan
from windrow.plan.shedding import Portion

NOWHERE = ()


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is known of one step of a path: how its window of `rows` rows is divided, and what probing it gives."""

    bins: Bins
    rows: float
    statistics: StepStatistics


class Units(NamedTuple):
    """The work of one step, for one row of the driver."""

    probes: float
    candidates: float
    matches: float


class Forecast(NamedTuple):
    """What a driver's row is expected to do in each step, and to find."""

    work: tuple[Units, ...]
    results: float


class _Part(NamedTuple):
    """A part of a window: how much of its rows, and of its matches."""

    width: float
    matches: float


def by_strata(portion: Portion, throttle: float, step: int) -> bool:
    """Whether a step of a portion's path is restricted to strata."""
    return portion.sampled and step == 0 and throttle < 1


def restricted_steps(portion: Portion, throttle: float) -> tuple[int, ...]:
    """The steps at which a portion leaves something out: one piece each."""
    found = []
    for step, lags in enumerate(portion.lags):
        strata = by_strata(portion, throttle, step)
        if strata or lags is not None:
            found.append(step)
        if lags == NOWHERE and not strata:
            break
    return tuple(found)


def forecast(portion: Portion, throttle: float, step: int, path: Sequence[Outlook]) -> Forecast:
    """What a row of a portion is expected to take and to find in the piece of a step; in the batch itself where `step`
    is the number of steps.
    """
    work, probes = [], 1.0
    for number, outlook in enumerate(path):
        known = outlook.statistics
        part = _part(portion, throttle, number, outlook, number - step)
        found = known.selectivity * outlook.rows * part.matches
        candidates = known.candidates(outlook.rows, part.width, found)
        work.append(Units(probes, probes * candidates, probes * found))
        probes *= found
    return Forecast(tuple(work), probes)


def price(work: Sequence[Units], costs: Sequence[StepCost]) -> float:
    """The seconds that the work of a driver's row takes, when these are what its steps cost."""
    return sum(cost.seconds(*units) for units, cost in zip(work, costs, strict=True))


def _part(portion: Portion, throttle: float, number: int, outlook: Outlook, after: int) -> _Part:
    """What of a step's window is looked at: `after` steps after the one whose outside is, or before it."""
    widths, scores = outlook.statistics.widths, outlook.statistics.scores
    widths = widths or (1.0 / len(scores),) * len(scores)
    whole = _Part(sum(widths), 1.0)
    lags, strata = portion.lags[number], by_strata(portion, throttle, number)
    if after > 0 or (lags is None and not strata):
        return whole
    if strata:
        inside = _Part(throttle * whole.width, throttle)
    else:
        held = [k for k, low in enumerate(outlook.bins.edges[:-1].tolist()) if lies_in(low, lags or NOWHERE)]
        total = sum(scores)
        share = sum(scores[k] for k in held) / total if total > 0 else len(held) / len(scores)
        inside = _Part(sum(widths[k] for k in held), share)
    return inside if after < 0 else _Part(max(0.0, whole.width - inside.width), max(0.0, 1.0 - inside.matches))


def guessed(
    plan: Plan, bins: Mapping[str, tuple[Bins, ...]], rows: Mapping[str, float]
) -> dict[str, tuple[Outlook, ...]]:
    """An outlook on all paths where nothing was learned: each probe finds one match, wherever, among all rows."""
    return {
        path.name: tuple(
            Outlook(
                held,
                rows[step.stream],
                StepStatistics(0, 1 / max(1.0, rows[step.stream]), (1.0,) * held.size),
            )
            for step, held in zip(path.steps, bins[path.name], strict=True)
        )
        for path in plan.paths
    }
