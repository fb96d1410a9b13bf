"""Figure 7: results over time within a batch, first half of the batches, Datasets IV to VI (section 4.2).

S3 comes in bursts (a b-model of 20-80 or 80-20), in V and VI streams have 10^4, 10^5 and 10^6 rows, so that their
selectivities differ. The paper: on V the initial output size and the output rate give 80 % of the results in the first
20 to 30 % of the time, consumption rate very little until 70 %.

Ours: as `played` says; see Figure 6 for why results leave later here.
"""

from __future__ import annotations

from windrow.papers.driver_selection import bursts
from windrow.papers.experiment import Experiment, Outcome


def run(quick: bool, seed: int) -> Outcome:
    """The first half."""
    return bursts.outcome(False, quick, seed)


EXPERIMENT = Experiment("driver_selection/figure7", "Results over time, Datasets IV to VI, first half", run)
