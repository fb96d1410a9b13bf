"""Draws: numbers in [0, 1) that follow from a row's content and a seed alone.

Whoever draws for a row again, in another process, with the rows in another order, draws the same.

>>> words = np.array([1, 2, 3])
>>> bool((draw(words, seed=7) == draw(words[::-1], seed=7)[::-1]).all()), bool((draw(words, 7) == draw(words, 8)).any())
(True, False)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from windrow.store.operand import Array

PORTION, STRATUM, KEEP, HOLD, ROW_BUCKET, STRATUM_BUCKET, PART = 1, 2, 3, 4, 5, 6, 7
"""What is drawn for: draws for different purposes have nothing to do with each other."""

_GOLDEN, _FIRST, _SECOND = (np.uint64(k) for k in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
_UNIT = 2.0**-53


def draw(words: Array, seed: int, purpose: int = PORTION, number: Array | int = 0) -> NDArray[np.float64]:
    """One number a word; `number` tells several draws for the same word and purpose apart."""
    salt = np.asarray((seed * 8 + purpose) & 0xFFFFFFFFFFFFFFFF, np.uint64).reshape(1)
    mixed = _mixed(np.ascontiguousarray(words).view(np.uint64) + _mixed(salt))
    count = np.atleast_1d(np.asarray(number, np.int64)).view(np.uint64)
    return (_mixed(mixed + count * _GOLDEN) >> np.uint64(11)).astype(np.float64) * _UNIT


def _mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Every bit of the outcome depends on all bits (the finaliser of SplitMix64)."""
    bits = (bits ^ (bits >> np.uint64(30))) * _FIRST
    bits = (bits ^ (bits >> np.uint64(27))) * _SECOND
    mixed: NDArray[np.uint64] = bits ^ (bits >> np.uint64(31))
    return mixed
