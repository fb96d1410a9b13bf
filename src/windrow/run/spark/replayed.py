"""A join over recorded streams on Spark: what `windrow run` starts.

    recordings ─ windrow-recorded ─▶ batches in step ─▶ the join ─▶ Parquet, a folder a batch

The batches, their clock and the end of the input are those of the in-process runtime, so the results are too.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterator
from typing import Literal
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from windrow.plan.calibration import first_guess
from windrow.plan.order import plan_query, with_alternatives
from windrow.query.builder import Join
from windrow.run.backlog import RepairSettings, check_repairable
from windrow.run.keeper import with_memory
from windrow.run.options import SHEDS, settings_of
from windrow.run.spark.aside import BECAUSE, Aside
from windrow.run.spark.blobs import Blobs
from windrow.run.spark.handle import RunningJoin
from windrow.run.spark.join import _arrow_types
from windrow.run.spark.launch import AVAILABLE_NOW, launch
from windrow.run.spark.publish import FolderSink
from windrow.run.spark.results import Output
from windrow.run.spark.setting import Setting
from windrow.run.spark.sources import register
from windrow.run.spark.sources.follow import STATE
from windrow.run.spark.sources.recorded import Recordings
from windrow.store.storage import open_storage

RESULTS = "results"
"""The folder of the results below a checkpoint."""
ASIDE = "set-aside"
"""The folder of the rows that were set aside."""


def start_recorded(  # noqa: PLR0913 - all but three have names and defaults
    spark: SparkSession,
    query: Join,
    recordings: Recordings,
    *,
    checkpoint: str,
    policy: str = "timestamp",
    methods: Collection[str] | None = None,
    throttle: float | Literal["auto"] | None = None,
    shed: str = "drop",
    repair: RepairSettings | None = None,
    set_aside: bool = False,
    memory: str | int | None = None,
    events: str | None = None,
    stale: str = "suppress",
) -> RunningJoin:
    """Start a join over recordings; it ends when they do, and `results_of` the checkpoint are its results.

    `query` is bound to the schemas of the recordings; `throttle` is the share of the full work to do, "auto" for as
    much as there is time for at the recordings' pace; `shed` what becomes of the rest, and `repair` when it comes if it
    does: what is open comes at the end; `stale` says what becomes of stale results; `set_aside` keeps late and bad rows
    for `aside_of`; `memory` is how much the windows may take after each batch; `events` a folder for what each batch
    did, instead of the state's.
    """
    register(spark)
    spec = query.spec()
    for function in spec.functions:
        send_code(function.function.__module__)
    frame = spark.readStream.format("windrow-recorded").option("recordings", recordings.to_json()).load()
    storage = open_storage(f"{checkpoint}/{STATE}")
    into = FolderSink(open_storage(f"{checkpoint}/{RESULTS}"))
    plan = plan_query(spec, policy=policy, methods=methods, slices=spark.sparkContext.defaultParallelism)
    control = settings_of(throttle, None, spec, policy, shed, SHEDS)
    repairs = shed == "repair"
    check_repairable(spec, plan, control, repairs, repair)
    setting = Setting(
        spec=spec,
        plan=with_alternatives(spec, plan, methods) if repairs or control is not None else plan,
        arrow_types=_arrow_types(query.sources, spec),
        storage=storage,
        feed=Blobs(tuple(stream.name for stream in spec.streams)),
        output=Output(into.staging, into.form),
        sink=into.deliver,
        aside=Aside(open_storage(f"{checkpoint}/{ASIDE}")) if set_aside else None,
        events=None if events is None else open_storage(events),
        max_ahead_us=None,
        control=with_memory(control, memory, spec),
        costs=first_guess(control is not None),
        pace=recordings.pace or 1.0,
        trigger_s=recordings.apart_s,
        repair=(repair or RepairSettings()) if repairs else None,
        stale=stale,
        is_timed=recordings.pace is not None,
    )
    return launch(frame, setting, into, checkpoint=checkpoint, trigger=AVAILABLE_NOW, name="windrow")


def results_of(checkpoint: str, schema: pa.Schema) -> Iterator[pa.Table]:
    """The results of all batches, a few at a time, in the columns and types of the SELECT list."""
    folder = open_storage(f"{checkpoint}/{RESULTS}")
    for name in folder.list():
        if name.startswith("batch=") and name.endswith(".parquet"):
            with pq.ParquetFile(folder.fetch(name)) as file:
                for batch in file.iter_batches():
                    yield pa.Table.from_batches([batch]).cast(schema)


def aside_of(checkpoint: str) -> Iterator[tuple[str, str, pa.Table]]:
    """The rows that were set aside: stream, reason and rows, a few at a time."""
    folder = open_storage(f"{checkpoint}/{ASIDE}")
    for name in folder.list():
        stream, _, file = name.partition("/")
        if stream.startswith("stream=") and file.startswith("batch="):
            held = pq.read_table(folder.fetch(name), partitioning=None)
            for reason in pc.unique(held[BECAUSE]).to_pylist():
                rows = held.filter(pc.equal(held[BECAUSE], reason)).drop_columns(BECAUSE)
                yield unquote(stream.removeprefix("stream=")), reason, rows


def given(running: RunningJoin) -> tuple[int, int]:
    """How many batches of recordings a join has been given, and how many there are; zeros before it is known."""
    last = running.spark_query.lastProgress
    offset = None if last is None else last["sources"][0]["endOffset"]
    found = json.loads(offset) if offset else None
    return (found["batches"], found["of"]["batches"]) if found else (0, 0)


def send_code(module: str) -> None:
    """Have a module of the user's travel with the tasks, if it comes from a file that only this process has loaded."""
    if module.startswith("windrow_functions_"):
        cloudpickle.register_pickle_by_value(sys.modules[module])  # type: ignore[no-untyped-call]
