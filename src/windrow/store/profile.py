"""Which rows of a store are still there: by their place on its clock, the share that was kept.

    share  1           |########          a place that has fallen to a share never rises again, whatever is decided
         .25      #####|                  later: what was let go is gone
           0 -----+----+-------> clock    event time, or row number in a row window

A row is among a share s iff a draw for its place on the clock is below s. So the rows of a store follow from the
profile alone, and what is found with a row stands for one over its share.

>>> profile = Profile()
>>> profile.lower([10, 20], [0.0, 0.5, 1.0])                    # nothing below 10, half up to 20
[(-9223372036854775808, 10), (10, 20)]
>>> profile.at(np.array([-5, 9, 10, 19, 20])).tolist()
[0.0, 0.0, 0.5, 0.5, 1.0]
>>> profile.lower([15], [0.25, 1.0]), profile.at(np.array([9, 14, 15])).tolist()
([(10, 15)], [0.0, 0.25, 0.5])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windrow.store.operand import Array

Floats = NDArray[np.float64]
FIRST, LAST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
LEAST_SHARE = 1e-9


class Profile:
    """Shares by place: `shares[k]` from `starts[k]` up to the next."""

    def __init__(self) -> None:
        self.starts: Array = np.array([FIRST], np.int64)
        self.shares: Floats = np.ones(1)

    def at(self, places: Array) -> Floats:
        """The share that is left at some places."""
        found: Floats = self.shares[np.searchsorted(self.starts, places, side="right") - 1]
        return found

    def least(self, first: int, last: int) -> float:
        """The least share between two places."""
        low, high = np.searchsorted(self.starts, np.array([first, last], np.int64), side="right") - 1
        return float(self.shares[low : high + 1].min())

    def most(self, first: int, last: int) -> float:
        """The greatest share between two places."""
        low, high = np.searchsorted(self.starts, np.array([first, last], np.int64), side="right") - 1
        return float(self.shares[low : high + 1].max())

    @property
    def lets_go(self) -> bool:
        """Whether anything was let go of what the profile covers."""
        return len(self.shares) > 1 or bool(self.shares[0] < 1)

    def lower(self, bounds: Sequence[int], shares: Sequence[float]) -> list[tuple[int, int]]:
        """Let go of what exceeds `shares`: the first holds up to (not including) the first of the ascending bounds, the
        next up to the second, the last from the last on. Returns the ranges of places where less is left.
        """
        inner = np.array(bounds, np.int64)
        starts = np.union1d(self.starts, inner)
        before = self.at(starts)
        after = np.minimum(before, np.array(shares)[np.searchsorted(inner, starts, side="right")])
        ends = np.append(starts[1:], LAST)
        changed = [(int(starts[k]), int(ends[k])) for k in np.flatnonzero(after < before)]
        new = np.concatenate(([True], after[1:] != after[:-1]))
        self.starts, self.shares = starts[new], after[new]
        return changed

    def forget(self, before: int) -> None:
        """What is older than all rows need not be known."""
        first = int(np.searchsorted(self.starts, before, side="right")) - 1
        if first > 0:
            self.starts, self.shares = self.starts[first:].copy(), self.shares[first:]
            self.starts[0] = FIRST

    def copy(self) -> Profile:
        """The same shares, to be lowered apart."""
        return Profile.from_values(self.to_values())

    def to_values(self) -> dict[str, Any]:
        """As values that JSON knows."""
        return {"starts": self.starts.tolist(), "shares": self.shares.tolist()}

    @staticmethod
    def from_values(values: Mapping[str, Any]) -> Profile:
        """What `to_values` gave, after a way through JSON or not."""
        profile = Profile()
        profile.starts = np.array(values["starts"], np.int64)
        profile.shares = np.array(values["shares"], np.float64)
        return profile


class Profiles:
    """The profiles of several streams: what memory holds of rows, by their place on their stream's clock."""

    def __init__(self, by_stream: Mapping[str, Profile]) -> None:
        self.by_stream = by_stream

    @property
    def lets_go(self) -> bool:
        """Whether anything was let go of what the windows now cover."""
        return any(profile.lets_go for profile in self.by_stream.values())

    def share(self, stream: str, clock: Array) -> Floats:
        """The share of a stream's rows at some places of its clock that is held."""
        return self.by_stream[stream].at(clock)

    def chance(self, clocks: Mapping[str, Array]) -> Floats:
        """How likely stored rows of several streams, at these places of their clocks, were all to be held."""
        chance: Floats = np.ones(len(next(iter(clocks.values()))))
        before: list[tuple[Array, Floats]] = []
        for name, clock in clocks.items():
            share, given = self.share(name, clock), np.ones(len(clock))
            share = np.where(share > 0, share, 1.0)  # still there, though it was to go
            for other, other_share in before:
                given = np.where(clock == other, np.minimum(given, other_share), given)
            chance *= np.minimum(1.0, share / np.maximum(given, LEAST_SHARE))
            before.append((clock, share))
        return np.maximum(chance, LEAST_SHARE)
