"""Least squares with coefficients that cannot be negative, for a handful of them.

The least value of  v · M v - 2 r · v  over v >= 0  is the least over all sets of coefficients of the solution with the
others at 0, among those where none is negative: the set of the solution itself is one of them. With all of them in it,
the set tried first, that mostly is the end of it.

>>> nonnegative(np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0])).tolist()
[0.5, 0.0]
"""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from windrow.plan.cost import Floats


def nonnegative(matrix: Floats, right: Floats) -> Floats:
    """The v >= 0 at which v · M v - 2 r · v is least; M has to be symmetric and positive definite."""
    best, least = np.zeros(len(right)), 0.0
    for number, chosen in enumerate(_sets(len(right))):
        found = np.zeros(len(right))
        found[chosen] = np.linalg.solve(matrix[np.ix_(chosen, chosen)], right[chosen])
        if found.min() >= 0:
            value = -float(right @ found)
            if value < least:
                best, least = found, value
            if number == 0:
                break
    return best


@cache
def _sets(count: int) -> tuple[NDArray[np.intp], ...]:
    """All sets of coefficients but the empty one, that of all first."""
    choices = product((True, False), repeat=count)
    return tuple(np.flatnonzero(chosen) for chosen in choices if any(chosen))
