"""The controller: the same observations give the same decisions, also after a restart; and what it does when."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache, partial

import pyarrow as pa
import pytest

import windrow
from windrow.control.controller import Controller, ControlSettings
from windrow.control.observation import Observation
from windrow.errors import PlanError
from windrow.plan.order import plan_query, with_alternatives
from windrow.plan.shedding import ALL, Shedding
from windrow.plan.work import REFERENCE
from windrow.query.builder import Join
from windrow.run.simulate import Machine, Simulated, simulate
from windrow.streams.synthetic import MIDNIGHT_US, cameras, generate

WHERE = "ABS(a.x - b.x) <= 2 AND ABS(b.x - c.x) <= 2 AND ABS(a.x - c.x) <= 2"
TEXT = f"SELECT a.id AS i, b.id AS j, c.id AS k FROM cam1 AS a, cam2 AS b, cam3 AS c WHERE {WHERE} WINDOW 10 SECONDS"
LOOPS = ("loop",)
SLOW = Machine(REFERENCE.scaled(16_000), speed=0.03)
SETTINGS = ControlSettings(interval_s=4.0, bins=8, sample=0.2)


@cache
def rows() -> dict[str, pa.Table]:
    """Streams whose lags change half way: first c comes after a, then b does."""
    first = generate(cameras(20, (6, 0, 0), (2, 2, 20)), 30, seed=1)
    then = generate(cameras(20, (0, 0, 6), (2, 20, 2)), 24, seed=2, start_us=MIDNIGHT_US + 30_000_000)
    return {name: pa.concat_tables([table, then[name]]) for name, table in first.items()}


def query() -> Join:
    return windrow.sql(TEXT, streams=rows())


@cache
def run(policy: str = "harvest") -> Simulated:
    settings = replace(SETTINGS, policy=policy)
    return simulate(query(), rows(), SLOW, methods=LOOPS, throttle="auto", control=settings)


def controller(settings: ControlSettings = SETTINGS) -> Controller:
    spec = query().spec()
    plan = with_alternatives(spec, plan_query(spec, methods=LOOPS), LOOPS)
    return Controller(spec, plan, settings, SLOW.pace)


def decided(found: Controller, batches: list[Observation]) -> list[Shedding]:
    decisions = []
    for batch in batches:
        decisions.append(found.decide(batch.now_s))
        found.observe(batch)
    return decisions


def batches(policy: str = "harvest") -> list[Observation]:
    return [step.observation for step in run(policy).steps]


@pytest.mark.parametrize("policy", ["harvest", "drop"])
def test_decisions_can_be_replayed_from_a_log(policy: str) -> None:
    log = [step.shedding for step in run(policy).steps]
    assert len(set(log)) > 5
    assert decided(controller(replace(SETTINGS, policy=policy)), batches(policy)) == log
    through_json = [Observation.from_values(json.loads(json.dumps(batch.to_values()))) for batch in batches(policy)]
    assert decided(controller(replace(SETTINGS, policy=policy)), through_json) == log


@pytest.mark.parametrize("policy", ["harvest", "drop"])
@pytest.mark.parametrize("stop", [0, 7, 23])
def test_a_restart_changes_nothing(policy: str, stop: int) -> None:
    settings = replace(SETTINGS, policy=policy)
    before, after = batches(policy)[:stop], batches(policy)[stop:]
    one, other = controller(settings), controller(settings)
    decided(one, before)
    other.restore(json.loads(json.dumps(one.to_values())))
    assert other.to_values() == one.to_values()
    assert decided(other, after) == decided(one, after)
    assert other.to_values() == one.to_values()


def test_the_throttle_follows_the_load_and_paths_the_streams() -> None:
    steps = run().steps
    assert steps[0].shedding.throttle == 1.0
    later = [step.shedding for step in steps if step.begin_s > 15]
    assert all(0 < shedding.throttle < 0.9 for shedding in later)
    taken = {step.begin_s: _paths(step.shedding) for step in steps}
    assert len(set(taken.values())) > 1
    switches = sum(one != other for one, other in zip(taken.values(), list(taken.values())[1:], strict=False))
    assert switches <= 6


def _paths(shedding: Shedding) -> tuple[tuple[str, int], ...]:
    """The path that the rows of each driver take that are not sampled."""
    return tuple(
        (driver, next(part.alternative for part in parts if not part.sampled)) for driver, parts in shedding.portions
    )


def test_a_fixed_throttle_stays_whatever_the_load() -> None:
    found = controller(replace(SETTINGS, fixed=0.25))
    assert {shedding.throttle for shedding in decided(found, batches())[8:]} == {0.25}
    found.restore(controller().to_values())
    assert found.throttle == 0.25


def test_a_fixed_throttle_is_the_share_of_the_work_that_is_done() -> None:
    """Although windows are filled unevenly: rows of one stream come in bursts."""
    times = {name: table["ts"].cast(pa.int64()).to_numpy() for name, table in rows().items()}
    bursts = {name: table.filter(pa.array(times[name] // 2_000_000 % 4 == 0)) for name, table in rows().items()}
    held = {**rows(), "cam3": bursts["cam3"]}
    play = partial(simulate, windrow.sql(TEXT, streams=held), held, Machine(SLOW.costs), methods=LOOPS)
    full, part = play(throttle=1.0, control=SETTINGS), play(throttle=0.4, control=SETTINGS)
    assert _pairs(part) / _pairs(full) == pytest.approx(0.4, rel=0.25)


def _pairs(found: Simulated) -> int:
    told = (step.observation.joined for step in found.steps if step.begin_s > 20)
    tallies = (tally for joined in told for held in (joined.sampled, joined.others) for tally in held.values())
    return sum(step.candidates for tally in tallies for step in tally.steps)


def test_between_intervals_only_a_long_batch_changes_something() -> None:
    found, calm = controller(), batches()[3]
    calm = replace(calm, busy_s=0.5, span_s=1.0)
    for second in range(40):
        found.observe(replace(calm, batch=second, now_s=float(second)))
        found.decide(second + 0.5)
    assert found.decisions == 10
    found.observe(replace(calm, batch=41, now_s=40.0, busy_s=3.0))
    found.decide(43.0)
    assert found.decisions == 11
    found.observe(replace(calm, batch=42, now_s=43.0, busy_s=3.0, span_s=3.0))
    found.decide(46.0)
    assert found.decisions == 11


def test_random_dropping_keeps_shares_and_harvests_nothing() -> None:
    shedding = run("drop").steps[-1].shedding
    assert [name for name, _ in shedding.keep] == ["a", "b", "c"]
    assert min(share for _, share in shedding.keep) < 1
    assert all(part.is_whole for _, parts in shedding.portions for part in parts)


def test_nothing_observed_leaves_nothing_out() -> None:
    assert not controller().decide(10.0).restricts
    assert controller().to_be_chosen() is None
    assert not ALL.restricts


def test_a_state_of_other_bins_is_left_aside_but_costs_and_the_throttle_stay() -> None:
    one, other = controller(), controller(replace(SETTINGS, bins=5))
    decided(one, batches())
    other.restore(json.loads(json.dumps(one.to_values())))
    assert other.throttle == one.throttle < 1
    assert other.fit.cost("a", 0) == one.fit.cost("a", 0)
    assert other.to_be_chosen() is None
    assert all(batch in batches() for batch in batches())
    assert not other.decide(1e9).restricts


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"policy": "guess"}, "no shedding policy 'guess'"),
        ({"sample": 1.0}, "a sample cannot be 1.0 of the rows"),
        ({"fixed": 0.0}, "not 0.0"),
        ({"fixed": 1.1}, "not 1.1"),
    ],
)
def test_settings_without_sense_are_refused(wrong: dict[str, object], says: str) -> None:
    with pytest.raises(PlanError, match=says):
        ControlSettings(**wrong)  # type: ignore[arg-type]


def test_the_papers_setting_of_the_sample() -> None:
    """GJ-23: a tenth of the rows is shredded, and an interval is 5 s."""
    assert (ControlSettings().sample, ControlSettings().interval_s) == (0.1, 5.0)
