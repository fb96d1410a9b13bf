"""Who reads results slowly slows the join, whose memory does not grow; and the same input gives the same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import windrow
from tests.oracle.tables import table_of
from tests.run.spark.played import Played, PlayedSpark, Way
from tests.run.spark.test_worker import QUESTIONS, batches_of, in_process, joined
from windrow.plan.shedding import Shedding
from windrow.run.spark.results import Results, write_results

pytestmark = pytest.mark.usefixtures("interpreted")

TEXT = """SELECT a.id AS i, b.id AS j, a.f64 + b.f64 AS total, result_id() AS r FROM s AS a, t AS b
    WHERE abs(a.f64 - b.f64) <= 1 WINDOW 8 SECONDS LATENESS 20 SECONDS"""


def tables(batch: int) -> dict[str, pa.Table]:
    return {name: table_of(40, 2 * batch + k, base_us=batch * 3_000_000, span=14) for k, name in enumerate(("s", "t"))}


def test_input_is_taken_only_as_results_are() -> None:
    taken: list[int] = []

    def inputs() -> Iterator[dict[str, pa.Table]]:
        for batch in range(30):
            taken.append(batch)
            yield tables(batch)

    join = windrow.local(windrow.sql(TEXT, tables(0), time={"s": "ts", "t": "ts"}), inputs(), clock=lambda: 0.0)
    for read, results in enumerate(join):
        assert len(results)
        assert len(taken) == read + 1
        assert join.report.streams["a"].waiting == 0
    assert len(taken) == 30


def test_rows_that_wait_for_a_slow_step_are_bounded() -> None:
    with windrow.local(
        windrow.sql(TEXT, tables(0), time={"s": "ts", "t": "ts"}), buffer_rows=100, batch_rows=30
    ) as join:
        for batch in range(20):
            join.push("s", tables(batch)["s"])
        assert join.dropped == 20 * 40 - 100
        steps = [join.step(now_s=0) for _ in range(3)]
        assert [join.report.streams["a"].rows, len(steps)] == [90, 3]


def test_a_slow_sink_is_waited_for_on_spark(tmp_path: Path) -> None:
    """The next batch is not counted, let alone joined, before the sink has taken the one before."""
    query = joined(QUESTIONS["two"])
    played = Played(query, tmp_path, Way(2), PlayedSpark())
    expected, _ = in_process(query)
    held: list[tuple[int, int, int]] = []
    took = played.setting.sink

    def slow(results: Results, batch: int) -> None:
        assert played.runner.last is not None
        held.append((batch, played.runner.last.batch, played.spark.jobs))
        took(results, batch)
        assert played.spark.jobs == held[-1][2]

    played.restart(sink=slow)
    for batch, pushed in enumerate(batches_of(query.sources)):
        assert played.run(batch, pushed) == expected[batch]
    assert [(batch, last) for batch, last, _ in held] == [(batch, batch - 1) for batch in range(len(expected))]


def test_a_predicate_that_matches_everything_goes_to_files_on_spark(tmp_path: Path) -> None:
    """All pairs of a window: tasks hold a piece of the results at a time, the driver program only names of files."""
    text = """SELECT a.id AS i, b.id AS j, a.s AS s, b.v AS v FROM s AS a, t AS b WHERE a.id = a.id OR b.id > 0
        WINDOW 1 DAYS LATENESS 9 SECONDS"""
    query = joined(text)
    played = Played(query, tmp_path, Way(2, hops=False))
    expected, _ = in_process(query)
    named: list[int] = []
    took = played.setting.sink

    def noted(results: Results, batch: int) -> None:
        named.append(sum(len(table) for table in results.inline))
        took(results, batch)

    played.restart(sink=noted)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write_results, "__defaults__", (2_000,))
        for batch, pushed in enumerate(batches_of(query.sources)[:4]):
            assert played.run(batch, pushed) == expected[batch]
    assert sum(rows.total() for rows in expected[:4]) > 1_500
    assert named == [0] * 4


def result_files(folder: Path, log: list[Shedding], **options: Any) -> dict[str, bytes]:
    """The bytes of the results of a run, batch by batch; it writes its plans to the log, or follows those in it."""
    folder.mkdir()
    followed = tuple(log)
    with windrow.local(windrow.sql(TEXT, tables(0), time={"s": "ts", "t": "ts"}), **options) as join:
        for batch in range(8):
            if join.controller is not None and followed:
                join.controller.shedding = followed[batch]
                join.controller._batches.clear()
            for name, rows in tables(batch).items():
                join.push(name, rows)
            pq.write_table(join.step(now_s=3.0 * batch), folder / f"{batch}.parquet")
            if not followed:
                log.append(join.plan.shedding)
            assert join.plan.shedding == log[batch]
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


OPTIONS: dict[str, dict[str, Any]] = {
    "exact": {},
    "fixed throttle": {"throttle": 0.4},
    "buffers": {"policy": "round_robin"},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_the_same_input_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    log: list[Shedding] = []
    one, other = (result_files(tmp_path / run, log, **OPTIONS[name]) for run in ("one", "other"))
    assert one == other
    assert len(one) == len(log) == 8
    assert any(shedding.restricts for shedding in log) == (name == "fixed throttle")
    rows = [pq.read_table(tmp_path / "one" / f"{step}.parquet") for step in range(8)]
    assert sum(map(len, rows)) > 100
