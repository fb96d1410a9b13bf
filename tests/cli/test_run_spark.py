"""`windrow run` on Spark: the rows that the local runtime and DuckDB find, and runs that go on where they stopped."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import parquet as pq
from pyspark.sql import SparkSession
from rich.console import Console

from tests.cli.conftest import Command
from tests.cli.recordings import NEAR, camera, cameras_and_query, write
from tests.oracle.duck import answer, difference, question, rows_of
from windrow.run.spark.handle import RunningJoin

CAMERAS = {"cam1": camera(1), "cam2": camera(2)}
FEW = ("--batch", "25 seconds")
ROW_WINDOWS = """
SELECT a.id AS a_id, b.id AS b_id, a.small AS small, a.kind AS kind, result_ts() AS seen
FROM cam1 AS a, cam2 AS b
WHERE ABS(a.x - b.x) <= 0.5 AND near(a.x, b.x)
WINDOW a ROWS 60, b 5 SECONDS
"""
MINE = """
from windrow import function

@function(returns="BOOLEAN")
def near(x, y):
    return abs(x - y) < 0.25
"""


def same(folder: Path, left: str, right: str) -> bool:
    found, wanted = pq.read_table(folder / left), pq.read_table(folder / right)
    assert found.schema == wanted.schema
    assert len(found) > 50
    return difference(rows_of(found), rows_of(wanted)) == ""


def test_row_windows_functions_and_types_as_in_process(
    spark: SparkSession, windrow_command: Command, folder: Path
) -> None:
    arguments = (*cameras_and_query(folder, ROW_WINDOWS), "--udf", "mine.py", *FEW)
    (folder / "mine.py").write_text(MINE, encoding="utf-8")
    small = pa.array(np.arange(400) % 250, pa.uint8())
    kind = CAMERAS["cam1"]["kind"].combine_chunks().dictionary_encode()
    odd = CAMERAS["cam1"].append_column("small", small)
    write(odd.set_column(odd.column_names.index("kind"), "kind", kind), folder / "cam1.parquet")
    ended = windrow_command("run", *arguments, "--out", "near.parquet", "--json", "--report", "report.json")
    assert (ended.code, ended.err) == (0, "")
    report = json.loads(ended.out)
    assert report == json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert (report["runtime"], report["rows"], report["late"], report["batches"]) == ("spark", 800, 0, 3)
    assert report["results"] == pq.read_metadata(folder / "near.parquet").num_rows
    assert {(step["driver"], step["store"]) for step in report["steps"]} == {("a", "b"), ("b", "a")}
    assert windrow_command("run", "--runtime", "local", *arguments, "--out", "here.parquet").code == 0
    assert same(folder, "near.parquet", "here.parquet")
    names = {"cam1.parquet", "cam2.csv", "near.sql", "mine.py", "near.parquet", "here.parquet", "report.json"}
    assert {path.name for path in folder.iterdir()} - {"__pycache__"} == names


def test_a_run_that_was_stopped_goes_on(
    spark: SparkSession, windrow_command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(running: RunningJoin, console: Console, raise_noted: Callable[[], None]) -> None:
        while running.status()["batch"] < 0:
            running.await_termination(0.05)
        raise KeyboardInterrupt

    arguments = ("run", *cameras_and_query(folder), *FEW, "--checkpoint", "kept", "--out", "near/")
    with monkeypatch.context() as patch:
        patch.setattr("windrow.cli.run_spark.await_end", interrupted)
        stopped = windrow_command(*arguments)
    said = "windrow: stopped before the end; the same command goes on from 'kept'. Until then: "
    assert (stopped.code, stopped.out, stopped.err[: len(said)]) == (1, "", said)
    assert " rows in, 1 batches, " in stopped.err
    assert not (folder / "near").exists()
    ended = windrow_command(*arguments)
    assert ended.code == 0, ended.err
    assert ended.out.startswith("800 rows in (0 late, 0 bad), 3 batches, ")
    found = pq.read_table(folder / "near" / "part-00000.parquet")
    assert difference(rows_of(found), answer(question(NEAR), CAMERAS).rows) == ""
    assert "last batch 2, " in windrow_command("state", "kept").out
    other = windrow_command(*arguments[:-1], "other.parquet", "--as-arrived")
    assert other.code == 1
    assert "as_arrived" in other.err
    assert other.err.count("\n") == 1
    assert not (folder / "other.parquet").exists()


def test_late_and_bad_rows_are_set_aside_as_in_process(
    spark: SparkSession, windrow_command: Command, folder: Path
) -> None:
    arguments = ("run", *cameras_and_query(folder), *FEW, "--as-arrived", "--lateness", "1 second")
    times = CAMERAS["cam2"]["ts"]
    timeless = pc.if_else(pc.equal(CAMERAS["cam2"]["id"], 7), pa.scalar(None, times.type), times)
    write(CAMERAS["cam2"].set_column(0, "ts", timeless), folder / "cam2.csv")
    for runtime in ("spark", "local"):
        ended = windrow_command(
            *arguments, "--runtime", runtime, "--out", f"{runtime}/", "--set-aside", f"{runtime}.left"
        )
        assert ended.code == 0, ended.err
    for name in ("a-late", "b-late", "b-bad-time"):
        here, there = (pq.read_table(folder / f"{runtime}.left" / f"{name}.parquet") for runtime in ("local", "spark"))
        assert len(there) > 0
        assert set(there.column_names) >= {"ts", "id", "x", "kind"}
        assert rows_of(there) == rows_of(here.select(there.column_names))
    names = {path.name for path in (folder / "local.left").iterdir()}
    assert {path.name for path in (folder / "spark.left").iterdir()} == names


def test_a_function_that_fails_on_a_worker_is_one_line(
    spark: SparkSession, windrow_command: Command, folder: Path
) -> None:
    arguments = cameras_and_query(folder, NEAR.replace("a.kind = b.kind", "near(a.x, b.x)"))
    (folder / "mine.py").write_text(MINE.replace("return abs", 'raise ValueError("too\\nfar")\n    return abs'))
    before = {path.name for path in folder.iterdir()}
    ended = windrow_command("run", *arguments, "--udf", "mine.py", *FEW, "--out", "near")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("windrow: ")
    assert "ValueError" in ended.err
    assert ended.err.count("\n") == 1
    assert {path.name for path in folder.iterdir()} - {"__pycache__"} == before


def test_a_memory_limit_is_kept_and_what_it_cost_is_told(
    spark: SparkSession, windrow_command: Command, folder: Path
) -> None:
    arguments = ("run", *cameras_and_query(folder), "--batch", "12 seconds", "--memory", "9kB", "--checkpoint", "kept")
    ended = windrow_command(*arguments, "--out", "near.parquet", "--json")
    assert ended.code == 0, ended.err
    report = json.loads(ended.out)
    memory = report["memory"]
    assert memory["limit_bytes"] == 9000 >= memory["largest_bytes"] >= memory["held_bytes"] > 0
    assert memory["let_go"] == sum(stream["let_go"] for stream in report["streams"].values()) > 0
    assert json.loads(windrow_command("state", "kept", "--json").out)["bytes"] == memory["held_bytes"]
    found = rows_of(pq.read_table(folder / "near.parquet"))
    exact = answer(question(NEAR), CAMERAS).rows
    assert not found - exact
    assert 0 < found.total() < exact.total()


def test_aggregates_are_those_of_the_local_runtime(spark: SparkSession, windrow_command: Command, folder: Path) -> None:
    query = """SELECT a.kind AS kind, COUNT(*) AS n, SUM(b.x) AS x FROM cam1 AS a, cam2 AS b
        WHERE ABS(a.x - b.x) <= 1 GROUP BY a.kind EVERY 20 SECONDS WINDOW 5 SECONDS"""
    arguments = (*cameras_and_query(folder, query), *FEW)
    assert windrow_command("run", *arguments, "--out", "there.parquet").code == 0
    assert windrow_command("run", "--runtime", "local", *arguments, "--out", "here.parquet").code == 0
    found, wanted = (pq.read_table(folder / name).to_pylist() for name in ("there.parquet", "here.parquet"))
    assert len(wanted) > 6
    assert all(line["n_low"] == line["n"] == line["n_high"] for line in wanted)
    key = lambda line: (line["span_start"], str(line["kind"]))  # noqa: E731 - of one use
    for ours, theirs in zip(sorted(found, key=key), sorted(wanted, key=key), strict=True):
        assert ours == {name: pytest.approx(v) if isinstance(v, float) else v for name, v in theirs.items()}
