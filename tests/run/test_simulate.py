"""The virtual clock: the same again on every run, what the in-process join finds, charged by what was done."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

import windrow
from windrow.control.controller import ControlSettings
from windrow.errors import UsageError
from windrow.plan.work import REFERENCE
from windrow.query.builder import Join
from windrow.run.simulate import Machine, Simulated, simulate
from windrow.streams.synthetic import cameras, generate

TEXT = "SELECT a.id AS i, b.id AS j FROM cam1 AS a, cam2 AS b WHERE ABS(a.x - b.x) <= 2 WINDOW 10 SECONDS"
FAST = Machine(REFERENCE.scaled(20_000))


@cache
def rows() -> dict[str, pa.Table]:
    return generate(cameras(40, (0, 5), (2, 2)), duration_s=30, seed=1)


def query() -> Join:
    return windrow.sql(TEXT, streams=rows())


def play(machine: Machine = FAST, **options: Any) -> Simulated:
    return simulate(query(), rows(), machine, methods=["loop"], **options)


def pairs(tables: Any) -> list[tuple[int, int]]:
    found = pa.concat_tables(tables)
    return sorted(zip(found["i"].to_pylist(), found["j"].to_pylist(), strict=True))


def test_a_fast_machine_finds_all() -> None:
    with windrow.local(query(), methods=["loop"]) as join:
        for name, table in rows().items():
            join.push(name, table)
        expected = pairs([join.step(), join.finish()])
    exact = play(keep_results=True)
    assert pairs(exact.tables) == expected
    assert exact.results == len(expected) == exact.found() == exact.found(0, 10) + exact.found(10)
    assert [step.begin_s for step in exact.steps][:5] == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_time_is_what_the_work_costs() -> None:
    exact = play()
    for step in exact.steps:
        held = step.observation
        assert step.end_s - step.begin_s == pytest.approx(held.busy_s)
        seconds = sum(part.seconds for tally in held.joined.others.values() for part in tally.steps)
        assert 0 <= seconds < held.busy_s
    half = play(Machine(FAST.costs, speed=0.5))
    assert half.load() == pytest.approx(2 * exact.load())
    dearer = play(Machine(FAST.costs.scaled(2)))
    assert exact.load() < dearer.load() < 2 * exact.load()


def test_an_overload_is_as_asked_and_batches_follow_at_once() -> None:
    exact = play()
    slow = FAST.overloaded(exact, 3.0, after_s=12)
    assert play(slow).load() > 1.5
    late = play(slow).steps
    assert all(one.end_s == pytest.approx(other.begin_s) for one, other in pairwise(late[20:]))
    shed = play(slow, throttle="auto", control=ControlSettings(interval_s=3.0))
    assert shed.load(15) < 1.1
    assert 0.5 * exact.found(15) < shed.found(15) <= exact.found()
    assert shed.throttles()[0] == (1.0, 1.0)
    assert shed.throttles()[-1][1] < 0.8


@pytest.mark.parametrize("options", [{}, {"throttle": "auto"}, {"throttle": 0.4}])
def test_the_same_again(options: dict[str, Any]) -> None:
    slow = FAST.overloaded(play(), 2.0)
    one, other = (play(slow, keep_results=True, **options) for _ in range(2))
    assert one.steps == other.steps
    assert [table.to_pylist() for table in one.tables] == [table.to_pylist() for table in other.tables]


def test_full_buffers_drop_the_oldest_rows() -> None:
    slow = FAST.overloaded(play(), 4.0)
    run = play(slow, buffer_rows=60)
    assert run.steps[-1].dropped > 0
    assert play(slow).steps[-1].dropped == 0


def test_a_shorter_run_and_shorter_batches() -> None:
    run = play(batch_s=0.5, duration_s=10)
    assert run.duration_s == 10
    assert [step.begin_s for step in run.steps][:3] == [0.5, 1.0, 1.5]
    taken = sum(arrival.rows for step in run.steps for arrival in step.observation.arrivals.values())
    assert taken == pytest.approx(2 * 40 * 10, rel=0.15)


@pytest.mark.parametrize("wrong", [{"batch_s": 0.0}, {"machine": Machine(speed=0.0)}])
def test_time_has_to_go_on(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="give both above 0"):
        play(**wrong)


def test_rows_of_every_source_are_needed() -> None:
    with pytest.raises(UsageError, match="there are no rows of 'cam2'"):
        simulate(query(), {"cam1": rows()["cam1"]})
