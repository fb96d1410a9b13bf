"""Figures that are the model alone: what is printed comes out."""

from __future__ import annotations

import pytest

from windrow.papers.experiment import Experiment, Outcome
from windrow.papers.window_joins import figure2, figure3, figure5, figure7, machine
from windrow.plan.unit_time import join_cost


def outcome_of(experiment: Experiment) -> Outcome:
    return experiment.run(True, 1)


@pytest.mark.parametrize("figure", [figure2, figure3, figure5, figure7], ids=lambda figure: figure.EXPERIMENT.name)
def test_all_claims_hold(figure: object) -> None:
    outcome = outcome_of(figure.EXPERIMENT)  # type: ignore[attr-defined]
    assert [claim.text for claim in outcome.claims if not claim.holds] == []
    assert outcome.charts


def test_the_curves_of_figure_2() -> None:
    table = outcome_of(figure2.EXPERIMENT).table
    row = table.where(b_hz=100.0)
    a, b = machine.streams(100.0)
    for name in machine.ORDER:
        assert row.numbers(name) == (join_cost(name, a, b, machine.COSTS),)
    assert row.column("cheapest") == ("HNJ",)


def test_outputs_of_figure_7() -> None:
    """KN-14: eq. 9 while there is time; the printed peaks are 10 and 17 % below it."""
    assert figure7.output_at("HHJ", 110) == 13_200
    assert figure7.output_at("HJ", 110) == 6_600
    for name, rate_hz, printed, below in (("HHJ", 110, 11_844, 0.103), ("HNJ", 190, 18_939, 0.169)):
        assert 1 - printed / (120 * rate_hz) == pytest.approx(below, abs=0.001), name
    assert figure7.output_at("HHJ", 260) < figure7.output_at("HHJ", 110) < figure7.output_at("HNJ", 260)
