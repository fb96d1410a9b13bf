"""Which slicing a stream gets, and how many copies are predicted to travel."""

from __future__ import annotations

import numpy as np
import pytest

from tests.oracle.tables import table_of
from tests.plan.queries import spec_of
from windrow.errors import PlanError
from windrow.plan.order import plan_query
from windrow.plan.plan import Plan
from windrow.plan.shuffle import BANDS_A_SPAN, copies, predicted_copies, row_bytes, slices_lines
from windrow.plan.slices import OFF_THE_GRID, ONE_SLICE, Slicing, spans_visited
from windrow.query.spec import QuerySpec
from windrow.query.sql import parse

THREE = ("a", "b", "c")
BAND = 1 + 1 / (BANDS_A_SPAN * OFF_THE_GRID)
"""Copies to a stream sliced by a band of floats."""


def kinds(plan: Plan) -> str:
    return " ".join(f"{each.stream}:{each.kind}{'' if each.conjunct is None else each.conjunct}"
                    for each in plan.slices.streams)  # fmt: skip


def windowed(where: str, window: str) -> QuerySpec:
    schema = table_of(0, 0).schema
    return parse(f"SELECT a.id AS out FROM s AS a, s AS b WHERE {where} {window}", {"s": schema}, time={"s": "ts"})


CHOICES: dict[tuple[str, tuple[str, ...], str], str] = {
    ("a.i = b.i", ("a", "b"), "auto"): "a:hash0 b:hash0",
    ("a.i = b.i", ("a", "b"), "time"): "a:time b:time",
    ("a.i = b.i AND b.i = c.i", THREE, "auto"): "a:hash0 b:hash0 c:hash1",
    ("a.x < b.x AND a.i = b.i", ("a", "b"), "auto"): "a:hash1 b:hash1",
    ("abs(a.x - b.x) < 1 AND a.i = b.i", ("a", "b"), "auto"): "a:hash1 b:hash1",
    ("abs(a.x - b.x) < 1 AND a.i = b.i", ("a", "b"), "range"): "a:range0 b:range0",
    ("a.k = b.k AND abs(b.x - c.x) < 1", THREE, "auto"): "a:hash0 b:hash0 c:range1",
    ("a.k = b.k AND abs(b.x - c.x) < 1", THREE, "hash"): "a:hash0 b:hash0 c:time",
    ("a.k = b.k AND abs(b.x - c.x) < 1", THREE, "range"): "a:time b:range1 c:range1",
    ("abs(a.x - b.x) < 1 AND abs(b.x - c.x) < 1", THREE, "auto"): "a:range0 b:range0 c:range1",
    ("a.x < b.x", ("a", "b"), "auto"): "a:time b:time",
    ("a.i = b.i OR a.k = b.k", ("a", "b"), "auto"): "a:time b:time",
    ("cosine(a.v, b.v) > 0.5", ("a", "b"), "auto"): "a:time b:time",
    ("a.x BETWEEN b.x AND b.x * 2", ("a", "b"), "auto"): "a:time b:time",
    ("a.i BETWEEN b.i - 1 AND b.i + 1", ("a", "b"), "auto"): "a:range0 b:range0",
    ("abs(a.ts - b.ts) <= INTERVAL 1 MILLISECOND", ("a", "b"), "auto"): "a:time b:time",
    ("(a.x > 0) = (b.x > 0)", ("a", "b"), "auto"): "a:time b:time",
    ("(a.x > 0) = (b.x > 0)", ("a", "b"), "hash"): "a:hash0 b:hash0",
    ("a.i + b.i = c.i", THREE, "auto"): "a:time b:range0 c:hash0",
    ("a.x = b.x AND a.i = b.i", ("a", "b"), "auto"): "a:hash0 b:hash0",
}  # fmt: skip


@pytest.mark.parametrize(("where", "streams", "by"), CHOICES)
def test_choices(where: str, streams: tuple[str, ...], by: str) -> None:
    plan = plan_query(spec_of(where, streams), slices=4, slice_by=by)
    assert kinds(plan) == CHOICES[where, streams, by]
    assert Plan.from_json(plan.to_json()) == plan
    assert plan_query(spec_of(where, streams), slices=4, slice_by=by) == plan


@pytest.mark.parametrize(("where", "streams", "by"), CHOICES)
def test_auto_never_ships_more_than_any_other(where: str, streams: tuple[str, ...], by: str) -> None:
    spec = spec_of(where, streams)
    totals = [
        sum(sum(counts) for counts in predicted_copies(spec, plan_query(spec, slices=7, slice_by=each)).values())
        for each in ("auto", "time", by)
    ]
    few_values = "(a.x > 0)" in where and by == "hash"
    assert totals[0] <= min(totals[: 2 if few_values else 3]) + 1e-9


def test_one_slice_needs_no_choice_and_what_cannot_be_is_refused() -> None:
    spec = spec_of("a.x < b.x")
    assert plan_query(spec).slices == plan_query(spec, slice_by="time").slices == ONE_SLICE
    assert plan_query(spec_of("a.i = b.i"), slice_by="hash").slices == ONE_SLICE
    with pytest.raises(PlanError, match=r"no stream can be sliced by hash.*equality"):
        plan_query(spec, slice_by="hash")
    with pytest.raises(PlanError, match=r"no stream can be sliced by range.*band"):
        plan_query(spec, slices=3, slice_by="range")
    with pytest.raises(PlanError, match=r"no slicing 'x'.*auto, time, hash, range"):
        plan_query(spec, slice_by="x")
    with pytest.raises(PlanError, match="at least one slice, not 0"):
        plan_query(spec, slices=0)


def test_predicted_copies_along_the_paths() -> None:
    spec = spec_of("a.k = b.k AND abs(b.x - c.x) < 1", THREE)
    found = predicted_copies(spec, plan_query(spec, slices=5, slice_by="auto"))
    assert {driver: [round(count, 6) for count in counts] for driver, counts in found.items()} == {
        "a": [1, round(BAND, 6)], "b": [1, round(BAND, 6)], "c": [5, 1],
    }  # fmt: skip
    assert set(predicted_copies(spec, plan_query(spec)).values()) == {(1.0, 1.0)}


@pytest.mark.parametrize("count", [2, 5])
@pytest.mark.parametrize("width", [0.0, 0.3, 1.0, 1.7, 4.0, 4.5, 90.0])
def test_predictions_are_what_ranges_of_that_width_visit(count: int, width: float) -> None:
    spec = spec_of(f"abs(a.x - b.x) <= {width / 2}")
    plan = plan_query(spec)
    slicing = Slicing("b", "range", count, 0, 1.0)
    low = np.random.default_rng(count).uniform(-1000, 1000, 20_000)
    visited = spans_visited(slicing, low, low + width).sum() / len(low)
    assert copies(spec, slicing, ("a",), plan.path("a").steps[0]) == pytest.approx(visited, abs=0.02)


TIMES: dict[tuple[str, str], tuple[float, float]] = {
    ("a.x < b.x", "WINDOW 8 SECONDS"): (8, 8),
    ("a.x < b.x", "WINDOW ROWS 8"): (8, 8),
    ("a.x < b.x", f"WINDOW {2**52} SECONDS"): (8, 8),
    ("abs(a.ts - b.ts) <= INTERVAL 1 SECOND", "WINDOW 8 SECONDS"): (3, 3),
    ("abs(a.ts - b.ts) <= INTERVAL 1 SECOND", "WINDOW ROWS 8"): (3, 3),
    ("b.ts BETWEEN a.ts AND a.ts + INTERVAL 500 MILLISECONDS", "WINDOW 8 SECONDS"): (1.5, 1.5),
    ("b.ts >= a.ts + INTERVAL 1 SECOND", "WINDOW 2500 MILLISECONDS"): (2.5, 2.5),
    ("b.ts >= a.ts", "WINDOW 1 SECOND"): (2, 2),
    ("a.x < b.x", "WINDOW a 1 SECOND, b 2 SECONDS"): (4, 4),
    ("b.ts <= b.ts + INTERVAL 1 SECOND AND a.x < b.x", "WINDOW 1 SECOND"): (3, 3),
}


@pytest.mark.parametrize(("where", "window"), TIMES)
def test_time_reaches(where: str, window: str) -> None:
    schema = table_of(0, 0).schema
    text = f"SELECT a.id AS out FROM s AS a, s AS b WHERE {where.replace('.x', '.f64')} {window}"
    spec = parse(text, {"s": schema}, time={"s": "ts"})
    plan = plan_query(spec)
    found = [
        copies(spec, Slicing(target, "time", 8, span=1_000_000), (driver,), plan.path(driver).steps[0])
        for driver, target in (("a", "b"), ("b", "a"))
    ]
    assert found == pytest.approx(TIMES[where, window])


def test_narrow_conditions_on_time_need_no_other_slices() -> None:
    spec = windowed("abs(a.ts - b.ts) <= INTERVAL 1 SECOND AND abs(a.f64 - b.f64) <= 1", "WINDOW 1 DAY")
    plan = plan_query(spec, slices=4, slice_by="auto")
    assert kinds(plan) == "a:time b:time"
    (count,) = predicted_copies(spec, plan)["a"]
    assert 1 < count < 1.01
    wide = windowed("abs(a.f64 - b.f64) <= 1", "WINDOW 1 DAY")
    assert kinds(plan_query(wide, slices=4, slice_by="auto")) == "a:range0 b:range0"
    assert plan_query(wide, slices=4) == plan_query(wide, slices=4, slice_by="time")


def test_lines_tell_slicings_copies_and_bytes() -> None:
    spec = spec_of("a.k = b.k AND abs(b.x - c.x) < 1", THREE)
    plan = plan_query(spec, slices=5, slice_by="auto")
    rate = "1000 rows/s of about 32 bytes are 0.064 MB/s to keep and to step 1"
    assert slices_lines(spec, plan, {"a": 1000.0}) == [
        "5 slices, each row is kept on one of them",
        "  a: by the hash of a.k (a.k = b.k)",
        "  b: by the hash of b.k (a.k = b.k)",
        f"  c: by the value of c.x, in spans of {2 * BANDS_A_SPAN * OFF_THE_GRID:.4g} (abs(b.x - c.x) < 1)",
        "  few distinct keys, or one that most rows share, would leave slices idle: that is not predicted",
        "predicted shuffle, in copies of a row or a partial result",
        f"  a new row of a: kept 1, to b 1, to c 1.4; {rate}",
        "  a new row of b: kept 1, to a 1, to c 1.4",
        "  a new row of c: kept 1, to b 5, to a 1",
    ]
    assert slices_lines(spec, plan_query(spec)) == ["one slice: nothing travels"]
    timed = windowed("abs(a.at - b.at) <= INTERVAL 1 SECOND", "WINDOW 20 SECONDS")
    assert slices_lines(timed, plan_query(timed, slices=2, slice_by="range"))[1].startswith(
        "  a: by the value of a.at, in spans of 4.944 s (abs("
    )
    assert slices_lines(timed, plan_query(timed, slices=2, slice_by="time")) == [
        "2 slices, each row is kept on one of them",
        "  a: by event time, in spans of 1.54508 s",
        "  b: by event time, in spans of 1.54508 s",
        "predicted shuffle, in copies of a row or a partial result",
        "  a new row of a: kept 1, to b 2",
        "  a new row of b: kept 1, to a 2",
        "  4 in all; slices by auto would make it 2.81",
    ]


def test_spans_of_decimals_are_told_in_their_unit() -> None:
    spec = windowed("abs(a.d52 - b.d18) <= 0.25", "WINDOW 20 SECONDS")
    plan = plan_query(spec, slices=3, slice_by="range")
    width = float(plan.slices.of("a").span or 0)
    assert width == pytest.approx((500 + 3) * BANDS_A_SPAN * OFF_THE_GRID)
    assert f"in spans of {width / 1000:.4g} (abs" in slices_lines(spec, plan)[1]


def test_bytes_of_rows() -> None:
    spec = windowed("a.s = b.s AND a.flag = b.flag AND a.f32 < b.d52 AND l2(a.v, b.v) < 1", "WINDOW 1 SECOND")
    assert row_bytes(spec, "a") == 8 + 8 + 16 + 1 + 4 + 12
    assert row_bytes(spec, "b") == 8 + 16 + 1 + 16 + 12
