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

from windrow.plan.cost import CostModel, Counts
from windrow.plan.harvest.fronts import search
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
    better = search(
        model.driver_hz, model.bins, (model.seconds, model.results), budget, (price, bound), output, precision
    )
    return counts if model.tally(better)[1] <= output else better


def upper_bound(model: CostModel, budget: float) -> float:
    """An output that no setting within the budget exceeds."""
    return enclosed(model.driver_hz, model.bins, model.seconds, model.results, budget, 0.0)[2]
