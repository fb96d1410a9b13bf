"""The kept span of a store: which of its rows stay when the memory is too small for whole windows.

    share  1 |########
             |        #######                     rows of an age stay with a share that only falls as they get older:
           x |               ################     what was let go does not come back
           0 +--------|------|---------------|    age

Whether a row is among a share is drawn for its place on its stream's clock alone (its event time, or its number in a
row window). So rows of different stores with the same time stay or go together.

>>> span = KeptSpan("a", ((10, 1.0), (30, 0.25)))
>>> span.shares_at(np.array([-5, 0, 10, 11, 30, 31])).tolist()
[1.0, 1.0, 1.0, 0.25, 0.25, 0.0]
>>> KeptSpan.from_values(span.to_values()) == span
True
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windrow.errors import PlanError


@dataclass(frozen=True, slots=True)
class KeptSpan:
    """Rows of `stream` up to each age (microseconds, or rows of a row window) stay with that share, older ones go."""

    stream: str
    steps: tuple[tuple[int, float], ...]

    def __post_init__(self) -> None:
        ages, shares = [age for age, _ in self.steps], [share for _, share in self.steps]
        if not all(0 <= share <= 1 for share in shares):
            raise PlanError(f"'{self.stream}' cannot keep the shares {shares}", hint="give shares from 0 to 1")
        if any(b <= a for a, b in pairwise(ages)):
            raise PlanError(f"'{self.stream}' keeps up to the ages {ages}", hint="give them in ascending order")
        if any(b > a for a, b in pairwise(shares)):
            raise PlanError(f"'{self.stream}' keeps the shares {shares}", hint="shares fall: no row comes back")

    def shares_at(self, ages: NDArray[np.int64]) -> NDArray[np.float64]:
        """The share that is kept of rows of some ages."""
        places = np.searchsorted(np.array([age for age, _ in self.steps], np.int64), ages)
        return np.array([*(share for _, share in self.steps), 0.0])[places]

    @property
    def whole_to(self) -> int:
        """Up to which age all rows are kept."""
        return max((age for age, share in self.steps if share >= 1), default=0)

    def to_values(self) -> dict[str, Any]:
        """As values that JSON knows."""
        return asdict(self)

    @staticmethod
    def from_values(values: Mapping[str, Any]) -> KeptSpan:
        """What `to_values` gave, after a way through JSON or not."""
        steps = tuple((int(age), float(share)) for age, share in values["steps"])
        return KeptSpan(str(values["stream"]), steps)
