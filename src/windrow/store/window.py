"""A store: the window of one stream, as a list of segments that stays short.

    add ──▶ [tier 0: one a batch] ─16─▶ [tier 1] ─16─▶ [tier 2] …        expire: whole segments leave at the old end

Sixteen segments of a tier are merged into one of the next, so a row is copied once a tier and their number stays
logarithmic in the window (`windrow.store.tiers`). A merged segment may span at most a quarter of the window: what is
kept past its time, because it shares a segment with younger rows, is then at most a quarter of the window too.

Rule for leaving: a row may go when no result can need it any more, that is when it is older than `cutoff_us`, or, in
a row window, when its stream has counted `rows` rows after it. The caller knows both (see `windrow.run.admit`).
"""

from __future__ import annotations

from windrow.query.spec import UNBOUNDED, Window
from windrow.store.segment import Layout, Segment, merge
from windrow.store.tiers import Extent, groups, limits_of

SPAN_SHARE = 4


class Store:
    """The live rows of stream `name`; `lateness_us` is how far others may lag: rows stay so long past their window."""

    def __init__(self, name: str, layout: Layout, window: Window, lateness_us: int = 0) -> None:
        self.name = name
        self.layout = layout
        self.merged_rows = 0
        self._limits = limits_of(window, lateness_us, SPAN_SHARE)
        self._cutoff_us = -UNBOUNDED
        self._held: list[tuple[Segment, Extent]] = []

    def __len__(self) -> int:
        return sum(extent.rows for _, extent in self._held)

    @property
    def segments(self) -> list[Segment]:
        return [segment for segment, _ in self._held]

    @property
    def nbytes(self) -> int:
        return sum(extent.bytes for _, extent in self._held)

    def add(self, segment: Segment) -> None:
        """Take in the rows of a batch; merges what belongs together by now."""
        if len(segment) == 0:
            return
        self._held.append(_measured(segment))
        while found := groups([extent for _, extent in self._held], self._limits):
            self._merge(found)

    def expire(self, cutoff_us: int, first_clock: int) -> None:
        """Let go of segments whose rows are all older than `cutoff_us`, or numbered below `first_clock` in a row
        window.
        """
        self._cutoff_us = max(self._cutoff_us, cutoff_us)
        kept = [held for held in self._held if held[1].last_us >= cutoff_us]
        if first_clock > 0:
            kept = [held for held in kept if held[0].clocks[self.name][-1] >= first_clock]
        self._held = kept

    def _merge(self, found: list[list[int]]) -> None:
        """Put the merged segment of each group in the place of its first member."""
        merged = {group[0]: merge([self._held[place][0] for place in group], self._cutoff_us) for group in found}
        self.merged_rows += sum(map(len, merged.values()))
        gone = {place for group in found for place in group[1:]}
        self._held = [
            _measured(merged[place]) if place in merged else held
            for place, held in enumerate(self._held)
            if place not in gone and (place not in merged or len(merged[place]))
        ]


def _measured(segment: Segment) -> tuple[Segment, Extent]:
    extent = Extent(segment.first_us, segment.last_us, len(segment), segment.nbytes, segment.level)
    return segment, extent
