"""Table 5: the share of a batch's results that has left at half of timestamp order's time (section 4.2).

The paper: .82 and .84 for the initial output size, .78 and .79 for the output rate, .58 and .53 for round robin, .49
and .45 for timestamp order itself, .25 and .2 for the consumption rate.

Ours: as `played` says. Results leave when a driver is through, so a share of 0 at half time means that the first driver
took longer than that.
"""

from __future__ import annotations

from windrow.papers.driver_selection.cells import average_of, chart, measured_cells, side_by_side
from windrow.papers.driver_selection.played import BATCHES
from windrow.papers.driver_selection.printed import SHARES
from windrow.papers.experiment import Claim, Experiment, Outcome
from windrow.papers.tables import Table

HALFWAY = 0.5
AHEAD = ("initial_output_size", "output_rate")
MOST = 0.7


def run(quick: bool, seed: int) -> Outcome:
    """All cells, and the averages."""
    ours = measured_cells(tuple(SHARES), quick, seed, lambda run, norm: run.shares((HALFWAY,), norm)[0])
    table = side_by_side(SHARES, ours)
    charts = tuple(chart(table, "share of the results at half time", batch) for batch in BATCHES)
    return Outcome(table, tuple(claim for batch in BATCHES for claim in _claims(table, batch)), charts)


def _claims(table: Table, batch: str) -> list[Claim]:
    in_order, claims = average_of(table, "timestamp", batch), []
    for policy in AHEAD:
        printed, ours = average_of(table, policy, batch)
        name = policy.replace("_", " ")
        claims += [
            Claim(f"{name}, batches of {batch}", f"{printed:.2f}", f"{ours:.2f}", ours >= MOST),
            Claim(
                f"{name} is ahead of timestamp order, batches of {batch}",
                f"{printed:.2f} and {in_order[0]:.2f}",
                f"{ours:.2f} and {in_order[1]:.2f}",
                ours > in_order[1],
            ),
        ]
    printed, ours = average_of(table, "consumption_rate", batch)
    claims.append(
        Claim(
            f"consumption rate is behind it, batches of {batch}",
            f"{printed:.2f}",
            f"{ours:.2f} and {in_order[1]:.2f}",
            ours < in_order[1],
        )
    )
    return claims


EXPERIMENT = Experiment("driver_selection/table5", "Results at half time by policy", run)
