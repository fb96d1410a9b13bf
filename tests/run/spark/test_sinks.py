"""Sinks other than folders: Spark's formats, functions, and what is refused before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from windrow.errors import FunctionError, StateError, UsageError
from windrow.run.spark.publish import FolderSink
from windrow.run.spark.results import Output, ResultFile, Results, write_results
from windrow.run.spark.sinks import Format, FormatSink, FunctionSink, as_sink
from windrow.store.storage import LocalStorage, open_storage


def results(spark: SparkSession, folder: Path, *ids: int) -> Results:
    """Results that came in messages."""
    table = pa.table({"a_id": pa.array(ids, pa.int64())})
    return Results(spark, Output(LocalStorage(folder / "staged"), "frame"), table.schema, inline=(table,))


def test_a_format_that_writes_files_holds_a_batch_that_is_run_again_once(spark: SparkSession, tmp_path: Path) -> None:
    sink = FormatSink(Format("json", {"path": str(tmp_path / "out")}), LocalStorage(tmp_path / "staged"))
    sink.check(spark)
    for batch, ids in ((0, (1, 2)), (1, (3,)), (1, (3,)), (2, ())):
        sink.deliver(results(spark, tmp_path, *ids), batch)
    found = spark.read.json(str(tmp_path / "out")).collect()
    assert sorted((row["a_id"], row["batch"]) for row in found) == [(1, 0), (2, 0), (3, 1)]
    assert not (tmp_path / "out" / "batch=2").exists()


def test_other_modes_are_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    sink = FormatSink(
        Format("parquet", {"path": str(tmp_path / "out")}, mode="overwrite"), LocalStorage(tmp_path / "staged")
    )
    for batch, ids in ((0, (1, 2)), (1, (3,))):
        sink.deliver(results(spark, tmp_path, *ids), batch)
    assert [row["a_id"] for row in spark.read.parquet(str(tmp_path / "out")).collect()] == [3]
    FormatSink(Format("noop"), LocalStorage(tmp_path / "staged")).deliver(results(spark, tmp_path, 1), 0)


def test_a_format_that_spark_lacks_is_refused_before_anything_runs(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("noop", "parquet", "jdbc", "console", "windrow-replay"):
        FormatSink(Format(name, {"path": "x"}), LocalStorage(tmp_path / "staged")).check(spark)
    with pytest.raises(UsageError, match=r"Spark has no format 'nosuch' \(at: .*Failed to find") as refused:
        FormatSink(Format("nosuch"), LocalStorage(tmp_path / "staged")).check(spark)
    assert "\n" not in str(refused.value)


def test_delta_is_told_the_batch() -> None:
    table = Format("delta", {"path": "table", "txnAppId": "orders", "txnVersion": 1})
    assert table.for_batch(7, "query")[1] == {"path": "table", "txnAppId": "orders", "txnVersion": 7}


def test_a_function_gets_a_frame_to_use_as_often_as_it_likes(spark: SparkSession, tmp_path: Path) -> None:
    seen: list[Any] = []

    def look(frame: DataFrame, batch: int) -> None:
        seen.append((batch, frame.count(), sorted(row["a_id"] for row in frame.collect())))

    sink = FunctionSink(look, LocalStorage(tmp_path / "staged"))
    sink.deliver(results(spark, tmp_path, 4, 5), 3)
    sink.deliver(results(spark, tmp_path), 4)
    assert seen == [(3, 2, [4, 5]), (4, 0, [])]


def test_what_is_staged_stays_for_one_batch(spark: SparkSession, tmp_path: Path) -> None:
    seen: list[int] = []
    sink = FunctionSink(lambda frame, batch: seen.append(frame.count()), LocalStorage(tmp_path / "staged"))
    table = pa.table({"a_id": pa.array(range(200_000), pa.int64())})
    left = []
    for batch in range(3):
        output = Output(sink.staging, sink.form)
        file = write_results(output, f"results/{batch}", table.schema, table.to_batches())
        assert isinstance(file, ResultFile)
        sink.deliver(Results(spark, output, table.schema, (file,)), batch)
        left.append(sink.staging.list())
    assert seen == [200_000] * 3
    assert left == [(f"results/{batch}.parquet",) for batch in range(3)]


def test_what_a_function_raises_is_told_in_one_line(spark: SparkSession, tmp_path: Path) -> None:
    def upset(frame: DataFrame, batch: int) -> None:
        raise KeyError("no such customer")

    def upset_in_spark(frame: DataFrame, batch: int) -> None:
        frame.selectExpr("raise_error('own words')").collect()

    def ours(frame: DataFrame, batch: int) -> None:
        raise StateError("as it is")

    with pytest.raises(FunctionError, match="KeyError: 'no such customer'") as raised:
        FunctionSink(upset, LocalStorage(tmp_path / "staged")).deliver(results(spark, tmp_path, 1), 3)
    assert raised.value.place.startswith("test_sinks.py:")
    assert raised.value.place.endswith("in upset, batch 3")
    assert isinstance(raised.value.__cause__, KeyError)
    with pytest.raises(FunctionError, match="own words") as raised:
        FunctionSink(upset_in_spark, LocalStorage(tmp_path / "staged")).deliver(results(spark, tmp_path, 1), 3)
    assert len(str(raised.value)) < 500
    with pytest.raises(StateError, match="as it is"):
        FunctionSink(ours, LocalStorage(tmp_path / "staged")).deliver(results(spark, tmp_path, 1), 3)


def test_each_argument_means_its_sink(tmp_path: Path) -> None:
    state = open_storage(str(tmp_path / "checkpoint" / "windrow"))

    def sink(given: object) -> object:
        return as_sink(given, str(tmp_path / "checkpoint"), state)

    kept, path, hidden = sink(None), sink(tmp_path / "out"), as_sink(tmp_path, str(tmp_path / "_state"), state)
    assert isinstance(kept, FolderSink)
    assert kept.kept
    assert kept.folder.address == str(tmp_path / "checkpoint" / "windrow" / "results")
    assert kept.staging.address == str(tmp_path / "checkpoint" / "windrow" / "staged")
    assert isinstance(path, FolderSink)
    assert path.staging.address == str(tmp_path / "out" / "_staged")
    assert isinstance(hidden, FolderSink)
    assert isinstance(sink(Format("noop")), FormatSink)
    assert isinstance(sink(print), FunctionSink)
    assert isinstance(sink(state), FolderSink)


REFUSED: dict[str, tuple[Any, str]] = {
    "a number": (3, "the sink is 3"),
    "a class": (dict, "the sink is <class 'dict'>"),
    "the checkpoint": ("checkpoint", "the same folder"),
    "the checkpoint, written another way": ("checkpoint/../checkpoint/", "the same folder"),
    "inside the checkpoint": ("checkpoint/out", "lies in the checkpoint"),
    "around the checkpoint": (".", "the checkpoint lies in the sink"),
    "a format around the checkpoint": (Format("csv", {"path": "."}), "the checkpoint lies in the sink"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_a_sink_is_refused(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given, message = REFUSED[case]
    with pytest.raises(UsageError, match=message):
        as_sink(given, "checkpoint", open_storage("checkpoint/windrow"))


@pytest.mark.parametrize(
    ("name", "options", "mode", "message"),
    [
        ("", {}, "append", "'' is not the name"),
        (3, {}, "append", "3 is not the name"),
        ("csv", {}, "append", "'csv' has no path"),
        ("jdbc", ["url"], "append", "are a list"),
        ("jdbc", {}, "upsert", "mode of format 'jdbc' is 'upsert'"),
    ],
)
def test_a_format_is_checked_when_it_is_made(name: Any, options: Any, mode: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Format(name, options, mode)
