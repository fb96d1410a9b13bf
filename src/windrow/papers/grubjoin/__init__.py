"""GrubJoin: an adaptive, multi-way, windowed stream join with time correlation-aware CPU load shedding.

Sections IV to VI. The paper's basic windows are numbered from 1, ours from 0; rows and claims here count like it.
"""

from __future__ import annotations

from windrow.papers.experiment import Experiment
from windrow.papers.grubjoin import figure3, figure4, figure5, figure7, figure8, figure9, figure10

EXPERIMENTS: tuple[Experiment, ...] = (
    figure3.EXPERIMENT,
    figure4.EXPERIMENT,
    figure5.EXPERIMENT,
    figure7.EXPERIMENT,
    figure8.EXPERIMENT,
    figure9.EXPERIMENT,
    figure10.EXPERIMENT,
)
