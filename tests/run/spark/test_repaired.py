"""What a throttled join on Spark left out comes later: prompt and repaired rows together are DuckDB's, none twice."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.oracle.arrivals import batches, in_time
from tests.oracle.duck import difference
from tests.oracle.queries import Case, cases
from tests.run.spark.played import Played, PlayedSpark, Rows, Way
from tests.run.spark.test_against_duckdb import (
    LEAST_BATCHES,
    Disorder,
    disorders,
    prepared,
    reference,
    started,
    tick_us,
    ways,
)
from tests.run.spark.test_query import CrashError, crash_in
from tests.run.spark.test_worker import QUESTIONS, batches_of, in_process, joined
from tests.run.test_repair import Chance
from windrow.control.ledger import Piece
from windrow.errors import StateError, UsageError
from windrow.plan.order import plan_query, with_alternatives
from windrow.plan.shedding import ALL, Shedding
from windrow.run.backlog import RepairSettings
from windrow.run.events import read_events
from windrow.run.spark import mending, spread
from windrow.run.spark import query as driver_program
from windrow.run.spark.journal import Journal
from windrow.run.spark.owed import repair_of
from windrow.run.spark.query import BatchRunner
from windrow.run.spark.repairing import Repairing
from windrow.run.spark.steering import Steering

pytestmark = pytest.mark.usefixtures("interpreted")

REPAIR = RepairSettings()
POINTS: dict[str, tuple[Any, str, str]] = {
    "the plan is written": (BatchRunner, "_joined", "before"),
    "the prompt rows are found": (BatchRunner, "_repaired", "before"),
    "a task has repaired": (mending, "delivered", "after"),
    "the repair is done": (driver_program, "run_repair", "after"),
    "the sink has the results": (BatchRunner, "_commit", "before"),
    "the commit is written": (Journal, "forget", "before"),
}


@dataclass
class Luck:
    """What each batch leaves out, and which pieces, or parts of some, it repairs, at random."""

    seed: int
    share: float = 0.5
    seen: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.draw = np.random.default_rng(self.seed)
        self.chance = Chance(self.seed, 0.0)

    def decide(self, _now_s: float) -> Shedding:
        return self.chance.shedding(self.join) if self.draw.random() < 0.8 else ALL

    def planned(self, repairing: Repairing, last: bool) -> list[list[Any]]:
        chosen: list[Piece] = []
        for piece in () if last else repairing.ledger.pieces:
            drawn = self.draw.random() / self.share
            if drawn < 0.7:
                chosen.append(piece)
            elif drawn < 1:
                chosen.append(piece.cut(float(self.draw.random()))[0])
        self.seen["pieces"] += len(chosen)
        self.seen["parts"] += sum(piece.to_share < 1 for piece in chosen)
        return [piece.to_row() for piece in chosen]

    @contextmanager
    def over(self, played: Played) -> Iterator[None]:
        """Let it decide for a join."""
        self.join: Any = SimpleNamespace(plan=played.runner.plan, spec=played.spec)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Steering, "decide", self.decide)
            patch.setattr(Repairing, "planned", lambda held, _, last: self.planned(held, last))
            patch.setattr(Repairing, "is_overdue", lambda _, __: bool(self.draw.random() < 0.1))
            yield


def repairing(played: Played, **changed: Any) -> Played:
    """The same query, repairing."""
    plan = with_alternatives(played.spec, played.setting.plan)
    played.restart(**{"repair": REPAIR, "plan": plan, **changed})
    return played


def parted(found: Rows) -> tuple[Rows, Rows]:
    """Prompt rows and repaired ones."""
    both: tuple[Rows, Rows] = (Counter(), Counter())
    for row, count in found.items():
        both[bool(row[-1])][row[:-1]] += count
    return both


def check_random_queries(streams: int, examples: int, row_windows: bool = False) -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(cases(streams=streams, row_windows=row_windows), ways(), disorders, st.integers(0, 99), st.booleans())
    def check(case: Case, way: Way, disorder: Disorder, seed: int, twice: bool) -> None:
        way, luck = replace(way, feed="blobs"), Luck(seed)
        query, tables, twin = prepared(case, disorder)
        arrivals = in_time(tables, jitter_us=disorder.jitter * tick_us(tables), seed=disorder.seed)
        pushed = list(batches(tables, arrivals, max(1, len(arrivals) // LEAST_BATCHES)))
        kept: dict[str, list[pa.Table]] = {name: [table.slice(0, 0)] for name, table in tables.items()}
        found: Rows = Counter()
        with tempfile.TemporaryDirectory() as folder:
            running = repairing(started(query, Path(folder), way, PlayedSpark(seed, twice=twice and seed % 4 == 0)))
            with luck.over(running):
                for batch, part in enumerate(pushed):
                    for name, table in twin.admit(part).items():
                        kept[name].append(table.cast(tables[name].schema))
                    last = batch == len(pushed) - 1
                    struck = killed(running, luck, batch, part, last)
                    seen.update(struck)
                    found += running.run(batch, part, last)
                    if luck.draw.random() < 0.1:
                        running.restart()
            if pushed:
                report = running.runner.repairing
                assert report is not None
                assert report.report().open_pieces == 0
        expected = reference(case.question, {name: pa.concat_tables(parts) for name, parts in kept.items()}, query)
        prompt, late = parted(found)
        assert difference(prompt + late, expected.rows) == "", case.question.text
        seen.update({"prompt": bool(prompt), "late": bool(late), **luck.seen})

    check()
    assert min(seen["prompt"], seen["late"], seen["parts"]) >= examples // 8
    assert sum(seen[point] for point in POINTS) >= examples // 2


def killed(running: Played, luck: Luck, batch: int, part: dict[str, pa.Table], last: bool) -> list[str]:
    """Now and then let a batch die once or twice, and go on from the state; where it died."""
    deaths: list[str] = []
    while luck.draw.random() < 0.15:
        point = str(luck.draw.choice(list(POINTS)))
        with crash_in(*POINTS[point]) as struck, suppress(CrashError):
            running.run(batch, part, last)
        deaths += [point] if struck else []
        running.restart()
    return deaths


@pytest.mark.parametrize(("streams", "row_windows"), [(2, False), (3, False), (2, True)])
def test_prompt_and_repaired_rows_are_duckdbs(streams: int, row_windows: bool) -> None:
    check_random_queries(streams, 4, row_windows)


@pytest.mark.long
@pytest.mark.parametrize(("streams", "row_windows"), [(2, False), (3, False), (4, False), (2, True), (3, True)])
def test_prompt_and_repaired_rows_of_many_queries_are_duckdbs(streams: int, row_windows: bool) -> None:
    check_random_queries(streams, 60, row_windows)


def shed(played: Played, batch: int, pushed: Any, throttle: float = 0.3) -> Rows:
    """A batch that leaves out what a chance says, and repairs nothing but what its plan chooses by itself."""
    chance = Chance(batch, 0.0)
    join: Any = SimpleNamespace(plan=played.runner.plan, spec=played.spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Steering, "decide", lambda *_: replace(chance.shedding(join), throttle=throttle))
        return played.run(batch, pushed)


@pytest.mark.parametrize("question", ["two", pytest.param("three", marks=pytest.mark.long), "rows"])
def test_after_an_overload_pieces_are_run_in_the_time_that_is_left(question: str, tmp_path: Path) -> None:
    """The clock gives an hour to each batch: after some all is repaired, without an end of the input."""
    query = joined(QUESTIONS[question])
    expected, _ = in_process(query)
    played = repairing(Played(query, tmp_path, Way(2, fan_in=2)), trigger_s=3600.0, clock=lambda: 0.0)
    found: Rows = Counter()
    pushed = batches_of(query.sources)
    for batch, tables in enumerate(pushed):
        found += shed(played, batch, tables)
    for batch in range(len(pushed), len(pushed) + 3):
        found += played.run(batch, {})
    prompt, late = parted(found)
    assert difference(prompt + late, sum(expected, Counter())) == ""
    assert min(prompt.total(), late.total()) > 0
    events = list(read_events(played.storage))
    assert sum(event["repaired"]["results"] for event in events) == late.total()
    assert events[-1]["ledger"]["open"]["pieces"] == 0 < events[0]["ledger"]["open"]["pieces"]
    report = repair_of(played.state)
    assert report is not None
    assert (report.open_pieces, report.results) == (0, late.total())


def test_nothing_is_repaired_without_time_for_it_and_a_late_repair_is_put_off(tmp_path: Path) -> None:
    query = joined(QUESTIONS["two"])
    expected, _ = in_process(query)
    played = repairing(Played(query, tmp_path, Way(2)), trigger_s=0.001, clock=lambda: 0.0)
    pushed = batches_of(query.sources)
    prompt: Rows = Counter()
    for batch, tables in enumerate(pushed):
        prompt += shed(played, batch, tables)
    assert not parted(prompt)[1]
    open_pieces = len(played.runner.repairing.ledger.pieces)  # type: ignore[union-attr]
    assert open_pieces > 10
    batch = len(pushed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Repairing, "planned", lambda self, *_: [piece.to_row() for piece in self.ledger.pieces])
        assert not played.run(batch, {})
        first, second = (played.runner.journal.plan(batch, attempt) for attempt in (1, 2))
        assert first is not None
        assert second is not None
        assert (len(first["repair"]), second["repair"]) == (open_pieces, [])
        assert len(played.runner.repairing.ledger.pieces) == open_pieces  # type: ignore[union-attr]
        with crash_in(BatchRunner, "_commit", "before"), pytest.raises(CrashError):
            played.run(batch + 1, {})
        played.restart(trigger_s=3600.0)
        assert not played.run(batch + 1, {})
        late = played.run(batch + 2, {})
    assert difference(parted(prompt)[0] + parted(late)[1], sum(expected, Counter())) == ""


def test_repairs_may_begin_with_a_restart_and_end_with_one(tmp_path: Path) -> None:
    """Rows that were stored without the number of their batch came before all batches that leave something out."""
    query = joined(QUESTIONS["three"])
    expected, _ = in_process(query)
    pushed = batches_of(query.sources)
    exact: Rows = Counter()
    played = Played(query, tmp_path, Way(2, fan_in=2), clock=lambda: 0.0)
    for batch in range(3):
        exact += played.run(batch, pushed[batch])
    repairing(played, trigger_s=3600.0)
    found: Rows = Counter()
    for batch in range(3, 6):
        found += shed(played, batch, pushed[batch])
    played.restart(repair=None)
    rest = played.run(6, pushed[6])
    assert rest == expected[6]
    assert played.state.ledger is None
    repairing(played)
    prompt, late = parted(found)
    both = exact + prompt + late
    assert not both - sum(expected[:6], Counter())
    assert both != sum(expected[:6], Counter())  # what was open when repairs ended is forgotten
    assert parted(played.run(7, pushed[7]))[0] == expected[7]


def test_a_ledger_of_another_version_is_refused(tmp_path: Path) -> None:
    query = joined(QUESTIONS["two"])
    played = repairing(Played(query, tmp_path, Way(2)), trigger_s=0.001, clock=lambda: 0.0)
    shed(played, 0, batches_of(query.sources)[0])
    commit = tmp_path / "commits" / "0.json"
    written = json.loads(commit.read_text())
    written["ledger"]["version"] = 99
    commit.write_text(json.dumps(written))
    played.restart()
    with pytest.raises(StateError, match="what is to be repaired has format version 99, this is 1"):
        played.run(1, {})


def test_under_a_memory_limit_rows_are_right_and_the_limit_holds(tmp_path: Path) -> None:
    from windrow.run.keeper import with_memory

    query = joined(QUESTIONS["two"])
    expected, _ = in_process(query)
    control = with_memory(None, 24_000, query.spec())
    played = repairing(Played(query, tmp_path, Way(2)), trigger_s=3600.0, clock=lambda: 0.0, control=control)
    found: Rows = Counter()
    for batch, tables in enumerate(batches_of(query.sources)):
        found += shed(played, batch, tables)
        assert sum(file.total_bytes for _, _, file in played.files) <= 24_000
    prompt, late = parted(found)
    assert not (prompt + late) - sum(expected, Counter())
    assert late
    assert played.state.memory["streams"]["a"]["let_go"] > 0


def test_jobs_take_so_many_pieces_at_most(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(spread, "MOST_PIECES", 3)
    query = joined(QUESTIONS["two"])
    expected, _ = in_process(query)
    played = repairing(Played(query, tmp_path, Way(2, feed="blobs")), trigger_s=0.001, clock=lambda: 0.0)
    pushed = batches_of(query.sources)
    found: Rows = Counter()
    for batch, tables in enumerate(pushed[:-1]):
        found += shed(played, batch, tables)
    jobs = played.spark.jobs
    pieces = len(played.runner.repairing.ledger.pieces)  # type: ignore[union-attr]
    found += played.run(len(pushed) - 1, pushed[-1], last=True)
    assert played.spark.jobs - jobs > pieces // 3
    assert difference(sum(parted(found), Counter()), sum(expected, Counter())) == ""


def test_what_cannot_be_repaired_is_refused() -> None:
    from windrow.run.backlog import check_repairable

    query = joined("SELECT a.id AS repaired FROM s AS a, t AS b WHERE a.id = b.id WINDOW 4 SECONDS")
    spec = query.spec()
    with pytest.raises(UsageError, match="result column 'repaired' already"):
        check_repairable(spec, plan_query(spec), None, True, None)
