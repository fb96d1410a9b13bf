"""Arrow types that Spark has: what it lacks becomes the next wider type it has, so that no value changes.

    unsigned integers      the next wider signed one; uint64 DECIMAL(20, 0)
    dictionaries           their values
    timestamps             microseconds, floored; with a zone TIMESTAMP, without TIMESTAMP_NTZ
    half floats            FLOAT
    a column of NULLs      STRING

>>> in_spark_types(pa.table({"seen": pa.array([-1], pa.timestamp("ns"))}), "cam1.arrow").schema.field("seen").type
TimestampType(timestamp[us])
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type

from windrow.errors import InputError
from windrow.streams.event_time import event_time_us

_WIDER: Mapping[pa.DataType, pa.DataType] = MappingProxyType(
    {
        pa.null(): pa.string(),
        pa.uint8(): pa.int16(),
        pa.uint16(): pa.int32(),
        pa.uint32(): pa.int64(),
        pa.uint64(): pa.decimal128(20, 0),
        pa.float16(): pa.float32(),
        pa.date64(): pa.date32(),
        pa.time32("s"): pa.time64("us"),
        pa.time32("ms"): pa.time64("us"),
        pa.string_view(): pa.string(),
        pa.binary_view(): pa.binary(),
    }
)


def spark_arrow_schema(schema: pa.Schema, place: str) -> pa.Schema:
    """The schema of Arrow batches that Spark takes for these columns; an `InputError` where it has no type for one."""
    fields = []
    for field in schema:
        try:
            spark_type = from_arrow_type(_widened(field.type))
            fields.append(pa.field(field.name, to_arrow_type(spark_type, timezone="UTC")))
        except PySparkTypeError as error:
            hint = "name the columns that are wanted with the option 'columns'"
            raise InputError(
                f"Spark has no type for column '{field.name}', {field.type}", place=place, hint=hint
            ) from error
    return pa.schema(fields)


def in_spark_types(table: pa.Table, place: str) -> pa.Table:
    """The same rows in types that Spark takes."""
    schema = spark_arrow_schema(table.schema, place)
    columns = []
    for column, field in zip(table.columns, schema, strict=True):
        if pa.types.is_timestamp(column.type) and column.type != field.type:
            column = pa.chunked_array([event_time_us(column)])  # noqa: PLW2901 - a cast alone would not floor
        columns.append(column.cast(field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def _widened(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(type_):
        return _widened(type_.value_type)
    if pa.types.is_struct(type_):
        return pa.struct([(field.name, _widened(field.type)) for field in type_])
    if pa.types.is_map(type_):
        return pa.map_(_widened(type_.key_type), _widened(type_.item_type))
    if pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_):
        return pa.list_(_widened(type_.value_type))
    return _WIDER.get(type_, type_)
