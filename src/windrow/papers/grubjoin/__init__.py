"""GrubJoin: an adaptive, multi-way, windowed stream join with time correlation-aware CPU load shedding.

Sections III to VII. The paper's basic windows are numbered from 1, ours from 0; rows and claims here count like it.
"""

from __future__ import annotations

from windrow.papers.experiment import Experiment
from windrow.papers.grubjoin import (
    figure2,
    figure3,
    figure4,
    figure5,
    figure7,
    figure8,
    figure9,
    figure10,
    figure11,
    figure12,
    figure13,
    figure14,
    figure15,
    figure16,
    figure17,
    table2,
    video,
)

EXPERIMENTS: tuple[Experiment, ...] = (
    figure2.EXPERIMENT,
    figure3.EXPERIMENT,
    figure4.EXPERIMENT,
    figure5.EXPERIMENT,
    figure7.EXPERIMENT,
    figure8.EXPERIMENT,
    figure9.EXPERIMENT,
    figure10.EXPERIMENT,
    figure11.EXPERIMENT,
    figure12.EXPERIMENT,
    figure13.EXPERIMENT,
    figure14.EXPERIMENT,
    figure15.EXPERIMENT,
    table2.EXPERIMENT,
    figure16.EXPERIMENT,
    figure17.EXPERIMENT,
    video.EXPERIMENT,
)
