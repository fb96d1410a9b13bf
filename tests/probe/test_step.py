"""One step against every pair looked at: whatever the method, the conjuncts decide."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import windrow
from tests.oracle.tables import table_of
from windrow.plan.order import plan_query
from windrow.probe import step as stepping
from windrow.probe.evaluate import Evaluator
from windrow.probe.step import StepProbe, take
from windrow.query import types
from windrow.query.expression import Column, Expression
from windrow.query.predicate import with_token_sets
from windrow.run.admit import Entry
from windrow.run.partial import Partial, View, first_partial
from windrow.run.program import Program
from windrow.store.operand import Form, Operand, from_arrow, tokens_operand
from windrow.store.segment import Segment

pytestmark = pytest.mark.usefixtures("interpreted")

ROWS = 60


def near(x: float, y: float) -> bool:
    return abs(x - y) <= 1.0


NEAR = windrow.function(returns="BOOLEAN", mode="vectorised")(near)

CONDITIONS = {
    "equality of words": ("a.i32 = b.i32", ("hashed", "sorted", "loop")),
    "equality of texts": ("a.s = b.s", ("hashed", "loop")),
    "equality of floats": ("a.f64 = b.f64", ("hashed", "sorted", "loop")),
    "two equalities": ("a.k = b.k AND a.i32 = b.t8", ("hashed", "loop")),
    "equality and more": ("a.k = b.k AND a.f64 < b.f64 AND a.s <> b.s", ("hashed", "sorted", "loop")),
    "band": ("abs(a.f64 - b.f64) <= 0.2", ("sorted", "loop")),
    "band of decimals": ("abs(a.d52 - b.d18) <= 0.3", ("sorted", "loop")),
    "two ends": ("a.i64 >= b.i64 - 1 AND a.i64 < b.i32 + 2", ("sorted", "loop")),
    "one end": ("a.f32 < b.f64", ("sorted", "loop")),
    "cosine": ("cosine(a.v, b.v) >= 0.8", ("matrix", "loop")),
    "distance and more": ("l2(a.w, b.v) < 1.5 AND a.k = b.k", ("matrix", "hashed", "loop")),
    "either": ("a.i32 = b.i32 OR a.s < b.s", ("loop",)),
    "texts alike": ("levenshtein(a.s, b.s) <= 1", ("opaque", "loop")),
    "tokens or edits": ("(jaccard(a.s, b.s) >= 0.5 OR levenshtein(a.s, b.s) <= 1)", ("opaque",)),
    "equality and texts alike": ("a.k = b.k AND length(coalesce(a.s, b.s)) < 2", ("hashed", "loop")),
    "the user's own": ("near(a.f64, b.f64) AND a.i32 < b.i32", ("sorted", "loop")),
    "nothing": ("a.i32 > 0", ("loop",)),
}


def program_of(where: str, methods: tuple[str, ...] | None, select: str = "a.id AS i") -> Program:
    tables = {"s": table_of(0, 0), "t": table_of(0, 0)}
    text = f"SELECT {select} FROM s AS a, t AS b WHERE {where} WINDOW 1 DAYS"
    spec = windrow.sql(text, streams=tables, time={"s": "ts", "t": "ts"}, functions=[NEAR]).spec()
    return Program(spec, plan_query(spec, methods=methods), {})


def segments_of(program: Program, seed: int) -> dict[str, Segment]:
    entry = Entry(program, None, None)
    return entry.admit({"a": [table_of(ROWS, seed)], "b": [table_of(ROWS, seed + 1)]}, 0)


def ready(program: Program, segments: dict[str, Segment]) -> tuple[StepProbe, Partial, Segment]:
    views = {s.name: View(s, (), segments[s.name]) for s in program.spec.streams}
    return program.steps["a"][0], first_partial(views, "a", segments["a"]), segments["b"]


class Crossed:
    """All pairs of rows of two segments, as a frame."""

    def __init__(self, one: Segment, two: Segment) -> None:
        self.one, self.two = one, two
        self.probe = np.repeat(np.arange(len(one)), len(two))
        self.row = np.tile(np.arange(len(two)), len(one))

    def __len__(self) -> int:
        return len(self.probe)

    def find(self, expression: Expression) -> Operand | None:
        for segment, rows in ((self.one, self.probe), (self.two, self.row)):
            slot = segment.layout.slot(expression)
            if slot is not None:
                return take(segment.operands[slot], expression, rows)
        return None


def naive_pairs(program: Program, segments: dict[str, Segment]) -> Counter[tuple[int, int]]:
    crossed = Crossed(segments["a"], segments["b"])
    keep = np.ones(len(crossed), np.bool_)
    evaluator = Evaluator(program.spec.functions)
    for conjunct in program.joining:
        keep &= evaluator.is_true(conjunct, crossed)
    return Counter(zip(crossed.probe[keep].tolist(), crossed.row[keep].tolist(), strict=True))


def matched(step: StepProbe, partial: Partial, segment: Segment, *ranges: Any) -> Counter[tuple[int, int]]:
    found: Counter[tuple[int, int]] = Counter()
    for pairs in step.begin(partial).matches(segment, *(ranges or (None, None))):
        assert len(pairs.probe) > 0
        found.update(zip(pairs.probe.tolist(), pairs.row.tolist(), strict=True))
    return found


CASES = [(name, method) for name, (_, methods) in CONDITIONS.items() for method in methods]


@pytest.mark.parametrize(("name", "method"), CASES)
def test_methods_find_the_same_pairs(name: str, method: str) -> None:
    program = program_of(CONDITIONS[name][0], (method,))
    segments = segments_of(program, 3)
    step, partial, segment = ready(program, segments)
    expected = naive_pairs(program, segments)
    assert expected
    assert matched(step, partial, segment) == expected
    assert step.work.matched == expected.total()
    assert step.method in (method, "opaque")


@pytest.mark.parametrize(("name", "method"), CASES)
def test_row_ranges_restrict_and_small_chunks_lose_nothing(
    name: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stepping, "CAPACITY", 7)
    program = program_of(CONDITIONS[name][0], (method,))
    segments = segments_of(program, 5)
    step, partial, segment = ready(program, segments)
    chosen = np.random.default_rng(1)
    low = chosen.integers(0, len(segment), len(partial)).astype(np.int32)
    high = np.maximum(low, chosen.integers(0, len(segment) + 1, len(partial))).astype(np.int32)
    everything = naive_pairs(program, segments).items()
    expected = Counter({(i, j): n for (i, j), n in everything if low[i] <= j < high[i]})
    assert matched(step, partial, segment, low, high) == expected


def test_indexes_are_built_once_a_segment() -> None:
    program = program_of("a.i32 = b.i32", ("hashed",))
    segments = segments_of(program, 1)
    step, partial, segment = ready(program, segments)
    first = matched(step, partial, segment)
    (index,) = segment.indexes.values()
    assert matched(step, partial, segment) == first
    assert list(segment.indexes.values()) == [index]


def test_word_equalities_need_no_second_look() -> None:
    alone = program_of("a.i32 = b.i32", ("hashed",)).steps["a"][0]
    joint = program_of("a.i32 = b.i32 AND a.i64 = b.i64", ("hashed",)).steps["a"][0]
    text = program_of("a.s = b.s", ("hashed",)).steps["a"][0]
    assert (len(alone.deciding), len(joint.deciding), len(text.deciding)) == (0, 2, 1)


def test_a_condition_on_event_time_narrows() -> None:
    program = program_of("b.ts >= a.ts - INTERVAL 2 SECONDS AND b.ts <= a.ts", None)
    segments = segments_of(program, 1)
    step, partial, _ = ready(program, segments)
    narrowed = step.narrow(partial)
    assert narrowed is not None
    assert (narrowed[0] <= partial.newest_us - 2_000_000).all()
    assert (narrowed[1] >= partial.newest_us).all()
    assert (narrowed[1] - narrowed[0] < 2_100_000).all()


def test_work_is_counted() -> None:
    program = program_of("a.i32 < b.i32", ("loop",))
    segments = segments_of(program, 1)
    step, partial, segment = ready(program, segments)
    matched(step, partial, segment)
    assert step.work.compared == len(partial) * len(segment)
    program = program_of("a.i32 = b.i32", ("hashed",))
    segments = segments_of(program, 1)
    step, partial, segment = ready(program, segments)
    total = matched(step, partial, segment).total()
    assert (step.work.proposed, step.work.matched) == (total, total)


TAKEN = (
    (pa.array([1, None, 3], pa.int16()), types.SMALLINT),
    (pa.array([0.5, None, float("nan")]), types.DOUBLE),
    (pa.array(["a", None, "cc"]), types.VARCHAR),
    (pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float32(), 2)), types.vector(2, 32)),
)


@pytest.mark.parametrize("place", range(len(TAKEN)))
def test_take(place: int) -> None:
    array, type_ = TAKEN[place]
    column = Column("a", "x", type_)
    rows = np.array([2, 1, 1, 0], np.int32)
    found = take(from_arrow(array, type_), column, rows)
    expected = from_arrow(array.take(pa.array(rows)), type_)
    assert found.form is expected.form
    flags = [None if operand.valid is None else operand.valid.tolist() for operand in (found, expected)]
    assert flags[0] == flags[1]
    known = slice(None) if found.valid is None or found.form is Form.TEXT else found.valid
    for one, two in zip(found.arrays, expected.arrays, strict=True):
        assert one.dtype == two.dtype
        assert np.array_equal(one[known], two[known], equal_nan=one.dtype.kind == "f")


def test_take_of_token_sets() -> None:
    lists = pa.array([[1, 5], [], [7]], pa.large_list(pa.uint64()))
    tokens = tokens_operand(lists, np.array([True, False, True]))
    found = take(tokens, with_token_sets(Column("a", "s", types.VARCHAR)), np.array([2, 0, 1, 2], np.int32))
    assert found.form is Form.TOKENS
    assert len(found) == 4
    assert np.diff(found.arrays[0]).tolist() == [1, 2, 0, 1]
    assert found.arrays[1].tolist() == [7, 1, 5, 7]
    assert found.valid is not None
    assert found.valid.tolist() == [True, True, False, True]
