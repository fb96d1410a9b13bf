"""Figures 2, 15, 16: how the join follows the rates, and what is lost until it does."""

from __future__ import annotations

import pytest

from windrow.papers.grubjoin import figure2, figure15, figure16
from windrow.papers.grubjoin.scenario import Scenario


def test_figure_2_shows_z_against_the_rate() -> None:
    """GJ-04: down by the next step where the rate rises, and up again."""
    outcome = figure2.adaptation((50.0, 180.0, 50.0), 16.0, seed=1)
    found = list(zip(outcome.table.numbers("time_s"), outcome.table.numbers("z"), strict=True))
    assert all(z == 1.0 for time_s, z in found if time_s <= 16)
    lowest = min(z for time_s, z in found if 16 < time_s <= 33)
    assert lowest < 0.8
    assert found[-1][1] > lowest
    assert [claim.holds for claim in outcome.claims if claim.text.startswith("z moves the right way")] == [True]


def test_figure_15_changes_the_rates() -> None:
    """GJ-43."""
    outcome = figure15.intervals((3,), (1.0, 8.0), (60.0, 90.0, 30.0), range(1, 2))
    assert outcome.table.column("interval_s") == (1.0, 8.0)
    short_hz, long_hz = outcome.table.numbers("output_hz")
    assert short_hz > long_hz > 0
    assert [claim.holds for claim in outcome.claims] == [True, True, True]


@pytest.mark.long
def test_figure_16_drops_less_with_more_room() -> None:
    """GJ-45."""
    scenario = Scenario(160.0, warm_up_s=32.0, run_s=44.0)
    outcome = figure16.buffers(scenario, (160.0,), range(1, 2))
    assert outcome.table.column("buffer_rows") == (60, 160, 320)
    least, _, most = outcome.table.numbers("dropped")
    assert 0 < least < 1
    assert most < least


@pytest.mark.long
def test_the_quick_versions_have_all_there_is() -> None:
    for figure in (figure2, figure15, figure16):
        outcome = figure.EXPERIMENT.run(True, 1)
        assert len(outcome.table.rows) >= 3
        assert any(claim.holds for claim in outcome.claims)
