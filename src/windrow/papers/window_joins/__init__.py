"""Window Joins: evaluating window joins over unbounded streams.

Sections 3 and 4. The model is in `windrow.plan.unit_time` and `windrow.plan.regulation`; here it is put beside the
paper's figures and beside this engine.
"""

from __future__ import annotations

from windrow.papers.experiment import Experiment
from windrow.papers.window_joins import (
    figure2,
    figure3,
    figure4,
    figure5,
    figure6,
    figure7,
    figure8,
    figure9,
    figure10,
    figure11,
)

EXPERIMENTS: tuple[Experiment, ...] = (
    figure2.EXPERIMENT,
    figure3.EXPERIMENT,
    figure4.EXPERIMENT,
    figure5.EXPERIMENT,
    figure6.EXPERIMENT,
    figure7.EXPERIMENT,
    figure8.EXPERIMENT,
    figure9.EXPERIMENT,
    figure10.EXPERIMENT,
    figure11.EXPERIMENT,
)
