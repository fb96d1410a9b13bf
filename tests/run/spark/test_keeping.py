"""Windows under a memory limit on Spark, played: never above it after a commit, nothing found that the exact join does
not find, the same rows from every attempt; and with a limit that is never reached, the exact join.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import windrow
from tests.oracle.duck import rows_of
from tests.run.spark.played import Played, PlayedSpark, Rows, Way
from windrow.control.controller import ControlSettings
from windrow.plan.order import plan_query, with_alternatives
from windrow.query.builder import Join
from windrow.run.events import read_events
from windrow.run.keeper import drawn, own_clock, with_memory
from windrow.run.options import settings_of
from windrow.run.spark.keeping import bytes_of, memory_of, unjoined_of
from windrow.run.spark.segments import read_with_indexes
from windrow.run.spark.thinning import Thinning, range_of

pytestmark = pytest.mark.usefixtures("interpreted")

ROWS, BATCHES, SPAN_S = 320, 8, 40
LIMIT = 75_000
"""Less than half of the windows, more than two batches."""
TWO = "SELECT a.id AS i, b.id AS j, a.s AS s, b.s AS t FROM s AS a, t AS b WHERE a.k = b.k "
THREE = "SELECT a.id AS i, b.s AS j, c.s AS k FROM s AS a, t AS b, u AS c WHERE a.k = b.k AND b.k = c.k AND a.s = b.s "
QUESTIONS = {
    "two streams": (TWO + "WINDOW 20 SECONDS", 0),
    "out of order": (TWO + "WINDOW a 20 SECONDS, b 15 SECONDS LATENESS 4 SECONDS", 4),
    "three streams": (THREE + "WINDOW 20 SECONDS", 0),
    "row windows": (TWO + "WINDOW a ROWS 150, b 20 SECONDS", 0),
    "windows without end": (TWO + "WINDOW 4000000 DAYS", 0),
}
WAYS = {
    "two streams": Way(1),
    "out of order": Way(3, fan_in=3),
    "three streams": Way(2, slice_by="hash"),
    "row windows": Way(2, hops=False),
    "windows without end": Way(2, fan_in=4),
}


def stream(seed: int, late_s: int) -> pa.Table:
    """Rows a few hundred bytes long, evenly over time, out of order by as much as `late_s`."""
    random = np.random.default_rng(seed)
    times_us = np.arange(ROWS) * (SPAN_S * 1_000_000 // ROWS)
    order = np.argsort(times_us + random.integers(0, late_s * 1_000_000 + 1, ROWS), kind="stable")
    rows = pa.table({
        "ts": pa.array(times_us, pa.timestamp("us")),
        "id": pa.array(np.arange(ROWS)),
        "k": pa.array(random.integers(0, 24, ROWS)),
        "s": pa.array([f"{n % 2}" * 400 for n in range(ROWS)]),
    })  # fmt: skip
    return rows.take(pa.array(order))


def question(kind: str) -> Join:
    text, late_s = QUESTIONS[kind]
    names = "stu" if kind == "three streams" else "st"
    return windrow.sql(text, streams={name: stream(seed, late_s) for seed, name in enumerate(names)})


def batches_of(query: Join) -> list[dict[str, pa.Table]]:
    size = ROWS // BATCHES
    return [{name: table.slice(k * size, size) for name, table in query.sources.items()} for k in range(BATCHES)]


def limited(kind: str, folder: Path, limit: int | None, spark: PlayedSpark | None = None, **setting: Any) -> Played:
    """A played join with a memory limit."""
    query, way = question(kind), setting.pop("way", WAYS[kind])
    spec = query.spec()
    plan = with_alternatives(spec, plan_query(spec, policy=way.policy, slices=way.slices, slice_by=way.slice_by))
    ticks = itertools.count(1)
    given = {
        "plan": plan,
        "control": with_memory(None, limit, spec),
        "clock": lambda: SPAN_S / BATCHES * next(ticks),
    }
    return Played(query, folder, way, spark, **{**given, **setting})


def ran(played: Played, kind: str, first: int = 0, end: int = BATCHES) -> tuple[list[Rows], list[int]]:
    """The rows of each batch, and the bytes of live segments after it."""
    found, sizes = [], []
    for batch, tables in enumerate(batches_of(question(kind))[first:end], start=first):
        found.append(played.run(batch, tables))
        sizes.append(bytes_of(played.state.live))
    return found, sizes


def exact(kind: str) -> list[Rows]:
    query = question(kind)
    with windrow.local(query) as join:
        found = []
        for batch, tables in enumerate(batches_of(query)):
            for name, table in tables.items():
                join.push(name, table)
            found.append(rows_of(join.step(now_s=(batch + 1) * SPAN_S / BATCHES)))
        return found


def total(found: list[Rows]) -> int:
    return sum(map(Counter.total, found))


def told(played: Played) -> dict[str, Any]:
    """How the limit was kept."""
    memory = memory_of(played.state)
    assert memory is not None
    return memory


def let_go(played: Played) -> Mapping[str, int]:
    return {name: stored["let_go"] for name, stored in played.state.memory["streams"].items()}


def entered(played: Played) -> dict[str, int]:
    gone = ("late", "bad", "ahead", "filtered")
    return {name: g.counts["rows"] - sum(g.counts[why] for why in gone) for name, g in played.state.gates.items()}


def stored(played: Played) -> dict[str, int]:
    return {name: sum(file.rows for _, held, file in played.files if held == name) for name in played.state.gates}


@pytest.mark.parametrize("kind", QUESTIONS)
def test_the_limit_holds_after_every_commit_and_nothing_else_is_found(kind: str, tmp_path: Path) -> None:
    free = limited(kind, tmp_path / "free", 10**9)
    whole, sizes = ran(free, kind)
    assert whole == exact(kind)
    assert set(let_go(free).values()) == {0}
    assert free.runner.keeping is not None
    assert free.runner.keeping.spans == ()
    limit = int(0.45 * max(sizes))
    played = limited(kind, tmp_path / "limited", limit)
    found, held = ran(played, kind)
    assert 0.7 * limit <= max(held) <= limit
    assert all(not one - other for one, other in zip(found, whole, strict=True))
    assert 0 < total(found) < total(whole)
    assert played.state.results == total(found)
    memory = told(played)
    assert (memory["limit_bytes"], memory["largest_bytes"], memory["held_bytes"]) == (limit, max(held), held[-1])
    *_, event = read_events(played.storage)
    unjoined = unjoined_of(played.state)
    assert event["unjoined"] == unjoined.to_values()
    assert (unjoined.let_go, unjoined.lost_results) == (memory["let_go"], memory["lost_results"])
    assert unjoined.let_go == sum(stream["let_go"] for stream in event["streams"].values()) > 0
    assert (memory["crowded"], memory["let_go"]) == (0, sum(let_go(played).values()))
    assert sum(batch["let_go"] for batch in played.runner.progress) == memory["let_go"] > 0
    for name, count in stored(played).items():
        assert count + let_go(played)[name] <= entered(played)[name]
        if kind == "windows without end":
            assert count + let_go(played)[name] == entered(played)[name]


@pytest.mark.parametrize("kind", ["two streams", "out of order", "row windows"])
def test_what_is_stored_follows_from_the_place_on_the_clock(kind: str, tmp_path: Path) -> None:
    """But for the new rows of the last batch with rows, which are thinned with the next one."""
    played = limited(kind, tmp_path, LIMIT)
    looked = 0
    pushed: list[dict[str, pa.Table]] = batches_of(question(kind))
    for batch, tables in enumerate([*pushed[:5], {}, {}, *pushed[5:]]):
        played.run(batch, tables)
        keeping = played.runner.keeping
        assert keeping is not None
        for _, name, file in played.files:
            held, program = keeping.stored[name].held, played.runner.program
            segment = read_with_indexes(played.storage, file, program, name)
            stays = drawn(held.profile, own_clock(held.window, name, segment), 0)
            assert stays.all() or file.name in keeping.due
            thinned = held.profile.least(*range_of(held.window, name, file)) < 1
            looked += thinned and file.name not in keeping.due
    assert looked > 0


@pytest.mark.parametrize("kind", ["two streams", "out of order", "row windows"])
def test_tasks_that_run_twice_let_the_same_rows_go(kind: str, tmp_path: Path) -> None:
    once, twice = (
        limited(kind, tmp_path / str(spark.twice), LIMIT, spark) for spark in (PlayedSpark(), PlayedSpark(twice=True))
    )
    assert ran(once, kind) == ran(twice, kind)
    assert let_go(once) == let_go(twice)


@pytest.mark.parametrize("memory", [90_000, None])
def test_a_batch_that_is_run_again_lets_the_same_rows_go(memory: int | None, tmp_path: Path) -> None:
    """Whatever limit is asked for by then, none included."""
    kind = "two streams"
    played = limited(kind, tmp_path, LIMIT)
    found, _ = ran(played, kind, end=6)
    files = Counter((name, file.rows, file.bytes, file.first_us, file.last_us) for _, name, file in played.files)
    assert sum(let_go(played).values()) > played.runner.progress[-1]["let_go"] > 0
    (tmp_path / "commits" / "5.json").unlink()
    control = with_memory(None, memory, played.spec)
    played.restart(control=None if control is None else replace(control, seed=99))
    assert ran(played, kind, 5, 6)[0] == found[5:]
    again = Counter((name, file.rows, file.bytes, file.first_us, file.last_us) for _, name, file in played.files)
    assert again == files
    assert (played.state.memory is None) == (memory is None)


def test_a_restart_goes_on(tmp_path: Path) -> None:
    kind = "out of order"
    whole, played = exact(kind), limited(kind, tmp_path, LIMIT)
    ran(played, kind, end=5)
    before = played.state.memory
    played.restart()
    assert not played.runner._is_done(5)
    assert played.runner.keeping is not None
    played.runner.keeping.restore(played.state.memory)
    assert json.loads(json.dumps(played.runner.keeping.to_values())) == json.loads(json.dumps(before))
    found, held = ran(played, kind, 5)
    assert max(held) <= LIMIT
    assert all(not one - other for one, other in zip(found, whole[5:], strict=True))
    assert sum(let_go(played).values()) > sum(stream["let_go"] for stream in before["streams"].values())


def test_without_the_limit_a_restart_goes_on_from_what_is_left(tmp_path: Path) -> None:
    kind = "two streams"
    whole, played = exact(kind), limited(kind, tmp_path, LIMIT)
    ran(played, kind, end=4)
    played.restart(control=None)
    found, held = ran(played, kind, 4)
    assert max(held) > LIMIT
    assert all(not one - other for one, other in zip(found, whole[4:], strict=True))
    assert found[-1] == whole[-1]  # by then the windows are whole again
    assert memory_of(played.state) is None


@pytest.mark.parametrize("kind", ["two streams", "windows without end"])
def test_a_batch_that_is_larger_than_the_limit_is_told(kind: str, tmp_path: Path) -> None:
    played = limited(kind, tmp_path, 17_000)
    found, held = ran(played, kind)
    assert max(held) <= 17_000
    assert told(played)["crowded"] == BATCHES
    assert all(rows.total() for rows in found)  # its rows meet each other all the same
    for name, count in stored(played).items():
        assert count + let_go(played)[name] <= entered(played)[name]


def test_parts_of_a_batch_keep_the_limit(tmp_path: Path) -> None:
    kind = "two streams"
    played = limited(kind, tmp_path, LIMIT, way=Way(2, most_rows=30))
    found, held = ran(played, kind)
    assert max(held) <= LIMIT
    assert all(not one - other for one, other in zip(found, exact(kind), strict=True))
    assert min(batch["parts"] for batch in played.runner.progress) > 1


def test_with_a_throttle_both_limits_hold(tmp_path: Path) -> None:
    kind = "three streams"
    spec = question(kind).spec()
    control = with_memory(settings_of(0.5, ControlSettings(interval_s=5.0), spec, "timestamp"), LIMIT, spec)
    played = limited(kind, tmp_path, LIMIT, control=control)
    found, held = ran(played, kind)
    assert max(held) <= LIMIT
    assert all(not one - other for one, other in zip(found, exact(kind), strict=True))
    assert played.runner.steering.shedding.throttle == 0.5
    assert told(played)["let_go"] > 0


def test_results_that_were_missed_are_estimated_and_weigh_in_what_is_learned(tmp_path: Path) -> None:
    kind = "windows without end"
    played = limited(kind, tmp_path, 120_000)
    found, _ = ran(played, kind)
    missed = total(exact(kind)) - total(found)
    assert 0.1 * missed < told(played)["lost_results"] < 10 * missed
    controller = played.runner.steering.controller
    assert controller is not None
    exposed = [share for driver in controller.exposure.held.values() for line in driver.values() for share in line]
    assert 0 < sum(exposed) < len(exposed) * max(controller.exposure.drivers.values())


def test_what_a_plan_says_survives_its_passage_through_text(tmp_path: Path) -> None:
    played = limited("two streams", tmp_path, LIMIT)
    ran(played, "two streams", end=6)
    values = json.loads((tmp_path / "plans" / "5.json").read_text())["memory"]
    thinning = Thinning.from_values(values)
    assert thinning is not None
    assert json.loads(json.dumps(thinning.to_values())) == values
    assert thinning.retained.lets_go
    assert {span.stream for span in thinning.spans} == {"a", "b"}
