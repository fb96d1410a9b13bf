"""Where matches lie, what is searched of it, and how much shorter windows may be."""

from __future__ import annotations

from pathlib import Path

import pytest

import windrow
from tests.dashboard import made
from windrow.dashboard.lags import Histogram, crowding, histograms, shortest


def counted(folder: Path, windows: dict[str, str]) -> int:
    """The results of the near join with other windows."""
    spans = ", ".join(f"{name} {span}" for name, span in windows.items())
    text = made.NEAR.replace("WINDOW 5 SECONDS", f"WINDOW {spans}")
    with windrow.local(windrow.sql(text, made.ROWS)) as join:
        for name in ("cam1", "cam2"):
            join.push(name, made.ROWS[name])
        return len(join.finish())


@pytest.mark.usefixtures("interpreted")
def test_the_advised_windows_keep_what_they_promise(runs: Path, tmp_path: Path) -> None:
    view = made.seen(runs / "near")
    whole = counted(tmp_path, {"a": "5 SECONDS", "b": "5 SECONDS"})
    assert view["advice"]["results"] == whole == view["head"]["results"]
    rows = {row["stream"]: row for row in view["advice"]["windows"]}
    assert all(row["alone_95"]["share"] < 0.8 for row in rows.values())
    for share in (95, 99):
        micros = {name: round(row[f"together_{share}"]["share"] * 5_000_000) for name, row in rows.items()}
        kept = counted(tmp_path, {name: f"{span} MICROSECONDS" for name, span in micros.items()})
        assert whole >= kept >= share / 100 * whole
        for name, row in rows.items():
            alone = dict.fromkeys(rows, "5 SECONDS") | {
                name: f"{round(row[f'alone_{share}']['share'] * 5_000_000)} MICROSECONDS"
            }
            assert counted(tmp_path, alone) >= share / 100 * whole


def test_histograms_count_all_results_once_a_window(runs: Path) -> None:
    history = made.history_of(runs / "near")
    assert history.query is not None
    assert history.plan is not None
    batch = history.batches[-1]
    held = histograms(batch, history.query, history.plan)
    assert {(each.driver, each.store) for each in held} == {("a", "b"), ("b", "a")}
    assert sum(each.total for each in held) == batch.totals.results
    assert all(each.edges[0] == 0 and each.edges[-1] == 5_000_001 for each in held)


def test_negative_lags_are_kept_by_any_window() -> None:
    held = Histogram("a", "b", (-50, 0, 50, 101), (10.0, 89.0, 1.0), 100.0)
    assert (shortest([held], 1.0), shortest([held], 0.5), shortest([held], 100.0)) == (50, 100, 0)


def test_matches_that_pile_up_at_the_end_of_a_window_are_noticed() -> None:
    edges = tuple(range(0, 101, 5))
    rising = Histogram("a", "b", edges, tuple(float(k) ** 2 for k in range(20)), 100.0)
    even = Histogram("a", "b", edges, (10.0,) * 20, 100.0)
    falling = Histogram("a", "b", edges, tuple(400.0 / (k + 1) for k in range(20)), 100.0)
    assert crowding([rising]) == pytest.approx((18**2 + 19**2) / sum(k**2 for k in range(20)))
    assert (crowding([even]), crowding([falling])) == (None, None)
