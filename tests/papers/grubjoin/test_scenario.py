"""Section VI-B's setting, as the paper gives it, and what a full join of its streams finds."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import windrow
from windrow.errors import UsageError
from windrow.papers.grubjoin.scenario import DOMAIN, PERIOD_S, Scenario
from windrow.streams.arrivals import Constant

RATE_HZ = 15.0


def test_the_defaults_are_the_papers() -> None:
    """GJ-33."""
    scenario = Scenario(rate_hz=100.0)
    assert (len(scenario.streams()), scenario.window_s, scenario.bin_s, scenario.bins) == (3, 20.0, 2.0, 10)
    assert (scenario.shredded, scenario.run_s, scenario.warm_up_s, scenario.interval_s) == (0.1, 60.0, 20.0, 5.0)
    assert (scenario.epsilon, DOMAIN, PERIOD_S, scenario.buffer_rows) == (1.0, 1000.0, 50.0, 10)


def test_the_full_join_of_the_nonaligned_streams() -> None:
    """GJ-35, GJ-36, GJ-38: all results come with a row of the first stream, at the known lags and rate."""
    scenario = Scenario(RATE_HZ, run_s=620.0)
    tables = scenario.tables(seed=1)
    query = windrow.sql(scenario.query(), streams=tables)
    times_s = [tables[name].column("ts").to_numpy().astype(np.int64) / 1e6 for name in ("cam1", "cam2", "cam3")]
    start_s = min(times[0] for times in times_s)
    with windrow.local(query) as join:
        for name, rows in tables.items():
            join.push(name, rows)
        results = join.step()
    ids = (results.column(f"{alias}_id").to_numpy() for alias in scenario.aliases)
    found = np.stack([times[numbers] for times, numbers in zip(times_s, ids, strict=True)])
    found = found[:, found.max(axis=0) >= start_s + scenario.warm_up_s]
    assert found.shape[1] / (scenario.run_s - scenario.warm_up_s) == pytest.approx(24.73, rel=0.06)
    assert (found[1] - found[0]).mean() == pytest.approx(-5.0, abs=0.25)
    assert (found[2] - found[0]).mean() == pytest.approx(-14.9, abs=0.25)
    drivers = Counter(found.argmax(axis=0).tolist())
    assert drivers[0] / found.shape[1] == pytest.approx(1.0, abs=0.01)


def test_more_streams_are_joined_pair_by_pair() -> None:
    scenario = Scenario(100.0, lags_s=(0.0,) * 5, noise=(2.0,) * 5)
    assert scenario.query().count("abs(") == 10
    assert [stream.name for stream in scenario.streams()] == ["cam1", "cam2", "cam3", "cam4", "cam5"]


def test_arrivals_may_be_given() -> None:
    tables = Scenario(100.0, run_s=10.0).tables(seed=1, arrivals=Constant(2.0))
    assert [rows.num_rows for rows in tables.values()] == [20, 20, 20]


def test_each_stream_has_a_lag_and_a_deviation() -> None:
    with pytest.raises(UsageError, match="3 lags for 2 deviations"):
        Scenario(100.0, noise=(2.0, 2.0))
    with pytest.raises(UsageError, match="1 lags for 1 deviations"):
        Scenario(100.0, lags_s=(0.0,), noise=(2.0,))
