"""Results of a batch, staged: tasks write them, the driver program hears their names, the sink takes them from there.

    last hop ── write_results ──▶ staged file ─┐                      ┌─▶ frame(): a DataFrame for any sink
               few rows: in the message itself ─┴─▶ told ──▶ Results ─┴─▶ files: to publish as they are (Parquet)

What becomes a DataFrame is staged in the form that reaches Spark fastest (`windrow.run.spark.reading`).

One job finds the results and brings back what the driver program has to know. What a sink does with them, once or
several times, does not run the join again, and what a failed attempt wrote is named by nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from windrow.run.spark.messages import table_bytes
from windrow.run.spark.reading import read_by_spark, spark_reads
from windrow.store.storage import Storage

Form = Literal["frame", "parquet"]
"""What staged results are for: to become a DataFrame, or to be published as Parquet files."""
INLINE_BYTES = 256 << 10
"""Results of a task up to this size travel in its last message, not in a file."""
LARGEST_BLOCK_ROWS = 1 << 16


@dataclass(frozen=True, slots=True)
class ResultFile:
    """A file of results that a task staged."""

    name: str
    rows: int
    bytes: int

    def fields(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Output:
    """Where tasks stage results, and what for."""

    storage: Storage
    form: Form

    def ending(self, schema: pa.Schema) -> str:
        """How the names of files end, which says what they are."""
        return "parquet" if self.form == "parquet" or spark_reads(self.storage, schema) else "arrow"


def write_results(
    output: Output,
    name: str,
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    inline_bytes: int = INLINE_BYTES,
) -> ResultFile | pa.Table:
    """Stage results under a name; as few of them as a message can hold come back as they are."""
    held: list[pa.RecordBatch] = []
    waiting = iter(batches)
    size = 0
    for batch in waiting:
        held.append(batch)
        size += batch.nbytes
        if size > inline_bytes:
            break
    else:
        return pa.Table.from_batches(held, schema)
    rows = 0
    name = f"{name}.{output.ending(schema)}"
    with output.storage.writing(name) as file:
        with _writer(output, file, schema) as writer:
            for batch in chain(held, waiting):
                writer.write_batch(batch)
                rows += len(batch)
        size = file.tell()
    return ResultFile(name, rows, size)


def _writer(output: Output, file: Any, schema: pa.Schema) -> Any:
    if output.ending(schema) == "arrow":
        return pa.ipc.new_file(file, schema)
    if output.form == "frame":  # read once, and soon: to make it small takes longer than it saves
        return pq.ParquetWriter(file, schema, use_dictionary=_texts(schema), compression="none", write_statistics=False)
    return pq.ParquetWriter(file, schema, use_dictionary=_texts(schema), compression="snappy", write_statistics=True)


def _texts(schema: pa.Schema) -> list[str]:
    return [field.name for field in schema if pa.types.is_string(field.type)]


@dataclass(frozen=True)
class Results:
    """The results of one batch: staged files, and what came in messages."""

    spark: SparkSession
    output: Output
    schema: pa.Schema
    files: tuple[ResultFile, ...] = ()
    inline: tuple[pa.Table, ...] = ()

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files) + sum(len(table) for table in self.inline)

    def frame(self) -> DataFrame:
        """The results as a DataFrame, which may be used more than once."""
        if not self.files:
            return self._frame_of_inline()
        storage, names = self.output.storage, [file.name for file in self.files]
        if spark_reads(storage, self.schema):
            staged = read_by_spark(self.spark, storage, self.schema, names)
            return staged.union(self._frame_of_inline()) if any(map(len, self.inline)) else staged
        parts: list[ResultFile | bytes] = list(self.files)
        if any(map(len, self.inline)):
            parts.append(table_bytes(pa.concat_tables(self.inline)))
        rows = self.spark.range(0, max(1, len(parts)), 1, max(1, len(parts)))
        return rows.mapInArrow(_reading(storage, self.schema, parts), from_arrow_schema(self.schema))

    def _frame_of_inline(self) -> DataFrame:
        table = pa.concat_tables([self.schema.empty_table(), *self.inline])
        return self.spark.createDataFrame(table, from_arrow_schema(self.schema))


def _reading(
    storage: Storage, schema: pa.Schema, parts: list[ResultFile | bytes]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Task: the rows of the parts that its numbers name."""

    def task(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                if number < len(parts):
                    yield from read_results(storage, schema, parts[number])

    return task


def read_results(storage: Storage, schema: pa.Schema, part: ResultFile | bytes) -> Iterator[pa.RecordBatch]:
    """The rows of a staged file or of a message, in blocks a consumer can hold."""
    if isinstance(part, ResultFile):
        source = pa.memory_map(str(storage.fetch(part.name)))
        if part.name.endswith(".parquet"):
            yield from (batch.cast(schema) for batch in pq.ParquetFile(source).iter_batches(LARGEST_BLOCK_ROWS))
            return
        reader = pa.ipc.open_file(source)
        batches: Iterable[pa.RecordBatch] = (reader.get_batch(k) for k in range(reader.num_record_batches))
    else:
        batches = pa.ipc.open_stream(part)
    for batch in batches:
        for start in range(0, len(batch), LARGEST_BLOCK_ROWS):
            yield batch.slice(start, LARGEST_BLOCK_ROWS)
