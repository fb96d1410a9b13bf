"""Messages between tasks: what is received equals what was sent, value for value."""

from __future__ import annotations

import numpy as np
import pytest

import windrow
from tests.oracle.duck import plain
from tests.oracle.tables import table_of
from tests.store.segments import values_of
from windrow.plan.order import plan_query
from windrow.probe.gather import handles_of
from windrow.run.admit import Entry
from windrow.run.partial import Partial, View, first_partial
from windrow.run.program import Program
from windrow.run.results import result_batch
from windrow.run.spark.messages import (
    COUNT,
    PROBE,
    RESULT,
    SCHEMA,
    Message,
    as_batch,
    bytes_partial,
    partial_bytes,
)
from windrow.store.operand import Form
from windrow.store.segment import Layout, Segment

pytestmark = pytest.mark.usefixtures("interpreted")

SELECT = (
    "a.id AS id, a.f64 AS f64, a.s AS s, a.flag AS flag, a.d52 AS d52, a.v AS v, a.k AS k, b.day AS day, b.at AS at"
)
WHERE = """a.i32 + 1 < b.i32 AND a.s < b.s AND a.f32 < b.f32 AND cosine(a.w, b.w) > 0 AND jaccard(a.s, b.s) > 0
    AND (a.t8 IS NULL OR b.t8 > 0) AND (a.k = b.k OR a.flag)"""


def program_of(window: str) -> Program:
    tables = {"s": table_of(0, 0), "t": table_of(0, 0)}
    text = f"SELECT {SELECT}, result_ts() AS newest, result_id() AS key FROM s AS a, t AS b WHERE {WHERE} {window}"
    spec = windrow.sql(f"{text} LATENESS 9 DAYS", streams=tables, time={"s": "ts", "t": "ts"}).spec()
    return Program(spec, plan_query(spec), {})


def views_of(program: Program) -> dict[str, View]:
    """Three segments a stream, the last the batch's own; filters let all rows in."""
    entry = Entry(program, None, None)
    for name, entrance in program.entrances.items():
        program.entrances[name] = type(entrance)((), ())
    segments: dict[str, list[Segment]] = {"a": [], "b": []}
    for seed, size in enumerate((30, 5, 12)):
        pushed = {"a": [table_of(size, seed)], "b": [table_of(size, seed + 50)]}
        for name, segment in entry.admit(pushed, 0, last=True).items():
            segments[name].append(segment)
    return {s.name: View(s, tuple(segments[s.name][:-1]), segments[s.name][-1]) for s in program.spec.streams}


def pairs_of(views: dict[str, View], count: int) -> Partial:
    """Rows of the batch's own `a`, some of them often, each with some row of `b`."""
    draw = np.random.default_rng(count)
    first = first_partial(views, "a", views["a"].segments[-1])
    probes = draw.integers(0, len(first), count)
    numbers = draw.integers(0, 3, count)
    rows = draw.integers(0, 5, count)
    handles = np.concatenate(
        [np.zeros(0, np.int64), *(handles_of(int(n), [r]) for n, r in zip(numbers, rows, strict=True))]
    )
    held = [(views["b"].segments[number], row) for number, row in zip(numbers.tolist(), rows.tolist(), strict=True)]
    times = np.array([segment.time_us[row] for segment, row in held], np.int64)
    clocks = {name: np.array([s.clocks[name][row] for s, row in held], np.int64) for name in first.newest_clock}
    return first.extend(views["b"], probes, handles, times, clocks)


def same(program: Program, found: Partial, sent: Partial) -> None:
    for name in ("turn_us", "newest_us", "dies_us"):
        assert getattr(found, name).tolist() == getattr(sent, name).tolist(), name
    for name in ("newest_clock", "dies_clock"):
        clocks = {clock: values.tolist() for clock, values in getattr(sent, name).items()}
        assert {clock: values.tolist() for clock, values in getattr(found, name).items()} == clocks
    assert list(found.handles) == list(sent.handles)
    for member in sent.handles:
        for leaf in program.layouts[member].operands:
            before, after = sent.find(leaf), found.find(leaf)
            assert before is not None
            assert after is not None
            assert values_of(after, leaf) == values_of(before, leaf), str(leaf)
        for column in program.layouts[member].columns:
            assert plain(found.column(column)) == plain(sent.column(column)), str(column)


@pytest.mark.parametrize("window", ["WINDOW a 1000 SECONDS, b 500 SECONDS", "WINDOW a ROWS 4, b ROWS 7"])
@pytest.mark.parametrize("count", [0, 1, 200])
def test_partial_results_arrive_as_they_were_sent(window: str, count: int) -> None:
    program = program_of(window)
    views = views_of(program)
    assert {operand.form for view in views.values() for operand in view.segments[0].operands} == set(Form)
    assert bool(views["a"].segments[0].clocks) == program.spec.has_row_window
    alone = first_partial(views, "a", views["a"].segments[-1]).pick(np.arange(min(count, 12)))
    empty = {name: View(view.stream, (), None) for name, view in views.items()}
    same(program, bytes_partial(partial_bytes(alone), program, empty), alone)
    pairs = pairs_of(views, count)
    found = bytes_partial(partial_bytes(pairs), program, empty)
    same(program, found, pairs)
    assert plain(result_batch(program, found)["key"]) == plain(result_batch(program, pairs)["key"])


def test_a_partial_result_carries_each_row_once_and_leaves_other_views_alone() -> None:
    program = program_of("WINDOW 1000 SECONDS")
    views = views_of(program)
    one = first_partial(views, "a", views["a"].segments[-1]).pick(np.array([5, 5, 2, 5]))
    found = bytes_partial(partial_bytes(one), program, views)
    assert [len(segment) for segment in found.views["a"].segments] == [2]
    assert found.views["b"] is views["b"]
    assert list(found.views) == ["a", "b"]


def test_members_travel_with_what_is_asked_of_them() -> None:
    program = program_of("WINDOW 1000 SECONDS")
    views = views_of(program)
    pairs = pairs_of(views, 200)
    part = {name: Layout(layout.columns[1:2], layout.operands[-3:-1]) for name, layout in program.layouts.items()}
    whole, less = partial_bytes(pairs), partial_bytes(pairs, part)
    assert len(less) < len(whole)
    empty = {name: View(view.stream, (), None) for name, view in views.items()}
    found = bytes_partial(less, program, empty)
    for name, layout in part.items():
        held = found.views[name].segments[0].layout
        assert set(layout.operands) <= set(held.operands)
        assert set(layout.columns) <= set(held.columns)
        assert len(held.operands) < len(program.layouts[name].operands)
        for leaf in layout.operands:
            before, after = pairs.find(leaf), found.find(leaf)
            assert before is not None
            assert after is not None
            assert values_of(after, leaf) == values_of(before, leaf), str(leaf)
        for column in layout.columns:
            assert plain(found.column(column)) == plain(pairs.column(column))


def test_messages_keep_kind_and_place() -> None:
    sent = [
        Message(3, PROBE, "a", 2, b"x"),
        Message(0, COUNT, "b", 0, b""),
        Message(2**31 - 1, RESULT, "é", 2**40, b"\0"),
    ]
    batch = as_batch(sent)
    assert batch.schema == SCHEMA
    assert [Message(**row) for row in batch.to_pylist()] == sent
    assert as_batch([]).num_rows == 0
    assert as_batch([]).schema == SCHEMA
