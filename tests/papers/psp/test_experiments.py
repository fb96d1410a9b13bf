"""PSP's experiments: their settings, and, of the quick ones, what they claim."""

from __future__ import annotations

from dataclasses import replace

import pytest

from windrow.papers.experiment import Experiment
from windrow.papers.psp import EXPERIMENTS, figure7, figure8ab, figure8ef, figure8gh, interleaving
from windrow.papers.psp.scenario import SELECTIVITIES, Scenario, falls_then_rises, lowest
from windrow.streams.arrivals import SECOND_US

OTHERWISE = {
    "the smaller the selectivity, the longer the best ring",
    "state management: High for ATR and CTR, Low for PSP (rows inserted)",
}
"""Claims of the paper that do not hold here."""


def claims(experiment: Experiment) -> dict[str, bool]:
    return {claim.text: claim.holds for claim in experiment.run(True, 1).claims}


def test_arrivals() -> None:
    """GE-01: Poisson arrivals at 50 rows a second."""
    feed = Scenario().feed(400, seed=1)
    for times in feed.times_us:
        assert len(times) / (times[-1] / SECOND_US) == pytest.approx(50, rel=0.03)


def test_the_scenario() -> None:
    """PS-29: costs in proportion to pixels."""
    small, middle, large = (replace(Scenario(), image=image).costs.compare_s for image in ("small", "middle", "large"))
    assert (middle / small, large / small) == pytest.approx((2, 4))
    assert Scenario(streams=5).orders[1] == (2, 3, 4, 0)
    assert [replace(Scenario(), selectivity=each).best_length(19) for each in SELECTIVITIES] == [4, 6, 14]


def test_lengths_of_rings() -> None:
    assert lowest((4, 6, 8), (3.0, 1.0, 2.0)) == 6
    assert falls_then_rises((2.0, 1.0, 1.5))
    assert not falls_then_rises((3.0, 2.0, 1.0))


@pytest.mark.parametrize("experiment", [figure8ef, figure8gh, interleaving], ids=lambda module: module.__name__)
def test_what_is_quick_holds(experiment: object) -> None:
    """PS-27, PS-28, PS-02."""
    assert all(claims(experiment.EXPERIMENT).values())  # type: ignore[attr-defined] # a module


def test_response_time_and_state_size() -> None:
    """PS-24: U-shaped over nodes, growing with selectivity, states flat; and what equation 5 contradicts."""
    found = claims(figure8ab.EXPERIMENT)
    assert {text for text, holds in found.items() if not holds} == OTHERWISE & found.keys()
    assert len(found) == 6


def test_cpu_consumption(monkeypatch: pytest.MonkeyPatch) -> None:
    """PS-30."""
    monkeypatch.setattr(figure7, "QUICK_ROWS", 30)
    found = claims(figure7.EXPERIMENT)
    assert {text for text, holds in found.items() if not holds} == OTHERWISE & found.keys()


@pytest.mark.long
@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.name)
def test_all_but_what_the_paper_contradicts(experiment: Experiment) -> None:
    """PS-24, PS-26, PS-27, PS-28, PS-30."""
    found = claims(experiment)
    assert {text for text, holds in found.items() if not holds} == OTHERWISE & found.keys()
