"""Sinks: where the results of each batch go, and what that promises after a failure.

    "results"                           Parquet files, a folder a batch                       exactly once
    Format("csv", {"path": "results"})  files by Spark's own writer, a folder a batch         exactly once
    Format("delta", {"path": "table"})  batch number as transaction version                   exactly once
    Format("jdbc", {...})               appended by Spark                                     at least once
    function(frame, batch)              the user's; exactly once if it writes by batch or by result_id()
    None                                kept in the checkpoint for `query.results()`          exactly once

A batch that is run again after a failure has the same number and the same rows, so whatever is keyed by batch or by
`result_id()` holds each result once; docs/sinks.md shows how, sink by sink.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Protocol, TypeAlias

from pyspark.sql import DataFrame, SparkSession

from windrow.errors import FunctionError, UsageError, WindrowError
from windrow.run.spark.failures import RUN_AGAIN, brief, where_it_failed
from windrow.run.spark.publish import FolderSink, Staging, batch_folder, inside
from windrow.run.spark.results import Form, Results
from windrow.store.storage import LocalStorage, Storage, open_storage

MODES = ("append", "overwrite")
FILE_FORMATS = frozenset({"avro", "csv", "json", "orc", "parquet", "text", "xml"})
"""Formats of Spark that write files below a path, so that a batch can have a folder of its own."""

Function: TypeAlias = Callable[[DataFrame, int], object]
"""What a function as a sink is: it gets a batch's results and number."""


class Sink(Protocol):
    """Takes the results of one batch after the other; tasks stage them as `form` in `staging`."""

    form: Form
    staging: Storage

    def deliver(self, results: Results, batch: int) -> None:
        """Take the results of a batch. After a failure the last batch may come once more."""


@dataclass(frozen=True)
class Format:
    """A format of Spark as a sink: `Format("delta", {"path": "table"})`, `Format("noop")`.

    Formats that write files get a folder a batch as long as `mode` is "append"; "overwrite" leaves the last batch only.
    """

    name: str
    options: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    mode: str = "append"

    def __post_init__(self) -> None:
        name: object = self.name
        if not isinstance(name, str) or not name:
            raise UsageError(f"{name!r} is not the name of a format", hint='write Format("delta", {"path": …})')
        given: object = self.options
        if not isinstance(given, Mapping):
            kind = type(given).__name__
            raise UsageError(f"the options of format '{self.name}' are a {kind}", hint="give a mapping of names")
        if self.mode not in MODES:
            raise UsageError(f"mode of format '{self.name}' is '{self.mode}'", hint=f"give one of {', '.join(MODES)}")
        if self.name.lower() in FILE_FORMATS and not self.options.get("path"):
            raise UsageError(f"format '{self.name}' has no path", hint='give {"path": …}')

    def for_batch(self, batch: int, query_id: str) -> tuple[str, dict[str, str | int | float | bool]]:
        """The mode and options that write one batch.

        >>> Format("csv", {"path": "out"}).for_batch(7, "q")
        ('overwrite', {'path': 'out/batch=7'})
        >>> Format("delta", {"path": "out"}).for_batch(7, "q")
        ('append', {'path': 'out', 'txnAppId': 'q', 'txnVersion': 7})
        """
        options = dict(self.options)
        if self.mode == "append" and self.name.lower() in FILE_FORMATS:
            options["path"] = f"{str(options['path']).rstrip('/')}/{batch_folder(batch)}"
            return "overwrite", options
        if self.name.lower() == "delta":
            # The rounds of a repair have numbers of their own, which go down.
            options.setdefault("txnAppId", query_id if batch >= 0 else f"{query_id}-repair")
            options["txnVersion"] = abs(batch)
        return self.mode, options


class FormatSink:
    """Results written by a format of Spark; a batch without results writes nothing."""

    form: Form = "frame"

    def __init__(self, chosen: Format, staging: Storage) -> None:
        self.chosen = chosen
        self.staging = staging
        self._staging = Staging(staging)

    def deliver(self, results: Results, batch: int) -> None:
        if results.rows:
            self._write(results, batch)
        self._staging.delivered(file.name for file in results.files)

    def _write(self, results: Results, batch: int) -> None:
        query_id = results.spark.sparkContext.getLocalProperty("sql.streaming.queryId") or "windrow"
        mode, options = self.chosen.for_batch(batch, query_id)
        results.frame().write.format(self.chosen.name).options(**options).mode(mode).save()

    def check(self, spark: SparkSession) -> None:
        """Refuse a format that the session does not have, before anything runs."""
        name = self.chosen.name
        inner = spark._jsparkSession.sessionState()
        if inner.dataSourceManager().dataSourceExists(name):
            return
        try:
            jvm = spark.sparkContext._jvm
            jvm.org.apache.spark.sql.execution.datasources.DataSource.lookupDataSource(name, inner.conf())  # type: ignore[union-attr]
        except Exception as error:
            hint = "check the name, and that its package is among spark.jars.packages"
            raise UsageError(f"Spark has no format '{name}'", place=brief(error).message, hint=hint) from None


class FunctionSink:
    """Results given to a function of the user, with the number of the batch; batches without results too.

    What tasks staged stays until the next batch is through, for frames that the function has kept.
    """

    form: Form = "frame"

    def __init__(self, function: Function, staging: Storage) -> None:
        self.function = function
        self.staging = staging
        self._staging = Staging(staging)

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    def deliver(self, results: Results, batch: int) -> None:
        try:
            self.function(results.frame(), batch)
        except WindrowError:
            raise
        except Exception as error:
            place = f"{where_it_failed(error, self.function)}, batch {batch}"
            message = f"the function of the sink failed: {brief(error).message}"
            raise FunctionError(message, place=place, hint=RUN_AGAIN) from error
        self._staging.delivered(file.name for file in results.files)


def as_sink(given: object, checkpoint: str, state: Storage) -> FolderSink | FormatSink | FunctionSink:
    """The sink that an argument of `start` means: a path, a `Format`, a function, or None for the checkpoint itself."""
    staging = inside(state, "staged")
    if given is None:
        return FolderSink(inside(state, "results"), staging, kept=True)
    if isinstance(given, Storage):
        return FolderSink(given)
    if isinstance(given, str | Path):
        folder = open_storage(str(given))
        _refuse_shared(folder, checkpoint)
        return FolderSink(folder)
    if isinstance(given, Format):
        if given.name.lower() in FILE_FORMATS:
            _refuse_shared(open_storage(str(given.options["path"])), checkpoint)
        return FormatSink(given, staging)
    if callable(given) and not isinstance(given, type):
        return FunctionSink(given, staging)
    hint = "give a path, windrow.Format(…), a function of a DataFrame and a number, or nothing"
    raise UsageError(f"the sink is {given!r}", place="start", hint=hint)


def _refuse_shared(folder: Storage, checkpoint: str) -> None:
    """Results and state in one folder would be read, listed and deleted as each other's."""
    sink, state = _place_of(folder), _place_of(open_storage(checkpoint))
    hint = "give two folders beside each other"
    if sink == state:
        raise UsageError("the sink and the checkpoint are the same folder", place=folder.address, hint=hint)
    if sink.is_relative_to(state):
        raise UsageError("the sink lies in the checkpoint", place=folder.address, hint=hint)
    if state.is_relative_to(sink) and not state.relative_to(sink).parts[0].startswith(("_", ".")):
        raise UsageError("the checkpoint lies in the sink", place=checkpoint, hint=hint)


def _place_of(storage: Storage) -> PurePosixPath:
    if isinstance(storage, LocalStorage):
        return PurePosixPath(storage.root.resolve())
    return PurePosixPath(storage.address.partition("?")[0])
