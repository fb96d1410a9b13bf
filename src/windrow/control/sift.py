"""Which condition turns pairs away: what a few pairs within reach say of each conjunct of a step.

    pairs within reach of a step ── a few, at random ──▶ each conjunct by itself ──▶ passed, through, alone

A method looks at what it finds promising and stops at the first conjunct that fails, so its counts do not say which
one turns most pairs away. A few pairs drawn from all that were within reach do. Of the conjuncts, in the order in which
the step decides them (those it searches by first),

    passed     how many pairs each holds for
    through    how many pairs it and all before it hold for
    alone      how many pairs it rejects that all others hold for

>>> Sift(10, 4, (4, 1), (4, 1), (0, 3)) + Sift(5, 2, (0, 1), (0, 0), (1, 0))
Sift(met=15, pairs=6, passed=(4, 2), through=(4, 1), alone=(1, 3))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any


@dataclass(frozen=True, slots=True)
class Sift:
    """One step: `met` partial rows had a stored row within reach at all; of the pairs these make, so many were drawn.
    Without pairs, or where a function of the user's would have to be called, nothing is known of the conjuncts.
    """

    met: int = 0
    pairs: int = 0
    passed: tuple[int, ...] = ()
    through: tuple[int, ...] = ()
    alone: tuple[int, ...] = ()

    def __add__(self, other: Sift) -> Sift:
        return Sift(
            self.met + other.met,
            self.pairs + other.pairs,
            _added(self.passed, other.passed),
            _added(self.through, other.through),
            _added(self.alone, other.alone),
        )

    @staticmethod
    def from_values(values: Mapping[str, Any]) -> Sift:
        """What `asdict` gave, after a way through JSON or not."""
        numbers = (tuple(map(int, values[name])) for name in ("passed", "through", "alone"))
        return Sift(int(values["met"]), int(values["pairs"]), *numbers)


def added(one: Sequence[Sift], two: Sequence[Sift]) -> tuple[Sift, ...]:
    """The steps of a path in two parts of a batch, together."""
    return tuple(a + b for a, b in zip_longest(one, two, fillvalue=Sift()))


def _added(one: Sequence[int], two: Sequence[int]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip_longest(one, two, fillvalue=0))
