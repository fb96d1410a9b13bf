"""The driver program's part of a batch: what it writes when, what it does again after a failure, what it refuses.

It runs on a played Spark; on Spark itself the same is killed by `tests.run.spark.test_killed`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

import windrow
from tests.oracle.duck import rows_of
from tests.run.spark.played import Played, PlayedSpark, Rows, Way
from windrow.errors import StateError
from windrow.query.builder import Join
from windrow.run.spark import query as driver_program
from windrow.run.spark import windows, worker
from windrow.run.spark.job import Job
from windrow.run.spark.journal import Journal
from windrow.run.spark.query import BatchRunner
from windrow.run.spark.results import Results

pytestmark = pytest.mark.usefixtures("interpreted")

BATCHES = 8
TEXT = """SELECT a.id AS i, b.id AS j, c.id AS k FROM a, b, c
    WHERE a.x <= b.x + 1 AND b.k = c.k WINDOW a 4 SECONDS, b 3 SECONDS, c 5 SECONDS LATENESS 1 SECONDS"""
IN_ORDER = """SELECT a.id AS i, b.id AS j FROM a, b WHERE a.k = b.k WINDOW a ROWS 12, b 3 SECONDS LATENESS 1 SECONDS"""
SECOND_US = 1_000_000


def table(batch: int, seed: int, rows: int = 20) -> pa.Table:
    """Rows of a second and a half, the first half second again."""
    draw = np.random.default_rng([batch, seed])
    times = batch * SECOND_US + draw.integers(0, 3 * SECOND_US // 2, rows)
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us")),
            "id": pa.array(1000 * batch + np.arange(rows)),
            "x": pa.array(draw.integers(0, 6, rows)),
            "k": pa.array(draw.integers(0, 4, rows)),
        }
    )


PUSHED = [{name: table(batch, seed) for seed, name in enumerate("abc")} for batch in range(BATCHES)]
NO_ROWS = {name: rows.slice(0, 0) for name, rows in PUSHED[0].items()}


def asked(text: str = TEXT) -> Join:
    query: Join = windrow.sql(text, PUSHED[0])
    return query


def in_process(text: str = TEXT) -> list[Rows]:
    query = asked(text)
    with windrow.local(query) as join:
        found = []
        for tables in PUSHED:
            for name in query.sources:
                join.push(name, tables[name])
            found.append(rows_of(join.step(now_s=0)))
        return found


EXPECTED = {text: in_process(text) for text in (TEXT, IN_ORDER)}


class CrashError(Exception):
    """What stands for the death of the driver program, or of a task."""


@contextmanager
def crash_in(place: Any, name: str, when: str) -> Iterator[list[str]]:
    """Let a function fail the first time it is called, `before` it has done anything or `after`; whether it was."""
    original = getattr(place, name)
    struck: list[str] = []

    def dying(*arguments: Any, **named: Any) -> Any:
        if struck:
            return original(*arguments, **named)
        struck.append(name)
        if when == "after":
            original(*arguments, **named)
        raise CrashError(name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(place, name, dying)
        yield struck


POINTS: dict[str, tuple[Any, str, str]] = {
    "the plan is written": (BatchRunner, "_joined", "before"),
    "a segment is written": (windows, "write", "after"),
    "results are staged": (worker, "write_results", "after"),
    "the tasks have told": (BatchRunner, "_settled", "before"),
    "the sink has the results": (BatchRunner, "_commit", "before"),
    "what waits is written": (Journal, "write_commit", "before"),
    "the commit is written": (Journal, "forget", "before"),
    "all is done": (BatchRunner, "_commit", "after"),
}
COMMITTED_BEFORE = ("the commit is written", "all is done")
DELIVERED_BEFORE = ("the sink has the results", "what waits is written")


@pytest.mark.parametrize("text", [TEXT, IN_ORDER], ids=["windows of time", "windows of rows"])
@pytest.mark.parametrize("point", POINTS)
def test_a_death_anywhere_leaves_no_trace_in_the_results(point: str, text: str, tmp_path: Path) -> None:
    """One death in a batch that runs by slice, two in one that runs in one task."""
    played = Played(asked(text), tmp_path, Way(2, fan_in=2))
    deaths = 0
    for batch, tables in enumerate(PUSHED):
        played.way = replace(played.way, hops=batch % 2 == 0)
        for _ in range((0, 0, 1, 0, 0, 2)[batch % 6]):
            with crash_in(*POINTS[point]) as struck, suppress(CrashError):
                played.run(batch, tables)
            deaths += len(struck)
            played.restart()
        assert played.run(batch, tables) == EXPECTED[text][batch], batch
        assert all(rows_of(each) == EXPECTED[text][batch] for each in played.found[batch]), batch
    delivered = [len(found) for found in played.found.values()]
    assert deaths == (2 if point in COMMITTED_BEFORE else 3)
    assert max(delivered) == (3 if point in DELIVERED_BEFORE else 1)
    assert played.merged > 0
    assert played.state.results == sum(rows.total() for rows in EXPECTED[text])


def test_what_a_batch_runs_by_is_written_before_and_used_again(tmp_path: Path) -> None:
    """Neither the clock nor what has been learned in between changes a batch that is run again."""
    times = iter(range(100, 1000, 100))
    way = Way(2, policy="output_rate", fan_in=2)
    played = Played(asked(), tmp_path, way, clock=lambda: float(next(times)))
    jobs: list[Job] = []
    for batch in range(5):
        with crash_in(BatchRunner, "_settled", "before"), recorded(jobs), pytest.raises(CrashError):
            played.run(batch, PUSHED[batch])
        played.way = replace(way, hops=False, fan_in=None, most_rows=1)
        played.restart()
        with recorded(jobs):
            played.run(batch, PUSHED[batch])
        played.way = way
    decided = [(job.now_us, job.order, job.tasks, job.merges, job.watermarks_us, job.part) for job in jobs]
    assert decided[::2] == decided[1::2]
    assert [job.now_us for job in jobs[::2]] == [100 * SECOND_US * number for number in range(1, 6)]
    assert {job.tasks for job in jobs} == {2}
    assert any(job.merges for job in jobs)
    assert len({job.run for job in jobs}) == 6


@contextmanager
def recorded(jobs: list[Job]) -> Iterator[None]:
    """Note the jobs that run."""
    original = BatchRunner._ran

    def noting(self: BatchRunner, frame: Any, job: Job, entry: Any) -> Any:
        jobs.append(job)
        return original(self, frame, job, entry)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BatchRunner, "_ran", noting)
        yield


def test_the_clock_of_batches_does_not_go_back(tmp_path: Path) -> None:
    times = iter((50.0, 40.0, 60.0))
    played = Played(asked(), tmp_path, clock=lambda: next(times))
    seen = []
    for batch in range(3):
        played.run(batch, PUSHED[batch])
        seen.append(played.state.now_us // SECOND_US)
    assert seen == [50, 50, 60]


def test_a_batch_that_is_committed_is_not_run_again(tmp_path: Path) -> None:
    played = Played(asked(), tmp_path)
    for batch in range(2):
        played.run(batch, PUSHED[batch])
    before = (played.spark.jobs, played.storage.list(), len(played.found[1]))
    played.restart()
    assert played.run(1, PUSHED[1]) == EXPECTED[TEXT][1]
    assert (played.spark.jobs, played.storage.list(), len(played.found[1])) == before


@pytest.mark.parametrize("due", [0, 3, 7])
def test_a_batch_that_does_not_follow_is_refused(due: int, tmp_path: Path) -> None:
    played = Played(asked(), tmp_path)
    for batch in range(2):
        played.run(batch, PUSHED[batch])
    with pytest.raises(StateError, match=f"batch {due} is due"):
        played.run(due, PUSHED[due])
    assert played.state.batch == 1


def test_the_state_belongs_to_one_query_of_spark_and_one_question(tmp_path: Path) -> None:
    played = Played(asked(), tmp_path)
    played.run(0, PUSHED[0])
    other = Played(asked(), tmp_path, spark=PlayedSpark(query_id="another"))
    with pytest.raises(StateError, match="belongs to the query the query, this is another"):
        other.run(1, PUSHED[1])
    with pytest.raises(StateError, match="window of stream 'b' was 3 seconds, is 4 seconds"):
        Played(asked(TEXT.replace("b 3", "b 4")), tmp_path).run(1, PUSHED[1])


def test_the_select_list_may_change_where_all_columns_are_kept(tmp_path: Path) -> None:
    played = Played(asked(), tmp_path, Way(2, keep="all"))
    for batch in range(4):
        played.run(batch, PUSHED[batch])
    text = TEXT.replace("a.id AS i", "a.id AS i, b.x + c.x AS total, a.ts AS at")
    changed = Played(asked(text), tmp_path, Way(2, keep="all"))
    expected = in_process(text)
    for batch in range(4, BATCHES):
        assert changed.run(batch, PUSHED[batch]) == expected[batch]


@pytest.mark.parametrize(
    ("before", "after"), [((2, "time"), (5, "time")), ((2, "hash"), (2, "time")), ((3, "time"), (1, "time"))]
)
def test_stored_rows_stay_on_the_slices_of_their_plan(
    before: tuple[int, str], after: tuple[int, str], tmp_path: Path
) -> None:
    played = Played(asked(), tmp_path, Way(*before))
    for batch in range(4):
        played.run(batch, PUSHED[batch])
    again = Played(asked(), tmp_path, Way(*after))
    for batch in range(4, BATCHES):
        assert again.run(batch, PUSHED[batch]) == EXPECTED[TEXT][batch]
    assert again.runner.plan.slices == played.runner.plan.slices
    assert again.spark.tasks == {before[0]: BATCHES - 4}


def test_few_rows_run_in_one_task_and_many_in_one_a_slice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(asked(), tmp_path, Way(3))
    with monkeypatch.context() as patch:
        patch.setattr(played, "way", replace(played.way, hops=False))
        played.run(0, PUSHED[0])
    assert played.spark.tasks == {1: 1}
    learned = played.runner.progress[-1]["work_s"] / sum(map(len, PUSHED[0].values()))
    assert 0 < learned < 10
    for rows, tasks in ((10, 1), (60, 3)):
        played.restart()
        runner = played.runner
        monkeypatch.setattr(driver_program, "ONE_TASK_SECONDS", 30 * driver_program.SECONDS_A_ROW)
        frame = cast(DataFrame, played.frame({name: part.slice(0, rows // 3) for name, part in PUSHED[1].items()}))
        assert runner._planned(99, frame, runner.setting.feed.arrived(frame))["tasks"] == tasks
        played.storage.delete("plans/99.json")


def test_a_batch_without_rows_runs_no_job_and_still_moves_time(tmp_path: Path) -> None:
    played = Played(asked(), tmp_path)
    for batch in range(3):
        played.run(batch, PUSHED[batch])
    jobs, stored = played.spark.jobs, len(played.files)
    assert played.run(3, NO_ROWS) == Rows()
    assert played.spark.jobs == jobs
    assert len(played.files) == stored
    assert played.state.batch == 3


def test_rows_leave_when_no_stream_can_meet_them_and_their_files_a_batch_later(tmp_path: Path) -> None:
    played = Played(asked(), tmp_path, Way(2, fan_in=3))
    for batch, tables in enumerate(PUSHED):
        played.run(batch, tables)
        live = {name for _, _, file in played.files for name in file.names}
        left = set(played.storage.list("segments"))
        assert live <= left
        assert left - live <= set(played.state.dying) | earlier(played)
    last_us = {name: min(file.last_us for _, each, file in played.files if each == name) for name in "abc"}
    newest_us = (BATCHES - 1) * SECOND_US
    spans_us = {"a": 4 * SECOND_US, "b": 3 * SECOND_US, "c": 5 * SECOND_US}
    for name, oldest_us in last_us.items():
        assert oldest_us >= newest_us - SECOND_US - spans_us[name] - SECOND_US // 2
    assert min(last_us.values()) > SECOND_US
    kept = {folder: len(played.storage.list(folder)) for folder in ("plans", "commits")}
    assert max(kept.values()) <= 3


def earlier(played: Played) -> set[str]:
    """What the batch before the last one was the last to need: it is deleted with the next commit."""
    found = played.runner.journal.commit(played.state.batch - 1) if played.state.batch else None
    return set() if found is None else set(found.dying)


def test_a_sink_that_fails_gets_the_same_batch_again(tmp_path: Path) -> None:
    played = Played(asked(), tmp_path)
    delivered: list[tuple[int, int]] = []

    def sink(results: Results, batch: int) -> None:
        delivered.append((batch, results.rows))
        if len(delivered) in (2, 3):
            raise CrashError("the sink")

    played.restart(sink=sink)
    for batch in (0, 1, 1, 1, 2):
        with suppress(CrashError):
            played.runner.run(cast(DataFrame, played.frame(PUSHED[batch])), batch)
    assert [batch for batch, _ in delivered] == [0, 1, 1, 1, 2]
    assert delivered[1] == delivered[2] == delivered[3] == (1, EXPECTED[TEXT][1].total())
    assert played.state.batch == 2


def test_progress_tells_of_each_batch(tmp_path: Path) -> None:
    played = Played(asked(), tmp_path, Way(2))
    for batch in range(3):
        played.run(batch, PUSHED[batch])
    last = played.runner.progress[-1]
    assert [each["batch"] for each in played.runner.progress] == [0, 1, 2]
    assert last["rows"] == {"a": 20, "b": 20, "c": 20}
    assert last["results"] == EXPECTED[TEXT][2].total()
    assert {"count_s", "plan_s", "join_s", "sink_s", "commit_s"} <= set(last)
    assert json.loads(json.dumps(last)) == last


def test_rows_too_far_ahead_of_the_batchs_clock_do_not_enter(tmp_path: Path) -> None:
    played = Played(asked(), tmp_path, max_ahead_us=2 * SECOND_US, clock=lambda: 1.0)
    for batch in range(5):
        played.run(batch, PUSHED[batch])
    gates = played.state.gates
    assert all(gate.newest_us <= 3 * SECOND_US for gate in gates.values())
    assert all(gate.counts["ahead"] >= 20 for gate in gates.values())
