"""Staged results as a DataFrame: Spark's own reader gives what a Python worker gives, or is not asked."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.oracle.duck import rows_of
from tests.store.object_store import object_storage
from windrow.run.spark import results
from windrow.run.spark.reading import spark_reads
from windrow.run.spark.results import Output, ResultFile, Results, write_results
from windrow.store.storage import LocalStorage, Storage

PLAIN: dict[str, tuple[pa.DataType, list[object]]] = {
    "truth": (pa.bool_(), [True, False]),
    "tiny": (pa.int8(), [-128, 127]),
    "small": (pa.int16(), [-(2**15), 2**15 - 1]),
    "int": (pa.int32(), [-(2**31), 2**31 - 1]),
    "long": (pa.int64(), [-(2**63), 2**63 - 1]),
    "float": (pa.float32(), [-0.0, float("inf")]),
    "double": (pa.float64(), [5e-324, 0.1 + 0.2]),
    "text": (pa.string(), ["", "žluťoučký kůň 🐎"]),
    "bytes": (pa.binary(), [b"", b"\x00\xff"]),
    "day": (pa.date32(), [date(1, 1, 1), date(9999, 12, 31)]),
    "at": (
        pa.timestamp("us", "UTC"),
        [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)],
    ),
    "clock": (pa.timestamp("us"), [datetime(1582, 10, 4, 1), datetime(1969, 12, 31, 23, 59, 59, 999_999)]),
    "price": (pa.decimal128(9, 2), [Decimal("-1234567.89"), Decimal("0.01")]),
    "wide": (pa.decimal128(38, 10), [Decimal("-1234567890123456789012345678.0123456789"), Decimal(0)]),
    "a.dotted name, ü": (pa.int64(), [1, 2]),
}


def staged(
    spark: SparkSession, storage: Storage, parts: Iterable[pa.Table], inline: tuple[pa.Table, ...] = ()
) -> Results:
    """Results that tasks have staged, a file each."""
    output, parts = Output(storage, "frame"), tuple(parts)
    schema = parts[0].schema
    files = [write_results(output, f"results/{k}", schema, part.to_batches(), 0) for k, part in enumerate(parts)]
    return Results(spark, output, schema, tuple(file for file in files if isinstance(file, ResultFile)), inline)


def of_all_kinds() -> pa.Table:
    """A row of the least and one of the greatest values, and one of nulls, some times over."""
    columns = {name: pa.array([*values, None] * 3, kind) for name, (kind, values) in PLAIN.items()}
    return pa.table(columns)


def test_spark_reads_plain_columns_as_a_python_worker_does(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = of_all_kinds()
    folder = LocalStorage(tmp_path / "a b%20c" / "_x=1, y#2")
    ours = staged(spark, folder, [table, table.slice(0, 2)], inline=(table.slice(1, 3),))
    assert [file.name for file in ours.files] == ["results/0.parquet", "results/1.parquet"]
    monkeypatch.setattr(results, "spark_reads", lambda *_: False)
    theirs = staged(spark, LocalStorage(tmp_path / "b"), [table, table.slice(0, 2)], inline=(table.slice(1, 3),))
    assert [file.name for file in theirs.files] == ["results/0.arrow", "results/1.arrow"]
    expected = theirs.frame()
    monkeypatch.undo()
    found = ours.frame()
    assert "Python" not in found._jdf.queryExecution().toString()
    assert found.schema == expected.schema
    assert found.columns == table.schema.names
    rows = rows_of(pa.concat_tables([table, table.slice(0, 2), table.slice(1, 3)]))
    assert rows_of(found.toArrow()) == rows_of(expected.toArrow()) == rows
    assert found.count() == 14
    assert str(found.toArrow()["float"][0]) == "-0.0"


def test_what_lies_in_few_large_files_is_read_by_several_tasks(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table({"id": pa.array(range(1_500_000), pa.int64())})
    found = staged(spark, LocalStorage(tmp_path), [table]).frame()
    assert found.rdd.getNumPartitions() == 2
    assert found.selectExpr("count(*)", "sum(id)").collect()[0] == (1_500_000, 1_499_999 * 750_000)


@pytest.mark.parametrize("folder", ["[x]", "{a,b}", "what?", "*"])
def test_a_folder_that_spark_takes_for_a_pattern_is_read_all_the_same(
    folder: str, spark: SparkSession, tmp_path: Path
) -> None:
    table = pa.table({"id": pa.array([1, 2], pa.int64())})
    found = staged(spark, LocalStorage(tmp_path / folder), [table])
    assert [file.name for file in found.files] == ["results/0.arrow"]
    assert rows_of(found.frame().toArrow()) == rows_of(table)


def test_a_file_that_is_gone_is_not_passed_over(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table({"id": pa.array([1, 2], pa.int64())})
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    try:
        found = staged(spark, LocalStorage(tmp_path), [table, table])
        frame = found.frame()
        (tmp_path / found.files[0].name).unlink()
        with pytest.raises(Exception, match="FAILED_READ_FILE"):
            frame.collect()
        with pytest.raises(Exception, match="PATH_NOT_FOUND"):
            found.frame().collect()
    finally:
        spark.conf.unset("spark.sql.files.ignoreMissingFiles")


def test_only_what_both_readers_understand_alike_is_left_to_spark(tmp_path: Path) -> None:
    folder = LocalStorage(tmp_path)
    plain = pa.schema([(name, kind) for name, (kind, _) in PLAIN.items()])
    assert spark_reads(folder, plain)
    assert not spark_reads(object_storage(tmp_path), plain)
    for kind in (pa.timestamp("ns"), pa.uint32(), pa.list_(pa.int64()), pa.dictionary(pa.int32(), pa.string())):
        assert not spark_reads(folder, plain.append(pa.field("other", kind)))
