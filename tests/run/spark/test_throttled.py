"""A throttled join on Spark, played: by its written plans it gives what the join in one process gives by the same."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.duck import rows_of
from tests.run.spark.played import Played, PlayedSpark, Rows, Way
from tests.run.spark.test_worker import QUESTIONS, TIMES, batches_of, counts_of, in_process, joined
from windrow.control.controller import ControlSettings
from windrow.control.observation import Joined, PathTally
from windrow.control.sample import Sample
from windrow.plan.order import plan_query, with_alternatives
from windrow.plan.shedding import Shedding
from windrow.query.builder import Join
from windrow.run.events import read_events
from windrow.run.local import LocalJoin
from windrow.run.options import settings_of

pytestmark = pytest.mark.usefixtures("interpreted")

CONTROL = ControlSettings(interval_s=2.0, sample=0.4, bins=5)


def throttled(query: Join, folder: Path, way: Way, throttle: float = 0.3, **setting: Any) -> Played:
    """A played join that is controlled; its clock moves on by three seconds a batch."""
    spec = query.spec()
    plan = plan_query(spec, policy=way.policy, slices=way.slices, slice_by=way.slice_by)
    control = settings_of(throttle, CONTROL, spec, way.policy)
    ticks = itertools.count(1)
    given = {"plan": with_alternatives(spec, plan), "control": control, "clock": lambda: 3.0 * next(ticks)}
    return Played(query, folder, way, **{**given, **setting})


def replayed(query: Join, policy: str, log: list[Shedding]) -> tuple[list[Rows], list[Joined]]:
    """The rows of each batch in one process, by the plans of a log, and what probing did."""
    found, work = [], []
    with LocalJoin(query, throttle=0.3, control=CONTROL, policy=policy) as join:
        bins = join.controller.bins if join.controller is not None else {}
        for tables, shedding in zip(batches_of(query.sources), log, strict=True):
            assert join.controller is not None
            join.controller.shedding = shedding
            join.controller._batches.clear()
            for name, table in tables.items():
                join.push(name, table)
            found.append(rows_of(join.step(now_s=0)))
            assert join.observation is not None
            work.append(join.observation.joined)
        assert bins
    return found, work


def told(tally: PathTally) -> tuple[Any, ...]:
    """What does not depend on how the work was shared out."""
    matches = tuple(step.matches for step in tally.steps)
    return tally.drivers, tally.results, matches, tally.lags, round(tally.missed, 6)


def figures(sample: Sample) -> dict[str, Any]:
    """What is known of what was left out; squares too, though the results of a row are found by several tasks."""
    return {name: pytest.approx(value, rel=1e-9, abs=1e-6) for name, value in sample.to_values().items()}


def searched(tallies: Iterable[Mapping[str, PathTally]]) -> int:
    return sum(step.searched for held in tallies for tally in held.values() for step in tally.steps)


@pytest.mark.parametrize(
    ("slices", "policy", "hops", "slice_by"),
    [(1, "timestamp", True, "time"), (2, "round_robin", False, "time"), (3, "timestamp", True, "time"),
     (3, "timestamp", True, "auto")],
    ids=["one slice", "one task", "by slices of time", "by slices of values"],
)  # fmt: skip
@pytest.mark.parametrize("question", QUESTIONS)
def test_batches_give_the_rows_of_their_plans(
    question: str, slices: int, policy: str, hops: bool, slice_by: str, tmp_path: Path
) -> None:
    query = joined(QUESTIONS[question])
    way = Way(slices, slice_by=slice_by, policy=policy, hops=hops, fan_in=2)
    played = throttled(query, tmp_path, way, spark=PlayedSpark(twice=True))
    rows, log, work = [], [], []
    for batch, tables in enumerate(batches_of(query.sources)):
        rows.append(played.run(batch, tables))
        log.append(played.runner.steering.shedding)
        assert played.runner.steering.observation is not None
        work.append(played.runner.steering.observation.joined)
    expected, expected_work = replayed(query, policy, log)
    assert rows == expected
    for ours, theirs in zip(work, expected_work, strict=True):
        for mine, other in ((ours.sampled, theirs.sampled), (ours.others, theirs.others)):
            assert {name: told(tally) for name, tally in mine.items()} == {
                name: told(tally) for name, tally in other.items()
            }
        assert {driver: figures(sample) for driver, sample in ours.samples.items()} == {
            driver: figures(sample) for driver, sample in theirs.samples.items()
        }
    assert sum(sample.matches for each in work for sample in each.samples.values()) > 0
    both = [searched(each for one in held for each in (one.sampled, one.others)) for held in (work, expected_work)]
    if slice_by == "time":
        assert both[0] == both[1]
    else:  # what is passed over on slices of values is estimated
        assert 0.7 * both[1] < both[0] < 1.3 * both[1]
    exact, _ = in_process(query)
    assert all(not batch - whole for batch, whole in zip(rows, exact, strict=True))
    assert 0 < sum(batch.total() for batch in rows) < sum(batch.total() for batch in exact)
    assert sum(shedding.restricts for shedding in log) > len(log) / 2


def test_a_throttle_of_one_is_the_exact_join(tmp_path: Path) -> None:
    query = joined(QUESTIONS["three"])
    played = throttled(query, tmp_path, Way(3), throttle=1.0)
    expected, _ = in_process(query)
    assert [played.run(batch, tables) for batch, tables in enumerate(batches_of(query.sources))] == expected


def test_a_batch_that_is_run_again_follows_its_written_plan(tmp_path: Path) -> None:
    """The controller would now say something else: it is given another throttle."""
    query = joined(TIMES)
    played = throttled(query, tmp_path, Way(2))
    again = 0
    for batch, tables in enumerate(batches_of(query.sources)):
        rows = played.run(batch, tables)
        followed = played.runner.steering.shedding
        if batch in (3, 6) and followed.restricts:
            (tmp_path / "commits" / f"{batch}.json").unlink()
            control = played.setting.control
            assert control is not None
            played.restart(control=replace(control, fixed=0.9, seed=99))
            assert played.run(batch, tables) == rows
            assert played.runner.steering.shedding == followed
            played.restart(control=control)
            again += 1
    assert again == 2


def test_the_controller_goes_on_after_a_restart(tmp_path: Path) -> None:
    query = joined(QUESTIONS["two"])
    played = throttled(query, tmp_path, Way(2))
    for batch, tables in enumerate(batches_of(query.sources)[:4]):
        played.run(batch, tables)
    before = played.runner.steering.to_values()
    played.restart()
    assert played.runner._is_done(4) is False
    after = played.runner.steering.to_values()
    assert json.loads(json.dumps(after)) == json.loads(json.dumps(before))
    assert after["decisions"] > 0


def test_the_throttle_may_change_with_a_restart(tmp_path: Path) -> None:
    query = joined(QUESTIONS["three"])
    expected, _ = in_process(query)
    exact: list[Rows] = []
    played = Played(query, tmp_path, Way(2), clock=lambda: 0.0)
    batches = batches_of(query.sources)
    for batch, tables in enumerate(batches[:4]):
        exact.append(played.run(batch, tables))
    assert exact == expected[:4]
    shed = throttled(query, tmp_path, Way(2))
    played.setting = replace(shed.setting, sink=played.setting.sink)
    played.restart()
    rows = [played.run(batch, tables) for batch, tables in enumerate(batches[4:], start=4)]
    assert all(not ours - whole for ours, whole in zip(rows, expected[4:], strict=True))
    assert 0 < sum(map(Counter.total, rows)) < sum(batch.total() for batch in expected[4:])


def test_each_batch_tells_what_it_did(tmp_path: Path) -> None:
    query = joined(QUESTIONS["three"])
    played = throttled(query, tmp_path, Way(2))
    found = [played.run(batch, tables) for batch, tables in enumerate(batches_of(query.sources))]
    (tmp_path / "commits" / "7.json").unlink()
    played.restart()
    assert played.run(7, batches_of(query.sources)[7]) == found[7]
    events = list(read_events(played.storage))
    assert [event["batch"] for event in events] == list(range(len(found)))
    assert [event["results"] for event in events] == [rows.total() for rows in found]
    assert [event["plan"] is None for event in events] == [False, *[True] * 6, False]
    last = events[-1]
    assert Shedding.from_values(last["shedding"]) == played.runner.steering.shedding
    assert {name: held["rows"] for name, held in last["streams"].items()} == {
        name: counts.rows for name, counts in counts_of(played).items()
    }
    assert all(len(held["edges"]) == len(held["results_a_row"]) + 1 for held in last["learned"]["a"].values())
    assert [event["batch"] for event in read_events(played.storage, from_batch=5)] == [5, 6, 7]


def test_random_drop_keeps_the_same_rows_in_tasks_and_in_one_process(tmp_path: Path) -> None:
    query = joined(QUESTIONS["three"])
    dropping = replace(CONTROL, policy="drop")
    played = throttled(query, tmp_path, Way(3), control=replace(dropping, fixed=0.5))
    rows, log = [], []
    for batch, tables in enumerate(batches_of(query.sources)):
        rows.append(played.run(batch, tables))
        log.append(played.runner.steering.shedding)
    expected, _ = replayed(query, "timestamp", log)
    assert rows == expected
    assert any(share < 1 for shedding in log for _, share in shedding.keep)
