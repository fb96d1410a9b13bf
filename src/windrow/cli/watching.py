"""Watching a run: where its events go, and its metrics while it lasts.

--events DIR ─▶ one file a batch in DIR/events ─▶ windrow dashboard DIR
--metrics PORT ─▶ http://127.0.0.1:PORT/metrics, from the same files, or some that go with the run
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from windrow.errors import UsageError

Numbers = Callable[[], Mapping[str, Mapping[str, float]]]


@dataclass(frozen=True, slots=True)
class Watching:
    """What was asked for: the folder of events, and the port of metrics; None: not."""

    events: str | None = None
    metrics: int | None = None


@contextmanager
def events_folder(asked: str | None, metrics: int | None) -> Iterator[str | None]:
    """Where a run writes its events: where it was asked to, or for its metrics alone a folder that goes with it."""
    if asked is not None or metrics is None:
        yield asked
        return
    with TemporaryDirectory(prefix="windrow-events-") as folder:
        yield folder


@contextmanager
def metrics_served(port: int | None, folder: str | None, spark: Numbers = dict) -> Iterator[None]:
    """The metrics of the events below a folder, served until the block ends; nothing without a port."""
    if port is None or folder is None:
        yield
        return
    try:
        from windrow.dashboard.history import Reader
        from windrow.dashboard.metrics import serve_metrics
    except ModuleNotFoundError as error:
        hint = "pip install 'windrow[dashboard]'"
        raise UsageError(f"metrics need {error.name}, which is not installed", place="--metrics", hint=hint) from error
    if "://" not in folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
    try:
        server = serve_metrics(port, Reader(folder), spark)
    except OSError as error:
        message = f"port {port} cannot be bound: {error.strerror}"
        raise UsageError(message, place="--metrics", hint="give another one, or 0 for any that is free") from error
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
