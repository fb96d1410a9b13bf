"""A program for the tests: a join on a cluster of two executors, while tasks lag and processes are killed.

    "none"        nothing happens to the processes of a local cluster
    "worker"      three times the Python process of a task dies by SIGKILL as soon as it has written a segment
    "executor"    three times the Java process it belongs to
    "laggard"     three times the first task of each hop waits for a second attempt, which Spark starts by speculation;
                  on two hosts, because it starts none where the first one is

python -m tests.run.spark.clustered FOLDER NAME FAULT [throttled]        NAME of a query in test_against_duckdb.EVERY

Says in `report.json` how many results there were (the same as DuckDB's, or it fails), and what befell which batches.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pyspark
from pyspark import TaskContext
from pyspark.sql import SparkSession

from windrow.run.spark import windows, worker
from windrow.run.spark.job import Attempt, Job

LOCAL_CLUSTER = "local-cluster[2,1,1024]"
HOSTS = ("127.0.0.2", "127.0.0.3")
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.executor.extraJavaOptions": os.environ.get("SPARK_SUBMIT_OPTS", ""),
    "spark.speculation": "true",
    "spark.speculation.interval": "20ms",
    "spark.speculation.minTaskRuntime": "50ms",
    "spark.speculation.multiplier": "1.2",
    "spark.speculation.quantile": "0.3",
    "spark.speculation.efficiency.enabled": "false",
}
LAGS_AT_MOST_S = 20.0
LAGGING = (4, 8, 12)
"""The batches whose tasks lag."""
STRUCK = (4, 8, 12)
"""The batches in which a process is killed."""


def note(folder: str, what: str, batch: int, number: int) -> bool:
    """Leave a sign; whether there was none before."""
    try:
        os.close(os.open(f"{folder}/{what}-{batch}-{number}", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def kill_worker() -> None:
    """The end of the process that works on this task."""
    os.kill(os.getpid(), signal.SIGKILL)


def kill_executor() -> None:
    """The end of the Java process that this one belongs to."""
    for process in psutil.Process().parents():
        if "CoarseGrainedExecutorBackend" in " ".join(process.cmdline()):
            process.kill()
    time.sleep(60)


FAULTS: dict[str, Callable[[], None]] = {"worker": kill_worker, "executor": kill_executor}


@contextmanager
def two_hosts(folder: str) -> Iterator[str]:
    """A cluster whose two workers have addresses of their own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    master = f"spark://127.0.0.1:{port}"
    spark_class = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
    deployed = [["master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]]
    for host in HOSTS:
        size = ["--cores", "1", "--memory", "1g", "--work-dir", f"{folder}/{host}"]
        deployed.append(["worker.Worker", "--host", host, "--webui-port", "0", *size, master])
    quiet = subprocess.DEVNULL
    started = [
        subprocess.Popen([spark_class, f"org.apache.spark.deploy.{kind}", *options], stdout=quiet, stderr=quiet)
        for kind, *options in deployed
    ]
    try:
        yield master
    finally:
        for process in started:
            process.terminate()


@contextmanager
def local_cluster(folder: str) -> Iterator[str]:
    """Spark's own small cluster. It works below the folder where Spark is: one of links, for this cluster alone."""
    home = Path(folder, "spark")
    home.mkdir()
    for part in Path(pyspark.__file__).parent.iterdir():
        if part.name != "work":
            (home / part.name).symlink_to(part)
    os.environ["SPARK_HOME"] = str(home)
    yield LOCAL_CLUSTER


def trouble(folder: str, fault: str) -> None:
    """Tasks that lag, or die: those of hops, and those that do a whole batch."""
    hop, whole = worker.hop, worker.whole

    def troubled_hop(job: Job, number: int, attempt: Attempt) -> Any:
        return troubled(hop(job, number, attempt), folder, fault, job, number)

    def troubled_whole(job: Job, attempt: Attempt) -> Any:
        return troubled(whole(job, attempt), folder, fault, job, 0)

    setattr(worker, "hop", troubled_hop)  # noqa: B010 - mypy lets no function be replaced
    setattr(worker, "whole", troubled_whole)  # noqa: B010


def troubled(task: Callable[[Any], Any], folder: str, fault: str, job: Job, number: int) -> Callable[[Any], Any]:
    """A task to which a fault may come."""

    def begin(batches: Any) -> Any:
        context = TaskContext.get()
        assert context is not None
        if fault == "laggard" and context.attemptNumber() > 0:
            note(folder, fault, job.batch, number)
        elif fault == "laggard" and context.partitionId() == 0 and job.batch in LAGGING:
            lag(Path(folder, f"{fault}-{job.batch}-{number}"))
        elif fault in FAULTS and job.batch in STRUCK and number == 0:
            die_once_written(folder, fault, job.batch)
        return task(batches)

    return begin


def lag(until: Path) -> None:
    """Wait for a sign of the second attempt, and let it begin."""
    until_s = time.monotonic() + LAGS_AT_MOST_S
    while not until.exists() and time.monotonic() < until_s:
        time.sleep(0.02)
    time.sleep(0.1)


def die_once_written(folder: str, fault: str, batch: int) -> None:
    """Let the next segment that this process writes be the end of a process; once a batch."""
    written = windows.write

    def write_and_die(job: Job, *arguments: Any) -> Any:
        message = written(job, *arguments)
        if job.batch == batch and note(folder, fault, batch, 0):
            FAULTS[fault]()
        return message

    setattr(windows, "write", write_and_die)  # noqa: B010 - mypy lets no function be replaced


def main(folder: str, name: str, fault: str, how: str = "exact") -> None:
    """Run one query to the end of its input, and compare."""
    from tests.run.spark.shed_on_spark import check_throttled
    from tests.run.spark.test_against_duckdb import EVERY, check_kind

    with (two_hosts if fault == "laggard" else local_cluster)(folder) as master:
        builder = SparkSession.builder.master(master)
        for setting, value in SETTINGS.items():
            builder = builder.config(setting, value)
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
        try:
            trouble(folder, fault)
            check = check_throttled if how == "throttled" else check_kind
            results = check(EVERY[name], spark, Path(folder))
        finally:
            spark.stop()
    befell = sorted(path.name for path in Path(folder).glob(f"{fault}-*"))
    Path(folder, "report.json").write_text(json.dumps({"results": results, "befell": befell}), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:5])
