"""A row that a step matches lies on a slice that the partial result visits, whatever the slices are made by."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import PlanError
from windrow.plan.order import plan_query
from windrow.plan.slices import Slices, Slicing
from windrow.probe.gather import handles_of
from windrow.probe.step import StepProbe, take
from windrow.query.expression import Expression
from windrow.query.sql import parse
from windrow.run.admit import Entry
from windrow.run.partial import Partial, View, first_partial
from windrow.run.program import Program
from windrow.run.reach import Reach, time_reach
from windrow.run.spark.placing import homes, visits
from windrow.store.operand import Array, Operand
from windrow.store.segment import Segment

pytestmark = [pytest.mark.usefixtures("interpreted"), pytest.mark.filterwarnings("ignore:invalid value")]

INF, NAN = float("inf"), float("nan")
SECOND = dt.timedelta(seconds=1)
NOON, DAY = dt.datetime(2020, 2, 29, 12), dt.datetime(2020, 2, 28)
VALUES: dict[str, tuple[pa.DataType, tuple[Any, ...]]] = {
    "ts": (pa.timestamp("us"), tuple(NOON + tick * SECOND for tick in range(12))),
    "f": (pa.float64(), (0.0, -0.0, 0.1, 0.2, 0.3, 0.1 + 0.2, 7.0, 7.5, NAN, INF, -INF, 1e308, -1.7e308, 5e-324, 2e18)),
    "g": (pa.float32(), (0.0, -0.0, 0.1, 0.25, 1.5, 16777216.0, NAN, INF, 3e38, -3e38, 1e-45)),
    "i": (pa.int64(), (0, 1, -1, 2, 3, 15, 40, 2**53, 2**53 + 1, 2**62, 2**63 - 1, 2**63 - 2, -(2**63), 1 - 2**63)),
    "k": (pa.int32(), (0, 1, -1, 2, 3, 15, 40, 2**31 - 1, -(2**31))),
    "u": (pa.uint8(), (0, 1, 2, 3, 15, 40, 255)),
    "d": (pa.decimal128(9, 2), tuple(map(Decimal, ("0", "0.10", "0.30", "1", "2.25", "-7.5", "9999999.99", "15")))),
    "e": (pa.decimal128(18, 4), tuple(map(Decimal, ("0", "0.1", "0.3001", "1", "2.25", "-7.5", "9999999999.9999")))),
    "m": (pa.timestamp("us"), (*(DAY + tick * SECOND for tick in (0, 1, 3, 90)), dt.datetime.max, dt.datetime.min)),
    "y": (pa.date32(), (*(dt.date(2020, 2, day) for day in (27, 28, 29)), dt.date(1969, 12, 31), dt.date(9999, 1, 1))),
    "s": (pa.string(), ("", "a", "A", "b", "ab", "Ab", "é", "É", "zz")),
    "t": (pa.bool_(), (True, False)),
}  # fmt: skip
SCHEMA = pa.schema([(name, kind) for name, (kind, _) in VALUES.items()])

HASHED = (
    "{a}.k = {b}.k", "{a}.f = {b}.f", "{a}.g = {b}.f", "{a}.i = {b}.k", "{a}.k = {b}.f", "{a}.d = {b}.e",
    "{a}.k = {b}.d", "{a}.s = {b}.s", "lower({a}.s) = lower({b}.s)", "{a}.y = {b}.y", "{a}.m = {b}.y", "{a}.m = {b}.m",
    "{a}.i % 10 = {b}.i % 10", "{a}.k + 1 = {b}.i", "{a}.t = {b}.t", "{a}.u = {b}.k", "-{a}.f = {b}.f + 0",
    "{a}.t = ({b}.k > 0)", "coalesce({a}.s, 'a') = {b}.s",
)  # fmt: skip
RANGED = (
    "abs({a}.f - {b}.f) <= 0.3", "abs({a}.g - {b}.g) <= 0.3", "abs({a}.i - {b}.i) <= 2", "abs({a}.d - {b}.e) <= 0.3",
    "abs({a}.f - {b}.k) < 2", "{a}.k BETWEEN {b}.k - 1 AND {b}.k + 1", "{a}.i BETWEEN {b}.i - 1 AND {b}.i + 3",
    "{a}.f >= {b}.f - 0.1 AND {a}.f < {b}.f + 0.2", "{a}.g >= {b}.g - 0.1 AND {a}.g <= {b}.g + 0.25",
    "{a}.d BETWEEN {b}.d - 1 AND {b}.d + 0.5", "{a}.e - {b}.e <= 1 AND {b}.e - {a}.e <= 1",
    "abs({a}.m - {b}.m) <= INTERVAL 2 SECONDS", "abs({a}.y - {b}.y) <= 1",
    "{a}.m BETWEEN {b}.m - INTERVAL 2 SECONDS AND {b}.m + INTERVAL 1 SECOND", "abs({a}.f * 3 - {b}.f / 2) <= 1e-3",
    "abs({a}.i % 10 - {b}.k) <= 1", "abs({a}.f - {b}.f) <= 1e300", "abs({a}.f - {b}.f) <= 1e-320",
    "abs(({a}.f + 1) - {b}.f) <= 0.5", "abs({a}.u - {b}.u) <= 1",
)  # fmt: skip
ELSEWHERE = (
    "{a}.k = {b}.k AND ({a}.f < {b}.f OR {a}.s = {b}.s)", "{a}.k = {b}.k AND abs({a}.f - {b}.f) <= 1",
    "{a}.f = {b}.f AND {a}.i < {b}.i AND {a}.ts >= {b}.ts - INTERVAL 2 SECONDS",
)  # fmt: skip
THREE = (
    ("a.k = b.k AND b.k = c.i", "hash"), ("a.k = b.k AND a.k = c.k AND a.f <= c.f", "hash"),
    ("a.i = b.k AND abs(b.f - c.f) <= 1", "auto"), ("a.k + b.k = c.k AND a.s = b.s", "auto"),
    ("abs(a.f - b.f) <= 1 AND abs(b.f - c.f) <= 0.5", "range"),
    ("abs(a.d - b.d) <= 1 AND abs(b.d - c.e) <= 2", "range"),
    ("a.k BETWEEN b.k - 1 AND b.k + 1 AND c.k BETWEEN b.k - 2 AND b.k + 2", "range"),
    ("abs(a.k + b.k - c.k) <= 1 AND abs(a.k - b.k) <= 1", "range"),
)  # fmt: skip
CASES = [
    *((where.format(a="a", b="b"), "hash") for where in (*HASHED, *ELSEWHERE)),
    *((where.format(a="a", b="b"), "range") for where in RANGED),
    *((where.format(a="a", b="b"), by) for where in ELSEWHERE for by in ("time", "auto")),
    *THREE,
]
SPANS = (0.1, 1.0, 1e-9, 1e307)
WINDOWS = ("WINDOW 4 SECONDS", "WINDOW a ROWS 9, b 2 SECONDS{c}")


def program_of(where: str, by: str, count: int, window: str = WINDOWS[0]) -> Program:
    three = "c." in where
    tables = ("t AS a", "t AS b", "t AS c") if three else ("t AS a", "t AS b")
    windows = window.format(c=", c ROWS 5" if three else "")
    text = f"SELECT a.ts AS out FROM {', '.join(tables)} WHERE {where} {windows}"
    spec = parse(text, {"t": SCHEMA}, time={"t": "ts"})
    return Program(spec, plan_query(spec, slices=count, slice_by=by), {})


def with_spans(program: Program, span: float) -> Program:
    """The program with other spans of values, so that values and ends of bands lie right where a span ends."""
    slices = program.plan.slices
    streams = tuple(replace(each, span=span) if each.kind == "range" else each for each in slices.streams)
    return Program(program.spec, replace(program.plan, slices=Slices(slices.count, streams)), {})


def tables(rows: int) -> st.SearchStrategy[pa.Table]:
    """Rows of all kinds of values, few of them distinct, a tenth NULL."""

    def drawn(seed: int, few: bool) -> pa.Table:
        draw = np.random.default_rng(seed)
        columns = {}
        for name, (kind, values) in VALUES.items():
            pool = values[:5] if few else values
            picked = [pool[place] for place in draw.integers(0, len(pool), rows)]
            null = draw.random(rows) < (0.0 if name == "ts" else 0.1)
            columns[name] = pa.array([None if null[k] else value for k, value in enumerate(picked)], kind)
        return pa.table(columns)

    return st.builds(drawn, st.integers(0, 2**32 - 1), st.booleans())


def segments_of(program: Program, drawn: tuple[pa.Table, ...]) -> dict[str, Segment]:
    pushed = {stream.name: [table] for stream, table in zip(program.spec.streams, drawn, strict=False)}
    return Entry(program, None, None).admit(pushed, 0, last=program.spec.has_row_window)


def all_together(partial: Partial, name: str, segment: Segment) -> Partial:
    """Every row of a partial with every row of a stream."""
    probes, rows = np.repeat(np.arange(len(partial)), len(segment)), np.tile(np.arange(len(segment)), len(partial))
    clocks = {clock: counts[rows] for clock, counts in segment.clocks.items()}
    return partial.extend(partial.views[name], probes, handles_of(0, rows), segment.time_us[rows], clocks)


class Crossed:
    """Each partial row beside each row of a segment, as a frame."""

    def __init__(self, partial: Partial, segment: Segment) -> None:
        self.partial, self.segment = partial, segment
        self.probe = np.repeat(np.arange(len(partial)), len(segment))
        self.row = np.tile(np.arange(len(segment)), len(partial))

    def __len__(self) -> int:
        return len(self.probe)

    def find(self, expression: Expression) -> Operand | None:
        slot = self.segment.layout.slot(expression)
        if slot is not None:
            return take(self.segment.operands[slot], expression, self.row)
        found = self.partial.find(expression)
        return None if found is None else take(found, expression, self.probe)


def matches_of(program: Program, step: StepProbe, partial: Partial, segment: Segment, reach: Reach) -> Array:
    """Which rows of a segment match each partial row: every pair is looked at."""
    crossed = Crossed(partial, segment)
    found = np.ones(len(crossed), np.bool_)
    for conjunct in step.conjuncts:
        found &= program.evaluator.is_true(conjunct, crossed)
    times = segment.time_us[crossed.row]
    found &= (reach.low[crossed.probe] <= times) & (times <= reach.high[crossed.probe])
    return found.reshape(len(partial), len(segment))


def check_steps(program: Program, segments: dict[str, Segment]) -> int:
    """Go along all paths with all combinations; how many matches there were."""
    plan, total = program.plan, 0
    views = {s.name: View(s, (), segments[s.name]) for s in program.spec.streams}
    kept = {name: homes(program, plan.slices.of(name), segment) for name, segment in segments.items()}
    for name, places in kept.items():
        assert places.shape == (len(segments[name]),)
        assert ((places >= 0) & (places < plan.slices.count)).all()
    for path in plan.paths:
        partial = first_partial(views, path.driver, segments[path.driver])
        for step in program.steps[path.driver]:
            slicing, segment = plan.slices.of(step.target), segments[step.target]
            reach = time_reach(step, partial, program.spec.stream(step.target))
            visited = visits(program, slicing, step, partial, reach)
            assert visited.shape == (len(partial), slicing.count)
            assert visited.dtype == np.bool_
            matched = matches_of(program, step, partial, segment, reach)
            missed = np.argwhere(matched & ~visited[:, kept[step.target]])
            assert not len(missed), (str(program.spec.conjuncts), slicing, missed[0])
            total += int(matched.sum())
            partial = all_together(partial, step.target, segment)
    return total


@pytest.mark.parametrize("count", [2, 5])
@pytest.mark.parametrize(("where", "by"), CASES)
def test_a_match_lies_on_a_slice_that_is_visited(where: str, by: str, count: int) -> None:
    program = program_of(where, by, count)
    programs = [program, program_of(where, by, count, WINDOWS[1])]
    if by == "range":
        programs += [with_spans(program, span) for span in SPANS]
    rows = 8 if len(program.spec.streams) > 2 else 20
    total = 0

    @settings(max_examples=8)
    @given(st.tuples(tables(rows), tables(rows), tables(rows)))
    def check(drawn: tuple[pa.Table, ...]) -> None:
        nonlocal total
        for each in programs:
            segments = segments_of(each, drawn)
            if all(len(segment) for segment in segments.values()):
                total += check_steps(each, segments)

    check()
    assert total > 20


@pytest.mark.parametrize("where", [*HASHED, *ELSEWHERE])
def test_a_key_is_looked_for_on_one_slice_and_null_on_none(where: str) -> None:
    program = program_of(where.format(a="a", b="b"), "hash", 5)
    seen = set()

    @settings(max_examples=5)
    @given(st.tuples(tables(40), tables(40)))
    def check(drawn: tuple[pa.Table, ...]) -> None:
        segments = segments_of(program, drawn)
        views = {s.name: View(s, (), segments[s.name]) for s in program.spec.streams}
        for driver, target in (("a", "b"), ("b", "a")):
            partial = first_partial(views, driver, segments[driver])
            step = program.steps[driver][0]
            reach = time_reach(step, partial, program.spec.stream(target))
            visited = visits(program, program.plan.slices.of(target), step, partial, reach)
            assert (visited.sum(axis=1) == 1).all()  # rows with a NULL key do not enter
            assert (visited.argmax(axis=1) == homes(program, program.plan.slices.of(driver), segments[driver])).all()
            seen.update(visited.argmax(axis=1).tolist())
            past = Reach.of(reach.high + 1, reach.high) if len(partial) else reach
            assert not visits(program, program.plan.slices.of(target), step, partial, past).any()

    check()
    assert len(seen) >= 2


def two_sided(where: str, by: str, values: dict[str, list[Any]], count: int = 3) -> tuple[Array, Array, Program]:
    """Homes of b's rows and visits of a's, for rows with these values (and NULL elsewhere)."""
    program = program_of(where, by, count)
    rows = len(next(iter(values.values())))
    columns = {name: pa.nulls(rows, kind) for name, (kind, _) in VALUES.items()}
    columns |= {name: pa.array(held, VALUES[name][0]) for name, held in values.items()}
    columns["ts"] = pa.array([NOON] * rows, pa.timestamp("us"))
    segments = segments_of(program, (pa.table(columns), pa.table(columns)))
    views = {s.name: View(s, (), segments[s.name]) for s in program.spec.streams}
    partial, step = first_partial(views, "a", segments["a"]), program.steps["a"][0]
    reach = time_reach(step, partial, program.spec.stream("b"))
    slicing = program.plan.slices.of("b")
    return homes(program, slicing, segments["b"]), visits(program, slicing, step, partial, reach), program


def test_zero_has_one_slice_and_null_keys_that_may_enter_lie_on_the_first() -> None:
    kept, visited, _ = two_sided("a.f = b.f", "hash", {"f": [0.0, -0.0, 1.5]}, count=64)
    assert kept[0] == kept[1] != kept[2]
    assert visited.argmax(axis=1).tolist() == kept.tolist()
    program = program_of("coalesce(a.s, b.s) = b.s AND a.k = b.k", "hash", 7)
    assert program.plan.slices.of("a").conjunct == 1
    sliced = program_of("a.s = b.s OR a.k = b.k", "auto", 7)
    assert {slicing.kind for slicing in sliced.plan.slices.streams} == {"time"}


def test_bands_visit_few_slices_and_spans_are_dealt_out() -> None:
    values = {"f": [float(value) for value in range(400)]}
    kept, visited, program = two_sided("abs(a.f - b.f) <= 1", "range", values, count=5)
    assert np.bincount(kept, minlength=5).min() > 60
    slicing = program.plan.slices.of("b")
    assert slicing.span is not None
    expected = 1 + 2 / slicing.span
    assert visited.sum() / 400 == pytest.approx(expected, abs=0.05)
    same = np.diff(kept) == 0
    assert same.mean() > 0.7


def test_bands_around_the_largest_values_stay_within_the_slices() -> None:
    for name, values in (("i", [2**63 - 1, -(2**63), 2**63 - 2]), ("f", [INF, -INF, 1.7e308, -1.7e308])):
        kept, visited, _ = two_sided(f"abs(a.{name} - b.{name}) <= 3", "range", {name: values}, count=4)
        assert ((kept >= 0) & (kept < 4)).all()
        assert visited[np.arange(len(values)), kept].all()


def test_a_step_without_the_key_visits_all_slices_in_reach() -> None:
    program = program_of("a.k = b.k AND a.f < c.f AND b.f < c.f", "hash", 3)
    drawn = tuple(pa.table({n: pa.array([v[0], v[1]], kind) for n, (kind, v) in VALUES.items()}) for _ in range(3))
    drawn = (*drawn[:2], drawn[2].set_column(1, "f", pa.array([50.0, 60.0])))
    segments = segments_of(program, drawn)
    views = {s.name: View(s, (), segments[s.name]) for s in program.spec.streams}
    partial = first_partial(views, "c", segments["c"])
    step = program.steps["c"][0]
    reach = time_reach(step, partial, program.spec.stream(step.target))
    slicing = program.plan.slices.of(step.target)
    assert slicing.kind == "hash"
    assert visits(program, slicing, step, partial, reach).all()


def test_a_key_that_is_null_for_a_partial_result_is_looked_for_nowhere() -> None:
    program = program_of("a.i + b.i = c.i", "hash", 3)
    columns = {name: pa.array(values[:1] * 2, kind) for name, (kind, values) in VALUES.items()}
    segments = segments_of(program, (pa.table(columns | {"i": pa.array([2**63 - 1, 1])}),) * 3)
    views = {s.name: View(s, (), segments[s.name]) for s in program.spec.streams}
    partial = all_together(first_partial(views, "a", segments["a"]), "b", segments["b"])
    step = program.steps["a"][1]
    assert step.target == "c"
    reach = time_reach(step, partial, program.spec.stream("c"))
    visited = visits(program, program.plan.slices.of("c"), step, partial, reach)
    assert visited.sum(axis=1).tolist() == [0, 0, 0, 1]  # all other sums are too large


def test_a_slicing_that_does_not_fit_the_query_is_refused() -> None:
    program = program_of("a.k = b.k", "time", 2)
    segment = segments_of(
        program, tuple(pa.table({n: pa.array([v[0]], k) for n, (k, v) in VALUES.items()}) for _ in "ab")
    )
    for wrong in (Slicing("a", "hash", 2, 7), Slicing("c", "hash", 2, 0)):
        with pytest.raises(PlanError, match="no key"):
            homes(program, wrong, segment["a"])
    assert homes(program, Slicing("a", "hash", 1, 0), segment["a"]).tolist() == [0]
