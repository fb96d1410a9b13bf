"""Figures for which the engine runs: it finds what the model says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import windrow
from windrow.papers.window_joins import figure4, figure6, figure8, figure9, figure10, figure11
from windrow.papers.window_joins.played import Run, played, rows, with_methods
from windrow.papers.window_joins.strategies import Strategy, compared, ranking
from windrow.plan.unit_time import JOINS, Side

SHORT = Run(batch_s=1, warm_batches=4, batches=4)
A, B = Side(10, keys=5, window_s=4), Side(40, keys=10, window_s=2)


def test_every_join_finds_the_same() -> None:
    found = {join: played(A, B, join, SHORT).results_hz for join in JOINS}
    assert len(set(found.values())) == 1
    tables = {"a": rows("a", A, SHORT), "b": rows("b", B, SHORT)}
    (a_ts, a_k), (b_ts, b_k) = ((t["ts"].cast("int64").to_numpy(), t["k"].to_numpy()) for t in tables.values())
    newest = np.maximum(a_ts[:, None], b_ts[None, :])
    fits = (newest - a_ts[:, None] <= 4e6) & (newest - b_ts[None, :] <= 2e6) & (a_k[:, None] == b_k[None, :])
    counted = fits & (newest >= a_ts[0] + 4e6)
    assert found["HHJ"] == counted.sum() / 4 > 0


def test_methods_are_the_directions() -> None:
    spec = windrow.sql(
        "SELECT a.k FROM a, b WHERE a.k = b.k WINDOW 1 SECONDS",
        streams={"a": rows("a", A, SHORT), "b": rows("b", B, SHORT)},
    ).spec()
    plan = with_methods(spec, "hashed", "loop")
    assert [(path.driver, path.steps[0].stream, path.steps[0].method) for path in plan.paths] == [
        ("a", "b", "loop"),
        ("b", "a", "hashed"),
    ]


def test_a_share_of_the_rows_is_let_in() -> None:
    longer = replace(SHORT, batch_s=40)
    full, half = (played(A, B, "HHJ", longer, keep).results_hz for keep in ({}, {"b": 0.5}))
    assert half / full == pytest.approx(0.5, abs=0.05)


def test_strategies_are_ranked() -> None:
    table = compared((Strategy("x", 5, 5, 20, 20), Strategy("y", 5, 5, 10, 10)), keys=5, seconds=40, seed=2)
    assert ranking(table, "model") == [["x"], ["y"]]


def test_figures_8_to_11() -> None:
    """KN-16, KN-20, KN-21 and KN-22, in the model and in the engine."""
    outcomes = [figure.EXPERIMENT.run(True, 1) for figure in (figure8, figure9, figure10, figure11)]
    for outcome in outcomes:
        assert [claim.text for claim in outcome.claims if not claim.holds] == []
    assert outcomes[0].table.numbers("model") == pytest.approx((5.0, 3.2, 3.2, 1.8, 1.8))


def test_memory_in_the_model() -> None:
    """KN-20, KN-21: σ(A λ_b + B λ_a), and all memory to the slower stream."""
    model = {strategy.name: strategy.model_hz(1 / figure9.KEYS) for strategy in figure9.strategies()}
    assert model == pytest.approx(
        {"Max A": 250.0, "Max B": 50.0, "proportional": 250 / 3, "inverse": 650 / 3, "equal": 150.0}
    )
    assert figure10.strategy("", 0.0, 0.99).model_hz(0.01) == pytest.approx(9.9)
    alike = [Strategy("", 10, 10, kept, 1000 - kept).model_hz(0.005) for kept in (0, 300, 1000)]
    assert alike == pytest.approx([50.0] * 3)


@pytest.mark.parametrize("figure", [figure4, figure6], ids=lambda figure: figure.EXPERIMENT.name)
def test_measured_joins(figure: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a tiny size: the model's claims hold, and all is measured."""
    monkeypatch.setattr(figure, "QUICK_RATES_HZ", (10.0, 20.0))
    monkeypatch.setattr(figure, "SCALE", 0.2)
    outcome = figure.EXPERIMENT.run(True, 1)  # type: ignore[attr-defined]
    assert all(claim.holds for claim in outcome.claims if "in the model" in claim.text)
    measured = [name for name in outcome.table.columns if name.startswith("ours")]
    assert all(value > 0 for name in measured for value in outcome.table.numbers(name))
    assert len(measured) in (2, 4)
