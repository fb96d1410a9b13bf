"""Sums over sampled rows: against rows whose results are all known, sampled a thousand times."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from windrow.control.observation import Joined
from windrow.control.sample import BUCKETS, NO_SAMPLE, Sample, Sketch, Weights
from windrow.plan.shedding import Portion, Shedding, sampled

SHARE, ROWS, STRATA = 0.1, 3_000, 8
SOME = Portion(0.9, (((0, 5),),))


def shedding(throttle: float, *portions: Portion) -> Shedding:
    return Shedding(throttle, portions=(("a", (sampled(SHARE, 1), *portions)),))


def results(heavy: bool, correlated: bool) -> tuple[np.ndarray, np.ndarray]:
    """By row and stratum: results that the others would find, and results that would escape them."""
    random = np.random.default_rng(3)
    size = (random.pareto(1.5, ROWS) if heavy else np.ones(ROWS))[:, None] * np.ones((ROWS, STRATA))
    other = size if correlated else np.roll(size, 1, axis=0)
    return random.poisson(0.6 * np.minimum(size, 50)), random.poisson(0.4 * np.minimum(other, 50))


def drawn(near: np.ndarray, far: np.ndarray, throttle: float, random: np.random.Generator) -> Sample:
    """What one run would note: each row is sampled or not, each stratum of a sampled row drawn or not."""
    weights = Weights.of(shedding(throttle, SOME), "a")
    assert weights is not None
    chosen = random.random(ROWS) < SHARE
    looked = random.random((ROWS, STRATA)) < throttle
    near_s, far_s = near[chosen] * looked[chosen], far[chosen] * looked[chosen]
    u = (near_s + far_s) / throttle
    v = weights.others * near_s / throttle
    kept = float(weights.others * near[~chosen].sum())
    matches = int(near_s.sum() + far_s.sum())
    return Sample(
        rows=ROWS, sampled=int(chosen.sum()), due=SHARE * ROWS, emitted=int(near[~chosen].sum()) + matches,
        matches=matches, kept=kept, full=u.sum(), held=v.sum(), heaviest=weights.heaviest * matches,
        uu=(u.sum(1) ** 2).sum(), uv=(u.sum(1) * v.sum(1)).sum(), vv=(v.sum(1) ** 2).sum(),
        thin_u=(1 - throttle) * (u**2).sum(), thin_v=(1 - throttle) * (v**2).sum(),
    )  # fmt: skip


@pytest.mark.parametrize("throttle", [1.0, 0.3, 0.05])
@pytest.mark.parametrize(("heavy", "correlated"), [(False, True), (True, True), (True, False)])
def test_totals_are_right_on_average_and_vary_as_told(throttle: float, heavy: bool, correlated: bool) -> None:
    near, far = results(heavy, correlated)
    random = np.random.default_rng(5)
    runs = [drawn(near, far, throttle, random) for _ in range(400)]
    totals = np.array([run.total for run in runs])
    true = near.sum() + far.sum()
    deviation = totals.std()
    assert abs(totals.mean() - true) < 3.5 * deviation / np.sqrt(len(runs)) + 0.003 * true
    told = np.sqrt(np.mean([run.missing_variance for run in runs]))
    assert 0.88 < told / deviation < 1.15
    assert all(run.missing == pytest.approx(run.total - run.emitted) for run in runs)


def test_the_regression_helps_where_what_is_missed_goes_with_what_is_found() -> None:
    near, far = results(heavy=True, correlated=True)
    random = np.random.default_rng(6)
    runs = [drawn(near, far, 1.0, random) for _ in range(200)]
    plain = [run.full / run.share + run.kept - (1 - run.share) / run.share * run.held for run in runs]
    assert np.std([run.total for run in runs]) < 0.75 * np.std(plain)


def test_nothing_left_out_is_known_exactly() -> None:
    near, far = results(heavy=True, correlated=False)
    run = drawn(near, 0 * far, 1.0, np.random.default_rng(7))
    assert run.missing == pytest.approx(0, abs=1e-6)
    assert run.missing_variance == pytest.approx(0, abs=1e-6)
    assert run.gamma == pytest.approx(1)


@pytest.mark.parametrize(
    ("portions", "throttle", "others", "heaviest"),
    [
        ((SOME,), 0.5, 1 / 0.95, 20.0),
        ((SOME,), 1.0, 1.0, 10.0),
        ((Portion(0.9, (None,)),), 0.5, 1 / 0.95, 1 / 0.95),
        ((Portion(0.45, (None,)), Portion(0.45, ((),))), 1.0, 1.0, 5.5),
    ],
)
def test_weights(portions: tuple[Portion, ...], throttle: float, others: float, heaviest: float) -> None:
    weights = Weights.of(shedding(throttle, *portions), "a")
    assert weights is not None
    assert weights.tells
    assert weights.others == pytest.approx(others)
    assert weights.heaviest == pytest.approx(heaviest)


def test_what_leaves_nothing_out_needs_no_weights() -> None:
    assert Weights.of(Shedding(), "a") is None
    assert Weights.of(shedding(1.0, Portion(0.9, (None,))), "a") is None
    assert Weights.of(Shedding(0.5, portions=(("a", (Portion(1.0, (None,)),)),)), "a") is None
    blind = Weights.of(Shedding(0.5, portions=(("a", (Portion(1.0, ((),)),)),)), "a")
    assert blind is not None
    assert not blind.tells


def test_a_sample_without_sampled_rows_claims_nothing() -> None:
    blind = Sample(rows=100, emitted=7)
    assert (blind.share, blind.total, blind.missing, blind.missing_variance) == (0, 7, 0, 0)
    assert NO_SAMPLE.share == 0


def sketch(random: np.random.Generator, rows: np.ndarray) -> Sketch:
    """Rows found in a task: the buckets of each, as a batch would note them."""
    buckets, signs = random.integers(0, BUCKETS, len(rows)), random.choice([-1.0, 1.0], len(rows))
    lines = [np.bincount(buckets, signs * values, minlength=BUCKETS) for values in (np.ones(len(rows)), rows, rows)]
    sums = Sample(rows=len(rows), sampled=len(rows), full=rows.sum(), held=rows.sum())
    return Sketch(sums, tuple(tuple(line) for line in lines), (tuple(lines[1]), tuple(lines[2])))


def test_buckets_know_sums_of_squares() -> None:
    random = np.random.default_rng(8)
    rows = random.pareto(2.0, 5_000) + 100
    told = [sketch(random, rows).settled() for _ in range(40)]
    assert np.mean([each.uu for each in told]) == pytest.approx((rows**2).sum(), rel=1e-4)
    about_mean = np.array([each.uu - each.full**2 / each.sampled for each in told])
    true = ((rows - rows.mean()) ** 2).sum()
    assert about_mean.mean() == pytest.approx(true, rel=0.1)
    assert about_mean.std() < 2 * np.sqrt(2 / BUCKETS) * true
    assert np.mean([each.thin_u for each in told]) == pytest.approx((rows**2).sum(), rel=0.1)


def test_parts_of_a_batch_add_up_and_travel_as_json() -> None:
    whole = sketch(np.random.default_rng(9), np.arange(1.0, 200.0))
    half = Sketch(replace(whole.sums, rows=0, sampled=0, full=0.0, held=0.0), whole.rows, whole.strata)
    both = Joined(sketches={"a": whole}) + Joined(sketches={"a": half, "b": whole})
    back = Joined.from_values(json.loads(json.dumps(both.to_values())))
    assert back == both
    assert back.settled().sketches == {}
    assert back.settled().samples["b"] == whole.settled()
    assert back.sketches["a"].rows[1][0] == 2 * whole.rows[1][0]
    twice = back.settled() + back.settled()
    assert twice.samples["b"] == whole.settled() + whole.settled()
    assert Joined.from_values(json.loads(json.dumps(twice.to_values()))) == twice
