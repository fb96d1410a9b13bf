"""Rounds of a stopped query, played: what was left out comes once, whatever dies, and the query goes on behind them."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

import windrow
from tests.oracle.duck import difference
from tests.oracle.queries import Case, cases
from tests.run.spark.played import Played, Rows, Way, attempt_of
from tests.run.spark.test_query import CrashError, crash_in
from tests.run.spark.test_repaired import parted, repairing, shed
from tests.run.spark.test_worker import QUESTIONS, batches_of, in_process, joined
from windrow.errors import StateError, UsageError
from windrow.plan.order import plan_query
from windrow.run.program import arrow_types_of
from windrow.run.spark import job, stopped
from windrow.run.spark import query as driver_program
from windrow.run.spark.asked import FILE, read_asked, write_asked
from windrow.run.spark.publish import FolderSink
from windrow.run.spark.query import BatchRunner
from windrow.run.spark.repairing import Repairing
from windrow.run.spark.stopped import run_rounds
from windrow.store.storage import LocalStorage

pytestmark = pytest.mark.usefixtures("interpreted")

POINTS: dict[str, tuple[Any, str, str]] = {
    "a round is planned": (driver_program, "write_plan", "after"),
    "its pieces have run": (driver_program, "run_repair", "after"),
    "the sink has its rows": (driver_program, "write_round", "before"),
    "it is done": (driver_program, "write_round", "after"),
}


@pytest.fixture(autouse=True)
def _short_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stopped, "ROUND_S", 0.004)


def stopped_query(question: str, folder: Path, batches: int = 6) -> tuple[Played, list[dict[str, Any]], list[Rows]]:
    """A query that has left things out in some batches, and repaired nothing."""
    query = joined(QUESTIONS[question])
    expected, _ = in_process(query)
    played = repairing(Played(query, folder, Way(2, fan_in=2)), trigger_s=0.001, clock=lambda: 0.0)
    pushed = batches_of(query.sources)
    for batch in range(batches):
        shed(played, batch, pushed[batch])
    return played, pushed, expected


def rounds(played: Played, hops: bool = True) -> Any:
    """All rounds there are, by a program of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job, "attempt_of", attempt_of)
        patch.setattr(driver_program, "ONE_TASK_SECONDS", -1.0 if hops else float("inf"))
        return run_rounds(BatchRunner(played.setting), played.spark)  # type: ignore[arg-type]


def every_row(played: Played) -> Rows:
    """What the sink holds in the end: of each batch and round the rows that came last."""
    return sum((sum(parted(played.rows(number)), Counter()) for number in played.found), Counter())


@pytest.mark.parametrize("question", ["two", pytest.param("three", marks=pytest.mark.long), "rows"])
def test_rounds_repair_all_and_the_query_goes_on(question: str, tmp_path: Path) -> None:
    played, pushed, expected = stopped_query(question, tmp_path)
    report = rounds(played)
    assert report.open_pieces == 0
    assert min(played.found) < -2
    assert report.results == sum(played.rows(number).total() for number in played.found if number < 0)
    assert difference(every_row(played), sum(expected[:6], Counter())) == ""
    played.restart()
    for batch in (6, 7):
        shed(played, batch, pushed[batch])
    assert played.state.results == every_row(played).total()
    assert played.state.ledger["rounds"] == -min(played.found)
    before = min(played.found)
    rounds(played, hops=False)
    assert min(played.found) < before
    assert difference(every_row(played), sum(expected, Counter())) == ""


QUICK = (("a round is planned", True), ("the sink has its rows", False))
DEATHS = [
    pytest.param("two", point, goes_on, id=f"{point}, then {'the query' if goes_on else 'the repair again'}")
    for point, goes_on in QUICK
] + [
    pytest.param(question, point, goes_on, marks=pytest.mark.long)
    for question in ("two", "three", "rows")
    for point in POINTS
    for goes_on in (False, True)
]


@pytest.mark.parametrize(("question", "point", "goes_on"), DEATHS)
def test_a_death_in_a_round_leaves_no_trace(question: str, point: str, goes_on: bool, tmp_path: Path) -> None:
    """What was begun is ended by whoever goes on: the next repair, or the query."""
    played, pushed, expected = stopped_query(question, tmp_path)
    for _ in range(3):
        with crash_in(*POINTS[point]) as struck, suppress(CrashError):
            rounds(played)
        assert struck
    if goes_on:
        played.restart(trigger_s=3600.0)
        for batch in (6, 7):
            shed(played, batch, pushed[batch])
        for batch in (8, 9, 10):
            played.run(batch, {})
    else:
        rounds(played)
    due = expected if goes_on else expected[:6]
    assert difference(every_row(played), sum(due, Counter())) == ""


def test_pieces_of_a_batch_that_has_begun_are_left_to_it(tmp_path: Path) -> None:
    played, pushed, expected = stopped_query("two", tmp_path)
    played.restart(trigger_s=3600.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Repairing, "planned", lambda held, *_: [piece.to_row() for piece in held.ledger.pieces[:5]])
        with crash_in(BatchRunner, "_commit", "before"), pytest.raises(CrashError):
            played.run(6, pushed[6])
    assert rounds(played).open_pieces == 5
    played.restart()
    played.run(6, pushed[6])
    assert parted(played.rows(6))[1]
    assert difference(every_row(played), sum(expected[:7], Counter())) == ""


def test_a_query_that_runs_and_a_repair_notice_each_other(tmp_path: Path) -> None:
    played, pushed, _ = stopped_query("two", tmp_path)
    rounds(played)
    with pytest.raises(StateError, match="repaired by another program while it ran"):
        shed(played, 6, pushed[6])
    played.restart()
    runner = BatchRunner(played.setting)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BatchRunner, "prepare", lambda *_: None)
        runner.last = None
        first = stopped.next_round

        def meanwhile(*given: Any) -> Any:
            shed(played, 6, pushed[6])
            return first(*given) or (SimpleNamespace(),)

        patch.setattr(stopped, "next_round", meanwhile)
        with pytest.raises(StateError, match="goes on while it is repaired"):
            run_rounds(runner, played.spark)  # type: ignore[arg-type]


def test_without_a_batch_there_is_nothing_to_repair(tmp_path: Path) -> None:
    played, _, _ = stopped_query("two", tmp_path, batches=0)
    with pytest.raises(UsageError, match="no batch has been committed"):
        rounds(played)
    with pytest.raises(UsageError, match="does not say what its query asks"):
        read_asked(played.storage)


def test_a_query_is_read_as_it_was_written(tmp_path: Path) -> None:
    seen: Counter[bool] = Counter()

    @settings(max_examples=25, suppress_health_check=list(HealthCheck))
    @given(cases(streams=2))
    def check(case: Case) -> None:
        query = windrow.sql(case.question.text, streams=case.tables, time=dict.fromkeys(case.tables, "ts"))
        spec = query.spec()
        setting: Any = SimpleNamespace(
            spec=spec,
            plan=plan_query(spec, slices=2),
            arrow_types=arrow_types_of(query, spec),
            keep="all",
            storage=LocalStorage(tmp_path),
        )
        write_asked(setting, FolderSink(LocalStorage(tmp_path / "out")))
        seen[(tmp_path / FILE).exists()] += 1
        if (tmp_path / FILE).exists():
            found = read_asked(LocalStorage(tmp_path))
            assert (found.spec, found.plan, found.keep) == (spec, setting.plan, "all")
            assert dict(found.arrow_types) == {c: setting.arrow_types[c] for s in spec.streams for c in s.columns}
            assert found.sink == str(tmp_path / "out")

    check()
    assert seen[True] > 0.8 * seen.total()


def test_functions_are_known_by_name_and_versions_are_checked(tmp_path: Path) -> None:
    @windrow.function(returns="BOOLEAN")
    def near(x: float, y: float) -> bool:
        return abs(x - y) < 1

    tables = batches_of(["s", "t"])[0]
    text = "SELECT a.id AS i, b.id AS j FROM s AS a, t AS b WHERE near(a.f64, b.f64) WINDOW 4 SECONDS"
    query = windrow.sql(text, streams=tables, time=dict.fromkeys(tables, "ts"), functions=(near,))
    spec, storage = query.spec(), LocalStorage(tmp_path)
    types = arrow_types_of(query, spec)
    setting: Any = SimpleNamespace(spec=spec, plan=plan_query(spec), arrow_types=types, keep="used", storage=storage)
    write_asked(setting, None)
    with pytest.raises(UsageError, match="calls 'near', which is not known here"):
        read_asked(storage)
    found = read_asked(storage, spec.functions)
    assert (found.spec, found.sink) == (spec, None)
    values = json.loads((tmp_path / FILE).read_text())
    (tmp_path / FILE).write_text(json.dumps({**values, "version": 99}))
    with pytest.raises(StateError, match="version 99, this is 1"):
        read_asked(storage, spec.functions)
    (tmp_path / FILE).write_text("{")
    with pytest.raises(StateError, match="damaged"):
        read_asked(storage)
