"""The page on sinks: what can run here runs as it is printed, the rest is Python, and the promises hold."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

import windrow
from windrow.run.spark.handle import RunningJoin
from windrow.run.spark.join import SparkJoin

PAGE = Path(__file__).resolve().parents[3] / "docs" / "sinks.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FOLDER = re.compile(r'(")(results|checkpoint|tables|matches)(?=["/.])')
ROWS = pa.table({"ts": pa.array([1_000_000, 2_000_000], pa.timestamp("us")), "id": pa.array([1, 2]), "k": [7, 7]})
PAIRS = Counter([(1, 1), (1, 2), (2, 1), (2, 2)])


class Ending:
    """A join as the page has it; it ends with its input, so that what it wrote can be looked at."""

    def __init__(self, join: SparkJoin) -> None:
        self.join = join

    def select(self, *items: str) -> Ending:
        return Ending(self.join.select(*items))

    def start(self, sink: Any = None, *, checkpoint: str) -> RunningJoin:
        query = self.join.start(sink, checkpoint=checkpoint, trigger="available now", slices=1, max_ahead=None)
        query.await_termination()
        return query


@pytest.fixture
def names(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the snippets may use; they run in an empty folder."""
    for name in "ab":
        (tmp_path / name).mkdir()
        pq.write_table(ROWS, tmp_path / name / "0.parquet")
    monkeypatch.chdir(tmp_path)
    reader = spark.readStream.schema(from_arrow_schema(ROWS.schema))
    join = windrow.join(spark)
    for name in "ab":
        join = join.stream(name, reader.parquet(str(tmp_path / name)), window="5 seconds")
    asked = join.where("a.k = b.k").select("a.id AS a_id", "b.id AS b_id")
    assert isinstance(asked, SparkJoin)
    return {"spark": spark, "windrow": windrow, "join": Ending(asked)}


def snippets(language: str) -> list[str]:
    return [text for kind, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")) if kind == language]


def here(name: str) -> str:
    """A path below the working folder, from the root."""
    return str(Path.cwd() / name)


def run(number: int, names: dict[str, Any]) -> dict[str, Any]:
    """Run a snippet with its folders below the working one: Spark's Java machine has its own idea of where it is."""
    text = FOLDER.sub(lambda match: f"{match[1]}{here(match[2])}", snippets("python")[number])
    exec(text, names)
    return names


def pairs(table: pa.Table) -> Counter[tuple[int, int]]:
    return Counter(zip(table["a_id"].to_pylist(), table["b_id"].to_pylist(), strict=True))


def test_snippets_that_need_other_programs_are_python() -> None:
    for text in snippets("py"):
        compile(text, PAGE.name, "exec")
    assert (len(snippets("python")), len(snippets("py"))) == (7, 4)


def test_a_folder_of_parquet_and_its_follower(names: dict[str, Any]) -> None:
    run(0, names)
    assert pairs(pq.read_table("results", partitioning=None)) == PAIRS
    query = run(6, names)["found"].writeStream.format("memory").queryName("followed")
    query.option("checkpointLocation", here("follower")).trigger(availableNow=True).start().awaitTermination()
    assert Counter(tuple(row) for row in names["spark"].table("followed").collect()) == PAIRS


def test_a_format_with_a_folder_a_batch(names: dict[str, Any]) -> None:
    run(1, names)
    found = names["spark"].read.option("header", True).csv(here("tables")).select("a_id", "b_id").collect()
    assert Counter((int(row[0]), int(row[1])) for row in found) == PAIRS


def test_a_function_that_upserts_takes_a_batch_twice(names: dict[str, Any]) -> None:
    run(3, names)
    with sqlite3.connect("matches.db") as database:
        once = database.execute("SELECT id, a_id, b_id FROM matches").fetchall()
        names["upsert"](names["spark"].createDataFrame(once, "id long, a_id long, b_id long"), 0)
        assert database.execute("SELECT id, a_id, b_id FROM matches").fetchall() == once
    assert Counter(row[1:] for row in once) == PAIRS


def test_a_function_that_writes_by_number(names: dict[str, Any]) -> None:
    run(4, names)
    assert Counter(tuple(row) for row in names["spark"].read.orc(here("matches/*")).collect()) == PAIRS


def test_nothing_kept_and_kept_for_the_next_query(names: dict[str, Any]) -> None:
    assert run(2, names)["query"].status()["results"] == len(PAIRS)
    with pytest.raises(windrow.UsageError, match="format 'noop'"):
        names["query"].results()
    names["join"] = names["join"].select("result_ts() AS at")
    counts = run(5, {**names, "join": Fresh(names["join"])})["counts"].writeStream.outputMode("complete")
    query = counts.format("memory").queryName("counted").option("checkpointLocation", here("follower"))
    query.trigger(availableNow=True).start().awaitTermination()
    assert sorted(tuple(row) for row in names["spark"].table("counted").collect()) == [(1, 2), (2, 2)]


class Fresh:
    """A join that starts from a checkpoint of its own."""

    def __init__(self, join: Ending) -> None:
        self.join = join

    def start(self, *, checkpoint: str) -> RunningJoin:
        return self.join.start(checkpoint=f"{checkpoint}-of-its-own")
