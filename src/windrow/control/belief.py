"""What to believe of lag bins of which little was seen: chance is not to be taken for structure.

    counted      results a row and bin, each bin as well known as the rows say that could have found something there
    information  so many rows' worth of looking went into a bin, all rows that looked nowhere else counted as one

                  what was counted ──┐                 ┌─ neighbouring bins are alike
    believed  =   the mean of all  ──┴─ weighed by ────┤
                                        confidence     └─ bins differ by so much more than chance would have them differ

A harvest goes where most was counted, so it goes where chance was kindest: of twenty bins that are all the same, the
best few of a thin sample look twice as good as they are, a harvest that follows them finds less than rows dropped at
random, and each time it finds that out it goes on to the next few. So densities (results a row and row stored) are
estimated together, as a field over lags with a mean, a variance between bins and a length over which they are alike,
seen through noise that follows from counting: the best linear estimate (kriging; with one variance for all and no
length, James and Stein's). How far bins differ is estimated from the counts themselves, by fitting the spread that is
there to the spread that chance gives. Where nothing differs all bins are believed to be the same, and then a harvest
costs and finds what leaving out whole rows does; where matches are many, or peaks high, next to nothing is moved.

Results of one row come in clusters: one that finds x members in one store and y in the other gives x y results, which
say no more about either store than x or y do. `clustered` is how many times that widens the noise.

>>> flat = believed([2.0, 0.0, 1.0, 1.0], [1.0] * 4, [0.25] * 4)
>>> peak = believed([3000.0, 10.0, 1000.0, 10.0], [1.0] * 4, [0.25] * 4)
>>> flat.round(1).tolist(), peak.round(-1).tolist()
([1.0, 1.0, 1.0, 1.0], [3000.0, 20.0, 1000.0, 20.0])
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

LENGTH = 0.1
"""In shares of the bins: over so many, bins are alike."""
ALIKE = 0.7
"""How much of what bins differ by they have in common with their neighbours."""
ROUNDS = 8
LEAST = 1e-12
NOTHING = 0.02
"""Of the mean, what a bin is believed to give at least: nobody knows that it gives nothing."""


def clustered(results_a_row: float, steps: int) -> float:
    """How much more what a row finds in a bin varies than if each result were found by itself.

    >>> clustered(16.0, steps=2), clustered(16.0, steps=1)
    (5.0, 1.0)
    """
    return 1.0 if steps < 2 else 1.0 + results_a_row ** ((steps - 1) / steps)


def believed(counted: ArrayLike, information: ArrayLike, widths: ArrayLike, clusters: float = 1.0) -> Floats:
    """Results a row in each bin, from those counted there, in so many rows' worth of looking."""
    found, rows, share = (np.asarray(held, np.float64) for held in (counted, information, widths))
    share = share / share.sum()
    looked = rows * share
    if len(found) < 2 or not found.any():
        return found
    density = found / share
    mean = float((density * looked).sum() / max(looked.sum(), LEAST))
    noise = clusters / np.maximum(looked, LEAST)
    mean, variance = _spread(density, noise * mean)
    if variance <= 0:
        return np.asarray(mean * share)
    distance = (np.arange(len(found))[:, None] - np.arange(len(found))[None, :]) / (LENGTH * len(found))
    field = variance * (ALIKE * np.exp(-0.5 * distance**2) + (1 - ALIKE) * np.eye(len(found)))
    estimate = mean + field @ np.linalg.solve(field + np.diag(noise * np.maximum(density, mean)), density - mean)
    return np.asarray(np.maximum(estimate, NOTHING * mean) * share)


def _spread(density: Floats, noise: Floats) -> tuple[float, float]:
    """The mean of what bins are, and by how much they differ, noise aside, by a few rounds of scoring."""
    variance, mean = float(density.var()), float(density.mean())
    correction = len(density) / (len(density) - 1)
    for _ in range(ROUNDS):
        weight = 1.0 / (noise + variance + LEAST)
        mean = float(weight @ density / weight.sum())
        off = correction * (density - mean) ** 2 - noise
        variance = max(0.0, float(weight**2 @ off / (weight**2).sum()))
    return mean, variance
