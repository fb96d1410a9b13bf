"""The view: one plain value with all the page shows, made of a run's history.

    history ─┬─ head      what the run is, how it does, in a dozen numbers
             ├─ series    what changes with time                           (`windrow.dashboard.series`)
             ├─ funnel    why so few rows become results                   (`windrow.dashboard.funnel`)
             ├─ plan      who probes what, how                             (`windrow.dashboard.picture`)
             ├─ lags      where matches lie, what is searched, advice      (`windrow.dashboard.lags`)
             └─ streams, slices, ledger, hints

A pure function: the same history and time of day give the same value.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from windrow.dashboard.batches import Asked, Band, Batch
from windrow.dashboard.funnel import funnel_view
from windrow.dashboard.history import History
from windrow.dashboard.lags import advice, lags_view
from windrow.dashboard.picture import plan_view
from windrow.dashboard.series import series_of
from windrow.dashboard.skew import skews
from windrow.dashboard.wording import count_text, share_text, size_text, span_text, time_text, window_text

LATE = 50
"""What is shown as of late is over so many batches."""
RATED = 10
QUIET_S = 10.0
"""A run that has written nothing for so long, and three of its batches, is waiting or has stopped."""


def view_of(history: History, title: str, now_s: float) -> dict[str, Any]:
    """Everything the page shows, at a time of day."""
    if not history.batches or history.query is None or history.plan is None:
        return {"title": title, "state": "empty", "events": history.events, "damaged": history.damaged}
    batches, query, plan = history.batches, history.query, history.plan
    last, recent = batches[-1], batches[-LATE:]
    found = skews(recent if not last.last else batches, query)
    return {
        "title": title,
        "state": state_of(batches, now_s),
        "events": history.events,
        "damaged": history.damaged,
        "batch": last.batch,
        "now": time_text(round(last.now_s * 1e6)),
        "written_s": last.written_s,
        "head": head(batches),
        "hints": [*(f"Clocks seem skewed: {skew.text}." for skew in found), *_hints(last, query)],
        "series": series_of(batches, query),
        "funnel": funnel_view(last, recent, query, plan, found),
        "plan": plan_view(last, query, plan),
        "lags": lags_view(last, query, plan),
        "advice": advice(last, query, plan),
        "streams": streams_view(batches, query),
        "held_back_by": held_back_by(last),
        "slices": {name: [list(part) for part in held] for name, held in last.slices.items()},
        "phases": dict(last.durations_s),
        "ledger": ledger_view(batches),
        "freshness": freshness_view(last),
    }


def state_of(batches: Sequence[Batch], now_s: float) -> str:
    """`finished`, `live`, or `quiet`: nothing has come for a while."""
    last = batches[-1]
    if last.last:
        return "finished"
    spans = [batch.span_s for batch in batches[-RATED:]]
    return "live" if now_s - last.written_s <= max(QUIET_S, 3 * median(spans)) else "quiet"


def head(batches: Sequence[Batch]) -> dict[str, Any]:
    """The numbers at the top; rates are over the last batches."""
    last, first = batches[-1], batches[-min(len(batches), RATED + 1)]
    span_s = last.now_s - first.now_s
    rows = sum(stream.rows for stream in last.streams.values())
    grown = rows - sum(stream.rows for stream in first.streams.values())
    spent = [batch for batch in batches[-RATED:] if batch.span_s > 0]
    had_s = sum(batch.span_s for batch in spent)
    delays = [batch.span_s + batch.busy_s for batch in spent]
    return {
        "results": last.totals.results,
        "results_per_s": (last.totals.results - first.totals.results) / span_s if span_s > 0 else None,
        "rows": rows,
        "rows_per_s": grown / span_s if span_s > 0 else None,
        "throttle": last.throttle,
        "busy": sum(batch.busy_s for batch in spent) / had_s if had_s > 0 else None,
        "recall": band(last.recall.whole),
        "with_repair": with_repair(last),
        "recent_recall": band(last.recall.recent),
        "late": sum(stream.late for stream in last.streams.values()),
        "bad": sum(stream.bad + stream.ahead for stream in last.streams.values()),
        "dropped": sum(stream.dropped for stream in last.streams.values()),
        "repaired": last.totals.repaired,
        "lost": last.totals.lost,
        "bytes": sum(stream.stored_bytes for stream in last.streams.values()),
        "bytes_text": size_text(sum(stream.stored_bytes for stream in last.streams.values())),
        "delay_s": median(delays) if delays else None,
        "delay_text": span_text(median(delays)) if delays else None,
    }


def band(recall: Band) -> dict[str, Any]:
    """A recall, in words too."""
    if recall.recall is None or recall.low is None or recall.high is None:
        text = "too few to tell"
    elif recall.missing == 0 and recall.low >= 1:
        text = "100 %, nothing left out"
    else:
        text = f"{share_text(recall.recall)} ({share_text(recall.low)} to {share_text(recall.high)})"
    return {"share": recall.recall, "low": recall.low, "high": recall.high, "text": text, "matches": recall.matches}


def with_repair(batch: Batch) -> float | None:
    """The share of results that came, at once or made up for, as far as it is known; None where nothing is."""
    if batch.ledger is None:
        return None
    held, recall, dropped = batch.ledger, batch.recall.whole, sum(stream.dropped for stream in batch.streams.values())
    if not (held.open.pieces or held.forgotten.pieces or dropped):
        return 1.0
    if recall.missing is None:
        return None
    return min(1.0, batch.totals.results / max(1.0, recall.emitted + recall.missing))


def held_back_by(batch: Batch) -> str | None:
    """The stream with the lowest watermark, or one that has none yet; None if all are at one."""
    marks = {name: stream.watermark_us for name, stream in batch.streams.items()}
    unknown = [name for name, mark in marks.items() if mark is None]
    if unknown:
        return unknown[0] if len(unknown) < len(marks) else None
    known = {name: mark for name, mark in marks.items() if mark is not None}
    return min(known, key=lambda name: known[name]) if len(set(known.values())) > 1 else None


def streams_view(batches: Sequence[Batch], query: Asked) -> list[dict[str, Any]]:
    """One line a stream."""
    last, first = batches[-1], batches[-min(len(batches), RATED + 1)]
    newest = max((s.watermark_us for s in last.streams.values() if s.watermark_us is not None), default=None)
    shown = []
    for name, asked in query.streams.items():
        stream = last.streams.get(name)
        if stream is None:
            continue
        span_s = last.now_s - first.now_s
        before = first.streams[name].rows if name in first.streams else 0
        mark = stream.watermark_us
        behind_s = (newest - mark) / 1e6 if newest is not None and mark is not None else None
        shown.append({
            "name": name,
            "source": asked.source,
            "window": window_text(asked.window_us, asked.window_rows),
            "lateness": span_text(asked.lateness_us / 1e6),
            "rows": stream.rows,
            "rows_per_s": (stream.rows - before) / span_s if span_s > 0 else None,
            "late": stream.late,
            "bad": stream.bad,
            "ahead": stream.ahead,
            "filtered": stream.filtered,
            "dropped": stream.dropped,
            "stored": stream.stored,
            "bytes": stream.stored_bytes,
            "bytes_text": size_text(stream.stored_bytes),
            "newest": time_text(stream.newest_us),
            "watermark": time_text(mark),
            "behind_s": behind_s,
            "behind_text": None if behind_s is None else span_text(behind_s),
        })  # fmt: skip
    return shown


def ledger_view(batches: Sequence[Batch]) -> dict[str, Any] | None:
    """What waits to be made up for; None where what is left out is dropped."""
    last = batches[-1]
    if last.ledger is None:
        return None
    held = last.ledger
    return {
        **{
            name: {"pieces": part.pieces, "rows": part.rows, "seconds": part.cost_s, "results": part.results}
            for name, part in (("open", held.open), ("done", held.done), ("forgotten", held.forgotten))
        },
        "open_text": span_text(held.open.cost_s),
        "oldest": time_text(held.oldest_us),
        "repaired": last.totals.repaired,
    }


def freshness_view(last: Batch) -> dict[str, Any] | None:
    """How promises of freshness were kept; None where there are none."""
    if last.freshness is None or not last.freshness.streams:
        return None
    return {
        "suppressed": last.freshness.suppressed,
        "streams": [
            {
                "stream": name,
                "asked": span_text(held.asked_s),
                "least": None if held.least_s is None else span_text(held.least_s),
                "oldest": None if held.oldest_s is None else span_text(held.oldest_s),
                "holds": held.holds,
            }
            for name, held in last.freshness.streams.items()
        ],
    }


def _hints(last: Batch, query: Asked) -> list[str]:
    """What else somebody should know."""
    hints: list[str] = []
    if last.freshness is not None:
        hints += last.freshness.infeasible
        if last.freshness.suppressed:
            found = count_text(last.freshness.suppressed)
            hints.append(f"{found} results were held back: they were older than FRESHNESS allows.")
    holder = held_back_by(last)
    marks = [s.watermark_us for s in last.streams.values() if s.watermark_us is not None]
    if holder is not None and last.streams[holder].watermark_us is None:
        hints.append(f"No window can let go of rows: {holder} has brought none yet.")
    elif holder is not None and marks and not last.last:
        mark, asked = last.streams[holder].watermark_us or 0, query.streams[holder]
        behind_us = max(marks) - mark
        if asked.window_us is not None and behind_us > max(asked.window_us, 1):
            hints.append(
                f"{holder} holds the watermark back by {span_text(behind_us / 1e6)}; windows keep rows for it."
            )
    for name, stream in last.streams.items():
        if stream.rows and stream.late > 0.01 * stream.rows:
            late, allowed = share_text(stream.late / stream.rows), span_text(query.streams[name].lateness_us / 1e6)
            hints.append(f"{late} of the rows of {name} came late and were left out: its LATENESS is {allowed}.")
        if stream.rows and stream.bad > 0.01 * stream.rows:
            hints.append(f"{share_text(stream.bad / stream.rows)} of the rows of {name} have no event time.")
        if stream.dropped:
            share = share_text(stream.dropped / max(1, stream.rows))
            hints.append(f"{share} of the rows of {name} found no room or were dropped before the join.")
    return hints
