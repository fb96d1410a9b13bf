"""What was asked for, as the model sees it; and how that changes while windows fill for the first time.

A join begins with empty windows, so it has less work now than soon: a throttle that is set by what was measured is too
high until the windows are full, and what piles up meanwhile has to be made up for later. What the same rows will take
in the next interval follows from the model, with longer windows. There is more to look at in these; whether there is
also more to find is seen from the lags: as much as the older half of what is there gave already.

>>> import numpy as np
>>> older_half(np.array([4.0, 4.0, 0.0, 0.0]), Bins(100, 4), held=50)
0.5
>>> mean_length(20.0, 0.0, 10.0), mean_length(20.0, 10.0, 30.0), mean_length(20.0, 30.0, 35.0)
(5.0, 17.5, 20.0)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from windrow.control.choice import Steps, full_cost, row_cost
from windrow.plan.bins import Bins
from windrow.plan.cost import Floats, StreamStatistics
from windrow.plan.shedding import Portion

Known = tuple[tuple[StreamStatistics, ...], tuple[tuple[Steps, ...], ...]]
"""The streams, and what is known of each path of each driver."""


def asked_s(
    streams: Sequence[StreamStatistics],
    options: Sequence[Steps],
    portion: Portion,
    bins: Sequence[Bins],
    throttle: float,
) -> float:
    """What a row of a portion takes, by the model; `bins` are those of the portion's path."""
    whole = portion.sampled or portion.is_whole
    chosen = [
        None if whole or lags is None else held.within(lags) for held, lags in zip(bins, portion.lags, strict=True)
    ]
    spent = row_cost(streams, options[portion.alternative], chosen)
    return spent * (throttle if portion.sampled else 1.0)


def growth(
    known: Known, olds: Sequence[Sequence[Sequence[float]]], for_s: float, spent_s: float, next_s: float
) -> float:
    """How many times as much work the next interval is as the last one, when windows have been filling for a time;
    `olds` are those of each step of each path of each driver.
    """
    streams, options = known
    costs = []
    for from_s, to_s in ((max(0.0, for_s - spent_s), for_s), (for_s, for_s + next_s)):
        held = [replace(stream, window_s=mean_length(stream.window_s, from_s, to_s)) for stream in streams]
        longer = [
            [stretched(steps, old, streams, held) for steps, old in zip(found, seen, strict=True)]
            for found, seen in zip(options, olds, strict=True)
        ]
        costs.append(full_cost(held, longer))
    return max(1.0, costs[1] / costs[0]) if costs[0] > 0 else 1.0


def stretched(
    steps: Steps, olds: Sequence[float], streams: Sequence[StreamStatistics], later: Sequence[StreamStatistics]
) -> Steps:
    """A path's steps in windows that are longer, or shorter, by what was learned with windows as they are; of what was
    found in each store, `olds` is the share in its older half.
    """
    found = []
    for step, old in zip(steps, olds, strict=True):
        longer = later[step.stream].window_s / streams[step.stream].window_s
        more = max(0.0, 1.0 + min(1.0, 2.0 * old) * (longer - 1.0))
        found.append(replace(step, selectivity=step.selectivity * more / longer))
    return tuple(found)


def older_half(counted: Floats, bins: Bins, held: float) -> float:
    """Of the results found, the share with a member in the older half of a window that holds so many ticks by now."""
    middles = (bins.edges[:-1] + bins.edges[1:]) / 2
    total = float(counted[middles < held].sum())
    return float(counted[(middles >= held / 2) & (middles < held)].sum()) / total if total > 0 else 0.5


def mean_length(window_s: float, from_s: float, to_s: float) -> float:
    """How long a window that began to grow at 0 is on average, in a span of time."""
    if to_s <= from_s:
        return min(window_s, to_s)
    full_s = max(from_s, min(window_s, to_s))
    return ((full_s**2 - from_s**2) / 2 + (to_s - full_s) * window_s) / (to_s - from_s)
