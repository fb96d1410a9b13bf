"""Figure 3: which basic windows a direction searches, given harvest fractions and rankings (section IV-A).

A join of three streams whose windows have n = 5 basic windows each. Direction 1 goes through W3, then W2, with
harvest fractions .6 and .4; the rankings start with 4, 3, 5 in W3 and with 3, 2 in W2. So it searches {3, 4, 5} of W3
and {2, 3} of W2. Scores are ours, any with that ranking.
"""

from __future__ import annotations

import numpy as np

from windrow.papers.experiment import Claim, Experiment, Outcome
from windrow.papers.tables import Table
from windrow.plan.cost import CostModel, Statistics, StepStatistics, StreamStatistics, bins_of
from windrow.plan.harvest import chosen_bins

WINDOW_S, BIN_S = 10.0, 2.0
FRACTIONS = (0.6, 0.4)
RANKED_4_3_5 = (0.1, 0.1, 0.2, 0.4, 0.15)
RANKED_3_2 = (0.0, 0.3, 0.6, 0.05, 0.05)
SEARCHED = ((3, 4, 5), (2, 3))


def run(quick: bool, seed: int) -> Outcome:  # noqa: ARG001 - a worked example has one size and nothing random
    """The worked example."""
    bins = bins_of(WINDOW_S, BIN_S)
    orders = ((2, 1), (2, 0), (0, 1))
    steps = tuple(
        tuple(StepStatistics(stream, 0.1, scores) for stream, scores in zip(order, scored, strict=True))
        for order, scored in zip(orders, ((RANKED_4_3_5, RANKED_3_2),) * 3, strict=True)
    )
    model = CostModel.of(Statistics((StreamStatistics(1.0, WINDOW_S),) * 3, steps))
    counts = [round(fraction * bins) for fraction in FRACTIONS]
    searched = [tuple(k + 1 for k in chosen) for chosen in chosen_bins(model, np.array([counts] * 3))[0]]
    rows = [
        (f"W{stream + 1}", fraction, count, _told(ranking + 1), _told(found))
        for stream, fraction, count, ranking, found in zip(
            orders[0], FRACTIONS, counts, model.ranking[0], searched, strict=True
        )
    ]
    table = Table.of(("window", "harvest_fraction", "basic_windows", "ranking", "searched"), rows)
    claims = tuple(
        Claim(f"direction 1 searches these basic windows of {row[0]}", _told(wanted), str(row[4]), found == wanted)
        for row, wanted, found in zip(rows, SEARCHED, searched, strict=True)
    )
    kept = Claim("a window of 10 s in steps of 2 s", "5 logical, 6 kept", f"{bins} logical, {bins + 1} kept", bins == 5)
    return Outcome(table, (*claims, kept))


def _told(numbers: object) -> str:
    return ", ".join(str(number) for number in np.asarray(numbers).tolist())


EXPERIMENT = Experiment("grubjoin/figure3", "Basic windows that one direction searches", run)
