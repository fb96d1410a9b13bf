"""Result files that are either whole or not there.

    rows ─▶ .results.parquet.1234.tmp ─ end without an error ─▶ results.parquet
                     └────────────────── any error, Ctrl-C ────▶ removed

A path that ends in a known extension is one file; one without, or with a slash at its end, is a folder that gets
`part-00000.parquet`. An existing file is replaced at the end; a folder has to be absent or empty.

>>> destination("out/results.csv").name, destination("out/").name
('results.csv', 'part-00000.parquet')
>>> destination("results.xlsx")
Traceback (most recent call last):
    ...
windrow.errors.UsageError: results cannot be written as '.xlsx' (at: results.xlsx). Next: end the path in .parquet, .csv, .csv.gz, .arrow, .ipc or .feather, or in / for a folder
"""  # noqa: E501 - an error is one line

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any
from urllib.parse import quote

import pyarrow as pa
from pyarrow import csv
from pyarrow import parquet as pq

from windrow.errors import SourceError, UsageError, WindrowError

PART = "part-00000.parquet"
_ROWS_A_WRITE = 100_000

WRITERS: Mapping[str, Callable[[Any, pa.Schema], Any]] = MappingProxyType(
    {
        ".parquet": pq.ParquetWriter,
        ".csv": csv.CSVWriter,
        ".csv.gz": csv.CSVWriter,
        ".arrow": pa.ipc.new_file,
        ".ipc": pa.ipc.new_file,
        ".feather": pa.ipc.new_file,
    }
)
"""What writes a file, by its extension."""


def destination(path: str) -> Path:
    """The file that results go to when a user names `path`."""
    place = Path(path)
    if path.endswith("/") or place.is_dir() or not place.suffix:
        return place / PART
    if extension_of(place) is None:
        known = " or ".join(", ".join(WRITERS).rsplit(", ", 1))
        hint = f"end the path in {known}, or in / for a folder"
        raise UsageError(f"results cannot be written as '{place.suffix}'", place=path, hint=hint)
    return place


def extension_of(path: Path) -> str | None:
    """The known extension a file name ends in."""
    name = path.name.lower()
    return next((extension for extension in sorted(WRITERS, key=len, reverse=True) if name.endswith(extension)), None)


class Staged:
    """A file that is written under a temporary name beside its own, and takes its own at the end.

    A context manager: an error inside it removes what was written, and the folder if it made that. `is_part` says that
    the folder is the user's destination, so it is made where it is absent, and refused where it holds something.
    """

    def __init__(self, path: Path, *, is_part: bool = False) -> None:
        self.path = path
        self.temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        self._is_part = is_part
        self._made_folder = False

    def __enter__(self) -> Path:
        folder = self.path.parent
        if self._is_part:
            self._made_folder = make_folder(folder)
        elif not folder.is_dir():
            raise SourceError(
                f"there is no folder '{folder}'", place=str(self.path), hint=f"make it: mkdir -p '{folder}'"
            )
        with writable(self.path):
            self.temporary.touch(exist_ok=False)
        return self.temporary

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                with writable(self.path):
                    self.temporary.replace(self.path)
                self._made_folder = False
        finally:
            self.temporary.unlink(missing_ok=True)
            if self._made_folder:
                with suppress(OSError):
                    self.path.parent.rmdir()


class ResultFile:
    """Rows of one schema, written as they come; the file has that schema even without rows."""

    def __init__(self, path: Path, schema: pa.Schema, *, is_part: bool = False) -> None:
        self.path = path
        self.schema = schema
        self._staged = Staged(path, is_part=is_part)
        self._waiting: list[pa.Table] = []
        self._waiting_rows = 0
        check_types(path, schema)

    def __enter__(self) -> ResultFile:
        with ExitStack() as stack:
            temporary = stack.enter_context(self._staged)
            with writable(self.path):
                zipped = "gzip" if self.path.name.lower().endswith(".gz") else None
                sink = stack.enter_context(pa.output_stream(str(temporary), compression=zipped))
                self._writer = stack.enter_context(WRITERS[extension_of(self.path) or ""](sink, self.schema))
            self._open = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with writable(self.path), ExitStack() as closing:
            closing.push(self._open)
            if kind is None:
                self._flush()
            else:
                # Unwinding under the error is what makes the staged file go instead of taking its place.
                closing.pop_all().__exit__(kind, error, trace)

    def write(self, rows: pa.Table) -> None:
        """Add rows; small batches are collected, because a Parquet file of tiny row groups is slow to read."""
        self._waiting.append(rows)
        self._waiting_rows += len(rows)
        if self._waiting_rows >= _ROWS_A_WRITE:
            with writable(self.path):
                self._flush()

    def _flush(self) -> None:
        if self._waiting_rows:
            self._writer.write_table(pa.concat_tables(self._waiting).combine_chunks())
        self._waiting, self._waiting_rows = [], 0


class SetAsideFiles:
    """Rows that did not enter, in a folder: a Parquet file for each stream and reason, such as `a-late.parquet`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: dict[str, ResultFile] = {}
        self._open = ExitStack()

    def __enter__(self) -> SetAsideFiles:
        if make_folder(self.folder):
            self._open.push(self._remove_after_error)
        return self

    def __call__(self, stream: str, reason: str, rows: pa.Table) -> None:
        name = f"{quote(stream, safe='')}-{reason.replace(' ', '-')}.parquet"
        if name not in self._files:
            self._files[name] = self._open.enter_context(ResultFile(self.folder / name, rows.schema))
        self._files[name].write(rows)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, error, trace)

    def _remove_after_error(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            with suppress(OSError):
                self.folder.rmdir()


def make_folder(folder: Path) -> bool:
    """Make a folder for results unless an empty one is there; whether it was made."""
    with writable(folder):
        if folder.is_dir():
            held = next(folder.iterdir(), None)
            if held is not None:
                hint = "name a folder that is absent or empty"
                raise UsageError(f"the folder '{folder}' is not empty", place=str(held), hint=hint)
            return False
        if folder.exists():
            raise UsageError(f"'{folder}' is a file, not a folder", hint="name a folder that is absent or empty")
        if not folder.parent.is_dir():
            raise SourceError(
                f"there is no folder '{folder.parent}'", place=str(folder), hint=f"make it: mkdir -p '{folder.parent}'"
            )
        folder.mkdir()
        return True


def check_types(path: Path, schema: pa.Schema) -> None:
    """Whether a file of that extension can hold these columns, before anything runs."""
    for field in schema:
        only = pa.schema([field])
        try:
            with WRITERS[extension_of(path) or ""](io.BytesIO(), only) as writer:
                writer.write_table(only.empty_table())
        except pa.ArrowException as error:
            hint = "write .parquet or .arrow, or leave the column out"
            message = f"column '{field.name}' of type {field.type} does not fit into '{path.name}'"
            raise UsageError(message, place=str(path), hint=hint) from error


@contextmanager
def writable(path: Path) -> Iterator[None]:
    """Turns what the system or Arrow raise about output into our errors."""
    try:
        yield
    except WindrowError:
        raise
    except (OSError, pa.ArrowException) as error:
        lines = str(getattr(error, "strerror", None) or error).splitlines() or [type(error).__name__]
        hint = "check the disk's room and who may write there"
        raise SourceError(f"'{path}' cannot be written: {lines[0]}", hint=hint) from error
