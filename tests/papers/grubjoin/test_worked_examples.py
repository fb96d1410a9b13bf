"""Figures 3, 4 and 5: worked examples, which come out as printed or say why not."""

from __future__ import annotations

import pytest

from windrow.papers.experiment import Experiment, Outcome
from windrow.papers.grubjoin import figure3, figure4, figure5
from windrow.plan.harvest import optimise


def outcome_of(experiment: Experiment) -> Outcome:
    return experiment.run(True, 1)


def test_figure_3() -> None:
    """GJ-07."""
    outcome = outcome_of(figure3.EXPERIMENT)
    assert outcome.table.column("searched") == ("3, 4, 5", "2, 3")
    assert outcome.holds


def test_the_optimum_of_figure_4() -> None:
    """GJ-15: holds for some inputs, these among them; the orders are GJ-17."""
    model = figure4.join((1.0, 1.5), 1.0, per_direction=False)
    for method in ("exhaustive", "exact"):
        assert optimise(model, 0.5, method).counts[2] == (5, 5)
    outcome = outcome_of(figure4.EXPERIMENT)
    assert {claim.text: claim.holds for claim in outcome.claims} == {
        "join orders by low selectivity first": True,
        "the optimum has z31 = z32 = 1": True,
        "direction 3 yields most, by the formula as printed": False,
        "direction 3 yields most, with a selectivity for each direction": True,
    }


@pytest.mark.parametrize(("reading", "share"), [(figure4.PRINTED, 0.0), (figure4.MEASURED, 1.0)])
def test_the_third_direction_of_figure_4(reading: str, share: float) -> None:
    """GJ-16: in how many of 24 sets of inputs direction 3 has the largest modelled output."""
    table = outcome_of(figure4.EXPERIMENT).table.where(selectivity=reading)
    assert len(table.rows) == 24
    per_direction = reading == figure4.MEASURED
    largest = 0
    for deviation_21, deviation_31, factor in zip(
        table.numbers("deviation_21_s"), table.numbers("deviation_31_s"), table.numbers("factor"), strict=True
    ):
        model = figure4.join((deviation_21, deviation_31), factor, per_direction=per_direction)
        outputs = model.driver_hz * model.probes(model.bins)[:, -1]
        largest += int(outputs.argmax() == 2)
    assert largest / 24 == share


def test_figure_5() -> None:
    """GJ-21."""
    outcome = outcome_of(figure5.EXPERIMENT)
    assert outcome.table.column("settings_considered") == (6, 4, 2)
    assert outcome.holds
