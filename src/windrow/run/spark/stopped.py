"""Repair of a query that is stopped: all that its checkpoint's ledger holds, in rounds, to where its results go.

    windrow.repair(spark, "checkpoint")        windrow repair CHECKPOINT

A round is some seconds of work, and what it has delivered stays delivered (`windrow.run.spark.rounds`): a repair that
was stopped or killed goes on where it was, and so does the query.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from windrow.control.ledger import Piece
from windrow.errors import StateError, UsageError
from windrow.plan.calibration import first_guess
from windrow.query.spec import UserFunction
from windrow.run.backlog import RepairReport, RepairSettings
from windrow.run.spark.asked import read_asked
from windrow.run.spark.join import fixed, state_storage
from windrow.run.spark.lanes import Lanes
from windrow.run.spark.publish import FolderSink
from windrow.run.spark.query import BatchRunner
from windrow.run.spark.repairing import Repairing, pieces_of
from windrow.run.spark.replayed import send_code
from windrow.run.spark.results import Output
from windrow.run.spark.setting import Setting
from windrow.run.spark.sinks import Format, FormatSink, Function, as_sink
from windrow.run.spark.whereabouts import last_commit
from windrow.store.storage import LocalStorage, Storage, open_storage

ROUND_S = 10.0
"""About how much work a round is."""
QUERY_ID = "sql.streaming.queryId"

Tell = Callable[[RepairReport], None]
"""Hears of each round that is done."""


def repair(
    spark: SparkSession,
    checkpoint: str | Path,
    sink: str | Path | Storage | Format | Function | None = None,
    *,
    state: str | Path | Storage | None = None,
    order: str = "oldest",
    functions: Sequence[UserFunction] = (),
    tell: Tell | None = None,
) -> RepairReport:
    """Repair what a query that is stopped left out, and say what became of it all.

    Rows go where the query's results go, unless a `sink` is given, in batches -1, -2, …: a query whose sink is a
    function, or none, needs one. `functions` are those of the user's that the query calls.
    """
    below = fixed(checkpoint)
    storage = state_storage(state, below)
    asked = read_asked(storage, functions)
    given = asked.sink if sink is None else sink
    if given is None:
        hint = "give a sink: a path, windrow.Format(…), or a function of a DataFrame and a number"
        raise UsageError("it is not recorded where the results of this query go", place=below, hint=hint)
    into = _within(given, below) or as_sink(given, below, storage)
    if isinstance(into, FormatSink):
        into.check(spark)
    setting = Setting(
        spec=asked.spec,
        plan=asked.plan,
        arrow_types=asked.arrow_types,
        storage=storage,
        feed=Lanes((), ()),
        output=Output(into.staging, into.form),
        sink=into.deliver,
        keep=asked.keep,
        costs=first_guess(True),
        max_ahead_us=None,
        repair=RepairSettings(order),
    )
    for function in asked.spec.functions:
        send_code(function.function.__module__)
    # A session of its own: what batches need is set on it.
    return run_rounds(BatchRunner(setting), spark.newSession(), tell)


def run_rounds(runner: BatchRunner, spark: SparkSession, tell: Tell | None = None) -> RepairReport:
    """Run rounds until nothing is open but what belongs to a batch that has begun."""
    storage, journal, repairing = runner.setting.storage, runner.journal, runner.repairing
    last = last_commit(storage)
    if last < 0 or repairing is None:
        message = "no batch has been committed in this checkpoint"
        raise UsageError(message, place=storage.address, hint="give the checkpoint of a query that has run")
    before = spark.sparkContext.getLocalProperty(QUERY_ID)
    runner.prepare(spark, last)
    try:
        begun = journal.plan(last + 1, attempt=2) or journal.plan(last + 1)
        spark.sparkContext.setLocalProperty(QUERY_ID, runner.query_id)
        while pieces := next_round(repairing, pieces_of(begun)):
            if (journal.plan(last + 1) is None) != (begun is None) or last_commit(storage) != last:
                hint = "stop the query, and repair then; while it runs it repairs by itself"
                raise StateError("the query goes on while it is repaired", place=storage.address, hint=hint)
            runner.repair_round(spark, pieces)
            if tell is not None:
                tell(repairing.report())
    finally:
        # Spark takes None for "not set"; its type hint does not know.
        spark.sparkContext.setLocalProperty(QUERY_ID, before)  # type: ignore[arg-type]
    return repairing.report()


def next_round(repairing: Repairing, kept: Sequence[Piece]) -> tuple[Piece, ...]:
    """The pieces of the next round, of those that are not `kept` for a batch; none where nothing is left."""
    repairing.back()
    repairing.backlog.price()
    _, ledger = repairing.ledger.parted(kept)
    due, _ = ledger.due(ROUND_S, repairing.settings.order)
    return due or ledger.pieces[:1]


def _within(given: object, checkpoint: str) -> FolderSink | None:
    """The sink of recorded streams, which is a folder of their checkpoint's own."""
    if isinstance(given, str):
        folder, around = open_storage(given), open_storage(checkpoint)
        if isinstance(folder, LocalStorage) and isinstance(around, LocalStorage):
            inside = folder.root.is_relative_to(around.root) and folder.root != around.root
            return FolderSink(folder) if inside else None
        if folder.address.startswith(f"{around.address.rstrip('/')}/"):
            return FolderSink(folder)
    return None
