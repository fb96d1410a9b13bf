"""A live table of a running join; where there is no terminal, a plain line now and then.

stream   rows in   rows/s   in window                                          one row a stream
results, matches/s, time of the last batch                                     one line below
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

RATE_SPAN_S = 5.0
"""Rates are over the moments of so many seconds, and at least the last two."""
PLAIN_LINES = 4


@dataclass(frozen=True, slots=True)
class Moment:
    """A join at one time: seconds since it started, results so far, rows of each stream so far and in its window now,
    and how long the last batch took.
    """

    at_s: float
    results: int
    rows: Mapping[str, int]
    stored: Mapping[str, int]
    batch_s: float


class LiveTable:
    """Shows moments as they come. A context manager; `duration_s` spaces the plain lines."""

    def __init__(self, console: Console, duration_s: float) -> None:
        self._console = console
        self._recent: deque[Moment] = deque()
        self._line_every_s = duration_s / PLAIN_LINES
        self._next_line_s = self._line_every_s
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None

    def __enter__(self) -> LiveTable:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, moment: Moment) -> None:
        """The join as it is now."""
        self._recent.append(moment)
        while len(self._recent) > 2 and self._recent[1].at_s <= moment.at_s - RATE_SPAN_S:
            self._recent.popleft()
        if self._live is not None:
            self._live.update(Group(self._table(moment), Text(self._totals(moment))), refresh=True)
        elif moment.at_s >= self._next_line_s:
            self._next_line_s += self._line_every_s
            rows = sum(moment.rows.values())
            self._console.print(f"{moment.at_s:5.1f} s: {rows:,} rows in, {self._totals(moment)}", soft_wrap=True)

    def _table(self, moment: Moment) -> Table:
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("stream")
        for heading in ("rows in", "rows/s", "in window"):
            table.add_column(heading, justify="right", min_width=10)
        for name, rows in moment.rows.items():
            rate = self._rate(moment, lambda each, name=name: each.rows.get(name, 0))  # type: ignore[misc]
            table.add_row(name, f"{rows:,}", f"{rate:,.0f}", f"{moment.stored.get(name, 0):,}")
        return table

    def _totals(self, moment: Moment) -> str:
        rate = self._rate(moment, lambda each: each.results)
        return (
            f"{moment.results:,} results, {rate:,.0f} matches/s, {sum(moment.stored.values()):,} rows in windows,"
            f" last batch {moment.batch_s * 1000:,.0f} ms"
        )

    def _rate(self, moment: Moment, count: Callable[[Moment], int]) -> float:
        first = self._recent[0]
        span_s = moment.at_s - first.at_s
        return (count(moment) - count(first)) / span_s if span_s > 0 else 0.0
