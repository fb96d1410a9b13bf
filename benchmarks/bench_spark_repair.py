"""A minute of overload on Spark in real time, then calm: how long until all that was left out has come, and whether
batches are on time meanwhile.

    exact, slow streams ──▶ what a second of them takes ──▶ the rate at which the full join would take `TIMES` too long
    ──▶ that rate for a minute, then a small one: open pieces, durations of batches with repairs, prompt and late rows

The same condition as in the bench of overload: no index serves it, so that search is what the time goes into.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from typing import Any

import windrow
from benchmarks.bench_spark_overload import LAGS_S, NOISE, QUESTION, lasting
from benchmarks.measure import Row, in_child, main, smaller
from benchmarks.spark_batches import asked, session
from windrow.control.controller import ControlSettings
from windrow.run.events import read_events
from windrow.run.spark.sources import register
from windrow.store.storage import open_storage

DESCRIPTION = "Three streams on Spark in real time: a minute at twice what can be joined in full, then calm, repairing"
TIMES = 2.0
TRIGGER_S = 1.0
CALM = 0.1
"""The share of the rate that is left when the overload is over."""
MOST_S = 300.0
"""In so many seconds after the overload all has to be repaired."""


@dataclass(frozen=True, slots=True)
class Size:
    """The rate that the full join is measured at, for how long; how long the overload lasts, and what follows."""

    rate_hz: float
    measured_s: float
    overload_s: float
    calm_s: float


QUICK = Size(rate_hz=500, measured_s=30, overload_s=25, calm_s=60)
FULL = Size(rate_hz=1500, measured_s=45, overload_s=60, calm_s=MOST_S)


def run(quick: bool) -> list[Row]:
    """The rows of this bench."""
    return in_child("benchmarks.bench_spark_repair", quick)


def measure(size: Size) -> list[Row]:
    """Measure in this process: the rate first, then the rush and the calm."""
    with session() as spark:
        register(spark)
        rate_hz = _rate_hz(spark, size)
        events = _repaired(spark, rate_hz, size)
    return rows_of(events, rate_hz, size)


def rows_of(events: list[dict[str, Any]], rate_hz: float, size: Size) -> list[Row]:
    """What is judged: when all was repaired, how many batches with repairs took longer than there was time."""
    first_s = events[0]["now_s"]
    rush = [event for event in events if event["now_s"] - first_s <= size.overload_s]
    most = max(event["ledger"]["open"]["pieces"] for event in events)
    opened = [event["now_s"] for event in events if event["ledger"]["open"]["pieces"]]
    done_s = (max(opened) if opened else first_s) - (first_s + size.overload_s)
    repaired = [event for event in events if event["repaired"]["pieces"]]
    late = [event for event in repaired if _seconds(event) > TRIGGER_S]
    results = sum(event["repaired"]["results"] for event in events)
    prompt = sum(event["results"] for event in events)
    least = min((event["throttle"] for event in rush), default=1.0)
    asked_for = f"{rate_hz:.0f} rows/s a stream for {size.overload_s:g} s, then {CALM:g} of it; throttle down to "
    longest_s = max(map(_seconds, repaired), default=0.0)
    left = events[-1]["ledger"]["open"]["pieces"]
    return [
        smaller("pieces that are left", ours=left, peer=None, unit="pieces", goal=0, note=f"{most:,} at most"),
        smaller("until nothing is left", ours=done_s, peer=None, unit="s", goal=size.calm_s,
                note=f"{asked_for}{least:.2f}"),
        smaller("batches late with repairs", ours=len(late), peer=None, unit="batches", goal=0,
                note=f"of {len(repaired)} that repaired; the longest took {longest_s:.2f} s, trigger {TRIGGER_S:g} s"),
        {"name": "results that came later", "peer_name": "at once", "ours": results, "peer": prompt, "unit": "rows",
         "ratio": round(results / max(1, prompt), 3), "goal": "", "met": None,
         "note": f"{events[-1]['ledger']['forgotten']['pieces']:,} pieces forgotten"},
    ]  # fmt: skip


def _rate_hz(spark: Any, size: Size) -> float:
    """The rate at which the full join needs `TIMES` the time there is; comparing grows with its square."""
    exact = lasting(spark, size.rate_hz, size.measured_s)
    full = sorted(exact.batches[int(len(exact.batches) * 0.6) :], key=lambda batch: float(batch["join_s"]))
    middle = full[len(full) // 2]
    fixed_s = sum(middle[name] for name in ("count_s", "plan_s", "sink_s", "commit_s"))
    return float(size.rate_hz * ((TIMES * TRIGGER_S - fixed_s) / middle["join_s"]) ** 0.5)


def _repaired(spark: Any, rate_hz: float, size: Size) -> list[dict[str, Any]]:
    """The events of a run with a rush at its beginning."""
    steps = f"{size.overload_s:g}:{rate_hz:.1f},{10 * size.calm_s:g}:{CALM * rate_hz:.1f}"
    frames = {
        name: spark.readStream.format("windrow-synthetic").option("name", name).option("arrivals", "step")
        .option("steps", steps).option("lag_s", lag_s).option("noise", noise).option("start", "now").load()
        for name, lag_s, noise in zip(("a", "b", "c"), LAGS_S, NOISE, strict=True)
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        query = asked(QUESTION, frames).start(
            windrow.Format("noop"),
            checkpoint=folder,
            trigger=f"{TRIGGER_S:g} seconds",
            max_ahead=None,
            throttle="auto",
            shed="repair",
            control=ControlSettings(interval_s=2.0),
        )
        with query:
            until_s: float | None = None
            while query.is_active and (until_s is None or time.monotonic() < until_s):
                query.await_termination(1.0)
                if until_s is None and query.last_progress() is not None:
                    until_s = time.monotonic() + size.overload_s + size.calm_s
                is_calm = until_s is not None and time.monotonic() > until_s - size.calm_s + 5
                repair = query.status()["repair"]
                if is_calm and repair is not None and repair["open_pieces"] == 0:
                    break
        failure = query.exception()
        if failure is not None:
            raise failure
        return list(read_events(open_storage(f"{folder}/windrow")))


def _seconds(event: dict[str, Any]) -> float:
    return float(sum(seconds for name, seconds in event["durations_s"].items() if name != "compile"))


if __name__ == "__main__":
    main(DESCRIPTION, run)
