"""The same rows on Spark as in process: queries, slices, policies, disorder, restarts from any point of a batch."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

import windrow
from windrow.errors import StateError, UsageError, WindrowError
from windrow.run.spark.join import SparkJoin
from windrow.run.spark.query import BatchRunner

ROWS, BATCHES = 240, 8
BAND = "abs(a.x - b.x) <= 0.3 AND b.k = c.k"
Rows = Counter[tuple[Any, ...]]


def recorded(seed: int) -> pa.Table:
    """Rows of half a minute, out of order by up to a second."""
    generator = np.random.default_rng(seed)
    times = np.sort(generator.integers(0, 30_000_000, ROWS)) + generator.integers(-500_000, 500_000, ROWS)
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us")),
            "id": pa.array(np.arange(ROWS)),
            "x": np.round(generator.random(ROWS) * 20, 1),
            "k": pa.array(generator.integers(0, 12, ROWS), pa.int32()),
            "s": [f"name {value}" for value in generator.integers(0, 20, ROWS)],
        }
    )


TABLES = {name: recorded(seed) for seed, name in enumerate("abc")}


def parts(name: str) -> list[pa.Table]:
    """What each batch brings of a stream."""
    share = ROWS // BATCHES
    return [TABLES[name].slice(number * share, share) for number in range(BATCHES)]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A folder of files for each stream, one file a batch."""
    found = {}
    for name in TABLES:
        folder = tmp_path_factory.mktemp(name)
        for number, part in enumerate(parts(name)):
            file = folder / f"{number:03d}.parquet"
            pq.write_table(part, file)
            os.utime(file, (1_000_000_000 + number, 1_000_000_000 + number))
        found[name] = str(folder)
    return found


def frames(spark: SparkSession, folders: Mapping[str, str], names: str) -> dict[str, DataFrame]:
    reader = spark.readStream.option("maxFilesPerTrigger", 1)
    schema = from_arrow_schema(TABLES["a"].schema)
    return {name: reader.schema(schema).parquet(folders[name]) for name in names}


def text(condition: str, names: str, window: str) -> str:
    chosen = ", ".join(f"{name}.id AS {name}_id" for name in names)
    return f"SELECT {chosen}, result_ts() AS at FROM {', '.join(names)} WHERE {condition} {window} LATENESS 2 SECONDS"


def in_process(query: str, names: str) -> list[Rows]:
    """The results of each batch in process; rows that row windows still hold back stay there, as on Spark."""
    with windrow.local(windrow.sql(query, {name: TABLES[name] for name in names})) as join:
        found = []
        for number in range(BATCHES):
            for name in names:
                join.push(name, parts(name)[number])
            found.append(Counter(tuple(row.values()) for row in join.step().to_pylist()))
    return found


def collecting(into: dict[int, Rows]) -> Callable[[DataFrame, int], None]:
    def sink(frame: DataFrame, batch: int) -> None:
        into[batch] = Counter(tuple(row) for row in frame.collect())

    return sink


def asked(spark: SparkSession, folders: Mapping[str, str], query: str, names: str) -> SparkJoin:
    join = windrow.sql(query, frames(spark, folders, names))
    assert isinstance(join, SparkJoin)
    return join


CASES = {
    "three streams, band and equality": (BAND, "abc", "WINDOW 5 SECONDS", 2, "timestamp"),
    "texts, five slices, buffers in turn": ("a.s = b.s", "ab", "WINDOW a 3 SECONDS, b 9 SECONDS", 5, "round_robin"),
    "one slice, any condition": (
        "a.x + b.x < 3 OR a.k = b.k AND a.s LIKE '%1'",
        "ab",
        "WINDOW 4 SECONDS",
        1,
        "output_rate",
    ),
    "row windows": ("a.k = b.k", "ab", "WINDOW a ROWS 20, b 6 SECONDS", 2, "timestamp"),
}


@pytest.mark.parametrize("case", CASES)
def test_each_batch_has_the_rows_of_the_join_in_process(
    case: str, spark: SparkSession, folders: dict[str, str], tmp_path: Path
) -> None:
    condition, names, window, slices, policy = CASES[case]
    query = text(condition, names, window)
    found: dict[int, Rows] = {}
    running = asked(spark, folders, query, names).start(
        collecting(found), checkpoint=tmp_path, trigger="available now", slices=slices, policy=policy, max_ahead=None
    )
    running.await_termination()
    expected = in_process(query, names)
    assert [found[number] for number in range(BATCHES)] == expected
    assert sum(map(Counter.total, expected)) > 50
    status = running.status()
    assert status["results"] == sum(map(Counter.total, expected))
    assert status["streams"]["a"]["rows"] == ROWS
    assert "probes" in running.explain()


class CrashError(Exception):
    """What stands for the death of the driver program."""


def crash_at(point: str, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the driver program die once, at a named point of a batch."""
    step = {"plan written": "_job", "before the commit": "_commit"}[point]
    original = getattr(BatchRunner, step)

    def dying(self: BatchRunner, number: int, *arguments: Any) -> Any:
        if not struck and number == batch:
            struck.append(point)
            raise CrashError(point)
        return original(self, number, *arguments)

    struck: list[str] = []
    monkeypatch.setattr(BatchRunner, step, dying)


def test_windows_keep_within_a_memory_limit(spark: SparkSession, folders: dict[str, str], tmp_path: Path) -> None:
    query = text("a.k = b.k", "ab", "WINDOW 12 SECONDS")
    found: dict[int, Rows] = {}
    options: dict[str, Any] = {"trigger": "available now", "slices": 1, "max_ahead": None, "memory": "12kB"}
    running = asked(spark, folders, query, "ab").start(collecting(found), checkpoint=tmp_path, **options)
    running.await_termination()
    exact = in_process(query, "ab")
    assert all(not found[number] - exact[number] for number in range(BATCHES))
    assert 0 < sum(map(Counter.total, found.values())) < sum(map(Counter.total, exact))
    status = running.status()
    memory = status["memory"]
    assert memory["limit_bytes"] == 12_000 >= memory["largest_bytes"] >= memory["held_bytes"] == status["bytes"]
    assert memory["let_go"] == sum(stream["let_go"] for stream in status["streams"].values()) > 0


@pytest.mark.parametrize("point", ["plan written", "before the commit"])
def test_a_restart_gives_the_rows_of_a_run_without_the_failure(
    point: str, spark: SparkSession, folders: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = text(BAND, "abc", "WINDOW 5 SECONDS")
    found: dict[int, Rows] = {}
    join = asked(spark, folders, query, "abc")
    crash_at(point, 3, monkeypatch)
    options: dict[str, Any] = {"checkpoint": tmp_path, "trigger": "available now", "slices": 2, "max_ahead": None}
    with pytest.raises(WindrowError, match=point):
        join.start(collecting(found), **options).await_termination()
    assert max(found) == (2 if point == "plan written" else 3)
    join.start(collecting(found), **options).await_termination()
    assert [found[number] for number in range(BATCHES)] == in_process(query, "abc")


def test_many_results_are_staged_anew_when_a_batch_is_run_again(
    spark: SparkSession, folders: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = text("a.id + b.id >= 0", "ab", "WINDOW 60 SECONDS")
    found: dict[int, Rows] = {}
    read: dict[int, list[str]] = {}

    def sink(frame: DataFrame, batch: int) -> None:
        read.setdefault(batch, []).extend(frame.inputFiles())
        collecting(found)(frame, batch)
        assert frame.count() == found[batch].total(), "the second time it is used"

    join = asked(spark, folders, query, "ab")
    crash_at("before the commit", BATCHES - 1, monkeypatch)
    options: dict[str, Any] = {"checkpoint": tmp_path, "trigger": "available now", "slices": 2, "max_ahead": None}
    with pytest.raises(WindrowError, match="before the commit"):
        join.start(sink, **options).await_termination()
    join.start(sink, **options).await_termination()
    assert [found[number] for number in range(BATCHES)] == in_process(query, "ab")
    first, again = read[BATCHES - 1]
    assert first != again
    assert first.endswith(".parquet")
    assert read[0] == [], "few results come in a message"


def test_a_path_holds_each_batch_once_and_another_query_is_refused(
    spark: SparkSession, folders: dict[str, str], tmp_path: Path
) -> None:
    query = text("a.k = b.k AND a.x < b.x", "ab", "WINDOW 2 SECONDS")
    options: dict[str, Any] = {
        "checkpoint": tmp_path / "state",
        "trigger": "available now",
        "slices": 2,
        "max_ahead": None,
    }
    asked(spark, folders, query, "ab").start(tmp_path / "out", **options).await_termination()
    found = pq.read_table(tmp_path / "out", partitioning=None)
    expected = sum((rows for rows in in_process(query, "ab")), Counter())
    pairs = Counter(zip(found["a_id"].to_pylist(), found["b_id"].to_pylist(), strict=True))
    assert pairs == Counter(row[:2] for row in expected.elements())
    other = asked(spark, folders, text("a.k = b.k", "ab", "WINDOW 3 SECONDS"), "ab")
    with pytest.raises(StateError, match="another query"):
        other.start(tmp_path / "out", **options).await_termination()


def test_what_cannot_be_a_stream_is_refused(spark: SparkSession) -> None:
    still = spark.createDataFrame([(1,)], "x int")
    with pytest.raises(UsageError, match="does not stream"):
        windrow.join(spark).stream("a", still, window="1 second")
    rows = windrow.join().stream("a", TABLES["a"], window="1 s").stream("b", TABLES["b"], window="1 s")
    with pytest.raises(UsageError, match="no streaming DataFrames"):
        SparkJoin(rows.sources, rows.streams).start("out", checkpoint="state")


def test_aggregates_of_a_stream_need_spans(spark: SparkSession, folders: dict[str, str], tmp_path: Path) -> None:
    query = asked(spark, folders, "SELECT COUNT(*) AS n FROM a, b WHERE a.k = b.k WINDOW 5 SECONDS", "ab")
    with pytest.raises(UsageError, match="which has no end"):
        query.start(tmp_path / "out", checkpoint=tmp_path / "checkpoint")


@pytest.mark.long
def test_aggregates_hold_each_result_once(
    spark: SparkSession, folders: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines of spans that watermarks close go into a folder, also when a batch comes twice."""
    query = """SELECT a.k AS k, COUNT(*) AS n, SUM(b.x) AS x, AVG(a.x * b.x) AS m FROM a, b WHERE a.k = b.k
        GROUP BY a.k EVERY 4 SECONDS WINDOW 5 SECONDS LATENESS 2 SECONDS"""
    crash_at("before the commit", 3, monkeypatch)
    options: dict[str, Any] = {"trigger": "available now", "slices": 2, "max_ahead": None}
    for ends in (False, True):
        running = asked(spark, folders, query, "ab").start(tmp_path / "out", checkpoint=tmp_path / "state", **options)
        if ends:
            running.await_termination()
        else:
            with pytest.raises(WindrowError, match="before the commit"):
                running.await_termination()
    expected = []
    with windrow.local(windrow.sql(query, {name: TABLES[name] for name in "ab"})) as join:
        for number in range(BATCHES):
            for name in "ab":
                join.push(name, parts(name)[number])
            expected.append(join.step())
        assert running.status()["results"] == join.report.results > 100
    order = [("span_start", "ascending"), ("k", "ascending")]
    found = pq.read_table(tmp_path / "out", partitioning=None).sort_by(order).to_pylist()
    wanted = pa.concat_tables(expected).sort_by(order).to_pylist()
    assert len(found) > 20
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours == {name: pytest.approx(v) if isinstance(v, float) else v for name, v in theirs.items()}
