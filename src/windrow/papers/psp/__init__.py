"""PSP: scalable stream join processing with expensive predicates, by time-slicing.

Sections 4 to 8, on the simulated cluster of `windrow.run.cluster`, predicted by `windrow.plan.ring` beside it.
"""

from __future__ import annotations

from windrow.papers.experiment import Experiment
from windrow.papers.psp import (
    figure7,
    figure8ab,
    figure8cd,
    figure8ef,
    figure8gh,
    interleaving,
    scale,
    ways,
)

EXPERIMENTS: tuple[Experiment, ...] = (
    figure7.EXPERIMENT,
    figure8ab.EXPERIMENT,
    figure8cd.EXPERIMENT,
    figure8ef.EXPERIMENT,
    figure8gh.EXPERIMENT,
    ways.EXPERIMENT,
    interleaving.EXPERIMENT,
    scale.EXPERIMENT,
)
