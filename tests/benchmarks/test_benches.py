"""Each bench at a tiny size: a peer that finds other results raises, so a bench that ends has agreed."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import benchmarks
from benchmarks import (
    bench_bookkeeping,
    bench_cold,
    bench_cosine,
    bench_directions,
    bench_drivers,
    bench_growth,
    bench_harvest,
    bench_loop,
    bench_memory,
    bench_memory_limit,
    bench_methods,
    bench_recall,
    bench_recorded_shedding,
    bench_regulation,
    bench_shedding,
    bench_trees,
)
from benchmarks.deltas import CONDITIONS, DeltaJoin, Sizes, check_same, delta
from benchmarks.measure import DisagreementError, Timing, faster, show, smaller
from benchmarks.peers import DuckTables, polars_band
from windrow.papers.driver_selection.played import Size
from windrow.papers.grubjoin.scenario import Scenario

FIELDS = {"name", "peer_name", "ours", "peer", "unit", "ratio", "goal", "met", "note"}
TINY = Sizes(delta_rows=200, window_deltas=5, batches=20, peer_rounds=10)
TWO = bench_shedding.Setting("2 streams", Scenario(60, (0, 5), (2, 2), run_s=40), (2.0,))
SIZES: dict[str, tuple[Any, int]] = {
    "band": (TINY, 2),
    "equality": (TINY, 1),
    "loop": (bench_loop.Sizes(probes=200, stored=5_000, rounds=2), 4),
    "cosine": (bench_cosine.Sizes(probes=300, stored=2_000, block=300, rounds=2), 1),
    "memory": (bench_memory.Sizes(delta_rows=100, window_deltas=4, batches=20), 1),
    "growth": (bench_growth.Sizes(delta_rows=100, window_deltas=(1, 4), batches=4, rounds=2), 4),
    "harvest": (bench_harvest.Sizes((bench_harvest.Shape(3, 4, 0.1), bench_harvest.Shape(4, 3, 0.2)), 1), 6),
    "directions": (bench_directions.Sizes(rounds=1), 5),
    "drivers": (bench_drivers.Sizes(("VI",), ("1M",), Size(scale=0.01, rounds=1)), 1),
    "methods": (bench_methods.Sizes((3,), (10,), (64,), batch_rows=20, batches=4), 4),
    "memory_limit": (
        bench_memory_limit.Sizes(
            1, bench_memory_limit.SETTINGS[:1], (0.3,), run_s=12, warm_up_s=4, batch_s=2, recorded=False
        ),
        2,
    ),
    "recall": (bench_recall.Sizes(2, {2: 700, 3: 260}, batches=2, scenario_runs=1, rate_hz=3), 88),
    "shedding": (bench_shedding.Sizes((TWO,), (), 1), 2),
    "regulation": (bench_regulation.Sizes(bench_regulation.CONDITIONS[:1], 1, (0.3,), run_s=10, warm_up_s=3), 1),
    "recorded_shedding": (bench_recorded_shedding.Sizes((), thinner=1, seeds=1), 0),
    "bookkeeping": (bench_bookkeeping.Sizes(("equality", "three streams"), share=0.01, intervals=1), 2),
    "trees": (bench_trees.Sizes((bench_trees.HALF_WAY,), seeds=1, duration_s=14, warm_s=8), 4),
    "cold": (bench_cold.Sizes(("equality",), 1), 1),
}

ON_SPARK = {
    "spark_join": 1,
    "spark_batch": 1,
    "spark_results": 2,
    "spark_window": 3,
    "spark_overload": 4,
    "spark_repair": 4,
}


def test_every_bench_is_tried() -> None:
    files = Path(benchmarks.__path__[0]).glob("bench_*.py")
    assert {path.stem.removeprefix("bench_") for path in files} == {*SIZES, *ON_SPARK}


@pytest.mark.long
@pytest.mark.parametrize(("name", "expected"), ON_SPARK.items())
def test_a_bench_on_spark_runs(name: str, expected: int) -> None:
    """In a process of its own, which starts and stops Spark."""
    rows = importlib.import_module(f"benchmarks.bench_{name}").run(quick=True)
    assert len(rows) == expected
    assert all(set(row) == FIELDS for row in rows)


@pytest.mark.parametrize("name", SIZES)
def test_a_bench_runs_and_its_peers_agree(name: str) -> None:
    module = importlib.import_module(f"benchmarks.bench_{name}")
    sizes, expected = SIZES[name]
    rows = module.measure(sizes)
    assert len(rows) == expected
    assert all(set(row) == FIELDS for row in rows)
    assert len({row["name"] for row in rows}) == expected
    assert module.DESCRIPTION
    assert callable(module.run)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_whole_deltas_are_what_a_probe_sees(condition: str) -> None:
    """The peers join without looking at time: they may only because of how the deltas lie."""
    ours, duck = DeltaJoin(condition, TINY), DuckTables()
    seen = 0
    for _ in range(25):
        results = ours.advance()
        duck.load(a=ours.probing, b=ours.window)
        theirs = duck.answer(f"SELECT a.id AS a_id, b.id AS b_id FROM a, b WHERE {CONDITIONS[condition]}")
        check_same(results, theirs, "DuckDB")
        seen += len(results)
    assert seen > 1_000


def test_polars_finds_the_band() -> None:
    probing, window = delta("a", 3, TINY), delta("b", 3, TINY)
    left, right = (np.asarray(table.column("x")) for table in (probing, window))
    near = np.abs(left[:, None] - right[None, :]) <= 0.5
    assert len(polars_band(probing, window, 0.5)()) == near.sum() > 0


def test_other_results_are_not_compared() -> None:
    one, other = (pa.table({"a_id": [1, 1], "b_id": [2, last]}) for last in (2, 3))
    check_same(one, one, "itself")
    with pytest.raises(DisagreementError, match="the peer found 2 results"):
        check_same(one, other, "the peer")
    with pytest.raises(DisagreementError, match="the peer found 1 results, we found 2"):
        check_same(one, one.slice(1), "the peer")


def test_goals_are_judged() -> None:
    timing = Timing(ours_s=0.5, peer_s=1.0, peer_name="peer")
    assert [faster("x", timing, goal)["met"] for goal in (None, 2.0, 2.5)] == [None, True, False]
    assert [smaller("x", ours=6.0, peer=2.0, unit="MB", goal=goal)["met"] for goal in (3.0, 2.9)] == [True, False]
    assert [smaller("x", ours=2.9, peer=None, unit="s", goal=goal)["met"] for goal in (3.0, 2.0)] == [True, False]


def test_rows_are_shown_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    missed = smaller("peak", ours=4.0, peer=1.0, unit="MB", goal=3.0, peer_name="raw bytes", note="a note")
    show("Memory", [missed, smaller("cold", ours=1.0, peer=None, unit="s", goal=3.0)])
    assert capsys.readouterr().out.splitlines() == [
        "Memory",
        "  peak: 4.0 MB, raw bytes 1.0 MB, ratio 4.0, goal <= 3: MISSED (a note)",
        "  cold: 1.0 s, goal <= 3 s: met",
    ]
