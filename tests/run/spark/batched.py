"""Streams of prepared batches on Spark: a folder a stream, a file a batch, and Spark takes one file of each at a time.

lay_out(folder, batches)     batches as the oracle cuts them: tables by the name of what is read
frames(spark, folder, ...)   the streaming DataFrames that bring them
run(join, ...)               the join to the end of its input: the rows of each batch
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from tests.oracle.duck import rows_of
from tests.run.spark.played import Rows
from windrow.query.builder import Join
from windrow.run.spark.handle import RunningJoin
from windrow.run.spark.join import SparkJoin

FIRST_S = 1_000_000_000
"""When the first file was written; Spark takes them in that order."""


def delivered(table: pa.Table) -> pa.Table:
    """A table in types that Spark has too: no dictionaries, no numbers without a sign, no vectors."""
    wider = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64()}
    columns = {}
    for column in table.schema:
        if not pa.types.is_fixed_size_list(column.type):
            kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
            columns[column.name] = table[column.name].cast(wider.get(kind, kind))
    return pa.table(columns)


def lay_out(folder: Path, batches: Sequence[Mapping[str, pa.Table]], schemas: Mapping[str, pa.Schema]) -> None:
    """Write the batches; a stream without rows in one has an empty file."""
    for name, schema in schemas.items():
        (folder / name).mkdir(parents=True)
        for number, tables in enumerate(batches):
            file = folder / name / f"{number:04d}.parquet"
            pq.write_table(tables[name] if name in tables else schema.empty_table(), file)
            os.utime(file, (FIRST_S + number, FIRST_S + number))


def frames(spark: SparkSession, folder: Path, schemas: Mapping[str, pa.Schema]) -> dict[str, DataFrame]:
    """The streams of a folder."""
    reader = spark.readStream.option("maxFilesPerTrigger", 1)
    return {
        name: reader.schema(from_arrow_schema(schema, prefer_timestamp_ntz=True)).parquet(str(folder / name))
        for name, schema in schemas.items()
    }


@dataclass
class Collected:
    """A sink that remembers the rows of each batch, and their schema; `times` says how often a batch came."""

    batches: dict[int, Rows] = field(default_factory=dict)
    times: dict[int, int] = field(default_factory=dict)
    schema: pa.Schema | None = None

    def __call__(self, frame: DataFrame, batch: int) -> None:
        table = frame.toArrow()
        self.schema = table.schema
        self.batches[batch] = rows_of(table)
        self.times[batch] = self.times.get(batch, 0) + 1

    @property
    def rows(self) -> Rows:
        """All rows."""
        return sum(self.batches.values(), Rows())


def run(join: Join, checkpoint: Path, sink: Any, **options: Any) -> RunningJoin:
    """Run a join until its input ends."""
    assert isinstance(join, SparkJoin)
    running = join.start(sink, **{"checkpoint": checkpoint, "trigger": "available now", "max_ahead": None, **options})
    running.await_termination()
    return running
