"""A store: the window of one stream, as a list of segments that stays short.

    add ──▶ [tier 0: one a batch] ─16─▶ [tier 1] ─16─▶ [tier 2] …        expire: whole segments leave at the old end

Sixteen segments of a tier are merged into one of the next, so a row is copied once a tier and their number stays
logarithmic in the window (`windrow.store.tiers`). A merged segment may span at most a quarter of the window: what is
kept past its time, because it shares a segment with younger rows, is then at most a quarter of the window too.

Rule for leaving: a row may go when no result can need it any more, that is when it is older than `cutoff_us`, or, in
a row window, when its stream has counted `rows` rows after it. The caller knows both (see `windrow.run.admit`).

Under a memory limit rows are let go that results could still need (`windrow.run.keeper`): they are counted, and copies
of what is left take the place of their segments, because a part of a segment frees nothing. Merged segments are shorter
there, so that little is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from windrow.query.spec import UNBOUNDED, Window
from windrow.store.operand import Array
from windrow.store.segment import Layout, Segment, bytes_of_indexes, merge, pick
from windrow.store.tiers import Extent, groups, limits_of

SPAN_SHARE = 4
LIMITED_SHARE = 16


class Store:
    """The live rows of stream `name`; `lateness_us` is how far others may lag: rows stay so long past their window.

    `merged_rows`, `added`, `expired` and `let_go` count rows: copied in merges, taken in, past their time, given up.
    """

    def __init__(
        self, name: str, layout: Layout, window: Window, lateness_us: int = 0, span_share: int = SPAN_SHARE
    ) -> None:
        self.name = name
        self.layout = layout
        self.merged_rows = self.added = self.let_go = 0
        self._limits = limits_of(window, lateness_us, span_share)
        self._cutoff_us, self._first_clock = -UNBOUNDED, 0
        self._held: list[tuple[Segment, Extent]] = []

    def __len__(self) -> int:
        return sum(extent.rows for _, extent in self._held)

    @property
    def segments(self) -> list[Segment]:
        return [segment for segment, _ in self._held]

    @property
    def nbytes(self) -> int:
        return sum(extent.bytes for _, extent in self._held)

    @property
    def memory_bytes(self) -> int:
        """Bytes of rows and of the indexes built so far."""
        return sum(extent.bytes + bytes_of_indexes(segment) for segment, extent in self._held)

    @property
    def expired(self) -> int:
        """Rows that left when their time was over."""
        return self.added - self.let_go - len(self)

    def add(self, segment: Segment) -> None:
        """Take in the rows of a batch; merges what belongs together by now."""
        if len(segment) == 0:
            return
        self.added += len(segment)
        self._held.append(_measured(segment))
        while found := groups([extent for _, extent in self._held], self._limits):
            self._merge(found)

    def expire(self, cutoff_us: int, first_clock: int) -> None:
        """Let go of segments whose rows are all older than `cutoff_us`, or numbered below `first_clock` in a row
        window.
        """
        self._cutoff_us, self._first_clock = cutoff_us, first_clock
        kept = [held for held in self._held if held[1].last_us >= cutoff_us]
        if first_clock > 0:
            kept = [held for held in kept if held[0].clocks[self.name][-1] >= first_clock]
        self._held = kept

    def give_up(self, stays: Callable[[Segment], Array | None]) -> None:
        """Let go of rows before their time: `stays` says of a segment which of its rows stay (None: all)."""
        held = []
        for segment, extent in self._held:
            chosen = stays(segment)
            if chosen is None or chosen.all():
                held.append((segment, extent))
                continue
            self.let_go += int(np.count_nonzero(~chosen & self._is_live(segment)))
            if chosen.any():
                held.append(_measured(pick(segment, np.flatnonzero(chosen))))
        self._held = held

    def _is_live(self, segment: Segment) -> Array:
        live: Array = segment.time_us >= self._cutoff_us
        return live if self._first_clock <= 0 else live & (segment.clocks[self.name] >= self._first_clock)

    def _merged(self, segments: Sequence[Segment]) -> Segment:
        return merge(segments, self._cutoff_us)

    def _merge(self, found: list[list[int]]) -> None:
        """Put the merged segment of each group in the place of its first member."""
        merged = {group[0]: self._merged([self._held[place][0] for place in group]) for group in found}
        self.merged_rows += sum(map(len, merged.values()))
        gone = {place for group in found for place in group[1:]}
        self._held = [
            _measured(merged[place]) if place in merged else held
            for place, held in enumerate(self._held)
            if place not in gone and (place not in merged or len(merged[place]))
        ]


class NodeStore(Store):
    """The live rows of an inner node of a tree of joins: they leave when their first member's time is over.

    A segment goes as a whole when all its rows have died, and merging leaves behind those that have.
    """

    def __init__(self, name: str, layout: Layout, window: Window, lateness_us: int = 0) -> None:
        super().__init__(name, layout, window, lateness_us)
        self._counted: Mapping[str, int] = {}

    def leave(self, before_us: int, counted: Mapping[str, int]) -> None:
        """Let go of rows that died before a time, or before a window of rows had counted so many."""
        self._cutoff_us, self._counted = before_us, counted
        self._held = [held for held in self._held if self._lives(held[0])]

    def _lives(self, segment: Segment) -> bool:
        last_us, last = segment.index("dies", lambda: _last_of(segment))
        return bool(last_us >= self._cutoff_us and all(last[name] >= count for name, count in self._counted.items()))

    def _merged(self, segments: Sequence[Segment]) -> Segment:
        living = [pick(segment, np.flatnonzero(self._is_live(segment))) for segment in segments]
        return merge(living, -UNBOUNDED - 1)

    def _is_live(self, segment: Segment) -> Array:
        dies_us = segment.time_us if segment.dies_us is None else segment.dies_us
        live: Array = dies_us >= self._cutoff_us
        for name, count in self._counted.items():
            live = live & (segment.dies_clocks[name] >= count)
        return live


def _last_of(segment: Segment) -> tuple[int, dict[str, int]]:
    """The last time, and count of each window of rows, at which a row of a node's segment lives."""
    dies_us = segment.time_us if segment.dies_us is None else segment.dies_us
    return int(dies_us.max()), {name: int(clock.max()) for name, clock in segment.dies_clocks.items()}


def _measured(segment: Segment) -> tuple[Segment, Extent]:
    extent = Extent(segment.first_us, segment.last_us, len(segment), segment.nbytes, segment.level)
    return segment, extent
