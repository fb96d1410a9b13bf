"""What is noted of a batch: the numbers a look at its results gives, and estimates that are right on average."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow
from tests.run.sheddings import alternatives
from windrow.control.controller import ControlSettings
from windrow.control.observation import Joined, summed
from windrow.plan.bins import lag_bins
from windrow.plan.shedding import Portion, Shedding, sampled
from windrow.query.builder import Join
from windrow.run.counting import escaping
from windrow.run.local import LocalJoin

pytestmark = pytest.mark.usefixtures("interpreted")

BINS = 6
SECOND = 1_000_000


def tables(rows: int, seed: int) -> dict[str, pa.Table]:
    random = np.random.default_rng(seed)
    return {
        name: pa.table(
            {
                "ts": pa.array(np.sort(random.integers(0, 20 * SECOND, rows)), pa.timestamp("us")),
                "x": random.integers(0, 6, rows),
            }
        )
        for name in ("s", "t", "u")
    }


def query_of(streams: dict[str, pa.Table]) -> Join:
    text = """SELECT a.ts AS at, b.ts AS bt, c.ts AS ct FROM s AS a, t AS b, u AS c
        WHERE a.x = b.x AND b.x = c.x AND a.x = c.x WINDOW a 6 SECONDS, b 3 SECONDS, c 5 SECONDS"""
    return windrow.sql(text, streams=streams)


def told(join: LocalJoin, rows: dict[str, pa.Table], batches: int) -> tuple[Joined, pa.Table]:
    """All that the batches of a run told, and all of its results."""
    notes, found = [], []
    ends = np.linspace(0, 20 * SECOND, batches + 1)[1:]
    places = dict.fromkeys(rows, 0)
    for end in ends:
        for name, table in rows.items():
            upto = int(np.searchsorted(np.asarray(table["ts"].cast(pa.int64())), end, side="right"))
            join.push(name, table.slice(places[name], upto - places[name]))
            places[name] = upto
        found.append(join.step(now_s=end / SECOND))
        assert join.observation is not None
        notes.append(join.observation.joined)
    return summed(notes), pa.concat_tables(found)


def test_notes_are_what_a_look_at_the_results_says() -> None:
    rows = tables(150, 1)
    query = query_of(rows)
    control = ControlSettings(fixed=1.0, sample=0.3, bins=BINS, interval_s=100.0)
    with windrow.local(query, control=control) as join:
        notes, results = told(join, rows, 9)
        paths = {path.name: path for path in join.plan.paths}
    times = {name: np.asarray(results[column].cast(pa.int64())) for name, column in zip("abc", ("at", "bt", "ct"))}  # noqa: B905
    driver = np.argmax(np.stack([times[name] for name in "abc"])[::-1], axis=0)  # of equal times the last stream drives
    assert len(results) > 300
    pages = [*notes.sampled.items(), *notes.others.items()]
    assert sum(page.results for _, page in pages) == len(results)
    assert sum(page.drivers for _, page in pages) == 450
    for name in "abc":
        own = driver == 2 - "abc".index(name)
        for target in "abc".replace(name, ""):
            (bins,) = lag_bins(query.spec(), name, (target,), BINS)
            lags = times[name][own] - times[target][own]
            expected = np.bincount(bins.place(lags), minlength=bins.size)
            counted = sum(
                np.array(page.lags[paths[path].targets.index(target)])
                for path, page in pages
                if paths[path].driver == name
            )
            assert np.asarray(counted).tolist() == expected.tolist()
    for path, page in pages:
        assert page.steps[0].probes == page.drivers
        assert page.steps[1].probes == page.steps[0].matches
        assert page.steps[1].matches == page.results
        assert page.steps[0].searched >= page.steps[0].matches
        assert len(page.steps) == len(paths[path].targets)


lags = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=6)
ranges = st.one_of(st.none(), st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=2).map(tuple))


@given(lags, st.lists(st.tuples(st.floats(0.01, 1), ranges, ranges, st.booleans()), min_size=1, max_size=3))
def test_what_escapes_is_what_no_portion_would_have_found(members: list[tuple[int, int]], parts: list) -> None:  # type: ignore[type-arg]
    portions = [(Portion(share, (one, two)), ("c", "b") if turned else ("b", "c")) for share, one, two, turned in parts]
    held = {name: np.array([member[k] for member in members]) for k, name in enumerate(("b", "c"))}
    found = escaping(portions, held)
    for number in range(len(members)):
        missed = 0.0
        for portion, targets in portions:
            inside = all(
                allowed is None or any(low <= held[target][number] < high for low, high in allowed)
                for target, allowed in zip(targets, portion.lags, strict=True)
            )
            missed += 0.0 if inside else portion.share
        assert found[number] == pytest.approx(missed / sum(portion.share for portion, _ in portions))


def test_sampled_rows_tell_on_average_what_the_others_miss() -> None:
    """Found by the others + missed / z, scaled to all rows, is everything: on average, because each seed is a lot."""
    rows = tables(45, 2)
    query = query_of(rows)
    spec = query.spec()
    plan = alternatives(spec)
    with windrow.local(query, plan=plan) as join:
        everything = told(join, rows, 2)[1].num_rows
    half = {
        first.driver: tuple(bins.ranges((0, 2, 4)) for bins in lag_bins(spec, first.driver, first.targets, BINS))
        for first in plan.firsts
    }
    control = ControlSettings(fixed=1.0, bins=BINS, interval_s=1e9)
    estimates = []
    for seed in range(16):
        portions = tuple((name, (sampled(0.4, 2), Portion(0.6, lags))) for name, lags in half.items())
        with windrow.local(query, control=control) as join:
            assert join.controller is not None
            join.controller.shedding = Shedding(0.5, seed, portions=portions)
            notes, _ = told(join, rows, 2)
        others = sum(page.results for page in notes.others.values()) / 0.6
        missed = sum(page.missed for page in notes.sampled.values()) / (0.4 * 0.5)
        estimates.append(others + missed)
    mean, error = float(np.mean(estimates)), float(np.std(estimates)) / np.sqrt(16)
    assert abs(mean - everything) < 3 * error
    assert error < 0.2 * everything
    assert replace(plan, shedding=Shedding()) == plan
