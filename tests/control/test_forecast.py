"""What is predicted of a join agrees with what a simulation of it measures."""

from __future__ import annotations

import math
from dataclasses import replace

import pyarrow as pa
import pytest

import windrow
from windrow.control.forecast import Forecast, Known, forecast
from windrow.plan.cost import StepStatistics, StreamStatistics
from windrow.plan.work import REFERENCE, WorkCosts
from windrow.query.builder import Join
from windrow.run.look import look
from windrow.run.simulate import Machine, simulate
from windrow.streams.synthetic import cameras, generate

TEXT = "SELECT a.id AS i, b.id AS j FROM cam1 AS a, cam2 AS b WHERE ABS(a.x - b.x) <= 1 WINDOW 10 SECONDS"
COSTS = replace(REFERENCE.scaled(2000), batch_s=0.0)
"""Searching is what costs: beside it the little that a forecast leaves out, such as merges, is lost."""


@pytest.fixture(scope="module")
def rows() -> dict[str, pa.Table]:
    return generate(cameras(60, (0, 4), (2, 2)), duration_s=90, seed=1)


@pytest.fixture(scope="module")
def query(rows: dict[str, pa.Table]) -> Join:
    return windrow.sql(TEXT, streams=rows)


@pytest.fixture(scope="module")
def seen(query: Join, rows: dict[str, pa.Table]) -> Known:
    found = look(query, rows, methods=["loop"], costs=COSTS)
    assert found is not None
    assert found.is_long
    return found.known


def test_load_and_results_are_those_of_a_run(query: Join, rows: dict[str, pa.Table], seen: Known) -> None:
    told = forecast(seen)
    ran = simulate(query, rows, Machine(COSTS, speed=1e6), methods=["loop"])
    assert told.load == pytest.approx(ran.load(after_s := 20) * 1e6, rel=0.15)
    assert told.results_hz == pytest.approx(ran.found(after_s, 90) / 70, rel=0.15)
    assert told.load == pytest.approx(math.fsum(told.parts.values()))


def test_recall_beyond_saturation_is_that_of_a_throttled_run(query: Join, rows: dict[str, pa.Table]) -> None:
    exact = simulate(query, rows, Machine(COSTS, speed=1e6), methods=["loop"])
    slow = Machine(COSTS, speed=1e6).overloaded(exact, 3, after_s=20)
    seen = look(query, rows, methods=["loop"], costs=slow.pace)
    assert seen is not None
    shed = simulate(query, rows, slow, methods=["loop"], throttle="auto")
    told = forecast(seen.known)
    assert told.recall == pytest.approx(shed.found(30, 90) / exact.found(30, 90), abs=0.12)
    assert 1 / 3 < told.recall < 1


def test_at_the_rate_of_saturation_the_load_is_one(seen: Known) -> None:
    told = forecast(seen)
    assert told.saturation is not None
    there = forecast(seen.times(told.saturation))
    assert there.load == pytest.approx(1.0, rel=1e-6)
    assert there.saturation == pytest.approx(1.0, rel=1e-6)
    recalls = [overload.recall for overload in told.overloads]
    assert recalls == sorted(recalls, reverse=True)
    assert all(overload.throttle < overload.recall < 1 for overload in told.overloads)


def known(rates: tuple[float, float], costs: WorkCosts = REFERENCE, by_rows: frozenset[str] = frozenset()) -> Known:
    streams = tuple(StreamStatistics(rate, 10.0) for rate in rates)
    cost = REFERENCE.step("loop")
    options = (
        ((StepStatistics(1, 0.01, (1.0, 1.0), cost=cost),),),
        ((StepStatistics(0, 0.01, (1.0, 1.0), cost=cost),),),
    )
    return Known(("a", "b"), streams, options, {"a": 24.0, "b": 8.0}, costs, by_rows)


def test_rates_can_be_wished() -> None:
    told = forecast(known((100, 10)).at({"b": 50.0}))
    assert {name: stream.rate_hz for name, stream in told.streams.items()} == {"a": 100, "b": 50.0}
    assert told.streams["b"].window_rows == 500
    assert told.memory_bytes == 1000 * 24 + 500 * 8
    assert told.results_hz == pytest.approx(100 * 5 + 50 * 10)
    (step,) = told.paths["a"]
    assert (step.stream, step.probes, step.reach, step.matches) == ("b", 1.0, 500.0, 5.0)


def test_a_window_of_rows_holds_as_many_at_any_rate() -> None:
    told = forecast(known((100, 10), by_rows=frozenset("b")).at({"b": 1000.0}))
    assert told.streams["b"].window_rows == pytest.approx(100)


def test_batches_alone_can_saturate() -> None:
    told: Forecast = forecast(known((1, 1), replace(REFERENCE, batch_s=2.0)))
    assert (told.saturation, told.overloads, told.recall) == (None, (), 0.0)
