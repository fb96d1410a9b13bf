"""Figure 8: results over time within a batch, second half of the batches, Datasets IV to VI (section 4.2).

As Figure 7, for the batches in which the stores are well filled. In V most of S3 has come by then, in IV and VI most of
it is still to come.
"""

from __future__ import annotations

from windrow.papers.driver_selection import bursts
from windrow.papers.experiment import Experiment, Outcome


def run(quick: bool, seed: int) -> Outcome:
    """The second half."""
    return bursts.outcome(True, quick, seed)


EXPERIMENT = Experiment("driver_selection/figure8", "Results over time, Datasets IV to VI, second half", run)
