"""A Spark session fit for joins: what the command line starts, and what any session is told before it runs batches.

    local masters      everything on this machine's loopback address, no web page, memory for what passes through
    any master         our Python for the workers unless PYSPARK_PYTHON says another, times in UTC, Arrow batches of
                       up to 64 MB rather than of 10,000 rows

What the machine's Spark configuration or PYSPARK_SUBMIT_ARGS set already stays as it is. A session that runs already
is used as it is, and goes on afterwards. The Java process of a session writes to standard error what nobody asked
for; it is kept out of sight unless `WINDROW_TRACEBACK=1` asks for everything.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from windrow.errors import SourceError, UsageError

LOCAL = "local[*]"

_SHOW = "WINDROW_TRACEBACK"

_EVERYWHERE: Mapping[str, str] = MappingProxyType(
    {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1000000",
        "spark.log.level": "ERROR",
        "spark.ui.showConsoleProgress": "false",
    }
)
_ON_THIS_MACHINE: Mapping[str, str] = MappingProxyType(
    {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "false",
    }
)
_OF_BATCHES: Mapping[str, str] = MappingProxyType(
    {
        # One job a batch: adaptive execution would make a job of each shuffle.
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1000000",
        "spark.sql.execution.arrow.maxBytesPerBatch": str(64 << 20),
    }
)


@contextmanager
def session(master: str = LOCAL, name: str = "windrow") -> Iterator[SparkSession]:
    """The session that runs in this process, or one that is started now and stopped at the end."""
    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    started = _started(master, name)
    try:
        yield started
    finally:
        started.stop()


def for_batches(spark: SparkSession) -> None:
    """Set what batches need on the session that runs them, which is a copy Spark makes of the user's."""
    for setting, value in _OF_BATCHES.items():
        spark.conf.set(setting, value)


def settings(master: str) -> dict[str, str]:
    """What a new session is told, where nothing else says so.

    >>> settings("local[2]")["spark.driver.host"], "spark.driver.host" in settings("spark://head:7077")
    ('127.0.0.1', False)
    """
    return {**_EVERYWHERE, **(_ON_THIS_MACHINE if is_local(master) else {})}


def is_local(master: str) -> bool:
    """Whether a master keeps all its processes on this machine.

    >>> [is_local(master) for master in ("local", "local[*]", "local-cluster[2,1,1024]", "yarn")]
    [True, True, True, False]
    """
    return master.startswith("local")


def _started(master: str, name: str) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    known = SparkConf()
    builder = SparkSession.builder.master(master).appName(name)
    for setting, value in settings(master).items():
        if not known.contains(setting):
            builder = builder.config(setting, value)
    try:
        with _java_unheard(), _interrupts_kept():
            return builder.getOrCreate()
    except PySparkException as error:
        if not _has_java():
            hint = "install Java 17 or newer, or set JAVA_HOME to where it is; --runtime local needs none"
            raise SourceError("Spark cannot start: there is no Java", hint=hint) from error
        raise _not_started(master, error) from error
    except Exception as error:
        # What Java raises while a context is made has many types; they mean a wrong master or one out of reach.
        raise _not_started(master, error) from error


def _not_started(master: str, error: Exception) -> UsageError:
    # Of a Java exception the first line only says that there was one.
    lines = [line for line in str(error).splitlines() if line.strip() and not line.startswith("An error occurred")]
    reason = lines[0].removeprefix(": ") if lines else type(error).__name__
    hint = f"masters are local[*], local[4], spark://HOST:PORT, yarn or k8s://ADDRESS; {_SHOW}=1 shows what Java says"
    return UsageError(f"Spark does not start with master '{master}': {reason}", place="--master", hint=hint)


def _has_java() -> bool:
    home = os.environ.get("JAVA_HOME")
    return (Path(home) / "bin" / "java").exists() if home else shutil.which("java") is not None


@contextmanager
def _interrupts_kept() -> Iterator[None]:
    """Keep what Ctrl-C does: Spark would cancel the running jobs, which then look like failures."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


@contextmanager
def _java_unheard() -> Iterator[None]:
    """Point standard error elsewhere for processes that are started meanwhile; a running Java keeps what it has."""
    if os.environ.get(_SHOW) or SparkContext._gateway is not None:
        yield
        return
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 - a descriptor is wanted
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
