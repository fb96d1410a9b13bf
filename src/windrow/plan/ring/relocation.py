"""Nodes that come and go: which slices change, and what moves between neighbours (PSP, section 6).

    passive    only the ends of the slices are changed: rows follow as they age, nothing else moves
    at once    each of the N old nodes, which hold (N + M) / N new slices, passes the fraction over to the next; whole
               slices go into new nodes, so that these stand where they fill up at once

    N = 3, M = 1      node 1        node 2        node 3
    before            4/3           4/3           4/3
    passes on         1/3 ───────▶  2/3 ───────▶  0, and a whole one into the new node behind it
    after             1             1             1        new: 1

Node i passes on dS_i = M/N · i - floor(M/N · i), in units of one new slice W / (N + M), which is what the paper's
"state tuples" have to be; new node j stands behind the first old node k with M/N · k >= j (with the printed ">" the
last one would have no place). Removing nodes is the same, read backwards.

>>> grown = Growth.of(nodes=3, added=1)
>>> [str(amount) for amount in grown.passed_on], grown.behind
(['1/3', '2/3', '0'], (3,))
>>> passive_ends(12.0, nodes=3, change=1), passive_ends(12.0, nodes=3, change=-1)
((3.0, 6.0, 9.0, 12.0), (6.0, 12.0, 12.0))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from windrow.errors import PlanError


@dataclass(frozen=True, slots=True)
class Growth:
    """How `added` nodes enter a ring of `nodes` at once: what each old node passes on to the next old one, in new
    slices, and behind which old node (from 1) each new one stands.
    """

    nodes: int
    added: int
    passed_on: tuple[Fraction, ...]
    behind: tuple[int, ...]

    @classmethod
    def of(cls, nodes: int, added: int) -> Growth:
        """M nodes added to N."""
        if nodes < 1 or added < 0:
            raise PlanError(f"{added} nodes added to {nodes}", hint="give one node or more, and no fewer than none")
        shares = [Fraction(added, nodes) * place for place in range(1, nodes + 1)]
        passed_on = tuple(share - floor(share) for share in shares)
        return cls(nodes, added, passed_on, tuple(ceil(Fraction(nodes, added) * new) for new in range(1, added + 1)))

    def slices(self) -> tuple[Fraction, ...]:
        """What each node of the new ring holds when all has moved, from head to tail, in new slices.

        >>> [str(each) for each in Growth.of(2, 3).slices()]
        ['1', '1', '1', '1', '1']
        """
        before, received = Fraction(self.nodes + self.added, self.nodes), Fraction(0)
        held: list[Fraction] = []
        for place, passing in enumerate(self.passed_on, start=1):
            new = self.behind.count(place)
            held += [before + received - passing - new, *[Fraction(1)] * new]
            received = passing
        return tuple(held)

    def places(self) -> tuple[int, ...]:
        """Where each old node stands in the new ring, from 0.

        >>> Growth.of(4, 2).places()
        (0, 1, 3, 4)
        """
        return tuple(place + sum(1 for each in self.behind if each <= place) for place in range(self.nodes))


def even_ends(window: float, nodes: int) -> tuple[float, ...]:
    """The ends of equal slices of a window, by age.

    >>> even_ends(9, 3)
    (3.0, 6.0, 9.0)
    """
    return (*(window * place / nodes for place in range(1, nodes)), float(window))


def passive_ends(window: float, nodes: int, change: int) -> tuple[float, ...]:
    """The ends of the slices from when `change` nodes (fewer: below zero) begin to come or go at the tail. Nodes that
    go have an empty slice; they can leave when what they hold has expired.
    """
    after = nodes + change
    if after < 1:
        raise PlanError(f"{-change} of {nodes} nodes cannot go", hint="keep one node at least")
    return even_ends(window, after) + (float(window),) * (nodes - after)


def relocated(before: Sequence[int], after: Sequence[int], places: Sequence[int]) -> int:
    """How many of a window's rows change their node when it is sliced anew, at once.

    `before` and `after` are the rows each node holds, from head to tail; `places` says where the old nodes stand in the
    new ring. Here node 1 gives 1, node 2 gives 2, and 3 go into the new one.

    >>> relocated((4, 4, 4), (3, 3, 3, 3), Growth.of(3, 1).places())
    6
    """
    new = _spans(after)
    stay = 0
    for (first, last), place in zip(_spans(before), places, strict=True):
        if place < len(new):
            stay += max(0, min(last, new[place][1]) - max(first, new[place][0]))
    return sum(before) - stay


def _spans(counts: Sequence[int]) -> list[tuple[int, int]]:
    """The first and last row (counted from the head) of each node."""
    spans, reached = [], 0
    for count in counts:
        spans.append((reached, reached + count))
        reached += count
    return spans
