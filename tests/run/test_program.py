"""Programs: what enters the windows and what travels, under either choice of what is kept."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

import windrow
from tests.oracle.tables import table_of
from windrow.errors import UsageError
from windrow.plan.order import plan_query
from windrow.query.expression import Call
from windrow.query.predicate import leaves_of
from windrow.query.spec import QuerySpec
from windrow.run.admit import Entry
from windrow.run.batch import run_batch
from windrow.run.program import Keep, Program, kept_columns
from windrow.run.results import result_table
from windrow.store.codec import from_batch, to_batch

pytestmark = pytest.mark.usefixtures("interpreted")

THREE = """SELECT a.id AS i, c.s AS s, {more} FROM s AS a, t AS b, u AS c
    WHERE ABS(a.f64 - b.f64) <= 2 AND b.i32 < c.i32 AND jaccard(a.s, c.s) >= 0.2 WINDOW 20 SECONDS"""
NAMES = ("s", "t", "u")


def spec_of(more: str = "result_id() AS key", where: str = THREE) -> QuerySpec:
    tables = {name: table_of(0, 0) for name in NAMES}
    return windrow.sql(where.format(more=more), streams=tables, time=dict.fromkeys(NAMES, "ts")).spec()


def program_of(spec: QuerySpec, keep: Keep) -> Program:
    types = {column: table_of(0, 0).schema.field(column.name).type for s in spec.streams for column in s.columns}
    return Program(spec, plan_query(spec), types, keep)


def results(program: Program) -> Counter[Any]:
    entry = Entry(program, None, None)
    pushed = {name: [table_of(25, seed)] for seed, name in enumerate("abc")}
    fresh = entry.admit(pushed, 0, last=True)
    return Counter(
        map(repr, result_table(program, run_batch(program, dict.fromkeys("abc", ()), fresh, None)).to_pylist())
    )


@pytest.mark.parametrize("window", ["WINDOW 20 SECONDS", "WINDOW a ROWS 7, b 9 SECONDS, c ROWS 11"])
def test_results_and_their_ids_do_not_depend_on_what_is_kept(window: str) -> None:
    spec = spec_of(where=THREE.replace("WINDOW 20 SECONDS", window))
    used, everything = program_of(spec, "used"), program_of(spec, "all")
    assert results(used) == results(everything)
    assert results(used).total() > 10


def test_all_columns_enter_or_those_the_query_uses() -> None:
    spec = spec_of()
    used, everything = program_of(spec, "used"), program_of(spec, "all")
    assert [column.name for column in used.kept["b"]] == ["ts", "i32", "f64"]
    assert {column.name for column in everything.kept["b"]} == set(table_of(0, 0).schema.names)
    assert everything.kept["b"][0].name == "ts"
    assert everything.used == used.used == used.kept
    assert everything.layouts["b"].columns == everything.kept["b"]
    assert used.layouts["b"].columns == ()
    assert kept_columns(spec, "b", "all") == everything.kept["b"]
    with pytest.raises(UsageError, match="there is nothing to keep called 'some'"):
        kept_columns(spec, "b", "some")  # type: ignore[arg-type]


def test_what_was_stored_for_one_select_list_serves_any_other() -> None:
    before = program_of(spec_of("b.u8 AS u"), "all")
    stored = Entry(before, None, None).admit({"a": [table_of(30, 1)]}, 0, last=True)["a"]
    batch = to_batch(stored)
    for more in ("a.d52 AS d, a.v AS v", "a.f32 + 1 AS f, a.ts AS ts", "result_id() AS key"):
        after = program_of(spec_of(more), "all")
        fresh = Entry(after, None, None).admit({"a": [table_of(30, 1)]}, 0, last=True)["a"]
        found = from_batch(batch, after.layouts["a"], derive=after.derived)
        assert [repr(c.to_pylist()) for c in found.columns] == [repr(c.to_pylist()) for c in fresh.columns]
        ids = [k for k, leaf in enumerate(after.layouts["a"].operands) if isinstance(leaf, Call)]
        assert len(ids) == (2 if "key" in more else 1)
        for place in ids:
            for ours, theirs in zip(found.operands[place].arrays, fresh.operands[place].arrays, strict=True):
                assert ours.tolist() == theirs.tolist()


def test_an_id_that_cannot_be_had_is_not_made_up() -> None:
    before, after = (
        program_of(spec_of("b.u8 AS u"), "used"),
        program_of(spec_of("a.d52 AS d, result_id() AS key"), "used"),
    )
    batch = to_batch(Entry(before, None, None).admit({"a": [table_of(5, 1)]}, 0, last=True)["a"])
    leaf = after.layouts["a"].operands[-1]
    assert after.derived(leaf, batch) is None
    assert after.derived(after.layouts["a"].operands[0], batch) is None


def test_only_what_later_steps_and_results_read_travels() -> None:
    program = program_of(spec_of("a.id + b.id AS x"), "all")
    for driver, steps in program.carried.items():
        assert len(steps) == len(program.steps[driver]) == 2
        for number, layouts in enumerate(steps):
            later = program.steps[driver][number:]
            for name, layout in layouts.items():
                delivered = {"a": {"id"}, "b": {"id"}, "c": {"s"}}[name]
                assert {column.name for column in layout.columns} == delivered
                read = {leaf for step in later for conjunct in step.conjuncts for leaf in leaves_of(conjunct)}
                assert set(layout.operands) == read & set(program.layouts[name].operands)
    first, last = program.carried["a"]
    assert sum(len(layout.operands) for layout in last.values()) < sum(
        len(layout.operands) for layout in first.values()
    )


def test_a_part_of_a_layout_is_found_by_names() -> None:
    program = program_of(spec_of(), "used")
    layout = program.layouts["c"]
    names = tuple(to_batch(Entry(program, None, None).admit({"c": [table_of(3, 1)]}, 0, True)["c"]).schema.names)
    assert program.part("c", names) is layout
    assert program.part("c", names[:2]) is program.part("c", names[:2])
    assert pa.types.is_string(program.schema.field("s").type)
