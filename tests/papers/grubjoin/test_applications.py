"""Figure 17 and section VII: joins of an application's kind, on generated streams."""

from __future__ import annotations

import numpy as np
import pytest

from windrow.papers.grubjoin import figure17, video


def test_figure_17_larger_windows_lose_less() -> None:
    """GJ-46."""
    outcome = figure17.shedding((0.2, 0.35), 150 * 60.0, seed=1)
    assert outcome.holds
    assert outcome.table.column("shed") == (0.0, 0.2, 0.35) * 2
    full = outcome.table.where(shed=0.0)
    assert full.column("share_of_full") == (1.0, 1.0)
    assert len(set(full.column("results"))) == 1  # all lags lie within both windows


def test_a_claim_comes_at_any_time_around_its_agents_flag() -> None:
    tables = figure17.claims_and_agents(6 * 3600.0, seed=2)
    times = {}
    for name, table in tables.items():
        stamps, agents = table.column("ts").to_numpy().astype(np.int64), table.column("agent").to_numpy()
        assert (np.diff(stamps) >= 0).all()
        times[name] = dict(zip(agents.tolist(), (stamps / 1e6).tolist(), strict=True))
    lags_s = np.array(
        [times["claims"][agent] - at_s for agent, at_s in times["agents"].items() if agent in times["claims"]]
    )
    assert len(lags_s) > 5000
    assert np.abs(lags_s).max() <= figure17.LAG_S
    assert np.histogram(lags_s, 6)[0] / len(lags_s) == pytest.approx(np.full(6, 1 / 6), abs=0.02)


@pytest.fixture(scope="module")
def filmed() -> video.Video:
    return video.filmed(150 * 60.0, seed=1)


def test_shots_of_an_event_are_alike_and_others_are_not(filmed: video.Video) -> None:
    for event in sorted(filmed.counted)[:10]:
        shots = {
            name: np.stack(table.column("v").to_pylist())[filmed.events[name] == event]
            for name, table in filmed.tables.items()
        }
        assert all(1 <= len(held) <= video.SHOTS[1] for held in shots.values())
        for one in shots["a"]:
            cosines = shots["b"] @ one / np.linalg.norm(shots["b"], axis=1) / np.linalg.norm(one)
            assert cosines.min() > 0.6


def test_grubjoin_misses_fewer_events(filmed: video.Video) -> None:
    """GJ-48."""
    outcome = video.joined(filmed)
    missed = dict(zip(outcome.table.column("join"), outcome.table.numbers("missed"), strict=True))
    pairs = dict(zip(outcome.table.column("join"), outcome.table.numbers("pairs"), strict=True))
    assert len(filmed.counted) > 10
    assert missed[video.FULL] == 0
    assert missed[video.GRUBJOIN] <= missed[video.RANDOM_DROP]
    assert pairs[video.RANDOM_DROP] < pairs[video.GRUBJOIN] < pairs[video.FULL]
    assert pairs[video.RANDOM_DROP] / pairs[video.FULL] == pytest.approx(0.95 / video.OVERLOAD, rel=0.4)
