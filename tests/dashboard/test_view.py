"""What the page shows, without a page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import windrow
from tests.dashboard import made
from windrow.dashboard.server import as_text
from windrow.dashboard.skew import apart, side_by_side
from windrow.dashboard.view import held_back_by, view_of
from windrow.streams.replay import Replay


def test_a_finished_run_has_all_that_the_page_shows(runs: Path) -> None:
    view = made.seen(runs / "throttled")
    json.loads(as_text(view))
    assert view["state"] == "finished"
    points = made.BATCHES + 1
    series = view["series"]
    assert len(series["at_ms"]) == points
    for name in (
        "rate",
        "capacity",
        "throttle",
        "busy",
        "results",
        "recall",
        "recall_low",
        "busy_s",
        "span_s",
        "delay_s",
    ):
        assert len(series[name]) == points
        assert sum(value is not None for value in series[name]) > points // 3, name
    assert all(len(values) == points for values in (*series["rates"].values(), *series["bytes"].values()))
    assert view["head"]["throttle"] == 0.4
    assert 0 < view["head"]["recall"]["share"] < 1
    assert view["ledger"]["open"]["pieces"] == 0 < view["ledger"]["done"]["pieces"]
    assert view["head"]["repaired"] > 0
    assert [chain["driver"] for chain in view["plan"]["chains"]] == ["a", "b", "c"]
    assert all(step["selectivity"] is not None for chain in view["plan"]["chains"] for step in chain["steps"])
    assert len(view["lags"]) == 6
    assert all(sum(held["results_a_row"]) > 0 for held in view["lags"])
    assert any(part["ranges"] for held in view["lags"] for part in held["searched"])
    assert view["advice"]["enough"]
    assert len(view["advice"]["windows"]) == 3


def test_a_tree_of_joins_has_chains_that_end_in_inner_nodes(runs: Path, tmp_path: Path) -> None:
    events = made.copied(runs / "near", tmp_path / "tree")
    for file in events.iterdir():
        event = json.loads(file.read_bytes())
        file.unlink()
        if event["plan"] is not None:
            first = event["plan"]["paths"][0]
            step = {**first["steps"][0], "stream": "b"}
            event["plan"]["paths"] += [{**first, "driver": "inner", "steps": [step]}]
            event["plan"]["paths"][0] |= {"into": "inner"}
        file.write_text(json.dumps(event))
    view = made.seen(tmp_path / "tree")
    assert view["damaged"] == 0
    assert view["plan"]["shape"] == "tree"
    assert [(chain["driver"], chain["into"]) for chain in view["plan"]["chains"]] == [
        ("a", "inner"), ("b", None), ("inner", None),
    ]  # fmt: skip
    assert view["funnel"]["drivers"] == ["a", "b"]
    assert [stage["name"] for stage in view["funnel"]["whole"]["a"]][-1] != "results"


def test_rates_and_totals_are_those_of_the_rows(runs: Path) -> None:
    view = made.seen(runs / "near")
    rows = sum(len(made.ROWS[name]) for name in ("cam1", "cam2"))
    assert view["head"]["rows"] == rows == sum(stream["rows"] for stream in view["streams"])
    ahead = [rate for rate in view["series"]["rate"][1:-1] if rate is not None]
    assert sum(ahead) == pytest.approx(rows, rel=0.15)
    assert view["head"]["recall"]["text"] == "100 %, nothing left out"
    assert view["ledger"] is None


def test_the_state_says_whether_anything_still_comes(runs: Path, tmp_path: Path) -> None:
    assert made.seen(runs / "near", now_s=1e12)["state"] == "finished"
    history = made.history_of(runs / "near")
    running = replace(history, batches=history.batches[:-1])
    last_s = running.batches[-1].written_s
    assert view_of(running, "x", last_s + 1)["state"] == "live"
    assert view_of(running, "x", last_s + 60)["state"] == "quiet"
    assert made.seen(tmp_path)["state"] == "empty"


def test_the_stream_with_the_lowest_watermark_holds_it_back(runs: Path) -> None:
    batch = made.history_of(runs / "near").batches[5]
    marks = {name: stream.watermark_us or 0 for name, stream in batch.streams.items()}
    assert held_back_by(batch) == min(marks, key=lambda name: marks[name])
    late = {**batch.streams, "b": replace(batch.streams["b"], watermark_us=None)}
    assert held_back_by(replace(batch, streams=late)) == "b"
    even = {name: replace(stream, watermark_us=5) for name, stream in batch.streams.items()}
    assert held_back_by(replace(batch, streams=even)) is None


@pytest.mark.usefixtures("interpreted")
def test_promises_of_freshness_are_shown(tmp_path: Path) -> None:
    made.run(made.NEAR.replace("WINDOW 5 SECONDS", "WINDOW 5 SECONDS FRESHNESS 6 SECONDS"), tmp_path)
    view = made.seen(tmp_path)
    assert [held["asked"] for held in view["freshness"]["streams"]] == ["6 s", "6 s"]
    assert view["freshness"]["suppressed"] == 0
    assert view["series"]["delay_limit_s"] == 1
    history = made.history_of(tmp_path)
    last = history.batches[-1]
    assert last.freshness is not None
    broken = replace(last.freshness, suppressed=1234, infeasible=("a cannot be that fresh",))
    told = view_of(replace(history, batches=(replace(last, freshness=broken),)), "x", 0.0)
    assert told["hints"][:2] == [
        "a cannot be that fresh", "1,234 results were held back: they were older than FRESHNESS allows."
    ]  # fmt: skip


def shifted(rows: pa.Table, seconds: int) -> pa.Table:
    times = pc.add(rows["ts"], pa.scalar(seconds * 1_000_000, pa.duration("us")))
    return rows.set_column(rows.schema.get_field_index("ts"), "ts", times.cast(rows.schema.field("ts").type))


@pytest.mark.usefixtures("interpreted")
def test_clocks_that_differ_are_found_side_by_side(tmp_path: Path) -> None:
    made.run(made.NEAR, tmp_path, {**made.ROWS, "cam2": shifted(made.ROWS["cam2"], -18_000)})
    view = made.seen(tmp_path)
    assert view["hints"][0] == "Clocks seem skewed: b lags a by 5 h 00 m; your window is 5 s."
    assert view["funnel"]["verdict"] == {
        "tone": "bad", "conjunct": None,
        "text": "Nothing joins: no row met a row of another stream within the window. Clocks seem skewed: "
        "b lags a by 5 h 00 m; your window is 5 s.",
    }  # fmt: skip
    batches = made.history_of(tmp_path).batches
    assert side_by_side(batches, "a", "b") == pytest.approx(18_000, abs=3)
    assert side_by_side(batches[:2], "a", "b") is None


def test_clocks_in_step_are_not_said_to_differ(runs: Path) -> None:
    for name in ("near", "far", "throttled"):
        assert not any("skewed" in hint for hint in made.seen(runs / name)["hints"])


@pytest.mark.usefixtures("interpreted")
def test_clocks_that_differ_are_found_in_a_replay_by_event_time(tmp_path: Path) -> None:
    query = "SELECT a.id AS i FROM cam1 AS a, cam2 AS b WHERE ABS(a.x - b.x) <= 1 WINDOW 2 SECONDS"
    rows = {"cam1": made.ROWS["cam1"], "cam2": shifted(made.ROWS["cam2"], -10)}
    with windrow.local(
        windrow.sql(query, rows),
        Replay({name: (table, "ts", None) for name, table in rows.items()}, batch_us=1_000_000),
        events=tmp_path,
    ) as join:
        for _ in join:
            pass
    batches = made.history_of(tmp_path).batches
    assert apart(batches, "b", "a") == pytest.approx(-10, abs=1.5)
    assert any(hint.startswith("Clocks seem skewed: b lags a by ") for hint in made.seen(tmp_path)["hints"])


@pytest.mark.usefixtures("interpreted")
def test_the_raw_clocks_of_two_venues_are_seen_to_differ_by_five_hours(recorded: Path, tmp_path: Path) -> None:
    quotes = pq.read_table(recorded / "fx_quotes.parquet").slice(0, 6000)
    venues = {
        "other": quotes.filter(pc.not_equal(quotes["venue"], "fxcm")),
        "fxcm": quotes.filter(pc.equal(quotes["venue"], "fxcm")),
    }
    rows = {"a": venues["other"], "b": shifted(venues["fxcm"], -18_000)}
    assert min(map(len, rows.values())) > 500
    text = (
        "SELECT a.bid AS x, b.bid AS y FROM a, b WHERE a.symbol = b.symbol AND ABS(a.bid - b.bid) <= 0.001 "
        "WINDOW 20 SECONDS LATENESS 5 SECONDS"
    )
    made.run(text, tmp_path, rows, batches=10)
    assert any("b lags a by 5 h 00 m; your window is 20 s" in hint for hint in made.seen(tmp_path)["hints"])
