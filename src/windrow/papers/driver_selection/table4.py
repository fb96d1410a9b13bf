"""Table 4: running time of each policy, that of timestamp order being 1 (section 4.2).

The paper: the initial output size is the fastest on average (.832 with batches of .1M, .714 with 1M), and half as long
as timestamp order on Dataset V with batches of 1M; every one of the three proposed policies is faster everywhere; round
robin is about as fast as timestamp order.

Ours: as `played` says. Buffers one after the other are faster than timestamp order in this engine, too, since a driver
then looks only into the new rows of those before it; which of the buffer policies it is hardly matters. With batches of
.1M most of the time is what a batch takes whatever is in it.
"""

from __future__ import annotations

from windrow.papers.driver_selection.cells import average_of, chart, measured_cells, side_by_side
from windrow.papers.driver_selection.played import BATCHES
from windrow.papers.driver_selection.printed import TIMES
from windrow.papers.experiment import Claim, Experiment, Outcome
from windrow.papers.tables import Table

PROPOSED = ("consumption_rate", "initial_output_size", "output_rate")
NEAR = 0.05


def run(quick: bool, seed: int) -> Outcome:
    """All cells, and the averages."""
    ours = measured_cells(tuple(TIMES), quick, seed, lambda run, norm: run.seconds / norm.seconds)
    table = side_by_side(TIMES, ours)
    charts = tuple(chart(table, "running time", batch) for batch in BATCHES)
    return Outcome(table, (*_averages(table), *_claims(table)), charts)


def _averages(table: Table) -> list[Claim]:
    claims = []
    for batch in BATCHES:
        for policy in PROPOSED:
            printed, ours = average_of(table, policy, batch)
            text = f"{policy.replace('_', ' ')} is faster on average, batches of {batch}"
            claims.append(Claim(text, f"{printed:.3f}", f"{ours:.3f}", ours < 1))
    return claims


def _claims(table: Table) -> list[Claim]:
    cells = [number for policy in PROPOSED for number in table.where(policy=policy).numbers("ours")]
    best = {min((average_of(table, policy, batch)[1], policy) for policy in PROPOSED)[1] for batch in BATCHES}
    (half,) = table.where(dataset="V", policy="initial_output_size", batch="1M").numbers("ours")
    robin = [average_of(table, "round_robin", batch) for batch in BATCHES]
    slower = sum(cell >= 1 for cell in cells)
    return [
        Claim("the three are faster in every cell", "yes", f"not in {slower} of {len(cells)}", slower == 0),
        Claim(
            "the fastest on average",
            "initial output size",
            ", ".join(name.replace("_", " ") for name in sorted(best)),
            best == {"initial_output_size"},
        ),
        Claim("the best cell: initial output size, V, 1M", "0.5", f"{half:.2f}", half <= 0.6),
        Claim(
            "round robin is as fast as timestamp order",
            ", ".join(f"{printed:.3f}" for printed, _ in robin),
            ", ".join(f"{ours:.3f}" for _, ours in robin),
            all(abs(ours - 1) <= NEAR for _, ours in robin),
        ),
    ]


EXPERIMENT = Experiment("driver_selection/table4", "Running time by policy", run)
