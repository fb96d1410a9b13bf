"""Driver selection's experiments at a small size: what does not depend on the machine holds."""

from __future__ import annotations

import pytest

from windrow.papers.driver_selection import EXPERIMENTS, curves, played
from windrow.papers.driver_selection.played import BATCHES, POLICIES, Batch, PolicyRun, Size, cuts_of, measured
from windrow.papers.driver_selection.printed import POLICY_CELLS, SHARES, TIMES, averages

SMALL = Size(scale=0.01, rounds=1, counted=2)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("cells", "bursts", "figure6", "curves"):
        monkeypatch.setattr(f"windrow.papers.driver_selection.{module}.QUICK", SMALL)


def test_printed_averages() -> None:
    """DR-10 to DR-14: the paper's averages follow from its cells."""
    times = averages(TIMES)
    said = (1.005, 0.979, 1, 1, 0.824, 0.768, 0.832, 0.714, 0.874, 0.803)
    assert times == pytest.approx(said, abs=0.001)
    shares = (0.58, 0.53, 0.49, 0.45, 0.25, 0.2, 0.82, 0.84, 0.78, 0.79)
    assert averages(SHARES) == pytest.approx(shares, abs=0.0055)


def test_printed_cells() -> None:
    """DR-15, DR-17, DR-22, DR-23."""
    cell = {
        (dataset, *where): value
        for dataset, row in TIMES.items()
        for where, value in zip(POLICY_CELLS, row, strict=True)
        if value is not None
    }
    for (_, policy, _), value in cell.items():
        assert policy not in ("initial_output_size", "output_rate") or value <= 1
    assert min(cell.values()) == cell["V", "initial_output_size", "1M"] == 0.5
    saved = [1 - cell["IV", policy, batch] for batch in BATCHES for policy in ("initial_output_size", "output_rate")]
    assert saved == pytest.approx((0.25, 0.25, 0.2, 0.2), abs=0.015)
    halfway = dict(zip(POLICY_CELLS, SHARES["V"], strict=True))
    order = sorted(POLICIES, key=lambda policy: -float(halfway[policy, "1M"] or 0))
    assert order == ["initial_output_size", "output_rate", "round_robin", "timestamp", "consumption_rate"]


@pytest.mark.parametrize("batch", BATCHES)
def test_every_policy_finds_the_same(batch: str) -> None:
    """DR-09, DR-16: as many results, and probes that differ by less than a twentieth."""
    runs = measured("VI", batch, SMALL, 1)
    found = {policy: [each.results for each in run.batches] for policy, run in runs.items()}
    assert all(results == found["timestamp"] for results in found.values())
    probes = [sum(count for each in run.batches for count, _ in each.drivers) for run in runs.values()]
    probes = [count for count in probes if count]
    assert len(probes) == 4
    assert max(probes) / min(probes) < 1.05


def test_results_by_half_of_the_probes() -> None:
    """DR-17, DR-21: on V the output policies are far ahead, the consumption rate far behind."""
    runs = measured(
        "V",
        "1M",
        Size(scale=0.05, rounds=1),
        1,
        ("timestamp", "consumption_rate", "initial_output_size", "output_rate"),
    )
    shares = {policy: run.share_at(0.5) for policy, run in runs.items()}
    assert min(shares["initial_output_size"], shares["output_rate"]) >= 0.7
    assert shares["consumption_rate"] <= 0.3
    assert shares["timestamp"] == 0.5


def test_batches_that_count() -> None:
    """DR-19: the first fifth does not; batches are of the paper's length."""
    for batch, batch_us in BATCHES.items():
        cuts = cuts_of(batch_us, 20)
        ends = [end for end, _ in cuts]
        counted = [end - before for before, (end, counts) in zip([0, *ends], cuts, strict=False) if counts]
        assert set(counted) == {batch_us}, batch
        assert len(counted) == (20 if batch == "0.1M" else 8)
        assert ends[0] == 2_000_000
        assert ends[-1] == 10_000_000


def test_curves_are_read() -> None:
    run = PolicyRun((Batch(1.0, ((0.2, 5), (1.0, 10))), Batch(2.0, ((0.5, 8), (2.0, 10)))))
    assert run.shares((0.1, 0.3, 1.0), run) == pytest.approx((0.0, 0.65, 1.0))
    assert [half.seconds for half in (run.half(False), run.half(True))] == [1.0, 2.0]
    assert played.PolicyRun(()).shares((0.5,), PolicyRun(())) == (0.0,)


def test_the_experiments_run() -> None:
    for experiment in EXPERIMENTS:
        outcome = experiment.run(True, 1)
        assert outcome.table.rows
        assert outcome.charts
    table = curves.table_of(("V",), True, 1)
    assert set(table.column("policy")) == set(POLICIES)
    assert curves.reached(table, 0.0, policy="timestamp") <= 0.1
    assert set(curves.table_of(("I",), True, 1).column("policy")) == set(POLICIES) - {"consumption_rate"}
