"""The experiments of the papers Windrow is made of, one module a figure or table.

    papers/grubjoin/figure7.py      EXPERIMENT = Experiment("grubjoin/figure7", "…", run)
    papers/grubjoin/__init__.py     EXPERIMENTS = (figure3.EXPERIMENT, …)      the paper's, in its order
    here                            EXPERIMENTS                                all papers'

A module's docstring says what the paper shows and which settings are ours because the paper does not give them. To add
an experiment, add a module and a line in its paper's tuple. `windrow reproduce` runs them.

>>> [experiment.name for experiment in EXPERIMENTS if experiment.paper == "grubjoin"][:2]
['grubjoin/figure2', 'grubjoin/figure3']
"""

from __future__ import annotations

from windrow.papers import driver_selection, grubjoin, jaqpot, psp, window_joins
from windrow.papers.experiment import Experiment

EXPERIMENTS: tuple[Experiment, ...] = (
    *grubjoin.EXPERIMENTS,
    *jaqpot.EXPERIMENTS,
    *psp.EXPERIMENTS,
    *window_joins.EXPERIMENTS,
    *driver_selection.EXPERIMENTS,
)
