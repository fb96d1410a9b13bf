"""Partial results by reference: what is fetched through handles is what plain indexing gives."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import windrow
from tests.oracle.duck import plain
from tests.oracle.tables import table_of
from tests.store.segments import values_of
from windrow.plan.order import plan_query
from windrow.probe.gather import handles_of
from windrow.query.spec import UNBOUNDED, Stream, Window
from windrow.run.admit import Entry
from windrow.run.partial import Partial, View, ends, first_partial, saturating_add
from windrow.run.program import Program
from windrow.store.segment import Segment

pytestmark = pytest.mark.usefixtures("interpreted")

SELECT = ", ".join(f"a.{name} AS a_{name}" for name in ("id", "f64", "s", "flag", "day", "atz", "d52", "v", "k"))
WHERE = """a.i32 + 1 < b.i32 AND a.s < b.s AND a.f32 < b.f32 AND cosine(a.w, b.w) > 0 AND jaccard(a.s, b.s) > 0
    AND (a.t8 IS NULL OR b.t8 > 0) AND (a.k = b.k OR a.flag)"""
SPAN_US = 1_000_000_000


def program_of(window: str = "WINDOW a 1000 SECONDS, b 500 SECONDS") -> Program:
    tables = {"s": table_of(0, 0), "t": table_of(0, 0)}
    text = (
        f"SELECT {SELECT}, b.id AS b_id, result_ts() AS at FROM s AS a, t AS b WHERE {WHERE} {window} LATENESS 9 DAYS"
    )
    spec = windrow.sql(text, streams=tables, time={"s": "ts", "t": "ts"}).spec()
    return Program(spec, plan_query(spec), {})


def views_of(program: Program, sizes: list[int]) -> dict[str, View]:
    """Views with a segment a size; the last is the batch's own."""
    entry = Entry(program, None, None)
    entry.program.entrances["a"] = type(entry.program.entrances["a"])((), ())
    entry.program.entrances["b"] = type(entry.program.entrances["b"])((), ())
    segments: dict[str, list[Segment]] = {"a": [], "b": []}
    for seed, size in enumerate(sizes):
        pushed = {"a": [table_of(size, seed)], "b": [table_of(size, seed + 50)]}
        for alias, segment in entry.admit(pushed, 0, last=program.spec.has_row_window).items():
            segments[alias].append(segment)
    return {s.name: View(s, tuple(segments[s.name][:-1]), segments[s.name][-1]) for s in program.spec.streams}


def handles_over(view: View, count: int, seed: int) -> tuple[Any, list[tuple[int, int]]]:
    chosen = np.random.default_rng(seed)
    places = [(number, row) for number, segment in enumerate(view.segments) for row in range(len(segment))]
    picked = [places[k] for k in chosen.integers(0, len(places), count)]
    return np.array([int(handles_of(number, [row])[0]) for number, row in picked], np.int64), picked


@pytest.mark.parametrize("sizes", [[30], [5, 1, 12], [1] * 20, [3, 40]], ids=str)
@pytest.mark.parametrize("count", [0, 1, 300])
def test_gathering_equals_indexing(sizes: list[int], count: int) -> None:
    program = program_of()
    view = views_of(program, sizes)["a"]
    handles, picked = handles_over(view, count, len(sizes))
    layout = program.layouts["a"]
    assert len(layout.operands) >= 7
    for slot, leaf in enumerate(layout.operands):
        parts = [values_of(segment.operands[slot], leaf) for segment in view.segments]
        found = view.operand(slot, leaf, handles)
        assert values_of(found, leaf) == [parts[number][row] for number, row in picked], str(leaf)
    for place, column in enumerate(layout.columns):
        arrays = [segment.columns[place] for segment in view.segments]
        gathered = view.column(place, handles)
        assert gathered.type == arrays[0].type
        expected = [arrays[number].slice(row, 1) for number, row in picked]
        assert plain(gathered) == [value for one in expected for value in plain(one)], str(column)


def test_a_first_partial_is_the_batchs_own_rows() -> None:
    program = program_of()
    views = views_of(program, [4, 6])
    fresh = views["a"].fresh
    assert fresh is not None
    partial = first_partial(views, "a", fresh)
    assert len(partial) == 6
    assert (partial.handles["a"] >> 32).tolist() == [1] * 6
    assert partial.newest_us.tolist() == fresh.time_us.tolist()
    assert partial.dies_us.tolist() == (fresh.time_us + SPAN_US).tolist()
    for slot, leaf in enumerate(program.layouts["a"].operands):
        assert partial.find(leaf) is fresh.operands[slot]
    for column in program.layouts["a"].columns:
        assert plain(partial.column(column)) == plain(fresh.columns[program.layouts["a"].columns.index(column)])


def extended(program: Program) -> tuple[Partial, Partial, list[int], list[tuple[int, int]]]:
    views = views_of(program, [7, 5, 9])
    fresh = views["a"].fresh
    assert fresh is not None
    first = first_partial(views, "a", fresh)
    probes = [8, 0, 0, 3, 5]
    handles, picked = handles_over(views["b"], len(probes), 3)
    segments = views["b"].segments
    times = np.array([segments[number].time_us[row] for number, row in picked], np.int64)
    clocks = {
        name: np.array([segments[number].clocks[name][row] for number, row in picked], np.int64)
        for name in fresh.clocks
    }
    return first, first.extend(views["b"], np.array(probes), handles, times, clocks), probes, picked


def test_extending_keeps_members_together_and_narrows_their_life() -> None:
    first, second, probes, picked = extended(program_of())
    segments = second.views["b"].segments
    for row, (probe, (number, place)) in enumerate(zip(probes, picked, strict=True)):
        own, other = int(first.newest_us[probe]), int(segments[number].time_us[place])
        assert second.newest_us[row] == max(own, other)
        assert second.dies_us[row] == min(own + SPAN_US, other + SPAN_US // 2)
        assert second.turn_us[row] == own
        assert second.handles["a"][row] == first.handles["a"][probe]
    program = program_of()
    for name in ("a", "b"):
        for column in program.layouts[name].columns:
            array = second.column(column)
            assert len(array) == len(probes)
    ids = [segments[number].columns[0][place].as_py() for number, place in picked]
    assert second.column(program.layouts["b"].columns[0]).to_pylist() == ids


def test_row_clocks_take_the_newest_and_the_first_to_die() -> None:
    first, second, probes, picked = extended(program_of("WINDOW a ROWS 4, b ROWS 2"))
    segments = second.views["b"].segments
    assert set(second.newest_clock) == {"a", "b"}
    for row, (probe, (number, place)) in enumerate(zip(probes, picked, strict=True)):
        for clock in ("a", "b"):
            other = int(segments[number].clocks[clock][place])
            assert second.newest_clock[clock][row] == max(int(first.newest_clock[clock][probe]), other)
        assert second.dies_clock["a"][row] == first.newest_clock["a"][probe] + 3
        assert second.dies_clock["b"][row] == segments[number].clocks["b"][place] + 1
    assert (second.dies_us == UNBOUNDED).all()


def test_what_a_partial_does_not_have_it_does_not_find() -> None:
    program = program_of()
    views = views_of(program, [3, 3])
    fresh = views["a"].fresh
    assert fresh is not None
    partial = first_partial(views, "a", fresh)
    assert partial.find(program.layouts["b"].operands[0]) is None
    assert partial.find(program.conjuncts[0]) is None
    newest = partial.find(program.outputs[-1].expression)
    assert newest is not None
    assert newest.values.tolist() == partial.newest_us.tolist()


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5), st.integers(-(2**63), 2**63 - 1))
@example([2**63 - 1], 2**63 - 1)
@example([-(2**63)], -(2**63))
@example([0, 2**63 - 1], -(2**63) + 1)
def test_sums_stay_within_64_bits(values: list[int], amount: int) -> None:
    found = saturating_add(np.array(values, np.int64), amount)
    assert found.tolist() == [min(2**63 - 1, max(-(2**63), value + amount)) for value in values]


def test_ends_of_each_kind_of_window() -> None:
    times, clocks = np.array([0, 5], np.int64), {"a": np.array([1, 2], np.int64), "b": np.array([0, 3], np.int64)}
    for window, dies_us, dies_a in (
        (Window(span_us=0), [0, 5], [UNBOUNDED] * 2),
        (Window(span_us=UNBOUNDED), [UNBOUNDED] * 2, [UNBOUNDED] * 2),
        (Window(rows=1), [UNBOUNDED] * 2, [1, 2]),
        (Window(rows=UNBOUNDED), [UNBOUNDED] * 2, [UNBOUNDED] * 2),
    ):
        found_us, found_clocks = ends(Stream("a", "a", (), "ts", window), times, clocks)
        assert found_us.tolist() == dies_us
        assert found_clocks["a"].tolist() == dies_a
        assert found_clocks["b"].tolist() == [UNBOUNDED] * 2


def test_references() -> None:
    for number, row in itertools.product((0, 1, 70_000), (0, 5, 2**31 - 1)):
        (handle,) = handles_of(number, [row]).tolist()
        assert divmod(handle, 2**32) == (number, row)


def test_without_rows() -> None:
    program = program_of()
    views = views_of(program, [3, 0])
    fresh = views["a"].fresh
    assert fresh is not None
    partial = first_partial(views, "a", fresh)
    assert len(partial) == 0
    assert isinstance(partial.column(program.layouts["a"].columns[0]), pa.Array)
