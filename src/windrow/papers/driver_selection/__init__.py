"""Driver input selection for main-memory multi-way joins: batches, and which stream's buffer runs first.

Section 4. The policies are in `windrow.plan.drivers`, the datasets in `windrow.streams.shared_keys`.
"""

from __future__ import annotations

from windrow.papers.driver_selection import figure6, figure7, figure8, table4, table5
from windrow.papers.experiment import Experiment

EXPERIMENTS: tuple[Experiment, ...] = (
    figure6.EXPERIMENT,
    figure7.EXPERIMENT,
    figure8.EXPERIMENT,
    table4.EXPERIMENT,
    table5.EXPERIMENT,
)
