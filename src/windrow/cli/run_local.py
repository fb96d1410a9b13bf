"""A run in this process: batches are pushed, results written as they come."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import Console

import windrow
from windrow.cli.outcome import Stopped
from windrow.cli.output import SetAsideFiles
from windrow.cli.progress import tracked
from windrow.cli.question import Asked
from windrow.cli.watching import Watching, events_folder, metrics_served
from windrow.plan.calibration import first_guess
from windrow.run.local import LocalJoin
from windrow.run.report import Report
from windrow.streams.replay import Replay
from windrow.streams.schedule import Schedule


def run_here(
    asked: Asked,
    deliver: Callable[[pa.Table], None],
    set_aside: str | None,
    memory: str | None,
    watching: Watching,
) -> dict[str, Any]:
    """Run to the end of the input and tell what was found; rows that do not enter go to the folder `set_aside`, windows
    take no more than `memory`.
    """
    with ExitStack() as opened:
        aside = None if set_aside is None else opened.enter_context(SetAsideFiles(Path(set_aside)))
        question = asked.question
        pace = asked.pace
        events = opened.enter_context(events_folder(watching.events, watching.metrics))
        opened.enter_context(metrics_served(watching.metrics, events))
        join = windrow.local(
            question.join,
            policy=asked.policy,
            methods=asked.methods,
            set_aside=aside,
            memory=memory,
            throttle=asked.throttle,
            shed=asked.shed,
            repair=asked.repair,
            shape=asked.shape,
            stale=asked.stale,
            trigger=None if asked.batch_us is None else f"{asked.batch_us / 1e6:.6f} seconds",
            costs=first_guess(asked.throttle is not None),
            events=events,
            charge=None if pace is None else lambda done: done.slowed(pace),
        )
        with Console(stderr=True).status("reading the streams"):
            replay = Replay(question.read(), batch_us=asked.batch_us, as_arrived=asked.as_arrived)
        try:
            _join_all(join, replay, None if pace is None else Schedule(replay.ends_us, pace), deliver)
        except KeyboardInterrupt:
            raise Stopped(f"stopped before the end; nothing was left behind. Until then: {join.report}") from None
    return {**_totals(join.report), **join.report.to_dict()}


def _join_all(join: LocalJoin, replay: Replay, schedule: Schedule | None, deliver: Callable[[pa.Table], None]) -> None:
    """Run all batches; with a schedule those that are due run as one."""
    due = 0
    for number, batch in enumerate(tracked(replay, Console(stderr=True))):
        if schedule is None or number >= due:
            due = number + 1 if schedule is None else schedule.due(number)
        for stream in join.spec.streams:
            join.push(stream.name, batch.tables[stream.source])
        if number + 1 == due:
            deliver(join.step(now_s=batch.end_us / 1_000_000))
    deliver(join.finish())


def _totals(report: Report) -> dict[str, int]:
    streams = report.streams.values()
    return {
        "rows": sum(stream.rows for stream in streams),
        "late": sum(stream.late for stream in streams),
        "bad": sum(stream.bad + stream.too_far_ahead for stream in streams),
    }
