"""Regulation beside harvesting: what each promises, which is taken, and what becomes of it under a virtual clock."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import pytest

import windrow
from windrow.control.controller import Controller, ControlSettings
from windrow.control.observation import Observation
from windrow.control.regulating import Budget, Rows, budget_of, let_in_after, regulated, regulates
from windrow.control.throttle import Load
from windrow.plan.cost import Statistics, StepCost, StepStatistics, StreamStatistics
from windrow.plan.order import plan_query, with_alternatives
from windrow.plan.random_drop import RandomDrop
from windrow.plan.regulation import regulated_hz
from windrow.plan.shedding import Shedding
from windrow.plan.work import REFERENCE
from windrow.query.builder import Join
from windrow.run.options import settings_of
from windrow.run.simulate import Machine, Simulated, simulate
from windrow.streams.synthetic import cameras, generate

TEXT = "SELECT a.id AS i, b.id AS j FROM cam1 AS a, cam2 AS b WHERE ABS(a.x - b.x) <= 2 WINDOW 10 SECONDS"
ROWS = generate(cameras(30, (0, 0), (2000, 2000)), 40, seed=1)
DEAR_ROWS = replace(REFERENCE, merge_row_s=1e-4, index_row_s=5e-4)
SETTINGS = ControlSettings(interval_s=3.0, bins=5, sample=0.2)


def query() -> Join:
    return windrow.sql(TEXT, streams=ROWS)


@cache
def run(method: str, policy: str = "auto") -> Simulated:
    """Three times as much work as there is time for."""
    dear = Machine(DEAR_ROWS if method == "sorted" else REFERENCE.scaled(20_000))
    full = simulate(query(), ROWS, dear, methods=[method])
    slow = dear.overloaded(full, 3.0, after_s=15)
    control = replace(SETTINGS, policy=policy)
    return simulate(query(), ROWS, slow, methods=[method], throttle="auto", control=control)


def test_where_rows_are_dear_fewer_are_let_in_and_the_join_keeps_up() -> None:
    steps = run("sorted").steps
    assert all(step.shedding.keep for step in steps if step.begin_s > 15)
    assert steps[-1].end_s - steps[-1].begin_s < 3
    assert 0 < steps[-1].shedding.work < 1
    assert run("sorted").found(15) > 2 * run("sorted", "harvest").found(15) > 0


def test_where_conditions_are_dear_all_rows_are_let_in() -> None:
    found = run("loop")
    assert not any(step.shedding.keep for step in found.steps)
    assert found.found(15) == run("loop", "harvest").found(15)
    assert any(step.shedding.restricts for step in found.steps)


def test_decisions_can_be_replayed_and_go_on_after_a_restart() -> None:
    steps = run("sorted").steps
    spec = query().spec()
    plan = with_alternatives(spec, plan_query(spec, methods=["sorted"]), ["sorted"])
    costs = DEAR_ROWS.slowed(1 / 3)
    log = []
    one = Controller(spec, plan, SETTINGS, costs)
    for step in steps:
        log.append(one.decide(step.observation.now_s))
        one.observe(step.observation)
        assert Shedding.from_values(json.loads(json.dumps(log[-1].to_values()))) == log[-1]
        other = Controller(spec, plan, SETTINGS, costs)
        other.restore(json.loads(json.dumps(one.to_values())))
        assert other.to_values() == one.to_values()
        one = other
    again = Controller(spec, plan, SETTINGS, costs)
    for step, decided in zip(steps, log, strict=True):
        assert again.decide(step.observation.now_s) == decided
        again.observe(Observation.from_values(json.loads(json.dumps(step.observation.to_values()))))
    assert any(decided.keep for decided in log)


def join_of(rates_hz: tuple[float, ...], a_probe: float) -> Statistics:
    cost = StepCost(a_probe, 0.0, 0.0)
    others = [[k for k in range(len(rates_hz)) if k != driver] for driver in range(len(rates_hz))]
    steps = tuple(tuple(StepStatistics(k, 0.01, (1.0,), cost=cost) for k in found) for found in others)
    return Statistics(tuple(StreamStatistics(hz, 4.0) for hz in rates_hz), steps)


@pytest.mark.parametrize("rates_hz", [(80.0, 20.0), (5.0, 100.0), (5.0, 100.0, 60.0)])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_where_rows_are_all_there_is_to_pay_the_rates_are_those_of_the_paper(
    rates_hz: tuple[float, ...], share: float
) -> None:
    """KN-15 and KN-17, by the general optimum."""
    service_hz = share * sum(rates_hz)
    budget = Budget(1e-12, tuple(0.01 * hz for hz in rates_hz), 0.01 * service_hz)
    kept = regulated(join_of(rates_hz, 1e-18), budget).keep
    found = [share * hz for share, hz in zip(kept, rates_hz, strict=True)]
    assert found == pytest.approx(regulated_hz(rates_hz, service_hz), rel=1e-3)


def test_a_budget_is_what_fits_whatever_was_done_before() -> None:
    """Half of the time goes to rows; regulated, half of the rows are let in, so a quarter does."""
    rows = (Rows(0.01, 25.0, 12.5), Rows(0.01, 25.0, 12.5))
    load = Load(busy_s=0.9, span_s=1.0, fixed_s=0.6)
    before = budget_of(0.8, load, 1.0, rows, regulated=False)
    now = budget_of(0.8, load, 1.0, rows, regulated=True)
    assert (*before.rows_s, before.room_s, before.rest_s) == pytest.approx((0.25, 0.25, 1.3, 0.1))
    assert (now.room_s, now.rest_s) == pytest.approx((1.05, 0.35))
    assert (before.harvest, now.harvest) == pytest.approx((0.8, 0.55))
    assert budget_of(0.3, None, 1.0, rows, regulated=False) == Budget(1.0, (0.0, 0.0), 0.3)


def test_the_way_taken_is_kept_until_the_other_is_clearly_better() -> None:
    budget = Budget(probing_s=0.4, rows_s=(0.1, 0.1), room_s=0.3)
    drop = RandomDrop((0.5, 0.5), cost=0.2, output=5.0, recall=0.25, probing=0.1)
    assert [regulates(recall, drop, budget, before=False) for recall in (0.24, 0.245, 0.255, 0.26)] == [
        True, False, False, False,
    ]  # fmt: skip
    assert [regulates(recall, drop, budget, before=True) for recall in (0.24, 0.245, 0.255, 0.26)] == [
        True, True, True, False,
    ]  # fmt: skip


def test_a_harvest_that_cannot_keep_up_promises_less() -> None:
    """Rows alone take twice the time there is: of what comes in a second, half gets its turn."""
    budget = Budget(probing_s=1e-6, rows_s=(0.5, 0.5), room_s=0.5)
    drop = RandomDrop((0.5, 0.5), cost=0.5, output=5.0, recall=0.25, probing=0.0)
    assert not regulates(0.6, drop, budget, before=False)
    assert regulates(0.4, drop, budget, before=False)


def test_what_windows_hold_follows_what_is_let_in() -> None:
    held, windows_s = {"a": 1.0, "b": 1.0}, {"a": 8.0, "b": 2.0}
    for _ in range(3):
        held = let_in_after(held, Shedding(keep=(("a", 0.2), ("b", 0.5))), 2.0, windows_s)
    assert held["b"] == 0.5
    assert 0.2 < held["a"] < 0.6


def test_rows_are_let_in_where_what_they_find_is_asked_for_later_or_counted() -> None:
    repairs = settings_of("auto", None, query().spec(), "timestamp", "repair", ("drop", "repair"))
    assert repairs is not None
    assert repairs.policy == "harvest"
    text = "SELECT COUNT(*) AS n FROM cam1 AS a, cam2 AS b WHERE a.id < b.id WINDOW 5 SECONDS EVERY 5 SECONDS"
    counts = windrow.sql(text, streams=ROWS)
    counted = settings_of("auto", None, counts.spec(), "timestamp")
    assert counted is not None
    assert counted.policy == "harvest"
    plain = settings_of("auto", None, query().spec(), "timestamp")
    assert plain is not None
    assert plain.may_regulate
    assert not replace(plain, memory_bytes=1000).may_regulate
    assert not replace(plain, fixed=0.5).may_regulate
