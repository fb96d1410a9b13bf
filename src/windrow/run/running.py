"""A batch under way in one process: what it began with, and what it has found and made so far.

admit ──▶ Running: new rows, notes, results as they are found ──read to the end──▶ stores, nodes, observation
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from windrow.run.counting import Clerk
from windrow.run.freshness import FreshResults
from windrow.run.partial import Partial
from windrow.run.tally import Tallying
from windrow.store.segment import Segment


@dataclass
class Running:
    """A batch under way: its clock, counts before it, its new rows, and its results as they are found."""

    now_s: float
    started_s: float
    before: Mapping[str, int]
    fresh: Mapping[str, Segment]
    clerk: Clerk
    blocks: Iterator[Partial]
    made: Mapping[str, Segment]
    last: bool
    tallying: Tallying | None = None
    delivered: FreshResults | None = None
    waited_s: float = 0.0

    @property
    def busy_s(self) -> float:
        return time.perf_counter() - self.started_s - self.waited_s
