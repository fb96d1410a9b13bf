"""Starting a join: sinks, names and triggers as `start` takes them, what is refused, what a restart may change."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

import windrow
from tests.run.spark.test_join import BATCHES, TABLES, folders, in_process, text
from windrow.errors import FunctionError, SourceError, StateError, UsageError
from windrow.run.spark.join import SparkJoin
from windrow.run.spark.launch import trigger_of
from windrow.run.spark.state import FORMAT_VERSION

__all__ = ["folders"]

QUERY = text("a.k = b.k AND a.x < b.x", "ab", "WINDOW 2 SECONDS")
ENDING: dict[str, Any] = {"trigger": "available now", "slices": 2, "max_ahead": None}


@pytest.fixture
def join(spark: SparkSession, folders: dict[str, str]) -> SparkJoin:
    """A join of two batches: each brings half of the files."""
    reader = spark.readStream.schema(from_arrow_schema(TABLES["a"].schema)).option("maxFilesPerTrigger", BATCHES // 2)
    made = windrow.sql(QUERY, {name: reader.parquet(folders[name]) for name in "ab"})
    assert isinstance(made, SparkJoin)
    return made


def expected() -> Counter[tuple[int, int]]:
    return Counter(row[:2] for rows in in_process(QUERY, "ab") for row in rows.elements())


def in_folder(folder: Path) -> Counter[tuple[int, int]]:
    found = pq.read_table(folder, partitioning=None)
    return Counter(zip(found["a_id"].to_pylist(), found["b_id"].to_pylist(), strict=True))


def followed(frame: DataFrame, checkpoint: Path) -> Counter[tuple[int, int]]:
    """What a follower reads that ends with what is committed."""
    found: Counter[tuple[int, int]] = Counter()
    writer = frame.writeStream.foreachBatch(lambda rows, _: found.update(tuple(row[:2]) for row in rows.collect()))
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()
    return found


def test_a_join_without_a_sink_keeps_its_results_for_a_follower(join: SparkJoin, tmp_path: Path) -> None:
    query = join.start(checkpoint=tmp_path / "c", name="kept", **ENDING)
    query.await_termination()
    assert query.name == "kept"
    assert followed(query.results(), tmp_path / "f") == expected()
    progress = query.recent_progress()
    assert sum(batch["results"] for batch in progress) == query.status()["results"] == expected().total()
    assert query.last_progress() == progress[-1]


def test_a_restart_goes_on_after_a_sink_that_failed_and_may_change_it(join: SparkJoin, tmp_path: Path) -> None:
    found: dict[int, Counter[tuple[int, int]]] = {}

    def upset(frame: DataFrame, batch: int) -> None:
        if batch == 1:
            raise ConnectionError("the table is locked")
        found[batch] = Counter(tuple(row[:2]) for row in frame.collect())

    query = join.start(upset, checkpoint=tmp_path / "c", **ENDING)
    with pytest.raises(FunctionError, match="ConnectionError: the table is locked") as raised:
        query.await_termination()
    assert raised.value.place.endswith("in upset, batch 1")
    query = join.start(tmp_path / "out", checkpoint=tmp_path / "c", **ENDING)
    query.await_termination()
    assert in_folder(tmp_path / "out") + found[0] == expected()
    assert min(found[0].total(), in_folder(tmp_path / "out").total()) > 0
    assert followed(query.results(), tmp_path / "f") == in_folder(tmp_path / "out")


def test_a_folder_of_another_join_is_refused(join: SparkJoin, tmp_path: Path) -> None:
    (tmp_path / "out" / "batch=7").mkdir(parents=True)
    (tmp_path / "out" / "batch=7" / "part-0.parquet").write_bytes(b"")
    with pytest.raises(UsageError, match="holds results of another join"):
        join.start(tmp_path / "out", checkpoint=tmp_path / "c", **ENDING)


@pytest.mark.parametrize(
    ("was", "now", "says"),
    [
        ("WINDOW 2 SECONDS", "WINDOW 3 SECONDS", "window of stream 'a' was 2 seconds, is 3 seconds"),
        ("a.x < b.x", "a.x > b.x", "condition .* is gone; condition .* is new"),
        ("version", "0", "the checkpoint has format version 0"),
    ],
)
def test_a_checkpoint_of_another_query_or_format_is_refused_at_the_start(
    was: str, now: str, says: str, join: SparkJoin, tmp_path: Path
) -> None:
    join.start(windrow.Format("noop"), checkpoint=tmp_path, **ENDING).await_termination()
    asked: Any = windrow.sql(QUERY.replace(was, now), {name: source.frame for name, source in join.sources.items()})
    if was == "version":
        (commit,) = (tmp_path / "windrow" / "commits").glob("1.json")
        commit.write_text(commit.read_text().replace(f'"version":{FORMAT_VERSION}', f'"version":{now}'))
    with pytest.raises(StateError, match=says) as refused:
        asked.start(windrow.Format("noop"), checkpoint=tmp_path, **ENDING)
    assert "\n" not in str(refused.value)


def test_two_joins_of_one_name_are_refused_and_the_first_goes_on(join: SparkJoin, tmp_path: Path) -> None:
    options: dict[str, Any] = {"trigger": "100 ms", "slices": 2, "max_ahead": None, "name": "twice"}
    with join.start(windrow.Format("noop"), checkpoint=tmp_path / "c", **options) as query:
        with pytest.raises(UsageError, match=r"does not start the join: .*twice") as refused:
            join.start(print, checkpoint=tmp_path / "d", **options)
        assert "\n" not in str(refused.value)
        assert query.status()["active"]
        with pytest.raises(UsageError, match="format 'noop'"):
            query.results()
    assert not query.is_active
    assert query.exception() is None


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "continuous": ({"trigger": "continuous 1 second"}, "runs in micro-batches"),
    "real time": ({"trigger": "real-time 5 minutes"}, "runs in micro-batches"),
    "in Spark's words": ({"trigger": {"continuous": "1 second"}}, "runs in micro-batches"),
    "once": ({"trigger": "once"}, "cannot run with the trigger 'once'"),
    "not a span": ({"trigger": "soon"}, "the trigger is 'soon'"),
    "not text": ({"trigger": 5}, "the trigger is 5"),
    "finer than Spark's": ({"trigger": "1500 us"}, "the trigger is '1500 us'"),
    "no slices": ({"slices": 0}, "slices is 0"),
    "no such format": ({"sink": windrow.Format("nosuch")}, "Spark has no format 'nosuch'"),
    "not a sink": ({"sink": 3}, "the sink is 3"),
    "results in the state": ({"sink": "c"}, "the same folder"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_run_is_refused_before_anything_does(
    case: str, join: SparkJoin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options, message = REFUSED[case]
    with pytest.raises(UsageError, match=message) as refused:
        join.start(**({"checkpoint": "c"} | options))
    assert "\n" not in str(refused.value)
    assert refused.value.hint
    assert not (tmp_path / "c" / "spark").exists()


def test_triggers_are_spans() -> None:
    assert trigger_of("2 minutes") == {"processingTime": "120000 milliseconds"}
    assert trigger_of("0 seconds") == {"processingTime": "0 milliseconds"}


def test_an_address_that_cannot_be_is_refused(join: SparkJoin, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="nowhere://x/y"):
        join.start("nowhere://x/y", checkpoint=tmp_path, **ENDING)


def test_frames_of_spark_connect_are_refused() -> None:
    remote = type("DataFrame", (), {"__module__": "pyspark.sql.connect.dataframe"})()
    with pytest.raises(UsageError, match="comes from Spark Connect"):
        windrow.sql("SELECT a.x, b.x FROM a, b WHERE a.x = b.x WINDOW 1 SECOND", {"a": remote, "b": remote})
    session = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    with pytest.raises(UsageError, match="a Spark Connect session cannot run a join"):
        windrow.join(session)
