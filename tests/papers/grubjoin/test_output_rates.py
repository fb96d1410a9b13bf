"""Figures 11 to 14 and Table II: small versions of each, and in full where there is time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from windrow.papers.experiment import Claim, Outcome
from windrow.papers.grubjoin import figure11, figure12, figure13, figure14, table2
from windrow.papers.grubjoin.scenario import Scenario

SHORT = Scenario(100.0, run_s=34.0)
ONCE = range(1, 2)


def claim(outcome: Outcome, start: str) -> Claim:
    """The only claim that starts like this."""
    (found,) = (claim for claim in outcome.claims if claim.text.startswith(start))
    return found


def test_figure_11_has_both_streams_at_each_rate() -> None:
    """GJ-39."""
    outcome = figure11.rates(SHORT, (50.0, 160.0), ONCE)
    assert outcome.table.column("streams") == (figure11.ALIGNED, figure11.NONALIGNED) * 2
    assert outcome.table.where(rate_hz=50.0).column("gain") == (0.0, 0.0)
    assert min(outcome.table.where(rate_hz=160.0).numbers("gain")) > 0.2
    assert claim(outcome, "GrubJoin and RandomDrop find the same").holds
    assert claim(outcome, "aligned: GrubJoin finds more").holds
    assert [len(series.x) for series in outcome.charts[0].series] == [2] * 4


@pytest.mark.long
def test_figure_12_has_a_row_without_correlation() -> None:
    """GJ-40."""
    outcome = figure12.deviations(replace(SHORT, rate_hz=150.0), (50.0,), ONCE)
    assert outcome.table.column("multiplier") == (1, figure12.DEARER, 1)
    gains = outcome.table.numbers("gain")
    assert gains[0] > 0.3
    assert abs(gains[-1]) < 0.2
    assert "load" in claim(outcome, "κ3 = 50").ours
    assert [len(series.x) for chart in outcome.charts for series in chart.series] == [1] * 4


def test_figure_13_tells_the_load_of_more_streams() -> None:
    """GJ-41."""
    outcome = figure13.joins(replace(SHORT, rate_hz=50.0), (2, 3), ONCE)
    loads = outcome.table.where(streams=figure13.NONALIGNED).numbers("load")
    assert loads[0] < loads[1] < 1
    assert not claim(outcome, "m = 3, nonaligned").holds
    assert [series.name for series in outcome.charts[0].right] == ["gain, aligned", "gain, nonaligned"]


def test_figure_14_finds_the_best_size() -> None:
    """GJ-42."""
    outcome = figure14.sizes(replace(SHORT, rate_hz=130.0), (25.0,), (0.5, 2.0, 20.0), ONCE)
    assert outcome.table.column("bins") == (40, 10, 1)
    outputs = dict(zip(outcome.table.numbers("bin_s"), outcome.table.numbers("output_hz"), strict=True))
    assert outputs[20.0] < min(outputs[0.5], outputs[2.0])
    best_s = max(outputs, key=outputs.__getitem__)
    assert claim(outcome, "smaller basic windows").ours == f"κ3 = 25: best at {best_s:g} s"


def test_table_2_begins_with_the_overload() -> None:
    """GJ-44."""
    outcome = table2.costs(replace(SHORT, rate_hz=75.0), (2, 10), ONCE)
    assert outcome.table.column("paper") == (0.10, 0.35, None)
    gains = outcome.table.numbers("gain")
    assert gains[0] == 0.0
    assert gains[1] > 0.2
    assert claim(outcome, "2 times the rate has more effect").holds


@pytest.mark.long
@pytest.mark.parametrize("figure", [figure11, figure12, figure13, figure14, table2], ids=lambda figure: figure.__name__)
def test_the_quick_version_has_all_there_is(figure: object) -> None:
    outcome: Outcome = figure.EXPERIMENT.run(True, 1)  # type: ignore[attr-defined]
    assert len(outcome.table.rows) >= 6
    assert outcome.charts
    assert sum(claim.holds for claim in outcome.claims) >= 1
