"""Datasets IV to VI, which come in bursts: what Figures 7 and 8 have in common.

Times say what this engine does. What the order of drivers does by itself is said by probes: how many of a batch's
results are found by half of its probes, whatever a probe takes.
"""

from __future__ import annotations

import numpy as np

from windrow.papers.driver_selection import curves
from windrow.papers.driver_selection.played import BATCHES, FULL, QUICK, measured
from windrow.papers.experiment import Claim, Outcome

DATASETS = ("IV", "V", "VI")
AHEAD = ("initial_output_size", "output_rate")
HALFWAY = 0.5


def outcome(second: bool, quick: bool, seed: int) -> Outcome:
    """The curves of the first or the second half of the batches that count."""
    table = curves.table_of(DATASETS, quick, seed, lambda run: run.half(second))
    latest = max(curves.reached(table, 0.8, dataset="V", policy=policy) for policy in AHEAD)
    least = min(curves.share_at(table, HALFWAY, dataset="V", policy=policy)[0] for policy in AHEAD)
    work = {
        policy: np.mean([
            measured("V", batch, QUICK if quick else FULL, seed)[policy].half(second).share_at(HALFWAY)
            for batch in BATCHES
        ])
        for policy in (*AHEAD, "consumption_rate")
    }  # fmt: skip
    by_work = min(work[policy] for policy in AHEAD)
    by_rate = curves.share_at(table, HALFWAY, dataset="V", policy="consumption_rate")[1]
    in_order = curves.share_at(table, HALFWAY, dataset="V", policy="timestamp")[1]
    return Outcome(
        table,
        (
            Claim(
                "V: results by half of the probes, output policies",
                "most",
                f"{by_work:.2f} or more",
                bool(by_work >= 0.7),
            ),
            Claim(
                "V: results by half of the probes, consumption rate",
                "few",
                f"{work['consumption_rate']:.2f}",
                bool(work["consumption_rate"] <= 0.3),
            ),
            Claim("V: 80 % of the results, output policies", "by 0.2 to 0.3", curves.until(latest), latest <= 0.3),
            Claim("V: results at half time, output policies", "0.9 or more", f"{least:.2f} or more", least >= 0.7),
            Claim("V: results at half time, consumption rate", "0.1 or less", f"{by_rate:.2f}", by_rate <= 0.3),
            Claim(
                "V: at half time consumption rate is behind timestamp order",
                "yes",
                f"{by_rate:.2f} and {in_order:.2f}",
                by_rate < in_order,
            ),
            Claim(
                "V: at half time output policies are ahead of timestamp order",
                "yes",
                f"{least:.2f} or more, and {in_order:.2f}",
                least > in_order,
            ),
        ),
        curves.charts(table),
    )
