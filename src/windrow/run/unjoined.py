"""What recall does not count: rows that were not joined, or not for as long as they should have been.

    late, bad, too_far_ahead    did not enter
    dropped                     found no room in an input buffer, or were dropped at random
    let_go                      stored rows that a memory limit took before their time, with about `lost_results`

Sampled rows cannot meet them, so they are in no estimate. Reports, status and events have them beside recall.

>>> str(Unjoined(late=3, let_go=20, lost_results=41.7)), str(Unjoined())
('3 rows late, 20 let go for memory (about 42 results)', '')
>>> Unjoined(late=3, dropped=4).rows
7
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

_SAID = (
    ("late", "late"),
    ("bad", "bad"),
    ("too_far_ahead", "too far ahead"),
    ("dropped", "dropped"),
    ("let_go", "let go for memory"),
)


@dataclass(frozen=True, slots=True)
class Unjoined:
    """Rows of all streams by what kept them from being joined."""

    late: int = 0
    bad: int = 0
    too_far_ahead: int = 0
    dropped: int = 0
    let_go: int = 0
    lost_results: float = 0.0

    @staticmethod
    def of(
        counts: Iterable[Mapping[str, int]], overflowed: int = 0, let_go: int = 0, lost_results: float = 0.0
    ) -> Unjoined:
        """From the counts of all entrances, rows that found no room before these, and what a memory limit cost."""
        held = tuple(counts)
        late, bad, ahead, dropped = (
            sum(each.get(name, 0) for each in held) for name in ("late", "bad", "ahead", "dropped")
        )
        return Unjoined(late, bad, ahead, dropped + overflowed, let_go, round(lost_results, 1))

    @property
    def rows(self) -> int:
        """How many they are."""
        return self.late + self.bad + self.too_far_ahead + self.dropped + self.let_go

    def to_values(self) -> dict[str, Any]:
        """As values that JSON knows."""
        return asdict(self)

    def __str__(self) -> str:
        found = [f"{getattr(self, name):,} {words}" for name, words in _SAID if getattr(self, name)]
        if not found:
            return ""
        number, _, words = found[0].partition(" ")
        lost = f" (about {self.lost_results:,.0f} results)" if self.let_go else ""
        return ", ".join([f"{number} rows {words}", *found[1:]]) + lost


class Counting(Protocol):
    """A buffer that rows may find no room in."""

    dropped: int


class LettingGo(Protocol):
    """A window that may let go of rows for memory."""

    let_go: int


def beside(buffers: Mapping[str, Counting], stores: Mapping[str, LettingGo], lost_results: float) -> dict[str, Any]:
    """What an event tells of it in one process, by the fields of `windrow.run.events.Scene`."""
    return {
        "overflowed": {name: buffer.dropped for name, buffer in buffers.items()},
        "let_go": {name: store.let_go for name, store in stores.items()},
        "lost_results": lost_results,
    }
