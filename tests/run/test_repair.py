"""Repair: what batches left out comes later, so that prompt and repaired rows together are the exact join's."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import windrow
from tests.oracle.arrivals import BATCH_SIZES, POLICIES, batches, in_time, shuffled
from tests.oracle.duck import answer, difference, question, rows_of
from tests.oracle.naive import row_counts
from tests.oracle.queries import Case, cases
from tests.oracle.tables import table_of
from windrow.control.controller import ControlSettings
from windrow.control.ledger import Ledger
from windrow.control.observation import Observation
from windrow.errors import UsageError
from windrow.plan.bins import Lags
from windrow.plan.shedding import Portion, Shedding
from windrow.plan.work import REFERENCE
from windrow.run.backlog import RepairSettings
from windrow.run.local import LocalJoin
from windrow.run.simulate import Machine, Simulated, simulate
from windrow.streams.synthetic import cameras, generate

pytestmark = pytest.mark.usefixtures("interpreted")

SECOND = 1_000_000
TEXT = "SELECT a.id AS i, b.id AS j, c.id AS k FROM s AS a, t AS b, u AS c WHERE a.i32 = b.i32 AND b.k = c.k"


@dataclass(frozen=True)
class Run:
    """Rows that came at once, and rows that came later."""

    prompt: Counter[tuple[Any, ...]]
    repaired: Counter[tuple[Any, ...]]
    join: LocalJoin

    @property
    def all(self) -> Counter[tuple[Any, ...]]:
        return self.prompt + self.repaired


class Chance:
    """Plans and slack at random: another for each batch."""

    def __init__(self, seed: int, most_slack_s: float) -> None:
        self.draw = np.random.default_rng(seed)
        self.most_slack_s = most_slack_s

    def shedding(self, join: LocalJoin) -> Shedding:
        portions = tuple((path.driver, self._portions(join, path.targets)) for path in join.plan.firsts)
        return Shedding(float(self.draw.random()), int(self.draw.integers(99)), strata=8, portions=portions)

    def slack_s(self) -> float:
        return 1.0 + self.most_slack_s * float(self.draw.random() ** 2)

    def charge(self, done: Observation) -> Observation:
        return replace(done, busy_s=0.05 + float(self.draw.random()))

    def _portions(self, join: LocalJoin, targets: tuple[str, ...]) -> tuple[Portion, ...]:
        shares = self.draw.dirichlet(np.ones(int(self.draw.integers(1, 4)))).tolist()
        parts = [Portion(share, tuple(self._lags(join, target) for target in targets)) for share in shares]
        if self.draw.random() < 0.5:
            parts[0] = Portion(shares[0], (None,) * len(targets), sampled=True)
        return tuple(parts)

    def _lags(self, join: LocalJoin, target: str) -> Lags | None:
        if self.draw.random() < 0.25:
            return None
        window = join.spec.stream(target).window
        reach = window.span_us if window.rows is None else window.rows
        edges = self.draw.integers(-(reach or 0), (reach or 0) + 2, 2 * int(self.draw.integers(0, 3)))
        ends = sorted(set(edges.tolist()))
        return tuple(zip(ends[::2], ends[1::2], strict=False))


def run(
    query: Any,
    tables: Mapping[str, pa.Table],
    arrivals: Any,
    chance: Chance,
    *,
    size: int | None,
    policy: str = "timestamp",
    repair: RepairSettings | None = None,
    through_json: bool = False,
) -> Run:
    prompt: Counter[tuple[Any, ...]] = Counter()
    repaired: Counter[tuple[Any, ...]] = Counter()
    now_s = 0.0
    with windrow.local(query, policy=policy, shed="repair", repair=repair, charge=chance.charge) as join:
        assert join.backlog is not None

        def take(found: pa.Table) -> None:
            assert found.schema == join.schema
            late = found.column("repaired")
            bare = found.drop_columns(["repaired"])
            prompt.update(rows_of(bare.filter(pa.compute.invert(late))))
            repaired.update(rows_of(bare.filter(late)))

        for batch in batches(tables, arrivals, size):
            for name, table in batch.items():
                join.push(name, table)
            join.plan = replace(join.plan, shedding=chance.shedding(join))
            now_s += chance.slack_s()
            take(join.step(now_s=now_s))
            if through_json:
                join.backlog.ledger = Ledger.from_values(json.loads(json.dumps(join.backlog.ledger.to_values())))
        join.plan = replace(join.plan, shedding=chance.shedding(join))
        take(join.finish())
    return Run(prompt, repaired, join)


def bound(text: str, tables: Mapping[str, pa.Table]) -> Any:
    schemas = {name: table.schema for name, table in tables.items()}
    return windrow.sql(text, streams=schemas, time=dict.fromkeys(tables, "ts"))


def expected_of(case: Case, query: Any) -> Counter[tuple[Any, ...]]:
    spec = query.spec()
    by_alias = {source.alias: case.tables[source.reads] for source in case.question.sources}
    windowed = [source.alias for source in case.question.sources if source.rows is not None]
    used = {alias: [column.name for column in spec.used_columns(alias)] for alias in by_alias}
    counts = row_counts(by_alias, used, windowed) if windowed else None
    return answer(case.question, case.tables, counts=counts).rows


@pytest.mark.parametrize(
    ("streams", "row_windows"), [(2, False), (3, False), (4, False), (2, True), (3, True), (4, True)]
)
@pytest.mark.parametrize(
    ("sizes", "examples"), [((7, 50, None), 12), pytest.param(BATCH_SIZES, 150, marks=pytest.mark.long)]
)
def test_prompt_and_repaired_rows_are_duckdbs(
    streams: int, row_windows: bool, sizes: tuple[int | None, ...], examples: int
) -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck), deadline=None)
    @given(
        cases(streams=streams, row_windows=row_windows),
        st.sampled_from(sizes),
        st.sampled_from(POLICIES),
        st.integers(0, 99),
        st.sampled_from(("oldest", "productive")),
        st.booleans(),
    )
    def check(case: Case, size: int | None, policy: str, seed: int, order: str, at_end: bool) -> None:
        query = bound(case.question.text, case.tables)
        chance = Chance(seed, most_slack_s=3.0)
        found = run(
            query, case.tables, shuffled(case.tables, seed), chance,
            size=size, policy=policy, repair=RepairSettings(order, at_end), through_json=seed % 3 == 0,
        )  # fmt: skip
        assert difference(found.all, expected_of(case, query)) == "", case.question.text
        seen.update({"prompt": bool(found.prompt), "repaired": bool(found.repaired)})

    check()
    assert min(seen["prompt"], seen["repaired"]) >= examples // 12


def test_rows_in_time_are_repaired_while_windows_move_on() -> None:
    """Windows are far shorter than the run, pieces wait, windows keep what they need and let go afterwards."""
    tables = {name: table_of(40, seed, span=80) for seed, name in enumerate(("s", "t", "u"))}
    for windows in ("9 SECONDS", "a ROWS 8, b 12 SECONDS, c ROWS 9"):
        text = f"{TEXT} WINDOW {windows} LATENESS 3 SECONDS"
        query = bound(text, tables)
        case = Case(question(text), tables, 0)
        for place, policy in enumerate(POLICIES):
            arrivals = in_time(tables, jitter_us=2 * SECOND, seed=place)
            found = run(query, tables, arrivals, Chance(place, 0.05), size=7, policy=policy)
            assert difference(found.all, expected_of(case, query)) == "", (windows, policy)
            assert found.prompt
            assert found.repaired


def test_the_bound_forces_forgetting_and_says_so() -> None:
    tables = {name: table_of(60, seed, span=60) for seed, name in enumerate(("s", "t", "u"))}
    text = f"{TEXT} WINDOW 9 SECONDS LATENESS 4000 SECONDS"
    exact = answer(question(text), tables).rows
    settings_ = RepairSettings(at_end=True, most=12)
    found = run(bound(text, tables), tables, shuffled(tables, 1), Chance(3, 0.0), size=7, repair=settings_)
    report = found.join.report.repair
    assert report is not None
    assert min(report.forgotten_pieces, report.forgotten_rows) > 0
    assert report.repaired_pieces <= 12
    assert report.results == found.repaired.total() > 0
    assert not found.all - exact
    assert found.all.total() < exact.total()


def test_strata_looked_at_pair_by_pair_are_those_searched_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = {name: table_of(40, seed, span=40) for seed, name in enumerate(("s", "t", "u"))}
    for windows in ("9 SECONDS", "a ROWS 8, b 12 SECONDS, c ROWS 9"):
        query = bound(f"{TEXT} WINDOW {windows} LATENESS 3 SECONDS", tables)
        arrivals = in_time(tables, jitter_us=2 * SECOND, seed=3)
        end = RepairSettings(at_end=True)
        found = run(query, tables, arrivals, Chance(2, 0.0), size=7, repair=end)
        with monkeypatch.context() as patch:
            patch.setattr("windrow.run.reach.MOST_STRATA", 0)
            by_pair = run(query, tables, arrivals, Chance(2, 0.0), size=7, repair=end)
        assert found.prompt == by_pair.prompt != Counter()
        assert found.repaired == by_pair.repaired != Counter()


def test_under_a_memory_limit_what_is_found_is_right_and_what_was_let_go_is_counted() -> None:
    tables = {name: table_of(60, seed, span=120) for seed, name in enumerate(("s", "t", "u"))}
    text = f"{TEXT} WINDOW 20 SECONDS LATENESS 3 SECONDS"
    exact = answer(question(text), tables).rows
    found: Counter[tuple[Any, ...]] = Counter()
    end = RepairSettings(at_end=True)
    with windrow.local(bound(text, tables), throttle=0.5, shed="repair", repair=end, memory="8KB") as join:
        for number, batch in enumerate(batches(tables, in_time(tables), 20)):
            for name, table in batch.items():
                join.push(name, table)
            found.update(rows_of(join.step(now_s=10.0 * number).drop_columns(["repaired"])))
        found.update(rows_of(join.finish().drop_columns(["repaired"])))
        report = join.report
    assert not found - exact
    assert report.memory is not None
    assert report.memory.let_go > 0


def test_a_controlled_join_is_repaired_by_the_end() -> None:
    rows = generate(cameras(30, (0, 3), (2, 2)), duration_s=30, seed=2)
    text = "SELECT a.id AS i, b.id AS j FROM cam1 AS a, cam2 AS b WHERE ABS(a.x - b.x) <= 3 WINDOW 8 SECONDS"
    exact = rows_of(windrow.local(windrow.sql(text, rows), inputs=[rows]).__iter__().__next__())
    query = windrow.sql(text, rows)
    found: Counter[tuple[Any, ...]] = Counter()
    late = 0
    with windrow.local(query, throttle=0.3, shed="repair", control=ControlSettings(interval_s=2.0)) as join:
        for number in range(15):
            for name, table in rows.items():
                size = len(table) // 15 + 1
                join.push(name, table.slice(number * size, size))
            step = join.step(now_s=2.0 * (number + 1)) if number < 14 else join.finish()
            found.update(rows_of(step.drop_columns(["repaired"])))
            late += pa.compute.sum(step.column("repaired")).as_py() or 0
        report = join.report.repair
    assert difference(found, exact) == ""
    assert report is not None
    assert report.open_pieces == 0
    assert report.results == late > 0


def overloaded_then_calm(throttle: Any = "auto") -> tuple[Simulated, Simulated]:
    """A rush in the first 20 of 160 seconds, on a machine for which that is twice too much."""
    busy = generate(cameras(60, (0, 3), (2, 2)), duration_s=20, seed=4)
    calm = generate(cameras(12, (0, 3), (2, 2)), duration_s=140, seed=5)
    rows = {}
    for name in busy:
        later = calm[name]
        place = later.schema.get_field_index("ts")
        moved = pa.compute.add(later["ts"].cast(pa.int64()), 20 * SECOND).cast(later["ts"].type)
        rows[name] = pa.concat_tables([busy[name], later.set_column(place, later.schema.field(place), moved)])
    text = "SELECT a.id AS i, b.id AS j FROM cam1 AS a, cam2 AS b WHERE ABS(a.x - b.x) <= 3 WINDOW 10 SECONDS"
    query = windrow.sql(text, rows)
    fast = Machine(REFERENCE.scaled(5000), speed=1000)
    exact = simulate(query, rows, fast, keep_results=True)
    first = replace(exact, steps=tuple(step for step in exact.steps if 10 < step.begin_s <= 20))
    machine = replace(fast, speed=fast.speed * first.load() / 2)
    options = {"throttle": throttle, "shed": "repair", "costs": machine.costs}
    return exact, simulate(query, rows, machine, keep_results=True, **options)


def test_after_an_overload_all_is_repaired_in_time_that_is_left_over() -> None:
    exact, shed = overloaded_then_calm()
    rows = pa.concat_tables(shed.tables)
    late = rows.column("repaired")
    assert difference(rows_of(rows.drop_columns(["repaired"])), rows_of(pa.concat_tables(exact.tables))) == ""
    assert pa.compute.sum(late).as_py() > 0.05 * exact.results
    repairs = [step for step in shed.steps if step.observation.repaired.pieces]
    assert len(repairs) > 5
    assert all(step.end_s - step.begin_s <= 1.0 for step in repairs)
    assert shed.steps[-1].observation.repaired.pieces == 0
    assert shed.steps[-1].shedding.throttle == 1.0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"shed": "repair", "throttle": 0.5, "control": ControlSettings(policy="drop")}, "dropped at random"),
        ({"throttle": 0.5, "repair": RepairSettings()}, "nothing is repaired"),
        ({"shed": "later"}, "cannot be treated as 'later'"),
    ],
)
def test_what_cannot_be_repaired_is_refused(options: dict[str, Any], says: str) -> None:
    tables = {name: table_of(3, 1) for name in ("s", "t", "u")}
    with pytest.raises(UsageError, match=says):
        windrow.local(bound(f"{TEXT} WINDOW 9 SECONDS", tables), **options)


def test_settings_and_names_that_cannot_be() -> None:
    tables = {"s": table_of(3, 1), "t": table_of(3, 2)}
    query = bound("SELECT a.id AS repaired FROM s AS a, t AS b WINDOW 1 SECONDS", tables)
    with pytest.raises(UsageError, match="there is a result column 'repaired' already"):
        windrow.local(query, shed="repair")
    with pytest.raises(UsageError, match="in the order 'newest'"):
        RepairSettings(order="newest")
    with pytest.raises(UsageError, match="cannot hold 0 pieces"):
        RepairSettings(most=0)
