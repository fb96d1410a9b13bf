"""The best setting within a known distance: the price first, and only where it leaves too much open the fronts.

    price ─▶ bound, setting ─ close enough? ─▶ done
                  │ no
                  ▼
    fronts of the directions, without what cannot matter ─▶ summed up but for the last ─▶ best pair within the budget

The result yields at least `1 - precision` of the best setting there is, always: either the setting that came with the
price is that close to the bound, or one that beats it by more exists, and then it, or one that stands for it, lies on
the fronts. With a precision of 0 nothing stands for anything else, and the result is the optimum. Only where the
settings of a direction are too many to be numbered in 62 bits (thirteen streams with 40 bins each) the first answer is
final.
"""

from __future__ import annotations

import numpy as np

from windrow.plan.cost import CostModel, Counts
from windrow.plan.harvest.fronts import Front, best_pair, direction_front, exact_sum_of_fronts, sum_of_fronts
from windrow.plan.harvest.price import enclosed, priced

PRECISION = 0.002
ROUNDING = 1e-9
MOST_CODES = 2**62


def auto(model: CostModel, budget: float) -> Counts:
    """A setting that yields at least 99.8 % of what the best one does."""
    return within(model, budget, PRECISION)


def exact(model: CostModel, budget: float) -> Counts:
    """The best setting; takes long where the directions have many."""
    return within(model, budget, 0.0)


def within(model: CostModel, budget: float, precision: float) -> Counts:
    """A setting that yields at least `1 - precision` of what the best one does."""
    counts, output, bound, price = priced(
        model.driver_hz, model.bins, model.seconds, model.results, budget, max(precision, ROUNDING)
    )
    if output >= (1.0 - max(precision, ROUNDING)) * bound:
        return counts
    if (int(model.bins.max()) + 1) ** model.bins.shape[1] > MOST_CODES:
        return counts
    better = _search(model, budget, price, bound, output / (1.0 - precision), precision)
    return counts if better is None or model.tally(better)[1] <= output else better


def upper_bound(model: CostModel, budget: float) -> float:
    """An output that no setting within the budget exceeds."""
    return enclosed(model.driver_hz, model.bins, model.seconds, model.results, budget, 0.0)[2]


def _search(
    model: CostModel, budget: float, price: float, bound: float, wanted: float, precision: float
) -> Counts | None:
    """The best setting that yields more than `wanted`, as far as thinned fronts can tell; None if there is none."""
    slack = bound - wanted + (precision + ROUNDING) * bound
    fronts = _fronts(model, budget, price, slack, precision / 2)
    if fronts is None:
        return None
    order = sorted(range(len(fronts)), key=lambda i: len(fronts[i][0]))
    worth = [float((output - price * cost).max()) for cost, output, _ in fronts]
    one_alone = max(float(output[-1]) for _, output, _ in fronts)
    grain = precision / 2 * max(wanted, one_alone) / max(1, len(fronts) - 2)
    cost, output, _ = fronts[order[0]]
    trail: list[tuple[Counts, int]] = []
    floor = worth[order[0]] - slack
    for i in order[1:-1]:
        floor += worth[i]
        width = len(fronts[i][0])
        pair = (cost, output), fronts[i][:2]
        cost, output, code = (
            sum_of_fronts(*pair, budget, price, floor, grain)
            if grain
            else exact_sum_of_fronts(*pair, budget, price, floor)
        )
        if not len(cost):
            return None
        trail.append((code, width))
    best, place, last_place = best_pair((cost, output), fronts[order[-1]][:2], budget)
    if best < 0:
        return None
    places = [last_place]
    for code, width in reversed(trail):
        place, here = divmod(int(code[place]), width)
        places.append(here)
    places.append(place)
    codes = {i: int(fronts[i][2][p]) for i, p in zip(reversed(order), places, strict=True)}
    return _decoded(model, codes)


def _fronts(model: CostModel, budget: float, price: float, slack: float, thinning: float) -> list[Front] | None:
    fronts: list[Front] = []
    for i, hz in enumerate(model.driver_hz.tolist()):
        if hz == 0.0:
            fronts.append((np.zeros(1), np.zeros(1), np.zeros(1, np.int64)))
            continue
        cost, output, code = direction_front(
            model.bins[i], model.seconds[i], model.results[i], budget / hz, price, slack / hz, thinning
        )
        if not len(code):
            return None
        fronts.append((hz * cost, hz * output, code))
    return fronts


def _decoded(model: CostModel, codes: dict[int, int]) -> Counts:
    counts = np.zeros_like(model.bins)
    for i, code in codes.items():
        base = int(model.bins[i].max()) + 1
        for j in range(counts.shape[1]):
            counts[i, j] = code // base**j % base
    return counts
