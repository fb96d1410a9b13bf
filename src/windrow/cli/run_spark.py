"""A run on Spark: recorded files as one streaming query, its results collected from the batches' folders at the end.

    files ─▶ streaming query ─▶ DIR/results, a folder a batch ─▶ --out            DIR: the checkpoint

With a checkpoint of the user's a run that was stopped goes on with the batch it was at; batches that are done are not
done again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from rich.console import Console

from windrow.cli.interrupts import noted
from windrow.cli.outcome import Stopped
from windrow.cli.output import ResultFile, SetAsideFiles
from windrow.cli.progress import await_end
from windrow.cli.question import Asked
from windrow.cli.watching import Watching, metrics_served
from windrow.control.recall import RecallMeter
from windrow.plan.order import plan_query
from windrow.run.admit import NEVER_US
from windrow.run.spark.checkpoint import find_checkpoint
from windrow.run.spark.keeping import let_go_of, memory_of, unjoined_of
from windrow.run.spark.listener import ProgressBridge
from windrow.run.spark.owed import repair_of
from windrow.run.spark.replayed import aside_of, results_of, start_recorded
from windrow.run.spark.session import LOCAL, session
from windrow.run.spark.sources.recorded import Recordings
from windrow.run.spark.state import Commit

STOPPED_WITHIN_S = 5.0
"""How long an interrupted run waits for its batch; a batch that is cut off is run again."""


def run_on_spark(
    asked: Asked,
    results: ResultFile,
    master: str | None,
    checkpoint: str | None,
    set_aside: str | None,
    memory: str | None,
    watching: Watching,
) -> dict[str, Any]:
    """Run to the end of the input and tell what was found; rows that do not enter go to the folder `set_aside`, windows
    take no more than `memory`.
    """
    with ExitStack() as opened:
        aside = None if set_aside is None else opened.enter_context(SetAsideFiles(Path(set_aside)))
        place = opened.enter_context(_place(checkpoint, results))
        try:
            seconds = _join_all(asked, place, master or LOCAL, aside is not None, memory, watching)
        except KeyboardInterrupt:
            left = "nothing was left behind" if checkpoint is None else f"the same command goes on from '{checkpoint}'"
            raise Stopped(f"stopped before the end; {left}. {_until_then(place)}") from None
        for rows in results_of(place, results.schema):
            results.write(rows)
        if aside is not None:
            for stream, reason, rows in aside_of(place):
                aside(stream, reason, rows)
        found = find_checkpoint(place)
        return _facts(asked, None if found is None else found.commit, seconds, master or LOCAL)


@contextmanager
def _place(checkpoint: str | None, results: ResultFile) -> Iterator[str]:
    """The checkpoint: the user's, or one beside the results that goes when the run has ended."""
    if checkpoint is not None:
        yield checkpoint if "://" in checkpoint else str(Path(checkpoint).absolute())
        return
    with TemporaryDirectory(
        prefix=f".{results.path.name}.", suffix=".tmp", dir=results.path.parent.absolute()
    ) as folder:
        yield folder


def _join_all(asked: Asked, place: str, master: str, set_aside: bool, memory: str | None, watching: Watching) -> float:
    """Run the join to its end; the seconds it took, without the start of Spark."""
    console = Console(stderr=True)
    with noted() as raise_noted, ExitStack() as opened:
        with console.status("starting Spark"):
            spark = opened.enter_context(session(master))
        if watching.metrics is not None:
            bridge = ProgressBridge()
            spark.streams.addListener(bridge)
            opened.enter_context(metrics_served(watching.metrics, watching.events or place, bridge.numbers))
        started = perf_counter()
        question = asked.question
        running = start_recorded(
            spark,
            question.join,
            _recordings(asked),
            checkpoint=place,
            policy=asked.policy,
            methods=asked.methods,
            throttle=asked.throttle,
            shed=asked.shed,
            repair=asked.repair,
            set_aside=set_aside,
            memory=memory,
            events=watching.events,
            stale=asked.stale,
        )
        try:
            await_end(running, console, raise_noted)
        except KeyboardInterrupt:
            running.stop(STOPPED_WITHIN_S)
            raise
        return perf_counter() - started


def _until_then(place: str) -> str:
    """What had been done when a run was stopped."""
    found = find_checkpoint(place)
    if found is None:
        return "No batch had ended"
    rows = sum(gate.counts["rows"] for gate in found.commit.gates.values())
    return f"Until then: {rows:,} rows in, {found.commit.batch + 1:,} batches, {found.commit.results:,} results"


def _recordings(asked: Asked) -> Recordings:
    spec = asked.question.spec
    # Spark's processes need not have been started in this folder.
    recorded = {name: recording.source for name, recording in asked.question.recorded.items()}
    sources = {name: replace(source, path=str(Path(source.path).absolute())) for name, source in recorded.items()}
    used = {stream.name: tuple(column.name for column in spec.used_columns(stream.name)) for stream in spec.streams}
    streams = tuple((stream.source, stream.time, used[stream.name]) for stream in spec.streams)
    return Recordings(sources, streams, asked.batch_us, asked.as_arrived, asked.pace)


def _left_out(controller: Mapping[str, Any] | None) -> dict[str, Any]:
    """What the last commit says of what was left out: the throttle of late, the recall of the whole run and of the last
    batches.
    """
    if controller is None:
        return {"throttle": None, "recall": None, "recent": None}
    meter = RecallMeter()
    meter.restore(controller["recall"])
    return {
        "throttle": controller["throttle"],
        "recall": meter.whole.to_values(),
        "recent": meter.recent.to_values(),
    }


def _facts(asked: Asked, commit: Commit | None, seconds: float, master: str) -> dict[str, Any]:
    """What a run tells: the same names as in process, as far as Spark knows them."""
    gates = {} if commit is None else commit.gates
    counts = [gate.counts for gate in gates.values()]
    repair = repair_of(commit)
    plan = plan_query(asked.question.spec, policy=asked.policy, methods=asked.methods)
    return {
        "rows": sum(count["rows"] for count in counts),
        "late": sum(count["late"] for count in counts),
        "bad": sum(count["bad"] + count["ahead"] for count in counts),
        "master": master,
        "policy": plan.policy,
        "batches": 0 if commit is None else commit.batch + 1,
        "results": 0 if commit is None else commit.results,
        **_left_out(None if commit is None else commit.controller),
        "repair": None if repair is None else asdict(repair),
        "unjoined": unjoined_of(commit).to_values(),
        "memory": None if commit is None else memory_of(commit),
        "freshness": None if commit is None else commit.freshness,
        "seconds": round(seconds, 3),
        "streams": {
            name: {
                "rows": gate.counts["rows"],
                "late": gate.counts["late"],
                "bad": gate.counts["bad"],
                "too_far_ahead": gate.counts["ahead"],
                "filtered": gate.counts["filtered"],
                "let_go": let_go_of(commit, name),
                "watermark_us": None if gate.watermark_us == NEVER_US else gate.watermark_us,
            }
            for name, gate in gates.items()
        },
        "steps": [
            {"driver": path.driver, "store": step.stream, "method": step.method, "why": step.why}
            for path in plan.firsts
            for step in path.steps
        ],
    }
