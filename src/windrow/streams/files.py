"""Recorded files as streams.

    PATH[?time=COL&unit=UNIT]        a file, a folder of files, or a pattern such as logs/2024-*.csv.gz

Formats, by extension: Parquet, CSV (also gzipped; types inferred, ISO times become timestamps) and Arrow IPC (file and
stream). The files of a stream are read in the order of their names and must agree on their columns; where they merely
write the same thing differently (an all-empty column, dictionaries, whole numbers in one CSV and fractions in the next)
the wider type is taken.

>>> parse_source("logs/cam1.parquet?time=seen&unit=ms")
FileSource(path='logs/cam1.parquet', time='seen', unit='ms')
"""

from __future__ import annotations

import glob
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa

from windrow.errors import InputError, SourceError, UsageError
from windrow.streams.event_time import UNITS
from windrow.streams.formats import FORMATS, Format, format_of, read_columns, read_schema, readable

_OPTIONS = re.compile(r"\w+=[^?]*")


@dataclass(frozen=True, slots=True)
class FileSource:
    """Where a stream is recorded: a path or pattern, its event-time column, and the unit of an integer or float one."""

    path: str
    time: str | None = None
    unit: str | None = None

    def __post_init__(self) -> None:
        if not self.path:
            raise UsageError("a source needs a path", hint="write PATH or PATH?time=COL")
        if self.unit is not None and self.unit not in UNITS:
            raise UsageError(f"there is no unit of time '{self.unit}'", place=self.path, hint=f"use {', '.join(UNITS)}")


def parse_source(text: str) -> FileSource:
    """A source from its text. A `?` that no option follows belongs to the pattern; `&` in a column's name is `%26`.

    >>> parse_source("logs/part-?.csv")
    FileSource(path='logs/part-?.csv', time=None, unit=None)
    """
    path, mark, rest = text.rpartition("?")
    if not mark or not _OPTIONS.fullmatch(rest):
        return FileSource(text)
    options: dict[str, str] = {}
    for option in rest.split("&"):
        name, _, value = option.partition("=")
        if name not in ("time", "unit") or not value or name in options:
            hint = "the options are time=COL and unit=s, ms, us or ns, each once"
            raise UsageError(f"'{option}' is not an option of a source", place=text, hint=hint)
        options[name] = unquote(value)
    return FileSource(path, options.get("time"), options.get("unit"))


def files(source: FileSource) -> Mapping[Path, Format]:
    """The files of a source with their formats, by name; at least one."""
    path = Path(source.path)
    with readable(path):
        if path.is_dir():
            found = _in_folder(path)
        elif path.exists():
            found = [path]
        else:
            matches = (Path(name) for name in glob.glob(source.path, recursive=True))  # noqa: PTH207 - keeps `**` apart
            found = sorted(match for match in matches if match.is_file())
    if not found:
        what = "matches no file" if glob.has_magic(source.path) else "does not exist"
        raise SourceError(f"'{source.path}' {what}", hint="check the path; relative ones start at the current folder")
    return {file: _known_format(file, source) for file in found}


def schema(source: FileSource) -> pa.Schema:
    """The columns all files of a source agree on, in the order of the first; an `InputError` where they do not."""
    (first, format_), *others = files(source).items()
    merged = _schema_of(first, format_)
    inferred = format_.inferred
    for file, format_ in others:
        inferred = inferred and format_.inferred
        merged = _merged(merged, _schema_of(file, format_), inferred, (first, file))
    return merged


def read(source: FileSource, columns: Sequence[str] | None = None) -> pa.Table:
    """The rows of all files, one after the other; only the given columns, in that order, where any are given."""
    whole = schema(source)
    names = whole.names if columns is None else list(dict.fromkeys(columns))
    for name in names:
        if name not in whole.names:
            hint = f"the columns are {', '.join(whole.names)}"
            raise InputError(f"there is no column '{name}'", place=source.path, hint=hint)
    wanted = pa.schema([whole.field(name) for name in names])
    tables = [read_columns(file, format_, wanted) for file, format_ in files(source).items()]
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables)


def _known_format(file: Path, source: FileSource) -> Format:
    format_ = format_of(file)
    if format_ is None:
        hint = f"the formats are {', '.join(FORMATS)}; a pattern such as '*.parquet' leaves other files out"
        raise SourceError(f"'{file}' has no known extension", place=source.path, hint=hint)
    return format_


def _in_folder(folder: Path) -> list[Path]:
    # Names such as _SUCCESS and .part-0.crc are marks that writers leave beside their data.
    entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith(("_", ".")))
    nested = [entry for entry in entries if entry.is_dir()]
    if nested:
        hint = f"give a pattern, such as '{folder}/**/*.parquet', for the files that are meant"
        raise SourceError(f"'{folder}' holds folders, such as '{nested[0].name}'", hint=hint)
    if not entries:
        raise SourceError(f"the folder '{folder}' is empty", hint=f"put files in it: {', '.join(FORMATS)}")
    return entries


def _schema_of(file: Path, format_: Format) -> pa.Schema:
    with readable(file):
        stat = file.stat()
    return _inspected(file, format_, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=4096)
def _inspected(file: Path, format_: Format, changed_ns: int, size: int) -> pa.Schema:  # noqa: ARG001 - a changed file is another
    """A file's schema; remembered, because a CSV file has to be read in full to know its types."""
    found = read_schema(file, format_)
    repeated = sorted({name for name in found.names if found.names.count(name) > 1})
    if repeated:
        raise InputError(f"column '{repeated[0]}' appears twice", place=str(file), hint="give each column its own name")
    return found


def _merged(merged: pa.Schema, other: pa.Schema, inferred: bool, pair: tuple[Path, Path]) -> pa.Schema:
    place = f"{pair[0]} and {pair[1]}"
    hint = "give files of one schema, or name the ones that belong together by a pattern"
    for missing in sorted(set(merged.names) ^ set(other.names)):
        holder = pair[0] if missing in merged.names else pair[1]
        raise InputError(f"column '{missing}' is only in '{holder}'", place=place, hint=hint)
    fields = []
    for field in merged:
        other_type = other.field(field.name).type
        type_ = _common(field.type, other_type, inferred)
        if type_ is None:
            raise InputError(f"column '{field.name}' is {field.type}, then {other_type}", place=place, hint=hint)
        fields.append(pa.field(field.name, type_))
    return pa.schema(fields)


def _common(first: pa.DataType, second: pa.DataType, inferred: bool) -> pa.DataType | None:
    """The type in which both files' values of a column can be held unchanged, if they mean the same."""
    if first == second or pa.types.is_null(second):
        return first
    if pa.types.is_null(first):
        return second
    if pa.types.is_dictionary(first) or pa.types.is_dictionary(second):
        plain = [type_.value_type if pa.types.is_dictionary(type_) else type_ for type_ in (first, second)]
        return _common(plain[0], plain[1], inferred)
    if {first, second} == {pa.string(), pa.large_string()}:
        return pa.large_string()
    if inferred and {first, second} == {pa.int64(), pa.float64()}:
        return pa.float64()
    if inferred and pa.types.is_timestamp(first) and pa.types.is_timestamp(second) and first.tz == second.tz:
        return pa.timestamp("ns", first.tz)
    return None
