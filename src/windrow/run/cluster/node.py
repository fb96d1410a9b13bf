"""One sliced join: the rows of every stream that a node of the ring holds, and what happens to them (PSP, 4.1 and 4.4).

    row number      kept ......... passed ............. reached          of one stream, older to the left
                    │ gone on, but │ in the slice       │ next row
                    │ still needed │                    │ to come

Rows of a stream come in order and leave in order, so a slice is a range of row numbers. `purge` is the cross-purge of
a probing row: what has become too old goes on to the next node, ahead of that row. With delayed purge it stays here as
well, marked as gone, until no row that had it in its slice needs it any longer: each probing row keeps its own marks
(the paper's StateStart and StateEnd), and `release` takes them away.

>>> node = SlicedJoin(0, Layout(((10, 20), (10, 20))), ([0, 5, 12], [3, 4]), delays=True)
>>> node.insert(0, 0, 3), node.insert(1, 0, 2)
(None, None)
>>> node.purge(7, 14), node.rows(7, 1, 2), node.held
([(0, 0, 1), (1, 0, 2)], range(2, 2), 5)
>>> node.release(7), node.held
(None, 2)
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from windrow.errors import StateError
from windrow.run.cluster.layout import Layout

Moved = tuple[int, int, int]
"""Rows that go on: (stream, first, beyond the last)."""


class SlicedJoin:
    """The states of one node."""

    __slots__ = ("_ends_us", "_kept", "_limits", "_marks", "_passed", "_reached", "_times_us", "delays", "place")

    def __init__(self, place: int, layout: Layout, times_us: Sequence[list[int]], delays: bool) -> None:
        self.place = place
        self._times_us = times_us
        self.delays = delays
        self._kept = [0] * len(times_us)
        self._passed = [0] * len(times_us)
        self._reached = [0] * len(times_us)
        self._marks: dict[int, tuple[list[int], list[int]]] = {}
        self.resize(layout, place)

    def resize(self, layout: Layout, place: int) -> None:
        """From now on another place in the ring, or other ends."""
        self.place = place
        self._ends_us = [ends[place] for ends in layout.ends_us]
        self._limits = [layout.limit(stream, place) for stream in range(len(layout.ends_us))]

    def fill(self, spans: Sequence[tuple[int, int]]) -> None:
        """Hold these row numbers (first, beyond the last) of each stream."""
        self._kept, self._passed = [first for first, _ in spans], [first for first, _ in spans]
        self._reached = [beyond for _, beyond in spans]

    def spans(self) -> list[tuple[int, int]]:
        """The row numbers in the slice, by stream."""
        return list(zip(self._passed, self._reached, strict=True))

    @property
    def held(self) -> int:
        """Rows in memory, those that stay only for others' sake included."""
        return sum(self._reached) - sum(self._kept)

    def insert(self, stream: int, first: int, beyond: int) -> None:
        """Take in rows that have aged into the slice."""
        if first != self._reached[stream]:
            message = f"row {first} of stream {stream} reached node {self.place} instead of {self._reached[stream]}"
            raise StateError(message, hint="links have to be first in, first out")
        self._reached[stream] = beyond

    def purge(self, driver: int, time_us: int) -> list[Moved]:
        """What goes on to the next node before the row `driver` may probe here."""
        moved: list[Moved] = []
        for stream, end_us in enumerate(self._ends_us):
            first, beyond, limit = self._passed[stream], self._reached[stream], self._limits[stream]
            passed = bisect_right(self._times_us[stream], time_us - end_us, first, beyond)
            if limit is not None and beyond - passed > limit:
                passed = beyond - limit
            if passed > first:
                moved.append((stream, first, passed))
                self._passed[stream] = passed
        if self.delays:
            self._marks[driver] = (list(self._passed), list(self._reached))
        else:
            self._kept = list(self._passed)
        return moved

    def rows(self, driver: int, stream: int, cut: int) -> range:
        """What `driver` probes of a stream: what was in the slice when it came by; without delayed purge, what is
        there now, up to the row number `cut`.
        """
        if self.delays:
            firsts, beyonds = self._marks[driver]
            return range(firsts[stream], beyonds[stream])
        return range(self._passed[stream], min(self._reached[stream], cut))

    def release(self, driver: int) -> None:
        """`driver` is done here: what only it needed may go."""
        if self.delays:
            del self._marks[driver]
            oldest = next(iter(self._marks.values()), None)
            self._kept = list(self._passed) if oldest is None else list(oldest[0])
