"""What sampled rows of a batch find, weighed: against what the exact join finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import windrow
from windrow.control.controller import ControlSettings
from windrow.control.observation import Observation
from windrow.plan.order import plan_query
from windrow.plan.shedding import Portion, Shedding, sampled
from windrow.query.builder import Join
from windrow.run.local import LocalJoin

pytestmark = pytest.mark.usefixtures("interpreted")
WINDOW_US = 4_000_000
NEAR = ((0, WINDOW_US // 2),)
NEARER = ((0, WINDOW_US // 4),)


def rows(seed: int, count: int = 400) -> pa.Table:
    random = np.random.default_rng(seed)
    times = np.sort(random.integers(0, 20_000_000, count))
    return pa.table({"ts": pa.array(times, pa.timestamp("us")), "k": random.integers(0, 6, count), "id": range(count)})


def query(windows: Sequence[str] = ("a 4 SECONDS", "b 4 SECONDS"), source: str = "b") -> Join:
    text = f"SELECT a.id AS i, b.id AS j FROM a, {source} AS b WHERE a.k = b.k WINDOW {', '.join(windows)}"
    return windrow.sql(text, streams={"a": rows(1), "b": rows(2)})


def run(join: LocalJoin, cuts: int = 4) -> list[Observation]:
    """All rows, in batches; what each did."""
    found = []
    for cut in range(cuts):
        for stream in join.spec.streams:
            table = rows(1 if stream.source == "a" else 2)
            times = np.asarray(table["ts"]).astype(np.int64)
            join.push(stream.name, table.filter(pa.array(times * cuts // 20_000_000 == cut)))
        join.step(now_s=20.0 * (cut + 1) / cuts)
        assert join.observation is not None
        found.append(join.observation)
    return found


def shed(asked: Join, throttle: float, seed: int, *others: Portion) -> LocalJoin:
    portions = (sampled(0.3, 1), *others)
    shedding = Shedding(throttle, seed, portions=tuple((name, portions) for name in ("a", "b")))
    return windrow.local(asked, plan=replace(plan_query(asked.spec()), shedding=shedding))


CASES = (
    (0.5, (Portion(0.7, (NEAR,)),)),
    (0.2, (Portion(0.7, (NEAR,)),)),
    (1.0, (Portion(0.7, ((),)),)),
    (0.3, (Portion(0.4, (NEAR,)), Portion(0.3, (NEARER,)))),
    (0.5, (Portion(0.7, (None,)),)),
    (0.5, (Portion(0.2, (None,)), Portion(0.5, ((),)))),
)


@pytest.mark.parametrize(("throttle", "others"), CASES)
def test_what_is_missing_is_known(throttle: float, others: tuple[Portion, ...]) -> None:
    asked = query()
    exact = windrow.local(asked)
    run(exact)
    true = exact.report.results
    assert exact.report.recall is not None
    assert exact.report.recall.is_exact
    totals, deviations, held = [], [], 0
    for seed in range(25):
        join = shed(asked, throttle, seed, *others)
        run(join)
        recall = join.recall.whole
        assert recall.missing is not None
        assert recall.missing_low is not None
        assert recall.missing_high is not None
        totals.append(recall.emitted + recall.missing)
        deviations.append((recall.missing_high - recall.missing_low) / 3.92)
        held += recall.missing_low <= true - recall.emitted <= recall.missing_high
    assert abs(np.mean(totals) - true) < 3 * np.std(totals) / 5 + 0.01 * true
    assert held >= 21
    assert 0.6 < np.median(deviations) / np.std(totals) < 1.6


def test_row_windows_are_known_by_rows() -> None:
    asked = query(("a ROWS 60", "b 3 SECONDS"))
    exact = windrow.local(asked)
    run(exact)
    held = 0
    for seed in range(15):
        portions = (sampled(0.3, 1), Portion(0.7, (((0, 25),),)))
        shedding = Shedding(0.5, seed, portions=(("b", portions),))
        join = windrow.local(asked, plan=replace(plan_query(asked.spec()), shedding=shedding))
        run(join)
        recall = join.recall.whole
        assert recall.low is not None
        assert recall.high is not None
        assert recall.emitted < exact.report.results
        held += recall.low <= recall.emitted / exact.report.results <= recall.high
    assert held >= 13


def test_blocks_and_batches_do_not_change_the_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = query()
    whole = [each.joined.samples for each in run(shed(asked, 0.5, 3, Portion(0.7, (NEAR,))))]
    monkeypatch.setattr("windrow.run.batch.BLOCK_ROWS", 50)
    cut = [each.joined.samples for each in run(shed(asked, 0.5, 3, Portion(0.7, (NEAR,))))]
    for one, other in zip(whole, cut, strict=True):
        for driver, sample in one.items():
            for name, value in sample.to_values().items():
                assert getattr(other[driver], name) == pytest.approx(value), name


def test_a_join_of_a_stream_with_itself_draws_twice() -> None:
    """Else a row would be sampled in both directions or in none."""
    asked = query(source="a")
    portions = (sampled(0.3, 1), Portion(0.7, ((),)))
    shedding = Shedding(1.0, 1, portions=(("a", portions), ("b", portions)))
    join = windrow.local(asked, plan=replace(plan_query(asked.spec()), shedding=shedding))
    (samples,) = (each.joined.samples for each in run(join, cuts=1))
    assert samples["a"].rows == samples["b"].rows == 400
    assert samples["a"].sampled != samples["b"].sampled


def test_a_controlled_join_reports_its_recall() -> None:
    asked = query()
    join = windrow.local(asked, control=ControlSettings(fixed=0.4, sample=0.3, interval_s=2.0, seed=1))
    run(join, cuts=10)
    report = join.report
    assert report.recall is not None
    assert report.recall.recall is not None
    assert report.recall.emitted == report.results
    assert report.recent is not None
    assert report.recent.batches < 10
    assert f"recall {report.recall}" in str(report)
    assert report.to_dict()["recall"]["matches"] == report.recall.matches
    assert "not joined" not in str(report)


def test_rows_that_reach_no_window_are_told_beside_it() -> None:
    asked = query()
    join = windrow.local(asked, control=ControlSettings(fixed=0.4, sample=0.3, interval_s=2.0), buffer_rows=20)
    run(join, cuts=10)
    dropped = sum(stream.dropped for stream in join.report.streams.values())
    assert join.report.unjoined.rows == dropped == join.dropped > 100
    assert str(join.report).endswith(f"; not counting {dropped:,} rows dropped")
