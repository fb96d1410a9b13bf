"""What a probe finds: by a condition, row for row, or by chance at a given selectivity.

A `Found` is what travels: so many partial results, and, where they are exact, which rows they are made of. By chance,
only how many there are is drawn: as many of all compared pairs as match with the step's probability.

>>> exact = Exact(lambda partial, stream, row: partial[0] == row)
>>> exact.probe(exact.begin(streams=2, stream=0, row=5), 1, range(4, 8)).members
((5, 5),)
>>> chance = Chance((0.5, 0.5), np.random.default_rng(1))
>>> chance.probe(Found(3), 1, range(0, 100)).count
148
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

Members = tuple[int, ...]
"""The number of the row of each stream, -1 where there is none yet."""
Condition = Callable[[Members, int, int], bool]
"""Whether a partial result goes with a row: (members, stream, row)."""
NO_ROW = -1


@dataclass(frozen=True, slots=True)
class Found:
    """Partial results of one kind: their number and, where known, their rows."""

    count: int
    members: tuple[Members, ...] = ()


NOTHING = Found(0)


class Matching(Protocol):
    """Says what probes find."""

    def begin(self, *, streams: int, stream: int, row: int) -> Found:
        """A row that sets out."""
        ...

    def probe(self, found: Found, stream: int, rows: range) -> Found:
        """Partial results, compared with rows of a stream."""
        ...


@dataclass(frozen=True, slots=True)
class Exact:
    """By a condition."""

    condition: Condition

    def begin(self, *, streams: int, stream: int, row: int) -> Found:
        return Found(1, (tuple(row if each == stream else NO_ROW for each in range(streams)),))

    def probe(self, found: Found, stream: int, rows: range) -> Found:
        members = tuple(
            (*partial[:stream], row, *partial[stream + 1 :])
            for partial in found.members
            for row in rows
            if self.condition(partial, stream, row)
        )
        return Found(len(members), members)


@dataclass(frozen=True, slots=True)
class Chance:
    """By the selectivity of probing each stream."""

    selectivities: Sequence[float]
    generator: np.random.Generator

    def begin(self, *, streams: int, stream: int, row: int) -> Found:  # noqa: ARG002 - no rows are known
        return Found(1)

    def probe(self, found: Found, stream: int, rows: range) -> Found:
        pairs = found.count * len(rows)
        return Found(int(self.generator.binomial(pairs, self.selectivities[stream]))) if pairs else NOTHING
