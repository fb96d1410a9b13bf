"""A program for the tests: runs a join over folders of files and dies by SIGKILL at a point of a batch.

    commit K-1 ─▶ plan K ─▶ hop 1: segments ─▶ … ─▶ sink ─▶ commit K ─▶ Spark's own commit
                    ↑1            ↑2              ↑3      ↑4        ↑5

python -m tests.run.spark.killed FOLDER STORE POINT BATCH [repairing]        POINT "never" runs to the end

"repairing" does less than all of the work, repairs some of it batch by batch, and the rest, in rounds, when the input
has ended; for the points of rounds BATCH is the number of the round.

STORE "objects" keeps state and results where nothing is renamed or appended to and each call takes 20 ms. A file
`begun` says that the first batch of this life has begun, a line in `strikes` that the program killed itself.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import windrow
from tests.store.object_store import object_storage
from windrow.control.controller import ControlSettings
from windrow.run.spark import query, stopped, windows, worker
from windrow.run.spark.job import Attempt, Job
from windrow.run.spark.publish import FolderSink
from windrow.run.spark.query import BatchRunner
from windrow.run.spark.repairing import Repairing
from windrow.store.storage import LocalStorage, Storage

QUERY = """
    SELECT a.id AS a_id, b.id AS b_id, c.id AS c_id FROM a, b, c
    WHERE ABS(a.x - b.x) <= 0.3 AND b.k = c.k WINDOW 5 SECONDS LATENESS 2 SECONDS"""

IN_HOP_1 = "in hop 1, a segment written"
POINTS = (
    "the plan written",
    IN_HOP_1,
    "before the sink",
    "the sink done, not our commit",
    "our commit done, not Spark's",
)
MENDED = "the pieces of a batch run"
ROUND_POINTS = ("a round planned", "a round in the sink", "a round done")
REPAIR_POINTS = (MENDED, *ROUND_POINTS)
STORES = ("folder", "objects")
CALL_S = 0.02
WHERE: dict[str, tuple[Any, str, int, bool]] = {
    POINTS[0]: (BatchRunner, "_planned", 1, True),
    POINTS[2]: (FolderSink, "deliver", -1, False),
    POINTS[3]: (BatchRunner, "_commit", 1, False),
    POINTS[4]: (BatchRunner, "_commit", 1, True),
    MENDED: (BatchRunner, "_repaired", 2, True),
    ROUND_POINTS[0]: (query, "write_plan", 2, True),
    ROUND_POINTS[1]: (query, "write_round", 2, False),
    ROUND_POINTS[2]: (query, "write_round", 2, True),
}
"""What is called at a point, which argument is the number of the batch or round, and whether it is over by then."""


def storage(folder: Path, store: str, name: str) -> Storage:
    """Where state or results are."""
    place = folder / store / name
    place.mkdir(parents=True, exist_ok=True)
    return LocalStorage(place) if store == "folder" else object_storage(place, CALL_S)


def strike(folder: str, point: str, driver: int) -> None:
    """Note it, and kill the driver program, which is this process or the one this is a worker of."""
    with open(f"{folder}/strikes", "a") as strikes:  # noqa: PTH123 - in workers too
        strikes.write(f"{point}\n")
    os.kill(driver, signal.SIGKILL)


def die_at(folder: str, point: str, due: int) -> None:
    """Arrange for the program to end, without any cleaning up, at a point of a batch."""
    driver = os.getpid()

    def around(owner: Any, method: str, number: Callable[..., int], *, after: bool) -> None:
        original = getattr(owner, method)

        def dying(*arguments: Any) -> Any:
            if number(*arguments) == due and not after:
                strike(folder, point, driver)
            found = original(*arguments)
            if number(*arguments) == due and after:
                strike(folder, point, driver)
            return found

        setattr(owner, method, dying)

    if point == IN_HOP_1:
        setattr(worker, "hop", dying_hop(folder, due, driver))  # noqa: B010 - mypy lets no function be replaced
        return
    owner, method, place, after = WHERE[point]
    around(owner, method, lambda *arguments: int(arguments[place]), after=after)


def dying_hop(folder: str, due: int, driver: int) -> Callable[..., Any]:
    """Tasks of a hop that kill the driver program as soon as they have written a segment of a batch."""
    original = worker.hop

    def hop(job: Job, number: int, attempt: Attempt) -> Any:
        task = original(job, number, attempt)
        if job.batch != due or number != 0:
            return task

        def dying(batches: Any) -> Any:
            written = windows.write

            def write_and_die(*arguments: Any) -> Any:
                message = written(*arguments)
                strike(folder, IN_HOP_1, driver)
                return message

            setattr(windows, "write", write_and_die)  # noqa: B010
            return task(batches)

        return dying

    return hop


def say_begun(folder: str) -> None:
    """Leave a sign when the first batch begins."""
    original = BatchRunner.run

    def run(self: BatchRunner, frame: Any, batch: int) -> None:
        Path(folder, "begun").touch()
        original(self, frame, batch)

    setattr(BatchRunner, "run", run)  # noqa: B010


def main(folder: str, store: str, point: str, batch: int, how: str = "exact") -> None:
    """Run the join to the end of its input, or to its death."""
    query.ONE_TASK_SECONDS = -1.0  # in hops, as if batches were large
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.sql.shuffle.partitions", "2")
    spark = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    frames = {}
    for name in "abc":
        schema = spark.read.parquet(f"{folder}/{name}").schema
        reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        frames[name] = reader.parquet(f"{folder}/{name}")
    say_begun(folder)
    if point != "never":
        die_at(folder, point, batch)
    join = windrow.sql(QUERY, frames)
    sink, state = (storage(Path(folder), store, name) for name in ("out", "state"))
    options: dict[str, Any] = {"state": state, "trigger": "available now", "slices": 2, "max_ahead": None}
    if how == "repairing":
        setattr(Repairing, "_slack_s", lambda *_: 0.02)  # noqa: B010 - where batches follow at once there is none
        stopped.ROUND_S = 0.02
        options |= {"throttle": 0.3, "control": ControlSettings(interval_s=0.1, sample=0.4), "shed": "repair"}
    join.start(sink, checkpoint=f"{folder}/checkpoint", **options).await_termination()  # type: ignore[attr-defined]
    if how == "repairing":
        windrow.repair(spark, f"{folder}/checkpoint", sink, state=state)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), *sys.argv[5:])
