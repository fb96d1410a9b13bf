"""Trees and their shapes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from windrow.errors import PlanError
from windrow.plan.directions import Join, State, Stream, half_ways, joins, paths, stream, susceptible
from windrow.plan.directions.instances import SHAPES
from windrow.plan.directions.shapes import Shape, bushy, linear, mixed, names_of, plant, read, written


def tree_of(shape: Shape) -> Join:
    streams = {name: stream(name, 10, 10, 0.1) for name in names_of(shape)}
    return plant(shape, streams, lambda _name: State(10, 0.1))


@pytest.mark.parametrize("kind", sorted(SHAPES))
@pytest.mark.parametrize("streams", range(2, 9))
def test_trees_of_every_shape(kind: str, streams: int) -> None:
    """JQ-20: exactly k - 2 susceptible states; and 2 (k - 1) half-way joins, one path a stream."""
    tree = tree_of(SHAPES[kind](np.random.default_rng(streams), "abcdefgh"[:streams]))
    assert len(susceptible(tree)) == streams - 2
    assert len(half_ways(tree)) == 2 * (streams - 1)
    assert sorted(path.driver.name for path in paths(tree)) == list("abcdefgh"[:streams])
    assert written(read(str(tree))) == str(tree)
    for path in paths(tree):
        assert path.steps[0].node is path.driver
        for step, above in zip(path.steps, path.steps[1:], strict=False):
            assert isinstance(above.node, Join)
            assert {step.node, step.partner} == {above.node.left, above.node.right}
        assert {path.steps[-1].node, path.steps[-1].partner} == {tree.left, tree.right}


def test_inner_nodes_come_after_those_beneath() -> None:
    assert [str(node) for node in joins(tree_of(bushy("abcd")))] == ["(a b)", "(c d)", "((a b) (c d))"]
    assert [str(node) for node in joins(tree_of(linear("abcd")))] == ["(a b)", "((a b) c)", "(((a b) c) d)"]


def test_mixed_shapes_are_drawn() -> None:
    drawn = {written(mixed(np.random.default_rng(seed), "abcd")) for seed in range(20)}
    assert len(drawn) > 5
    assert drawn == {written(mixed(np.random.default_rng(seed), "abcd")) for seed in range(20)}


def test_costs_of_probes_weigh() -> None:
    tree = Join(
        Join(stream("a", 1, 10, 0.2, 3.0), stream("b", 1, 10, 0.5, 2.0), State(10, 0.1, 7.0)), stream("c", 1, 10, 0.1)
    )
    by_driver = {path.driver.name: path for path in paths(tree)}
    assert by_driver["a"].costs == (2.0, 5.0)
    assert by_driver["c"].costs == (7.0,)
    assert by_driver["a"].productivity == pytest.approx(5 / 7)
    assert by_driver["a"].divide(14) == pytest.approx((2.0, 10.0))


@pytest.mark.parametrize("text", ["", "a", "(a)", "(a b", "a b", "(a b c)", "((a b) c))", ")a b("])
def test_unreadable_shapes(text: str) -> None:
    with pytest.raises(PlanError, match="not the shape of a join tree"):
        read(text)


def test_trees_that_cannot_be() -> None:
    with pytest.raises(PlanError, match="no stream 'b'"):
        plant(read("(a b)"), {"a": stream("a", 1, 1, 1)}, lambda _name: State(1, 1))
    with pytest.raises(PlanError, match="make no join"):
        linear("a")
    with pytest.raises(PlanError, match="twice"):
        paths(tree_of(("a", "a")))
    for bad in ((-1.0, 0.1, 1.0), (1.0, math.nan, 1.0), (1.0, 0.1, 0.0)):
        with pytest.raises(PlanError, match="a state cannot be"):
            State(*bad)
    with pytest.raises(PlanError, match="rows a second"):
        Stream("a", 0.0, State(1, 1))
