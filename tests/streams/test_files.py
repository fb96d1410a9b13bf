"""Recorded files: every format, many files a stream, and one line for everything that can be wrong with them."""

from __future__ import annotations

import datetime as dt
import gzip
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv, feather
from pyarrow import parquet as pq

from windrow.errors import InputError, SourceError, UsageError, WindrowError
from windrow.streams.event_time import time_column
from windrow.streams.files import FileSource, files, parse_source, read, schema
from windrow.streams.formats import FORMATS, readable

ROWS = pa.table(
    {
        "ts": pa.array([1_000_000, 2_000_000, None], pa.timestamp("us")),
        "id": pa.array([1, 2, 3], pa.int64()),
        "name": ["a", None, "ü\nx"],
    }
)


def write_arrow_file(table: pa.Table, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)


def write_arrow_stream(table: pa.Table, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def write_csv_gz(table: pa.Table, path: Path) -> None:
    with gzip.open(path, "wb") as sink:
        csv.write_csv(table, sink)


WRITERS: dict[str, Callable[[pa.Table, Path], None]] = {
    "rows.parquet": lambda table, path: pq.write_table(table, path, row_group_size=2),
    "rows.csv": csv.write_csv,
    "rows.csv.gz": write_csv_gz,
    "rows.arrow": write_arrow_file,
    "rows.ipc": write_arrow_stream,
    "rows.feather": feather.write_feather,
}


def message(error: pytest.ExceptionInfo[WindrowError]) -> str:
    """The error as a user sees it: one line that says what to do next."""
    text = str(error.value)
    assert "\n" not in text
    assert ". Next: " in text
    return text


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_rows_back(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    WRITERS[name](ROWS, path)
    expected = ROWS
    if ".csv" in name:
        # An empty CSV field is NULL for a number, an empty string for text; times get the unit they need.
        expected = ROWS.set_column(2, "name", [["a", "", "ü\nx"]])
        expected = expected.set_column(
            0, "ts", expected.column("ts").cast(schema(FileSource(str(path))).field("ts").type)
        )
    source = FileSource(str(path))
    assert schema(source) == expected.schema
    assert read(source).to_pylist() == expected.to_pylist()
    assert read(source, ["name", "id"]).to_pylist() == expected.select(["name", "id"]).to_pylist()


def test_every_extension_was_tried() -> None:
    assert {name.removeprefix("rows") for name in WRITERS} == set(FORMATS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.parquet", FileSource("a.parquet")),
        ("a.parquet?time=seen", FileSource("a.parquet", "seen")),
        ("a.parquet?unit=ms&time=t", FileSource("a.parquet", "t", "ms")),
        ("log-?.csv?time=a%26b", FileSource("log-?.csv", "a&b")),
        ("log-?.csv", FileSource("log-?.csv")),
    ],
)
def test_sources_from_text(text: str, expected: FileSource) -> None:
    assert parse_source(text) == expected


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a.csv?tiem=ts", "'tiem=ts' is not an option"),
        ("a.csv?time=", "'time=' is not an option"),
        ("a.csv?time=a&time=b", "'time=b' is not an option"),
        ("a.csv?unit=minutes", "no unit of time 'minutes'"),
        ("", "needs a path"),
        ("?time=ts", "needs a path"),
    ],
)
def test_wrong_sources_are_refused(text: str, shown: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_source(text)
    assert shown in message(error)


def test_folders_and_patterns_are_read_in_the_order_of_names(tmp_path: Path) -> None:
    for name, first in (("b.parquet", 10), ("a.parquet", 0), ("c.parquet", 20)):
        pq.write_table(pa.table({"id": [first, first + 1]}), tmp_path / name)
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".a.parquet.crc").touch()
    whole, some = FileSource(str(tmp_path)), FileSource(str(tmp_path / "[bc].parquet"))
    assert [path.name for path in files(whole)] == ["a.parquet", "b.parquet", "c.parquet"]
    assert read(whole).column("id").to_pylist() == [0, 1, 10, 11, 20, 21]
    assert read(some).column("id").to_pylist() == [10, 11, 20, 21]


def test_a_name_that_exists_is_not_a_pattern(tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "a[1].parquet")
    assert read(FileSource(str(tmp_path / "a[1].parquet"))).num_rows == 3


def test_files_that_write_the_same_thing_differently_are_one_stream(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": pa.nulls(1), "s": pa.array(["a"]).dictionary_encode()}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"s": pa.array(["b"], pa.large_string()), "x": [1.5]}), tmp_path / "2.parquet")
    source = FileSource(str(tmp_path))
    assert schema(source) == pa.schema({"x": pa.float64(), "s": pa.large_string()})
    assert read(source).to_pylist() == [{"x": None, "s": "a"}, {"x": 1.5, "s": "b"}]


def test_csv_types_are_inferred_from_all_rows_of_all_files(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("ts,x,y\n2024-01-01 00:00:00,1,\n")
    (tmp_path / "2.csv").write_text("ts,x,y\n2024-01-01 00:00:00.5,1.5,2024-01-01T00:00:00Z\n")
    source = FileSource(str(tmp_path))
    assert schema(source).field("y").type == pa.timestamp("s", tz="UTC")
    assert read(source, ["x"]).to_pylist() == [{"x": 1.0}, {"x": 1.5}]
    assert [value.value % 10**9 for value in read(source, ["ts"]).column("ts")] == [0, 5 * 10**8]
    assert time_column(schema(source)) == "ts"


def test_a_file_that_changed_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x\n1\n")
    assert schema(FileSource(str(path))).field("x").type == pa.int64()
    path.write_text("x\nword\n")
    assert schema(FileSource(str(path))).field("x").type == pa.string()


def test_vectors_and_nested_columns_survive(tmp_path: Path) -> None:
    vectors = pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2))
    table = pa.table({"v": vectors, "tags": [["a", "b"]], "day": [dt.date(2024, 1, 1)]})
    pq.write_table(table, tmp_path / "a.parquet")
    assert read(FileSource(str(tmp_path / "a.parquet")), ["tags", "v", "day"]).to_pylist() == table.to_pylist()


@pytest.mark.parametrize(
    ("other", "shown"),
    [
        (pa.table({"id": ["x"], "v": [1]}), "column 'id' is int64, then string"),
        (pa.table({"id": [1.5], "v": [1]}), "column 'id' is int64, then double"),
        (pa.table({"id": [1], "w": [1]}), "column 'v' is only in"),
        (pa.table({"id": [1], "v": [1], "w": [1]}), "column 'w' is only in"),
    ],
)
def test_a_schema_that_changes_names_both_files_and_the_column(tmp_path: Path, other: pa.Table, shown: str) -> None:
    pq.write_table(pa.table({"id": [1], "v": [1]}), tmp_path / "first.parquet")
    pq.write_table(other, tmp_path / "second.parquet")
    with pytest.raises(InputError) as error:
        read(FileSource(str(tmp_path)), ["id"])
    text = message(error)
    assert shown in text
    assert "first.parquet and" in text
    assert "second.parquet" in text


def test_what_is_not_there(tmp_path: Path) -> None:
    for path, shown in (
        (tmp_path / "no.parquet", "does not exist"),
        (tmp_path / "*.csv", "matches no file"),
        (tmp_path, "is empty"),
    ):
        with pytest.raises(SourceError) as error:
            schema(FileSource(str(path)))
        assert str(path) in message(error)
        assert shown in str(error.value)


def test_unknown_extensions_and_folders_in_folders(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(SourceError, match=r"notes\.txt' has no known extension.*\.parquet, \.csv"):
        schema(FileSource(str(tmp_path)))
    (tmp_path / "kind=3").mkdir()
    with pytest.raises(SourceError, match="holds folders, such as 'kind=3'"):
        schema(FileSource(str(tmp_path)))


@pytest.mark.parametrize("name", ["rows.parquet", "rows.arrow", "rows.feather", "rows.csv.gz", "rows.ipc"])
def test_files_that_are_cut_off(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    WRITERS[name](ROWS, path)
    path.write_bytes(path.read_bytes()[:-60])
    with pytest.raises(SourceError) as error:
        read(FileSource(str(path)))
    assert f"'{path}' cannot be read" in message(error)


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.csv.gz"])
def test_files_that_are_of_another_format(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"x,y\n1,2\n")
    with pytest.raises(SourceError) as error:
        schema(FileSource(str(path)))
    assert str(path) in message(error)


def test_a_damaged_page_is_found_when_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": list(range(1000))}), path)
    content = bytearray(path.read_bytes())
    content[40:200] = b"\xff" * 160
    path.write_bytes(content)
    with pytest.raises(SourceError) as error:
        read(FileSource(str(path)))
    assert "a.parquet' cannot be read" in message(error)


def test_a_file_that_may_not_be_read() -> None:
    with pytest.raises(SourceError) as error, readable(Path("secret.parquet")):
        raise PermissionError(13, "Permission denied")
    assert "'secret.parquet' may not be read" in message(error)


def test_a_csv_row_with_too_few_fields_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b,c\n1,2,3\n4,5\n6,7,8\n")
    with pytest.raises(InputError) as error:
        schema(FileSource(str(path)))
    assert "Row #3: Expected 3 columns, got 2" in message(error)
    assert f"(at: {path})" in str(error.value)


def test_csv_without_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b\n")
    assert read(FileSource(str(path))).num_rows == 0
    path.write_text("")
    with pytest.raises(InputError) as error:
        schema(FileSource(str(path)))
    assert "Empty CSV file" in message(error)


def test_a_column_twice_and_a_column_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,a\n1,2\n")
    with pytest.raises(InputError) as error:
        schema(FileSource(str(path)))
    assert "column 'a' appears twice" in message(error)
    path.write_text("a,b\n1,2\n3,4\n")
    with pytest.raises(InputError) as error:
        read(FileSource(str(path)), ["a", "c"])
    assert "no column 'c'" in message(error)
    assert "the columns are a, b" in str(error.value)


def test_recorded_streams_have_their_event_time(recorded: Path) -> None:
    seen = 0
    for path in sorted(recorded.glob("*.parquet")):
        source = FileSource(str(path))
        assert time_column(schema(source)) == "ts"
        assert read(source, ["ts"]).num_rows > 20_000
        seen += 1
    assert seen >= 5
