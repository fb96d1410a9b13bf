"""Calibration: counts that the runtime agrees with, costs recovered from known times, and all of it at toy sizes."""

from __future__ import annotations

import math
from dataclasses import astuple

import numpy as np
import pytest

from windrow.plan.cost import StepCost
from windrow.plan.methods import METHODS
from windrow.run import calibrate
from windrow.run.calibrate import FULL, QUICK, Sample, Shape, Sizes, fitted, measure

TOY = Sizes(
    rounds=1,
    rows=(50, 100),
    results=100,
    decisions=2,
    steps={method: calibrate.shapes((4, 16), (20, 60), (2,), (0.1, 0.9)) for method in METHODS},
)


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("WINDROW_COMPILE", "0")
    monkeypatch.setenv("WINDROW_CACHE_DIR", str(tmp_path))


def test_everything_is_measured() -> None:
    heard: list[str] = []
    measured = measure(TOY, heard.append)
    figures = [
        value
        for cost in measured.costs.steps.values()
        for value in (cost.per_probe, cost.per_candidate, cost.per_result)
    ]
    assert all(0 <= value < math.inf for value in figures)
    assert measured.costs.batch_s > 0
    assert measured.costs.decision_s > 0
    assert set(measured.index_rows_s) == {"sorted", "hashed"}
    assert [part for part in heard if part.startswith("the method ")] == [f"the method {name}" for name in METHODS]


@pytest.mark.parametrize("method", METHODS)
def test_steps_run_by_the_method_that_is_measured(method: str) -> None:
    schema = calibrate.VECTORS if method == "matrix" else calibrate.SCHEMA
    join = calibrate._joined(f"SELECT a.ts FROM a, b WHERE {calibrate.QUERIES[method]}", (method,), schema)
    assert join.plan.path("a").steps[0].method == method


@pytest.mark.parametrize("method", METHODS)
def test_counts_are_those_of_the_data(method: str) -> None:
    shape = Shape(probes=30, stored=50, candidates=5, share=0.25)
    found = calibrate._sample(method, shape, 1)
    assert found.probes == 30
    assert 0 < found.matches <= found.candidates <= 30 * 50
    if method in ("loop", "matrix", "opaque"):
        assert found.candidates == 30 * 50
    else:
        assert found.candidates == pytest.approx(30 * 5, rel=0.5)
    if method in ("sorted", "hashed", "opaque"):
        assert found.matches == pytest.approx(0.25 * found.candidates, rel=0.5)


def test_both_sizes_tell_the_parts_of_a_step_apart() -> None:
    for sizes in (FULL, QUICK):
        assert set(sizes.steps) == set(METHODS)
        for tried in sizes.steps.values():
            rows = np.array([(1, s.probes, s.probes * s.stored, s.probes * s.stored * s.share) for s in tried], float)
            if len({s.stored for s in tried}) > 1:
                assert np.linalg.matrix_rank(rows / np.linalg.norm(rows, axis=0)) == 4


@pytest.mark.parametrize("seed", range(5))
def test_known_costs_are_recovered(seed: int) -> None:
    random = np.random.default_rng(seed)
    cost = StepCost(*(10 ** random.uniform((-8, -10, -9), (-6, -8, -7))))
    counts = [(p, p * c, int(p * c * m)) for p in (4_000, 40_000) for c in (1, 30) for m in (0.02, 0.9)]
    samples = [Sample(*each, 2e-4 + cost.seconds(*each)) for each in counts]
    assert astuple(fitted(samples)) == pytest.approx(astuple(cost), rel=0.01)
