"""Figure 6: results over time within a batch, Datasets I to III (section 4.2).

Streams of 10^6 rows each with the same selectivity, and rates that change in steps or like a sine. The paper: the
initial output size and the output rate give 60 % of the results in less than 30 % of the time that timestamp order
takes, and are done about 20 % earlier; round robin and timestamp order are alike. Consumption rate is left out: the
streams' selectivities are equal, so it says nothing.

Ours: as `played` says. In this engine a batch is a few set-oriented joins; making their results is most of the work,
so results cannot leave much faster than time goes by, whichever driver is first.
"""

from __future__ import annotations

from windrow.papers.driver_selection import curves
from windrow.papers.driver_selection.played import BATCHES, FULL, QUICK, measured
from windrow.papers.experiment import Claim, Experiment, Outcome

DATASETS = ("I", "II", "III")
AHEAD = ("initial_output_size", "output_rate")
SHARE, BY_UNIT = 0.6, 0.3
FASTER = 0.9


def run(quick: bool, seed: int) -> Outcome:
    """The curves, and what is read off them."""
    table = curves.table_of(DATASETS, quick, seed)
    claims = []
    for batch in BATCHES:
        latest = max(curves.reached(table, SHARE, batch=batch, policy=policy) for policy in AHEAD)
        behind = curves.reached(table, SHARE, batch=batch, policy="timestamp")
        claims += [
            Claim(f"60 % of the results, batches of {batch}", "by 0.3", curves.until(latest), latest <= BY_UNIT),
            Claim(
                f"and earlier than in timestamp order, batches of {batch}",
                "yes",
                f"{curves.until(latest)}, timestamp {curves.until(behind)}",
                latest < behind,
            ),
        ]
    times = []
    for dataset in DATASETS:
        for batch in BATCHES:
            runs = measured(dataset, batch, QUICK if quick else FULL, seed)
            times += [runs[policy].seconds / runs["timestamp"].seconds for policy in AHEAD]
    shown = f"{min(times):.2f} to {max(times):.2f}"
    claims.append(Claim("they take, of timestamp order's time", "about 0.8", shown, max(times) <= FASTER))
    return Outcome(table, tuple(claims), curves.charts(table))


EXPERIMENT = Experiment("driver_selection/figure6", "Results over time, Datasets I to III", run)
