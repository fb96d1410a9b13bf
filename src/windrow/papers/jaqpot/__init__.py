"""JAQPOT: join adaptation at query plan-level using path-productivity for optimizing throughput.

Sections 4 and 5, as far as they are about the model and its simulation: who probes in trees of joins.
"""

from __future__ import annotations

from windrow.papers.experiment import Experiment
from windrow.papers.jaqpot import figure6, figure7, figure9, overhead, table2, table4

EXPERIMENTS: tuple[Experiment, ...] = (
    table2.EXPERIMENT,
    table4.EXPERIMENT,
    figure6.EXPERIMENT,
    figure7.EXPERIMENT,
    figure9.EXPERIMENT,
    overhead.EXPERIMENT,
)
