"""Experiments and what they say."""

from __future__ import annotations

import pytest

from windrow.errors import UsageError
from windrow.papers.experiment import Claim, Experiment, Outcome, Series
from windrow.papers.tables import Table

TABLE = Table.of(("z", "output"), [(0.5, 1.0)])
HELD, MISSED = Claim("grows", "yes", "yes", True), Claim("grows", "yes", "no", False)


def run(quick: bool, seed: int) -> Outcome:
    """Says what the caller asked for."""
    return Outcome(Table.of(("quick", "seed"), [(quick, seed)]), (HELD,))


def test_an_outcome_holds_where_all_claims_do() -> None:
    assert Outcome(TABLE, (HELD,)).holds
    assert not Outcome(TABLE, (HELD, MISSED)).holds


def test_an_outcome_says_something() -> None:
    for table, claims in ((TABLE, ()), (Table.of(("z",), []), (HELD,))):
        with pytest.raises(UsageError, match="says nothing"):
            Outcome(table, claims)


def test_an_experiment_knows_its_paper_and_its_docstring() -> None:
    experiment = Experiment("psp/figure8", "Latency", run)
    assert (experiment.paper, experiment.about) == ("psp", "Experiments and what they say.")
    assert experiment.run(True, 3).table.rows == ((True, 3),)


@pytest.mark.parametrize("name", ["figure8", "psp/", "/figure8", "PSP/figure8", "psp/figure 8", "psp/a/b"])
def test_names_have_two_parts(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be named"):
        Experiment(name, "Latency", run)


def test_series_have_a_y_for_each_x() -> None:
    assert Series.of(TABLE, "all", x="z", y="output") == Series("all", (0.5,), (1.0,))
    with pytest.raises(UsageError, match="2 x for 1 y"):
        Series("all", (1, 2), (1,))
