"""A running join on Spark, seen from the program that started it.

    with join.start("results", checkpoint="checkpoint") as query:
        query.await_termination(60)
        print(query.status())

It is what Spark's StreamingQuery is for other queries, in the terms of the join: rows late and bad, watermarks, what
holds them back, what the windows hold. What fails is one line with its cause.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import partial
from types import TracebackType
from typing import Any, Self

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from windrow.errors import UsageError, WindrowError
from windrow.plan.shuffle import slices_lines
from windrow.plan.telling import method_lines, query_lines, tree_lines
from windrow.run.admit import NEVER_US
from windrow.run.spark.failures import brief
from windrow.run.spark.keeping import let_go_of, memory_of, unjoined_of
from windrow.run.spark.query import BatchRunner
from windrow.run.spark.state import Commit
from windrow.run.spark.turnstile import Turnstile
from windrow.run.status import Status

RATED_BATCHES = 10
"""Rates are over this many batches."""
_BEGUN_WITHIN_S = 60.0
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class RunningJoin:
    """Handle of a join on Spark; made by `SparkJoin.start`. `spark_query` is Spark's own."""

    def __init__(
        self, spark_query: StreamingQuery, runner: BatchRunner, turnstile: Turnstile, follow: Callable[[], DataFrame]
    ) -> None:
        self.spark_query = spark_query
        self._runner = runner
        self._turnstile = turnstile
        self._follow = follow
        turnstile.is_running = lambda: bool(spark_query.isActive)

    @property
    def id(self) -> str:
        """The same for all runs from one checkpoint."""
        return str(self.spark_query.id)

    @property
    def run_id(self) -> str:
        """Another one after each start."""
        return str(self.spark_query.runId)

    @property
    def name(self) -> str | None:
        """What `start` was given."""
        return self.spark_query.name

    @property
    def is_active(self) -> bool:
        return bool(self.spark_query.isActive)

    def status(self) -> Status:
        """Where the join stands: the last batch, results so far, what became of each stream's rows, what is stored.

        `throttle` is the share of the full work that is done, `busy_share` the part of the time that batches took,
        `recall` how much of all results that gave so far with a 95 % interval (`windrow.control.recall`), `recent` the
        same of the last batches, `unjoined` the rows that are not in it (`windrow.run.unjoined`), `repair` what became
        of the rest where it comes later (`windrow.run.backlog`), `memory` how a limit was kept (None: there is none),
        `freshness` how promises were (`windrow.run.freshness`), `held_back_by` the stream with the lowest watermark: no
        window lets go of rows that it may still meet.
        """
        state: Commit | None = self._runner.last
        progress = self.recent_progress()[-RATED_BATCHES:]
        gates = {} if state is None else state.gates
        live = {} if state is None else state.live
        repairing = self._runner.repairing
        repair = None if repairing is None else repairing.report()
        files = {name: [file for held in live.values() for file in held.get(name, ())] for name in gates}
        return Status(
            {
                "name": self.name,
                "active": self.is_active,
                "batch": -1 if state is None else state.batch,
                "now": readable(state.now_us) if gates and state else None,
                "results": 0 if state is None else state.results,
                "throttle": self._runner.steering.shedding.work,
                "recall": self._runner.steering.recall.whole.to_values(),
                "recent": self._runner.steering.recall.recent.to_values(),
                "unjoined": unjoined_of(state).to_values(),
                "busy_share": self._runner.steering.clocked.busy_share,
                "results_per_s": rate(progress, lambda batch: batch["results"]),
                "streams": {
                    name: {
                        **gate.counts,
                        "stored": sum(file.rows for file in files[name]),
                        "let_go": let_go_of(state, name),
                        "rows_per_s": rate(progress, partial(_rows_of, name)),
                        "watermark": readable(gate.watermark_us),
                    }
                    for name, gate in gates.items()
                },
                "repair": None if repair is None else asdict(repair),
                "memory": None if state is None else memory_of(state),
                "freshness": None if state is None else state.freshness,
                "held_back_by": held_back_by({name: gate.watermark_us for name, gate in gates.items()}),
                "segments": sum(map(len, files.values())),
                "bytes": sum(file.bytes for held in files.values() for file in held),
            }
        )

    def recent_progress(self) -> list[dict[str, Any]]:
        """The last hundred batches or so: number, clock, rows in, results, and how long each part took."""
        return [dict(batch) for batch in tuple(self._runner.progress)]

    def last_progress(self) -> dict[str, Any] | None:
        """The last batch, None before the first."""
        recent = self.recent_progress()
        return recent[-1] if recent else None

    def random_drop(self) -> tuple[float, float] | None:
        """While work is left out: the recall of the last batches, and the one that dropping rows at random would have
        at best for the same work, as the cost model has it. Else None.
        """
        return self._runner.steering.rival()

    def exception(self) -> WindrowError | None:
        """What ended the join, in one line; None if it runs or was stopped. Its cause is the error as it was raised."""
        failed = self.spark_query.exception()
        if failed is None or self._turnstile.is_cut_off:
            return None
        raised = self._turnstile.failure
        told = brief(failed if raised is None else raised)
        told.__cause__ = raised
        return told

    def explain(self) -> str:
        """What is asked, in words; what each driver probes, by which method, and why, as lines and as trees; how
        streams are sliced, and what that ships.
        """
        spec, plan = self._runner.setting.spec, self._runner.plan
        progress = self.recent_progress()[-RATED_BATCHES:]
        rates_hz = {stream.name: rate(progress, partial(_rows_of, stream.name)) for stream in spec.streams}
        lines = [
            f"{path.driver} probes {step.stream}: {step.method} ({step.why})"
            for path in plan.firsts
            for step in path.steps
        ]
        conjuncts = [str(conjunct) for conjunct in spec.conjuncts]
        trees = [line for path in plan.firsts for line in tree_lines(conjuncts, path)]
        slices = slices_lines(spec, plan, rates_hz if any(rates_hz.values()) else None)
        parts = (query_lines(spec), lines, method_lines(plan), trees, slices)
        return "\n\n".join("\n".join(part) for part in parts)

    def results(self) -> DataFrame:
        """The results as a streaming DataFrame that follows the commits, to go on with in Spark."""
        if self.is_active and not self._turnstile.began.wait(_BEGUN_WITHIN_S):
            raise UsageError("no batch has begun yet", hint="call results() again when status() shows one")
        return self._follow()

    def await_termination(self, timeout_s: float | None = None) -> bool:
        """Wait until the join ends; False if it still runs after `timeout_s`. What made it fail is raised."""
        try:
            # Spark's type hint asks for whole seconds; fractions are fine, zero is not.
            timeout: Any = None if timeout_s is None else max(timeout_s, 0.001)
            ended = self.spark_query.awaitTermination(timeout)
        except StreamingQueryException:
            told = self.exception()
            if told is None:
                return True
            raise told from told.__cause__
        return timeout_s is None or bool(ended)

    def stop(self, timeout_s: float = 60.0) -> None:
        """Stop the join after the batch that is running, or after `timeout_s`.

        A batch that is cut off is run again by a restart from the same checkpoint.
        """
        if timeout_s < 0:
            raise UsageError(f"timeout_s is {timeout_s}", place="stop", hint="give seconds, zero or more")
        if self._turnstile.is_inside:
            # A function that is the sink stops its own query: the batch goes on, and ends it.
            threading.Thread(target=self._stop, args=(timeout_s,), name="windrow stop", daemon=True).start()
            return
        self._stop(timeout_s)

    def _stop(self, timeout_s: float) -> None:
        self._turnstile.close(timeout_s)
        self.spark_query.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        state = "running" if self.is_active else "ended"
        return f"<RunningJoin {self.name or self.id}: {state}>"


def _rows_of(name: str, batch: dict[str, Any]) -> int:
    return int(batch["rows"].get(name, 0))


def readable(time_us: int) -> str | None:
    """A time as text, None for one that is not known yet.

    >>> readable(1_700_000_000_250_000), readable(NEVER_US)
    ('2023-11-14T22:13:20.250000+00:00', None)
    """
    if time_us == NEVER_US:
        return None
    try:
        return (_EPOCH + timedelta(microseconds=time_us)).isoformat()
    except OverflowError:
        return f"{time_us} us"


def held_back_by(watermarks_us: dict[str, int]) -> str | None:
    """The stream with the lowest watermark; None if all are at one.

    >>> held_back_by({"a": 5, "b": 3, "c": 9})
    'b'
    """
    if len(set(watermarks_us.values())) < 2:
        return None
    return min(watermarks_us, key=lambda name: watermarks_us[name])


def rate(progress: Sequence[dict[str, Any]], amount: Callable[[dict[str, Any]], int]) -> float:
    """An amount a second over some batches, by their clocks: what the first brought came before it.

    >>> rate([{"now_us": 0, "rows": 9}, {"now_us": 500_000, "rows": 4}, {"now_us": 2_000_000, "rows": 6}],
    ...      lambda batch: batch["rows"])
    5.0
    """
    if len(progress) < 2:
        return 0.0
    span_us = progress[-1]["now_us"] - progress[0]["now_us"]
    return round(sum(map(amount, progress[1:])) * 1e6 / span_us, 1) if span_us > 0 else 0.0
