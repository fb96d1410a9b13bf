"""What tasks do, without Spark: in one task or a task a slice, the rows of the join in one process, batch by batch."""

from __future__ import annotations

import gc
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import windrow
from tests.oracle.duck import rows_of
from tests.oracle.tables import table_of
from tests.run.spark.played import Played, PlayedSpark, Rows, Way
from windrow.query.builder import Join
from windrow.run.admit import Counts
from windrow.run.spark import job as jobs
from windrow.run.spark.job import Job
from windrow.run.spark.messages import DONE, KEPT, NOTED, PROBE, STORE, Message
from windrow.run.spark.results import Output, ResultFile
from windrow.run.spark.worker import enter, hop, whole
from windrow.store.storage import LocalStorage

pytestmark = pytest.mark.usefixtures("interpreted")

BATCHES = 8
STEP_US = 3_000_000
TWO = """SELECT a.id AS i, b.id AS j, a.s AS s, result_ts() AS newest FROM s AS a, t AS b
    WHERE ABS(a.f64 - b.f64) <= 1 AND a.i32 <> b.i64 WINDOW a 4 SECONDS, b 11 SECONDS LATENESS 9 SECONDS"""
THREE = """SELECT a.id AS i, b.id AS j, c.id AS k, b.v AS v, result_id() AS key FROM s AS a, t AS b, u AS c
    WHERE a.k = b.k AND b.i32 < c.i32 AND a.t8 + b.t8 <= c.s16 WINDOW a 7 SECONDS, b 2 SECONDS, c 5 SECONDS
    LATENESS 9 SECONDS"""
TEXTS = """SELECT a.id AS i, b.id AS j, c.d52 AS d FROM s AS a, t AS b, u AS c
    WHERE jaccard(a.s, b.s) >= 0.5 AND a.s < c.s AND cosine(b.v, c.v) > 0.9 WINDOW 5 SECONDS LATENESS 9 SECONDS"""
TIMES = """SELECT a.id AS i, b.id AS j FROM s AS a, t AS b
    WHERE b.ts BETWEEN a.ts - INTERVAL 2 SECONDS AND a.ts + INTERVAL 1 SECONDS WINDOW 20 SECONDS LATENESS 9 SECONDS"""
ROWS = """SELECT a.id AS i, b.id AS j, c.id AS k FROM s AS a, t AS b, u AS c
    WHERE a.flag = b.flag AND b.u8 <= c.u8 WINDOW a ROWS 9, b 6 SECONDS, c ROWS 5 LATENESS 9 SECONDS"""
QUESTIONS = {"two": TWO, "three": THREE, "texts": TEXTS, "times": TIMES, "rows": ROWS}


def joined(text: str) -> Join:
    names = [name for name in ("s", "t", "u") if f"{name} AS" in text]
    tables = {name: plain_keys(table_of(0, 0)) for name in names}
    return windrow.sql(text, streams=tables, time=dict.fromkeys(names, "ts"))


def plain_keys(table: pa.Table) -> pa.Table:
    """As Spark delivers rows: no dictionaries."""
    return table.set_column(table.schema.get_field_index("k"), "k", table["k"].cast(pa.string()))


def batches_of(names: Iterable[str], rows: int = 22) -> list[dict[str, pa.Table]]:
    """Batches that overlap in time, so that some rows come late; now and then a stream is silent."""
    return [
        {
            name: plain_keys(table_of(0 if (batch + number) % 5 == 4 else rows, 10 * batch + number,
                                      base_us=batch * STEP_US, span=14, null_times=True))
            for number, name in enumerate(names)
        }
        for batch in range(BATCHES)
    ]  # fmt: skip


def in_process(query: Join) -> tuple[list[Rows], dict[str, Counts]]:
    """The rows of each batch in one process, and what became of the rows of each stream."""
    found = []
    with windrow.local(query) as join:
        for tables in batches_of(query.sources):
            for name, table in tables.items():
                join.push(name, table)
            found.append(rows_of(join.step(now_s=0)))
        return found, {name: gate.counts for name, gate in join.entry.gates.items()}


def counts_of(played: Played) -> dict[str, Counts]:
    return {name: Counts(**gate.counts) for name, gate in played.state.gates.items()}


@pytest.mark.parametrize(
    ("slices", "policy", "hops"),
    [(1, "timestamp", True), (2, "round_robin", False), (5, "timestamp", True)],
    ids=["one slice", "one task", "by slice"],
)
@pytest.mark.parametrize("question", QUESTIONS)
def test_every_batch_gives_the_rows_of_the_join_in_one_process(
    question: str, slices: int, policy: str, hops: bool, tmp_path: Path
) -> None:
    query = joined(QUESTIONS[question])
    played = Played(query, tmp_path, Way(slices, policy=policy, hops=hops, fan_in=2))
    expected, counts = in_process(query)
    for batch, tables in enumerate(batches_of(query.sources)):
        assert played.run(batch, tables) == expected[batch], batch
    assert sum(rows.total() for rows in expected) > 50
    assert counts_of(played) == counts
    assert sum(each.late for each in counts.values()) > 0
    assert played.merged > 0
    assert set(played.spark.tasks) == {slices if hops else 1}


def test_ways_and_slicings_may_change_from_batch_to_batch(tmp_path: Path) -> None:
    """Segments that one task wrote for all slices are read slice by slice, and the other way round."""
    query = joined(THREE)
    expected, _ = in_process(query)
    played = Played(query, tmp_path, Way(3, fan_in=3))
    for batch, tables in enumerate(batches_of(query.sources)):
        played.way = replace(played.way, hops=batch % 3 != 1)
        assert played.run(batch, tables) == expected[batch], batch
    assert set(played.spark.tasks) == {1, 3}


@pytest.mark.parametrize("hops", [True, False], ids=["by slice", "in one task"])
@pytest.mark.parametrize("feed", ["lanes", "blobs"])
@pytest.mark.parametrize("question", ["two", "three", "rows"])
def test_parts_of_a_batch_give_the_rows_of_the_whole(
    question: str, hops: bool, feed: Literal["lanes", "blobs"], tmp_path: Path
) -> None:
    query = joined(QUESTIONS[question])
    played = Played(query, tmp_path, Way(2, hops=hops, fan_in=2, most_rows=15, feed=feed))
    expected, counts = in_process(query)
    for batch, tables in enumerate(batches_of(query.sources)):
        assert played.run(batch, tables) == expected[batch], batch
    assert counts_of(played) == counts
    parts = [each["parts"] for each in played.runner.progress]
    assert min(parts) >= 2
    assert max(parts) >= 3
    assert played.spark.jobs == sum(parts)


@pytest.mark.parametrize("slices", [1, 5])
def test_merges_lose_no_rows(slices: int, tmp_path: Path) -> None:
    query = joined(THREE.replace("WINDOW a 7 SECONDS, b 2 SECONDS, c 5 SECONDS", "WINDOW 1 DAYS"))
    played = Played(query, tmp_path, Way(slices, fan_in=2))
    for batch, tables in enumerate(batches_of(query.sources)):
        played.run(batch, tables)
        entered = {name: c.rows - c.late - c.bad - c.ahead - c.filtered for name, c in counts_of(played).items()}
        stored = dict.fromkeys(entered, 0)
        for _, name, file in played.files:
            stored[name] += file.rows
        assert stored == entered
    assert played.merged > BATCHES
    assert max(file.level for _, _, file in played.files) > 1
    names = [file.name for _, _, file in played.files]
    assert len(names) == len(set(names))
    assert set(names) < set(played.storage.list())


@pytest.mark.parametrize("hops", [True, False], ids=["by slice", "in one task"])
@pytest.mark.parametrize("question", ["three", "rows"])
def test_tasks_that_run_twice_are_heard_once(question: str, hops: bool, tmp_path: Path) -> None:
    query = joined(QUESTIONS[question])
    played = Played(query, tmp_path, Way(2, hops=hops, fan_in=2), PlayedSpark(twice=True))
    expected, counts = in_process(query)
    for batch, tables in enumerate(batches_of(query.sources)):
        assert played.run(batch, tables) == expected[batch], batch
    assert counts_of(played) == counts
    names = {file.name for _, _, file in played.files}
    left = {name for name in played.storage.list("segments") if name not in names}
    assert len(left) > BATCHES


def test_what_failed_attempts_left_behind_is_swept_by_a_restart(tmp_path: Path) -> None:
    query = joined(TWO)
    played = Played(query, tmp_path, Way(2), PlayedSpark(twice=True))
    batches = batches_of(query.sources)
    for batch in range(6):
        played.run(batch, batches[batch])
    before = set(played.storage.list("segments"))
    played.restart()
    expected, _ = in_process(query)
    assert played.run(6, batches[6]) == expected[6]
    after = set(played.storage.list("segments"))
    gone = {int(name.partition("/")[2].partition("-")[0]) for name in before - after}
    assert {0, 1, 2, 3} <= gone
    assert {file.name for _, _, file in played.files} <= after


def test_partial_results_go_only_where_their_matches_can_be(tmp_path: Path) -> None:
    query = joined(TIMES.replace("20 SECONDS", "60 SECONDS"))
    played = Played(query, tmp_path, Way(5))
    rows = plain_keys(table_of(40, 1, span=0))
    sent = sent_by(played, {"s": rows})
    assert len({message.slice for message in sent if message.kind == STORE}) == 1
    assert len({message.slice for message in sent if message.kind == PROBE}) == 3


@pytest.mark.parametrize("slice_by", ["hash", "range"])
def test_rows_are_kept_on_one_slice_each_by_what_the_plan_says(slice_by: str, tmp_path: Path) -> None:
    text = TWO.replace("a.i32 <> b.i64", "a.i32 = b.i64")
    played = Played(joined(text), tmp_path, Way(4, slice_by))
    rows = plain_keys(table_of(60, 1))
    sent = sent_by(played, {"s": rows, "t": rows})
    kept = [message for message in sent if message.kind == STORE]
    assert len({message.slice for message in kept}) > 1
    counts = {name: sum(message.rows for message in kept if message.path == name) for name in "ab"}
    known = {key: sum(None not in row and row[1] == row[1] for row in pairs(rows, key)) for key in ("i32", "i64")}
    assert counts == {"a": known["i32"], "b": known["i64"]}


def pairs(rows: pa.Table, key: str) -> Iterable[tuple[Any, Any]]:
    """The two values of a row that must not be NULL."""
    return zip(rows[key].to_pylist(), rows["f64"].to_pylist(), strict=True)


def job_of(played: Played, **changed: Any) -> Job:
    """The job of the first batch."""
    runner = played.runner
    plan: dict[str, Any] = {
        "now_us": 0,
        "order": None,
        "tasks": played.setting.plan.slices.count,
        "last": False,
        "merges": {},
    }
    return replace(runner._job(0, 0, (None, None), plan, runner._entrance(), {}), **changed)


def sent_by(played: Played, pushed: Mapping[str, pa.Table]) -> list[Message]:
    """What the entrance sends on."""
    (part, *others) = played.frame(pushed).coalesce(1).partitions
    assert not others
    found = enter(job_of(played), lambda: (0, "first"))(iter(part))
    return [Message(**row) for batch in found for row in batch.to_pylist()]


def numbered(name: str) -> tuple[int, str]:
    return 0, name


def test_two_attempts_agree_in_all_but_the_names_of_files(tmp_path: Path) -> None:
    played = Played(joined(TWO), tmp_path, Way(2))
    tables = batches_of(["s", "t"])[0]
    (part,) = played.frame(tables).coalesce(1).partitions
    job = job_of(played)
    attempts = []
    for name in ("first", "second"):
        batches = whole(job, partial(numbered, name))(iter(part))
        attempts.append([Message(**row) for batch in batches for row in batch.to_pylist()])
    assert [(m.slice, m.kind, m.path, m.rows) for m in attempts[0]] == [
        (m.slice, m.kind, m.path, m.rows) for m in attempts[1]
    ]
    files = [{json.loads(m.payload)["file"]["name"] for m in found if m.kind == KEPT} for found in attempts]
    assert len(files[0]) == len(files[1]) >= 3
    assert not files[0] & files[1]
    (results, again) = ([m.payload for m in found if m.kind not in (KEPT, DONE, NOTED)] for found in attempts)
    assert results == again


def test_a_task_looks_after_the_slices_of_its_number(tmp_path: Path) -> None:
    """Fewer tasks than slices: each has several, also those that nobody wrote to."""
    played = Played(joined(TWO), tmp_path, Way(4))
    job = job_of(played, tasks=2)
    merging = replace(job, merges={3: {"a": ((),)}}, live={3: {"a": ()}})
    with pytest.raises(ValueError, match="at least one"):  # a merge of nothing cannot be
        list(hop(merging, 0, lambda: (1, "first"))(iter([])))
    assert [len(batch) for batch in hop(merging, 0, lambda: (0, "first"))(iter([]))]


class Aside:
    """Takes what was set aside, as `windrow.run.spark.aside.Aside` does on Spark."""

    def __init__(self, folder: Path) -> None:
        self.output = Output(LocalStorage(folder), "parquet")
        self.reasons: Counter[str] = Counter()

    def deliver(self, files: Mapping[str, Sequence[ResultFile]], batch: int) -> None:
        for stream, staged in files.items():
            for file in staged:
                table = pq.read_table(self.output.storage.fetch(file.name))
                assert len(table) == file.rows
                assert table.schema.names[0] == "ts"
                self.reasons.update(f"{stream} {reason}" for reason in table["set_aside_because"].to_pylist())


@pytest.mark.parametrize("hops", [True, False], ids=["by slice", "in one task"])
def test_rows_that_do_not_enter_are_set_aside_in_files(hops: bool, tmp_path: Path) -> None:
    query, aside = joined(TWO), Aside(tmp_path / "aside")
    played = Played(query, tmp_path / "state", Way(2, hops=hops), aside=aside)
    for batch, tables in enumerate(batches_of(query.sources)):
        played.run(batch, tables)
    expected = Counter({f"{name} late": counts.late for name, counts in counts_of(played).items()})
    expected.update({f"{name} bad time": counts.bad for name, counts in counts_of(played).items()})
    assert aside.reasons == expected
    assert min(expected.values()) > 5


def test_an_attempt_outside_of_spark_has_a_name() -> None:
    assert jobs.attempt_of() == (0, "local")


def test_the_garbage_collector_is_spared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(jobs, "_spared", False)
    monkeypatch.setattr(gc, "collect", lambda: calls.append("collect"))
    monkeypatch.setattr(gc, "freeze", lambda: calls.append("freeze"))
    jobs.spare_collector()
    jobs.spare_collector()
    assert calls == ["collect", "freeze"]


def test_seeds_of_the_draw_change_the_order_only(tmp_path: Path) -> None:
    query = joined(THREE)
    found = []
    for seed in range(3):
        played = Played(query, tmp_path / str(seed), Way(3), PlayedSpark(seed))
        found.append([played.run(batch, tables) for batch, tables in enumerate(batches_of(query.sources)[:4])])
    assert found[0] == found[1] == found[2]
    assert np.sum([rows.total() for rows in found[0]]) > 10
