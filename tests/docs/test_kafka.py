"""The page on Kafka, without a broker: its options exist, and its code joins what topics would bring.

Spark's Kafka reader is replaced by files that have the columns of Kafka's records, its writer by one that notes what is
written. Everything between is the page's own code.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.docs.pages import DOCS, blocks

PAGE = DOCS / "howto" / "kafka.md"
OPTIONS = frozenset({
    "subscribe", "subscribePattern", "assign", "startingOffsets", "startingTimestamp", "endingOffsets",
    "failOnDataLoss", "minPartitions", "maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay",
    "includeHeaders", "topic",
})  # fmt: skip
"""Spark's own options of Kafka sources and sinks; what begins with `kafka.` goes to Kafka."""
QUOTES = [(0, "EURUSD", 1.1), (1000, "EURUSD", 1.2), (1500, "NZDUSD", 1.1)]
ORDERS = [(200, 1, "EURUSD", 1.1001), (1600, 2, "EURUSD", 1.3), (1700, 3, "NZDUSD", 1.1)]


def code() -> list[str]:
    return [block.text for block in blocks(PAGE) if block.language == "python"]


def test_options_exist() -> None:
    options = re.findall(r'\.option\("([\w.]+)"', "".join(code()))
    assert len(options) >= 7
    assert {option for option in options if not option.startswith("kafka.")} <= OPTIONS
    assert {option for option in options if option.startswith("kafka.")} == {"kafka.bootstrap.servers", "kafka.acks"}


def stamp(millis: int) -> str:
    return f"2024-05-08T12:00:{millis // 1000:02d}.{millis % 1000:03d}Z"


def topics(folder: Path) -> dict[str, Path]:
    """Records as Kafka's source gives them, a folder a topic; one of them is no JSON."""
    quotes = [{"ts": stamp(at), "symbol": symbol, "price": price} for at, symbol, price in QUOTES]
    orders = [{"ts": stamp(at), "id": number, "symbol": symbol, "price": price} for at, number, symbol, price in ORDERS]
    found = {}
    for name, records in (
        ("quotes", [*map(json.dumps, quotes), "not json"]),
        ("orders", list(map(json.dumps, orders))),
    ):
        found[name] = folder / name
        found[name].mkdir()
        values = pa.array([record.encode() for record in records], pa.binary())
        count = len(records)
        table = pa.table({
            "key": pa.nulls(count, pa.binary()), "value": values, "topic": [name] * count,
            "partition": pa.array([0] * count, pa.int32()), "offset": range(count),
        })  # fmt: skip
        pq.write_table(table, found[name] / "0.parquet")
    return found


class Reading:
    """Stands for `spark.readStream.format("kafka")`: notes the options, and reads a topic's files."""

    def __init__(self, spark: SparkSession, places: dict[str, Path]) -> None:
        self.spark, self.places, self.options = spark, places, dict[str, Any]()

    @property
    def readStream(self) -> Reading:  # noqa: N802 - Spark's name
        return Reading(self.spark, self.places)

    def format(self, name: str) -> Reading:
        assert name == "kafka"
        return self

    def option(self, name: str, value: Any) -> Reading:
        self.options[name] = value
        return self

    def load(self) -> DataFrame:
        assert self.options["kafka.bootstrap.servers"]
        schema = "key binary, value binary, topic string, partition int, offset long"
        return self.spark.readStream.schema(schema).parquet(str(self.places[self.options["subscribe"]]))


class Writing:
    """Stands for `frame.write.format("kafka")`: keeps the records."""

    sent: list[tuple[str, Any]]

    def __init__(self, frame: DataFrame) -> None:
        self.frame, self.options = frame, dict[str, Any]()

    def format(self, name: str) -> Writing:
        assert name == "kafka"
        return self

    def option(self, name: str, value: Any) -> Writing:
        self.options[name] = value
        return self

    def save(self) -> None:
        assert self.options["topic"] == "matches"
        assert [field.dataType.simpleString() for field in self.frame.schema] == ["string", "string"]
        assert self.frame.columns == ["key", "value"]
        Writing.sent += [(row["key"], json.loads(row["value"])) for row in self.frame.collect()]


@pytest.mark.long
def test_records_come_in_and_go_out(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Writing.sent = []
    monkeypatch.setattr("pyspark.sql.classic.dataframe.DataFrame.write", property(Writing))
    names: dict[str, Any] = {}
    read, join, out = code()
    names.update(reading=Reading(spark, topics(tmp_path)), spark=spark)
    exec(read.replace("spark.readStream", "reading.readStream"), names)
    exec(join, names)
    here = out.replace("s3a://bucket/matches", str(tmp_path / "state"))
    here = here.replace('trigger="1 second"', 'trigger="available now", slices=1, max_ahead=None')
    assert "available now" in here
    exec(here, names)
    assert sorted((record["order_id"], record["price"]) for _, record in Writing.sent) == [(1, 1.1), (3, 1.1)]
    assert all(str(record["id"]) == key for key, record in Writing.sent)
    assert names["query"].status()["streams"]["q"]["bad"] == 1
