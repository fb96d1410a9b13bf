"""What the tasks of a batch let go under a memory limit, and what they tell of rows that they write.

    plan k ── Thinning ──▶ merge ──▶ thinned: rows whose draw is below their place's share ──▶ written
                           new rows, written whole ──▶ told_of: their number by cell of the clock

Which rows stay follows from their place on their stream's clock alone, so every attempt lets the same rows go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from windrow.plan.kept import KeptSpan
from windrow.query.spec import Window
from windrow.run.keeper import Held, drawn, own_clock
from windrow.store.files import SegmentFile
from windrow.store.profile import Profile, Profiles
from windrow.store.segment import Segment, pick

Ends = Mapping[str, tuple[int, int]]
"""From when on the rows of each stream are needed, by event time and by row number."""


@dataclass(frozen=True)
class Thinning:
    """The part of a batch's plan that says what is let go: `retained` holds before the batch, `profiles` after it;
    `dying` segments go with the commit. It is kept to by a batch that is run again, whatever is asked for by then.
    """

    seed: int
    ends: Ends
    retained: Profiles
    profiles: Profiles
    spans: tuple[KeptSpan, ...] = ()
    dying: frozenset[str] = frozenset()
    due: Mapping[str, float] = field(default_factory=dict)

    def thinned(self, window: Window, stream: str, segment: Segment) -> tuple[Segment, int]:
        """What stays of a segment that is rewritten, and how many rows were let go that were still needed."""
        stays = drawn(self.profiles.by_stream[stream], own_clock(window, stream, segment), self.seed)
        if stays.all():
            return segment, 0
        cutoff_us, first_clock = self.ends[stream]
        needed = segment.time_us >= cutoff_us
        if window.rows is not None:
            needed &= segment.clocks[stream] >= first_clock
        return pick(segment, np.flatnonzero(stays)), int(np.count_nonzero(needed & ~stays))

    def to_values(self) -> dict[str, Any]:
        """As values that JSON knows."""
        return {
            "seed": self.seed,
            "ends": {name: list(end) for name, end in self.ends.items()},
            "retained": {name: profile.to_values() for name, profile in self.retained.by_stream.items()},
            "profiles": {name: profile.to_values() for name, profile in self.profiles.by_stream.items()},
            "spans": [span.to_values() for span in self.spans],
            "dying": sorted(self.dying),
            "due": dict(self.due),
        }

    @staticmethod
    def from_values(values: Mapping[str, Any] | None) -> Thinning | None:
        """What `to_values` gave, after a way through JSON or not."""
        if values is None:
            return None
        retained, profiles = (
            Profiles({name: Profile.from_values(held) for name, held in values[part].items()})
            for part in ("retained", "profiles")
        )
        return Thinning(
            int(values["seed"]),
            {name: (int(end[0]), int(end[1])) for name, end in values["ends"].items()},
            retained,
            profiles,
            tuple(map(KeptSpan.from_values, values["spans"])),
            frozenset(values["dying"]),
            dict(values["due"]),
        )


def told_of(window: Window, stream: str, segment: Segment, file: SegmentFile, size: int) -> dict[str, Any]:
    """What a task tells of new rows that it wrote: their number by cell, and what the file takes besides `size`."""
    clock = own_clock(window, stream, segment)
    cells = sorted(Held(window).cells(clock).items())
    return {"cells": cells, "newest": int(clock.max()), "bare": max(0, file.bytes - size)}


def range_of(window: Window, stream: str, file: SegmentFile) -> tuple[int, int]:
    """The first and last place of a segment on the clock of its stream."""
    if window.rows is None:
        return file.first_us, file.last_us
    first, last = file.clocks[stream]
    return int(first), int(last)
