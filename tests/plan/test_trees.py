"""Plans that are trees: which streams meet where, which conditions are decided where, and how they are drawn."""

from __future__ import annotations

import pyarrow as pa
import pytest

import windrow
from windrow.errors import PlanError
from windrow.plan.directions.shapes import written
from windrow.plan.nodes import nodes_of, root_of
from windrow.plan.order import plan_query
from windrow.plan.plan import Path, Plan, Step
from windrow.plan.trees import connected, drawn, shape_of
from windrow.query.spec import QuerySpec

SCHEMA = pa.schema([("ts", pa.timestamp("us")), ("k", pa.int64()), ("x", pa.float64())])


def spec(where: str, names: str = "abcd") -> QuerySpec:
    sources = ", ".join(f"s AS {name}" for name in names)
    return windrow.sql(f"SELECT {names[0]}.k AS k FROM {sources} WHERE {where} WINDOW 5 SECONDS", {"s": SCHEMA}).spec()


CHAIN = "a.k = b.k AND ABS(b.x - c.x) <= 1 AND c.k = d.k"


@pytest.mark.parametrize(
    ("shape", "tree"),
    [("linear", "(((a b) c) d)"), ("bushy", "((a b) (c d))"), ("((a c)(b d))", "((a c) (b d))"), ("mway", None)],
)
def test_a_shape_survives_the_plan_and_its_json_form(shape: str, tree: str | None) -> None:
    plan = plan_query(spec(CHAIN), shape=shape)
    found = shape_of(plan)
    assert (None if found is None else written(found)) == tree
    assert Plan.from_json(plan.to_json()) == plan
    assert plan.is_tree == (tree is not None)


@pytest.mark.parametrize("shape", ["linear", "bushy", "((a d) (b c))", "(((d a) c) b)"])
def test_each_condition_is_decided_at_one_node_by_both_inputs(shape: str) -> None:
    asked = spec(CHAIN + " AND a.x + b.x + c.x <= d.x")
    plan = plan_query(asked, shape=shape)
    decided: dict[str | None, list[int]] = {}
    for path in plan.paths:
        decided.setdefault(path.into, []).extend(path.steps[0].conjuncts)
    for numbers in decided.values():
        assert sorted(numbers) == sorted([*set(numbers), *set(numbers)])
    assert sorted({number for numbers in decided.values() for number in numbers}) == list(range(4))
    assert sum(len(set(numbers)) for numbers in decided.values()) == 4


def test_a_stored_pair_is_searched_by_what_it_holds() -> None:
    plan = plan_query(spec(CHAIN), shape="bushy")
    step = plan.path("(c d)").steps[0]
    assert (step.stream, step.method, step.conjuncts) == ("(a b)", "sorted", (1,))
    assert plan.path("(a b)").into is None
    both = plan_query(spec("a.k = c.k AND b.k = c.k AND c.k = d.k"), shape="((a b) (c d))").path("(c d)").steps[0]
    assert (both.method, both.leading) == ("hashed", (0, 1))


def test_a_condition_over_two_stored_streams_and_a_new_one_is_looped() -> None:
    step = plan_query(spec("a.x + b.x <= c.x", "abc"), shape="((a b) c)").path("c").steps[0]
    assert (step.stream, step.method, step.leading) == ("(a b)", "loop", ())


def test_neighbours_in_a_shape_are_connected_where_they_can_be() -> None:
    assert connected(spec("a.k = d.k AND d.k = b.k AND b.k = c.k")) == ("a", "d", "b", "c")
    assert connected(spec("a.k = c.k")) == ("a", "c", "b", "d")


def test_levels_are_in_order_and_circles_are_refused() -> None:
    plan = plan_query(spec(CHAIN), shape="linear")
    assert [node.level for node in nodes_of(plan.paths).values()] == [1, 2]
    assert root_of(plan.paths) == ("((a b) c)", "d")
    step = Step("q", "loop", (), (), (), "")
    with pytest.raises(PlanError, match="lie beneath each other"):
        nodes_of((Path("p", (step,), into="q"), Path("q", (step,), into="p")))


def test_a_tree_is_drawn() -> None:
    assert drawn(plan_query(spec(CHAIN), shape="bushy")) == (
        "results", "├─ (a b), stored", "│  ├─ a", "│  └─ b", "└─ (c d), stored", "   ├─ c", "   └─ d",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("paths", "says"),
    [
        (lambda p: p[:-1], "the plan is driven by"),
        (lambda p: (*p[:-1], Path(p[-1].driver, p[0].steps)), "the path of 'd' visits d, b"),
        (
            lambda p: (p[0], Path("b", (Step("a", "loop", (1,), (), (), ""),), into="(a b)"), *p[2:]),
            "decides conditions",
        ),
    ],
)
def test_a_tree_that_does_not_cover_the_query_is_refused(paths, says: str) -> None:  # type: ignore[no-untyped-def]
    asked = spec(CHAIN)
    plan = plan_query(asked, shape="linear")
    broken = Plan("timestamp", paths(plan.paths))
    sources = {"s": SCHEMA}
    text = f"SELECT a.k AS k FROM s AS a, s AS b, s AS c, s AS d WHERE {CHAIN} WINDOW 5 SECONDS"
    with pytest.raises(PlanError, match=says):
        windrow.local(windrow.sql(text, sources), plan=broken)
