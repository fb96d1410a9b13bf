"""Three streams on Spark in real time, faster than the machine can join them: harvesting beside random dropping.

    exact, slow streams ──▶ what a second of them takes ──▶ the rate at which the full join would take `TIMES` too long
    ──▶ throttled by harvesting, then by random dropping, at that rate: durations, results, memory

The condition is one that no index serves, and few pairs pass it, so that search is what the time goes into (where it
goes into results, nobody finds more of them with less work); comparing grows with the square of the rate. Both ways
have the same controller; they differ in what is left out.
"""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import dataclass
from statistics import median
from typing import Any

import psutil

import windrow
from benchmarks.measure import Row, in_child, main, smaller
from benchmarks.spark_batches import asked, session
from windrow.control.controller import ControlSettings
from windrow.run.spark.sources import register

DESCRIPTION = (
    "Three streams on Spark in real time, at four times what can be joined in full: harvesting, random dropping"
)
QUESTION = """SELECT a.id AS a_id, b.id AS b_id, c.id AS c_id FROM a, b, c
    WHERE (a.x - b.x) * (a.x - b.x) <= 0.0001 AND (b.x - c.x) * (b.x - c.x) <= 0.0001
    WINDOW 20 SECONDS LATENESS 1 SECONDS"""
LAGS_S, NOISE = (0.0, 5.0, 15.0), (2.0, 2.0, 50.0)
TIMES = 4.0
TRIGGER_S = 1.0
SETTLED = 6
"""In so many batches the duration has to come below the trigger's interval."""


@dataclass(frozen=True, slots=True)
class Size:
    """The rate that the full join is measured at, for how long; how long each way runs."""

    rate_hz: float
    measured_s: float
    lasting_s: float


QUICK = Size(rate_hz=500, measured_s=30, lasting_s=30)
FULL = Size(rate_hz=1500, measured_s=45, lasting_s=220)


@dataclass(frozen=True)
class Run:
    """One way's batches, as the join reports them, and bytes of memory, every second."""

    batches: list[dict[str, Any]]
    memory_bytes: list[int]

    def seconds(self, number: int) -> float:
        batch = self.batches[number]
        phases = (name for name in batch if name.endswith("_s") and name not in ("work_s", "compile_s"))
        return float(sum(batch[name] for name in phases))


def run(quick: bool) -> list[Row]:
    """The rows of this bench."""
    return in_child("benchmarks.bench_spark_overload", quick)


def measure(size: Size) -> list[Row]:
    """Measure in this process: the rate first, then the two ways."""
    with session() as spark:
        register(spark)
        rate_hz = overload_hz(spark, size)
        ways = {
            policy: lasting(
                spark, rate_hz, size.lasting_s, throttle="auto", control=ControlSettings(policy=policy, interval_s=2.0)
            )
            for policy in ("harvest", "drop")
        }
    return rows_of(ways, rate_hz, size)


def rows_of(ways: dict[str, Run], rate_hz: float, size: Size) -> list[Row]:
    """What is judged: duration, backlog, results against random dropping, memory."""
    ours = ways["harvest"]
    # The first batches have empty windows: overload begins when these are full.
    begun = next((k for k in range(len(ours.batches)) if ours.seconds(k) > TRIGGER_S), 0)
    settled = next((k for k in range(begun, len(ours.batches)) if ours.seconds(k) <= TRIGGER_S), len(ours.batches))
    durations = [ours.seconds(k) for k in range(settled + 1, len(ours.batches))]
    late = [duration for duration in durations if duration > TRIGGER_S]
    third = len(ours.memory_bytes) // 3
    growth = median(ours.memory_bytes[-third:]) / median(ours.memory_bytes[third : 2 * third]) - 1
    half = size.lasting_s / 2
    found = {name: _results_a_second(way, half) for name, way in ways.items()}
    gain = found["harvest"] / max(found["drop"], 1e-9)
    shares = {name: f"{way.batches[-1]['throttle']:.3f}" for name, way in ways.items()}
    asked_for = f"{rate_hz:.0f} rows/s a stream, {TIMES:g} times too much"
    late_share = 100 * len(late) / max(1, len(durations))
    of = f"of {len(durations)}; median {median(durations or [0.0]):.2f} s"
    return [
        smaller("batches until one is on time", ours=settled - begun, peer=None, unit="batches", goal=SETTLED,
                note=asked_for),
        smaller("batches that are late after that", ours=late_share, peer=None, unit="%", goal=5.0, note=of),
        {"name": "results, second half", "peer_name": "random dropping", "ours": round(found["harvest"]),
         "peer": round(found["drop"]), "unit": "/s", "ratio": round(gain, 2), "goal": ">= 2", "met": gain >= 2,
         "note": f"at shares of the full work of {shares['harvest']} and {shares['drop']}"},
        smaller("growth of memory", ours=100 * growth, peer=None, unit="%", goal=5.0,
                note="last third to the one before"),
    ]  # fmt: skip


def overload_hz(spark: Any, size: Size) -> float:
    """The rate at which the full join needs `TIMES` the time there is."""
    exact = lasting(spark, size.rate_hz, size.measured_s)
    full = range(int(len(exact.batches) * 0.6), len(exact.batches))
    joined_s = median(exact.batches[k]["join_s"] for k in full)
    fixed_s = median(exact.seconds(k) - exact.batches[k]["join_s"] for k in full)
    return float(size.rate_hz * ((TIMES * TRIGGER_S - fixed_s) / joined_s) ** 0.5)


def lasting(spark: Any, rate_hz: float, seconds: float, **options: Any) -> Run:
    """Run the join in real time for so long."""
    names = ("a", "b", "c")
    frames = {
        name: spark.readStream.format("windrow-synthetic").option("name", name).option("rate_hz", rate_hz)
        .option("lag_s", lag_s).option("noise", noise).option("start", "now").load()
        for name, lag_s, noise in zip(names, LAGS_S, NOISE, strict=True)
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        trigger = f"{TRIGGER_S:g} seconds"
        query = asked(QUESTION, frames).start(
            windrow.Format("noop"), checkpoint=folder, trigger=trigger, max_ahead=None, **options
        )
        seen: dict[int, dict[str, Any]] = {}
        memory: list[int] = []
        until: float | None = None
        with query:
            while query.is_active and (until is None or time.monotonic() < until):
                query.await_termination(1.0)
                if until is None and query.last_progress() is not None:
                    until = time.monotonic() + seconds
                seen.update({batch["batch"]: batch for batch in query.recent_progress()})
                memory.append(_memory_bytes())
        failure = query.exception()
        if failure is not None:
            raise failure
    return Run([seen[number] for number in sorted(seen)], memory)


def _results_a_second(way: Run, seconds: float) -> float:
    last_us = way.batches[-1]["now_us"]
    late = [batch for batch in way.batches if batch["now_us"] > last_us - seconds * 1e6]
    return float(sum(batch["results"] for batch in late) / seconds)


def _memory_bytes() -> int:
    """What this process and all it has started hold."""
    own = psutil.Process(os.getpid())
    found = 0
    for process in (own, *own.children(recursive=True)):
        try:
            found += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return found


if __name__ == "__main__":
    main(DESCRIPTION, run)
