"""Slow and obvious twins of the kernels: plain Python, every pair looked at, nothing clever."""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from windrow.probe.pairs import Pairs

Pair = tuple[int, int]
Ranges = Sequence[tuple[int, int]]


def row_ranges(clock: Sequence[int], low: Sequence[int], high: Sequence[int]) -> list[list[int]]:
    """The rows whose clock lies in each closed range."""
    return [[row for row, tick in enumerate(clock) if lo <= tick <= hi] for lo, hi in zip(low, high, strict=True)]


def pairs_where(
    probes: int, rows: int, fits: Callable[[int, int], bool], ranges: Ranges | None = None
) -> Counter[Pair]:
    """All pairs (probe, row) that fit and whose row lies in the half-open range of the probe."""
    inside = ranges or [(0, rows)] * probes
    return Counter(
        (probe, row)
        for probe in range(probes)
        for row in range(rows)
        if inside[probe][0] <= row < inside[probe][1] and fits(probe, row)
    )


def collected(chunks: Iterable[Pairs], capacity: int) -> Counter[Pair]:
    """The pairs of all chunks, each chunk checked for its size."""
    found: Counter[Pair] = Counter()
    for chunk in chunks:
        assert 1 <= len(chunk.probe) == len(chunk.row) <= capacity
        found.update(zip(chunk.probe.tolist(), chunk.row.tolist(), strict=True))
    return found


def dot(a: Sequence[float], b: Sequence[float]) -> float:
    """The dot product, added up in index order."""
    total = 0.0
    for x, y in zip(a, b, strict=True):
        total += x * y
    return total


def cosine(a: Sequence[float], b: Sequence[float]) -> float:
    """The cosine; NaN for a zero vector."""
    length = math.sqrt(dot(a, a)) * math.sqrt(dot(b, b))
    return dot(a, b) / length if length else math.nan


def l2(a: Sequence[float], b: Sequence[float]) -> float:
    """The Euclidean distance, added up in index order."""
    difference = [x - y for x, y in zip(a, b, strict=True)]
    return math.sqrt(dot(difference, difference))


def tokens(text: str | None) -> set[str]:
    """Maximal runs of letters and digits of the lower-cased text."""
    spaced = "".join(letter if unicodedata.category(letter)[0] in "LN" else " " for letter in (text or "").lower())
    return set(spaced.split())


def jaccard(a: str | None, b: str | None) -> float:
    """Shared tokens over all tokens; NaN where there are none."""
    either = tokens(a) | tokens(b)
    return len(tokens(a) & tokens(b)) / len(either) if either else math.nan
