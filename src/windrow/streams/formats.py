"""File formats of recorded streams: each can tell a file's schema and read some of its columns.

What goes wrong with the file itself (missing, forbidden, cut off, another format) is a `SourceError`; what goes wrong
with its contents (a CSV row with too few fields) an `InputError` that names the row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
from pyarrow import csv
from pyarrow import parquet as pq

from windrow.errors import InputError, SourceError, WindrowError

_ARROW_FILE_MAGIC = b"ARROW1"


@dataclass(frozen=True, slots=True)
class Format:
    """How files of one format are read; `read` gets the wanted columns by name and returns at least those.

    `inferred`: the file holds text, whose types are guessed from its values.
    """

    schema: Callable[[Path], pa.Schema]
    read: Callable[[Path, pa.Schema], pa.Table]
    inferred: bool = False


def format_of(path: Path) -> Format | None:
    """The format a file's extension stands for.

    >>> format_of(Path("cam1.CSV.gz")) is FORMATS[".csv.gz"], format_of(Path("notes.txt"))
    (True, None)
    """
    name = path.name.lower()
    return next((format_ for extension, format_ in FORMATS.items() if name.endswith(extension)), None)


def read_schema(path: Path, format_: Format) -> pa.Schema:
    """The names and types of a file's columns."""
    with readable(path):
        return pa.schema([(field.name, field.type) for field in format_.schema(path)])


def read_columns(path: Path, format_: Format, wanted: pa.Schema) -> pa.Table:
    """A file's rows with exactly the wanted columns, in that order and of those types."""
    with readable(path):
        table = format_.read(path, wanted).select(wanted.names)
        table.validate(full=True)  # of a damaged file, what follows would read beyond its buffers
        return table if table.schema.types == wanted.types else table.cast(wanted)


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turns what the system or Arrow raise about a file into our errors."""
    try:
        yield
    except WindrowError:
        raise
    except FileNotFoundError as error:
        raise SourceError(f"'{path}' does not exist", hint="check the path") from error
    except PermissionError as error:
        raise SourceError(f"'{path}' may not be read", hint="check who may read the file and its folder") from error
    except (OSError, EOFError, UnicodeDecodeError, pa.ArrowException) as error:
        hint = "the file is damaged, cut off or of another format than its extension says; write it again"
        raise SourceError(f"'{path}' cannot be read: {_first_sentence(error)}", hint=hint) from error


def _parquet_schema(path: Path) -> pa.Schema:
    return pq.read_schema(path)


def _parquet_read(path: Path, wanted: pa.Schema) -> pa.Table:
    with pq.ParquetFile(path) as file:
        return file.read(columns=wanted.names)


def _arrow_schema(path: Path) -> pa.Schema:
    with pa.OSFile(str(path)) as file:
        return _arrow_reader(file, None).schema


def _arrow_read(path: Path, wanted: pa.Schema) -> pa.Table:
    with pa.OSFile(str(path)) as file:
        names = _arrow_reader(file, None).schema.names
        file.seek(0)
        return _arrow_reader(file, [names.index(name) for name in wanted.names]).read_all()


def _arrow_reader(file: pa.NativeFile, fields: list[int] | None) -> pa.RecordBatchReader | pa.RecordBatchFileReader:
    """A reader of either IPC form; the file form begins with a mark of its own."""
    is_file_form = file.read(len(_ARROW_FILE_MAGIC)) == _ARROW_FILE_MAGIC
    file.seek(0)
    options = pa.ipc.IpcReadOptions(included_fields=fields or None)
    return pa.ipc.open_file(file, options=options) if is_file_form else pa.ipc.open_stream(file, options=options)


def _csv_schema(path: Path) -> pa.Schema:
    return _csv_table(path, csv.ConvertOptions()).schema


def _csv_read(path: Path, wanted: pa.Schema) -> pa.Table:
    return _csv_table(path, csv.ConvertOptions(include_columns=wanted.names, column_types=wanted))


def _csv_table(path: Path, convert: csv.ConvertOptions) -> pa.Table:
    parse = csv.ParseOptions(newlines_in_values=True)
    try:
        return csv.read_csv(path, parse_options=parse, convert_options=convert)
    except pa.ArrowInvalid:
        # Only a read on one thread knows which row it is at.
        serial = csv.ReadOptions(use_threads=False)
        try:
            return csv.read_csv(path, read_options=serial, parse_options=parse, convert_options=convert)
        except pa.ArrowInvalid as error:
            hint = "correct the row; the first one holds the names of the columns"
            raise InputError(_first_sentence(error), place=str(path), hint=hint) from error


def _first_sentence(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].removesuffix(".")


_PARQUET = Format(_parquet_schema, _parquet_read)
_CSV = Format(_csv_schema, _csv_read, inferred=True)
_ARROW = Format(_arrow_schema, _arrow_read)

FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        ".parquet": _PARQUET,
        ".csv": _CSV,
        ".csv.gz": _CSV,
        ".arrow": _ARROW,
        ".ipc": _ARROW,
        ".feather": _ARROW,
    }
)
"""Formats by file extension."""
