"""Which segments of a store to merge: sixteen of a tier into one of the next, so that their number stays logarithmic.

    tier 0   ▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪   ▪▪▪          a group is merged as soon as it is closed: it has sixteen members,
    tier 1   ████████████████                 or the next segment has no room in it any more
    tier 2

A merged segment may span only a share of the window: what is kept past its time, because it shares a segment with
younger rows, is then at most that share. Rows that come late widen segments, so the share goes on top of the lateness.

A segment that fits to no neighbour stays alone. If a tier fills with such segments all the same, its oldest are merged
whatever they span: many segments cost more than rows that stay too long.

>>> limits = Limits(fan_in=3, widest_us=10)
>>> groups([Extent(0, 1, 5, 50, 0), Extent(2, 3, 5, 50, 0), Extent(4, 20, 5, 50, 0), Extent(21, 22, 5, 50, 0)], limits)
[[0, 1]]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from windrow.query.spec import UNBOUNDED, Window

FAN_IN = 16
CROWDED = 4
LARGEST_SEGMENT_BYTES = 2**30


class Extent(NamedTuple):
    """What has to be known of a segment to decide about it."""

    first_us: int
    last_us: int
    rows: int
    bytes: int
    level: int


@dataclass(frozen=True, slots=True)
class Limits:
    """How many segments are merged, and how wide, long and large the outcome may be."""

    fan_in: int = FAN_IN
    widest_us: int = UNBOUNDED
    most_rows: int = UNBOUNDED
    most_bytes: int = LARGEST_SEGMENT_BYTES


def limits_of(window: Window, lateness_us: int, share: int) -> Limits:
    """The limits for a window: merged segments span at most a `share`-th of it, and the lateness."""
    widest_us = UNBOUNDED if window.span_us is None else window.span_us // share + lateness_us
    most_rows = UNBOUNDED if window.rows is None else max(1, window.rows // share)
    return Limits(FAN_IN, widest_us, most_rows, LARGEST_SEGMENT_BYTES)


def groups(extents: Sequence[Extent], limits: Limits) -> list[list[int]]:
    """The places of the segments to merge, group by group; each group is of one tier, in its order."""
    tiers: dict[int, list[int]] = {}
    for place, extent in enumerate(extents):
        tiers.setdefault(extent.level, []).append(place)
    found: list[list[int]] = []
    for tier in tiers.values():
        closed = list(_closed(extents, tier, limits))
        if not closed and len(tier) > CROWDED * limits.fan_in:
            closed = list(_closed(extents, tier, Limits(limits.fan_in, most_bytes=limits.most_bytes)))[:1]
        found.extend(closed)
    return found


def _closed(extents: Sequence[Extent], tier: Sequence[int], limits: Limits) -> Iterator[list[int]]:
    """Groups of two or more neighbours that nothing can be added to."""
    group: list[int] = []
    first_us = last_us = rows = size = 0
    for place in tier:
        first, last, count, nbytes, _ = extents[place]
        if group:
            first_us, last_us = min(first_us, first), max(last_us, last)
            rows, size = rows + count, size + nbytes
            if last_us - first_us <= limits.widest_us and rows <= limits.most_rows and size <= limits.most_bytes:
                group.append(place)
                if len(group) == limits.fan_in:
                    yield group
                    group = []
                continue
            if len(group) > 1:
                yield group
        group, first_us, last_us, rows, size = [place], first, last, count, nbytes
