"""A store: the window of one stream, as a list of segments that stays short.

    add ──▶ [tier 0: one a batch] ─16─▶ [tier 1] ─16─▶ [tier 2] …        expire: whole segments leave at the old end

Sixteen segments of a tier are merged into one of the next, so a row is copied once a tier and their number stays
logarithmic in the window. A merged segment may span at most a quarter of the window: what is kept past its time,
because it shares a segment with younger rows, is then at most a quarter of the window too.

Rule for leaving: a row may go when no result can need it any more, that is when it is older than `cutoff_us`, or, in
a row window, when its stream has counted `rows` rows after it. The caller knows both (see `windrow.run.admit`).
"""

from __future__ import annotations

from dataclasses import replace

from windrow.query.spec import UNBOUNDED, Window
from windrow.store.segment import Layout, Segment, merge

FAN_IN = 16
SPAN_SHARE = 4
LARGEST_SEGMENT_BYTES = 2**30


class Store:
    """The live rows of stream `name`; `lateness_us` is how far others may lag: rows stay so long past their window."""

    def __init__(self, name: str, layout: Layout, window: Window, lateness_us: int = 0) -> None:
        self.name = name
        self.layout = layout
        self.segments: list[Segment] = []
        self.merged_rows = 0
        self._widest_us = UNBOUNDED if window.span_us is None else (window.span_us + lateness_us) // SPAN_SHARE
        self._most_rows = UNBOUNDED if window.rows is None else max(1, window.rows // SPAN_SHARE)
        self._cutoff_us = -UNBOUNDED

    def __len__(self) -> int:
        return sum(len(segment) for segment in self.segments)

    @property
    def nbytes(self) -> int:
        return sum(segment.nbytes for segment in self.segments)

    def add(self, segment: Segment) -> None:
        """Take in the rows of a batch; merges what has become sixteen of a kind."""
        if len(segment) == 0:
            return
        self.segments.append(segment)
        level = segment.level
        while sum(1 for held in self.segments if held.level == level) >= FAN_IN:
            before = len(self.segments)
            self._merge_tier(level)
            if len(self.segments) == before:
                break  # too far apart to merge, in this tier and in every next one
            level += 1

    def expire(self, cutoff_us: int, first_clock: int) -> None:
        """Let go of segments whose rows are all older than `cutoff_us`, or numbered below `first_clock` in a row
        window.
        """
        self._cutoff_us = max(self._cutoff_us, cutoff_us)
        kept = [segment for segment in self.segments if segment.last_us >= cutoff_us]
        if first_clock > 0:
            kept = [segment for segment in kept if segment.clocks[self.name][-1] >= first_clock]
        self.segments = kept

    def _merge_tier(self, level: int) -> None:
        """Merge the segments of a tier into as few of the next as the widest span allows. A last one that finds no room
        stays, to be merged with those that follow it.
        """
        tier = [segment for segment in self.segments if segment.level == level]
        merged: list[Segment] = []
        group = tier[:1]
        for segment in tier[1:]:
            if self._fits([*group, segment]):
                group.append(segment)
                continue
            merged.append(self._join(group))
            group = [segment]
        merged.append(group[0] if merged and len(group) == 1 else self._join(group))
        position = min(k for k, segment in enumerate(self.segments) if segment.level == level)
        rest = [segment for segment in self.segments if segment.level != level]
        self.segments = [*rest[:position], *(segment for segment in merged if len(segment)), *rest[position:]]

    def _join(self, group: list[Segment]) -> Segment:
        if len(group) == 1:
            return replace(group[0], level=group[0].level + 1)
        joined = merge(group, self._cutoff_us)
        self.merged_rows += len(joined)
        return joined

    def _fits(self, group: list[Segment]) -> bool:
        span_us = max(segment.last_us for segment in group) - min(segment.first_us for segment in group)
        rows = sum(len(segment) for segment in group)
        bytes_held = sum(segment.nbytes for segment in group)
        return span_us <= self._widest_us and rows <= self._most_rows and bytes_held <= LARGEST_SEGMENT_BYTES
