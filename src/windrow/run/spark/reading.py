"""Staged results as a DataFrame by Spark's own Parquet reader: no Python between a task's file and the sink.

    plain columns, in a folder that all machines see    file ──▶ Spark's reader, as many tasks as fit its size
    anything else                                       file ──▶ a Python worker ──▶ Spark, a task a file

Rows that pass through a Python worker are copied into a socket and taken apart one by one, which took twice as long as
reading them from the file. Both give the same rows: only types that the two readers understand alike are plain.

>>> import pyarrow as pa
>>> from windrow.store.storage import LocalStorage
>>> spark_reads(LocalStorage("/data"), pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC"))]))
True
>>> spark_reads(LocalStorage("/data"), pa.schema([("v", pa.list_(pa.float32(), 3))]))
False
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from windrow.store.storage import Storage

PLAIN = frozenset(
    {pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()}
    | {pa.string(), pa.binary(), pa.date32()}
)
READ_AS_WRITTEN = {"datetimeRebaseMode": "CORRECTED", "ignoreMissingFiles": "false", "ignoreCorruptFiles": "false"}
"""Whatever the session says of other files: times as they are, and no file passed over."""
PATTERN = frozenset("{}[]*?\\")
"""What in a path makes Spark look for several files."""


def spark_reads(storage: Storage, schema: pa.Schema) -> bool:
    """Whether Spark's reader gives the rows of Parquet files in a storage as they were written."""
    folder = storage.local("any")
    return folder is not None and PATTERN.isdisjoint(str(folder)) and all(_is_plain(field.type) for field in schema)


def read_by_spark(spark: SparkSession, storage: Storage, schema: pa.Schema, names: Iterable[str]) -> DataFrame:
    """The rows of Parquet files that `spark_reads`."""
    reader = spark.read.schema(from_arrow_schema(schema)).options(**READ_AS_WRITTEN)
    return reader.parquet(*(f"file://{storage.local(name)}" for name in names))


def _is_plain(kind: pa.DataType) -> bool:
    if pa.types.is_timestamp(kind):
        return bool(kind.unit == "us")
    return kind in PLAIN or pa.types.is_decimal128(kind)
