"""Slices of equal work: where they end, how many rows they may hold, which segments change hands (PSP, 5.5 and 6).

    bins of age    | 40 | 40 | 10 | 10 |      work of a bin = stored rows × how often a probe searches it
    2 slices       |  50   |     50    |      ends where the work so far is a half

What is never searched, such as bins that harvesting leaves out, is no work. Boundaries are revised while running: by
age (`revised_ends`), by count where rates fluctuate (`row_limits`: a slice that is full passes on its oldest rows; the
tail keeps to time), or, where rows do not wander, by giving whole segments to other slices (`reassigned`).

>>> balanced_ends(edges=(0, 1, 2, 3, 4), work=expected_work((40, 40, 10, 10), (1, 1, 1, 1)), slices=2)
(1.25, 4.0)
>>> balanced_ends(edges=(0, 1, 2, 3, 4), work=expected_work((40, 40, 10, 10), (0, 0, 1, 1)), slices=2)
(3.0, 4.0)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

from windrow.errors import PlanError


def expected_work(stored: Sequence[float], searches: Sequence[float]) -> tuple[float, ...]:
    """Pairs compared, by bin: its stored rows times the probes that search it (a second, or of all)."""
    return tuple(rows * often for rows, often in zip(stored, searches, strict=True))


def balanced_ends(edges: Sequence[float], work: Sequence[float], slices: int) -> tuple[float, ...]:
    """Where slices of equal work end: bins `edges[k]` … `edges[k + 1]` have `work[k]`, evenly inside. Without any work
    slices are equally long.
    """
    if slices < 1 or len(edges) != len(work) + 1 or len(work) < 1 or min(work) < 0:
        message = f"{slices} slices of {len(work)} bins with {len(edges)} edges"
        raise PlanError(message, hint="give one slice or more, an edge more than bins, no work below zero")
    if sum(work) <= 0:
        work = [last - first for first, last in pairwise(edges)]
    total, done, bin_number = math.fsum(work), 0.0, 0
    ends: list[float] = []
    for place in range(1, slices):
        wanted = total * place / slices
        while bin_number < len(work) - 1 and done + work[bin_number] < wanted:
            done += work[bin_number]
            bin_number += 1
        first, last = edges[bin_number], edges[bin_number + 1]
        share = (wanted - done) / work[bin_number] if work[bin_number] > 0 else 1.0
        ends.append(first + (last - first) * min(1.0, max(0.0, share)))
    return (*ends, float(edges[-1]))


def work_of_slices(edges: Sequence[float], work: Sequence[float], ends: Sequence[float]) -> tuple[float, ...]:
    """What each slice has of the work in bins, evenly inside a bin.

    >>> work_of_slices((0, 1, 2), (10, 30), ends=(1.5, 2))
    (25.0, 15.0)
    """
    upto: list[float] = []
    for end in ends:
        shares = [min(1.0, max(0.0, (end - first) / (last - first))) for first, last in pairwise(edges)]
        upto.append(math.fsum(share * amount for share, amount in zip(shares, work, strict=True)))
    return tuple(after - before for before, after in pairwise((0.0, *upto)))


def revised_ends(
    ends: Sequence[float], edges: Sequence[float], work: Sequence[float], tolerance: float = 1.2
) -> tuple[float, ...]:
    """The ends of as many slices of equal work, or the ones there are while the busiest has no more than `tolerance`
    times the mean: a boundary that moves costs rows that move.

    >>> revised_ends((1, 2), (0, 1, 2), (10, 12)), revised_ends((1, 2), (0, 1, 2), (10, 30))
    ((1, 2), (1.3333333333333333, 2.0))
    """
    if imbalance(work_of_slices(edges, work, ends)) <= tolerance:
        return tuple(ends)
    return balanced_ends(edges, work, len(ends))


def row_limits(stored: int, slices: int) -> tuple[int | None, ...]:
    """The most rows of a stream that each slice may hold; the tail has no limit, so that windows stay exact.

    >>> row_limits(stored=10, slices=3)
    (4, 4, None)
    """
    return (math.ceil(stored / slices),) * (slices - 1) + (None,)


def imbalance(work: Sequence[float]) -> float:
    """The busiest slice's work over the mean: 1 where all are alike, and how much longer than needed a batch takes.

    >>> imbalance((3, 1, 2))
    1.5
    """
    total = math.fsum(work)
    return max(work) * len(work) / total if total > 0 else 1.0


def reassigned(
    held: Mapping[str, int], work: Mapping[str, float], slices: int, tolerance: float = 1.05
) -> dict[str, int]:
    """Segments (by name) on other slices, so that no slice has more than `tolerance` times the mean work, if that can
    be: a change of the map. Segments of slices that are no longer there (numbers from `slices` on) go to the least busy
    ones, largest first; then, one at a time, the busiest slice gives the segment that evens it out best with the least
    busy. What need not move stays.

    >>> held = {"a": 0, "b": 0, "c": 0, "d": 1}
    >>> reassigned(held, {"a": 3, "b": 2, "c": 1, "d": 2}, slices=2)
    {'a': 0, 'b': 1, 'c': 0, 'd': 1}
    >>> reassigned(held, {"a": 3, "b": 2, "c": 1, "d": 2}, slices=1)
    {'a': 0, 'b': 0, 'c': 0, 'd': 0}
    """
    if slices < 1 or tolerance < 1:
        raise PlanError(f"{slices} slices within {tolerance} of the mean", hint="give one slice, 1.0, or more")
    where = dict(held)
    busy = [0.0] * slices
    for name in sorted(held, key=lambda each: (held[each] >= slices, -work[each], each)):
        if where[name] >= slices:
            where[name] = busy.index(min(busy))
        busy[where[name]] += work[name]
    most = tolerance * math.fsum(busy) / slices
    for _ in range(len(held)):
        giver, taker = busy.index(max(busy)), busy.index(min(busy))
        gap = busy[giver] - busy[taker]
        offered = [name for name in sorted(where) if where[name] == giver and 0 < work[name] < gap]
        if busy[giver] <= most or not offered:
            break
        given = min(offered, key=lambda name: abs(gap / 2 - work[name]))
        where[given] = taker
        busy[giver] -= work[given]
        busy[taker] += work[given]
    return where
