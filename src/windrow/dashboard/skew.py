"""Whether clocks of streams seem to differ: streams that come side by side, with event times far apart.

    side by side    batches that brought rows of both: the newest event times differ by more than the window, and by
                    about the same in each
    apart           replayed in order of event time: one stream both begins and ends later than the other, by about the
                    same span, which is longer than the window

A row of the stream that lags by more than its window can never meet a row of the other: where it comes, it has left.
Which one is wrong nobody can tell from here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from statistics import median

from windrow.dashboard.batches import Asked, Batch
from windrow.dashboard.wording import span_text, window_text

FEWEST = 3
"""So many batches have to agree."""
AGREE = 0.25
"""How far offsets may be from their median, as a share of it, in most batches."""


@dataclass(frozen=True)
class Skew:
    """`behind` lags `ahead` by so many seconds of event time; its window is `window_s` long."""

    behind: str
    ahead: str
    lag_s: float
    window_s: float
    evidence: str

    @property
    def text(self) -> str:
        """One line for people."""
        window = window_text(round(self.window_s * 1e6), None)
        return f"{self.behind} lags {self.ahead} by {span_text(self.lag_s)}; your window is {window}"


def skews(batches: Sequence[Batch], query: Asked) -> list[Skew]:
    """The pairs of streams whose clocks seem to differ, the largest lag first."""
    found = []
    for one, two in combinations(query.streams, 2):
        for offset_s, evidence in (
            (side_by_side(batches, one, two), "rows that came in the same batches"),
            (apart(batches, one, two), "where both begin and end"),
        ):
            skew = None if offset_s is None else _beyond_window(offset_s, evidence, query, one, two)
            if skew is not None:
                found.append(skew)
                break
    return sorted(found, key=lambda skew: -skew.lag_s)


def _beyond_window(offset_s: float, evidence: str, query: Asked, one: str, two: str) -> Skew | None:
    behind, ahead = (one, two) if offset_s < 0 else (two, one)
    asked = query.streams[behind]
    if asked.window_us is None:
        return None
    window_s = asked.window_us / 1e6
    most_s = window_s + (asked.lateness_us + query.streams[ahead].lateness_us) / 1e6
    return Skew(behind, ahead, abs(offset_s), window_s, evidence) if abs(offset_s) > most_s else None


def side_by_side(batches: Sequence[Batch], one: str, two: str) -> float | None:
    """By how much the newest rows of `one` are later than those of `two`, in batches that brought both; None where
    that is not about the same in most.
    """
    offsets = []
    for before, after in pairwise(batches):
        held = [(before.streams.get(name), after.streams.get(name)) for name in (one, two)]
        newest = [now.newest_us for then, now in held if then is not None and now is not None and now.rows > then.rows]
        known = [time_us for time_us in newest if time_us is not None]
        if len(known) == 2:
            offsets.append((known[0] - known[1]) / 1e6)
    return _agreed(offsets)


def apart(batches: Sequence[Batch], one: str, two: str) -> float | None:
    """By how much `one` is later than `two` where both begin, and where both end; None where these differ, or one
    did not begin while the other still came.
    """
    if not batches:
        return None
    last = batches[-1]
    first_us = last.totals.first_us
    newest = [last.streams[name].newest_us for name in (one, two) if name in last.streams]
    ends = [time_us for time_us in newest if time_us is not None]
    begins = [first_us[name] for name in (one, two) if name in first_us]
    if len(begins) < 2 or len(ends) < 2:
        return None
    at_begin, at_end = (begins[0] - begins[1]) / 1e6, (ends[0] - ends[1]) / 1e6
    lag, spans = median((at_begin, at_end)), [(end - begin) / 1e6 for begin, end in zip(begins, ends, strict=True)]
    same = lag != 0 and abs(at_begin - lag) <= AGREE * abs(lag) and abs(at_end - lag) <= AGREE * abs(lag)
    return lag if same and last.last and min(spans) > 0 else None


def _agreed(offsets: Sequence[float]) -> float | None:
    if len(offsets) < FEWEST:
        return None
    middle = median(offsets)
    near = sum(abs(offset - middle) <= AGREE * abs(middle) for offset in offsets)
    return middle if middle and near >= 0.8 * len(offsets) else None
