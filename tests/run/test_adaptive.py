"""Methods that change while a join runs: no result is lost or doubled, whatever changes when."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest

import windrow
from windrow.control.observation import Observation
from windrow.control.switching import SURE_GAIN, SURE_S
from windrow.plan.order import methods_of, with_method
from windrow.plan.plan import Plan
from windrow.run import adapting
from windrow.run.local import LocalJoin

pytestmark = pytest.mark.usefixtures("interpreted")

TEXT = "SELECT a.id AS a, b.id AS b, c.id AS c FROM a, b, c WHERE a.k = b.k AND b.k = c.k AND a.x <= c.x WINDOW {}"
METHODS = ("hashed", "loop", "sorted")


def rows(seed: int, count: int = 9) -> pa.Table:
    random = np.random.default_rng(seed)
    times_us = np.sort(random.integers(0, 1_000_000, count)) + seed % 40 * 1_000_000
    return pa.table({
        "ts": pa.array(times_us, pa.timestamp("us")),
        "id": np.arange(count) + 100 * seed,
        "k": random.integers(0, 3, count),
        "x": random.uniform(0, 1, count),
    })  # fmt: skip


@dataclass
class Turning:
    """Another method at every step, each time it is asked."""

    join: LocalJoin
    asked: int = 0

    def observe(self, _observation: Observation, _plan: Plan) -> Turning:
        return self

    def decide(self, plan: Plan) -> Plan:
        self.asked += 1
        return with_method(plan, methods_of(self.join.spec, plan, METHODS), METHODS[self.asked % len(METHODS)])


def found(join: LocalJoin, batches: int = 14) -> Counter[tuple[int, ...]]:
    results: Counter[tuple[int, ...]] = Counter()
    for number in range(batches):
        for place, name in enumerate("abc"):
            join.push(name, rows(40 * place + number))
        results.update(tuple(row.values()) for row in join.step(now_s=float(number)).to_pylist())
    results.update(tuple(row.values()) for row in join.finish().to_pylist())
    return results


@pytest.mark.parametrize("window", ["4 SECONDS", "a 5 SECONDS, b ROWS 20, c 3 SECONDS"])
@pytest.mark.parametrize("policy", ["timestamp", "output_rate"])
def test_changes_lose_and_double_nothing(window: str, policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    query = windrow.sql(TEXT.format(window), streams=dict.fromkeys("abc", rows(0)))
    exact = found(windrow.local(query, policy=policy))
    monkeypatch.setattr(adapting, "EVERY", 1)
    join = windrow.local(query, policy=policy, adaptive=True)
    turning = Turning(join)
    assert join.adapting is not None
    join.adapting.switching = turning  # type: ignore[assignment]
    assert found(join) == exact
    assert turning.asked > 10
    assert sum(exact.values()) > 100
    used = {step.compared > 0 for step in join.report.steps} | {step.proposed > 0 for step in join.report.steps}
    assert used == {True}


def test_methods_settle(monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs by itself, keeps to the methods that are allowed, and leaves the results alone."""
    query = windrow.sql(TEXT.format("4 SECONDS"), streams=dict.fromkeys("abc", rows(0)))
    monkeypatch.setattr(adapting, "EVERY", 2)
    assert found(windrow.local(query, adaptive=True)) == found(windrow.local(query))
    only = windrow.local(query, adaptive=True, methods=("sorted",))
    found(only)
    assert {step.method for path in only.plan.paths for step in path.steps} <= {"sorted", "loop"}


def test_a_throttled_join_changes_methods_too(monkeypatch: pytest.MonkeyPatch) -> None:
    query = windrow.sql(TEXT.format("4 SECONDS"), streams=dict.fromkeys("abc", rows(0)))
    monkeypatch.setattr(adapting, "EVERY", 1)
    join = windrow.local(query, adaptive=True, throttle=0.5)
    assert join.adapting is not None
    join.adapting.switching = Turning(join)  # type: ignore[assignment]
    some = found(join)
    assert not some - found(windrow.local(query))


def test_changes_that_nobody_asked_for_are_compiled_and_used(monkeypatch: pytest.MonkeyPatch) -> None:
    query = windrow.sql(TEXT.format("4 SECONDS"), streams=dict.fromkeys("abc", rows(0)))
    compiled: list[Plan] = []
    monkeypatch.setattr(adapting, "warm", lambda program: compiled.append(program.plan))
    join = windrow.local(query)
    assert compiled == []
    assert join.adapting is not None
    first = join.adapting.switching
    assert (first.gain, first.least_s) == (SURE_GAIN, SURE_S)
    join.adapting.switching = Turning(join)  # type: ignore[assignment]
    assert found(join) == found(windrow.local(query, adaptive=False))
    assert len({str(plan) for plan in compiled}) > 1
    assert join.plan == compiled[-1]


def test_methods_that_were_chosen_stay() -> None:
    query = windrow.sql(TEXT.format("4 SECONDS"), streams=dict.fromkeys("abc", rows(0)))
    assert windrow.local(query).adapting is not None
    for options in ({"adaptive": False}, {"methods": ("loop",)}, {"throttle": 0.5}, {"memory": "1MB"}):
        assert windrow.local(query, **options).adapting is None
    assert windrow.local(query, throttle=0.5, adaptive=True).adapting is not None
