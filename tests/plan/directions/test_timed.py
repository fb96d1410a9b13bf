"""Allowances where states hold what is let in, against a grid, and against taking sizes as given."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import PlanError
from windrow.plan.directions import Join, Model, State, Stream, allocate, flow_of, settle, steady, stream
from windrow.plan.directions.instances import SHAPES
from windrow.plan.directions.shapes import names_of, plant, written
from windrow.plan.directions.timed import filled

Lives = dict[str, float]


def timed_tree(seed: int, streams: int, kind: str) -> tuple[Join, Lives]:
    """A random tree over windows of 2 to 20 s, with selectivities over two decades."""
    random = np.random.default_rng(seed)
    shape = SHAPES[kind](random, "abcdefgh"[:streams])

    def selectivity() -> float:
        return float(10 ** random.uniform(-5, -3))

    leaves = {}
    for name in names_of(shape):
        rate_hz = float(random.uniform(300, 1200))
        leaves[name] = stream(name, rate_hz, rate_hz * float(random.uniform(2, 20)), selectivity())
    tree = plant(shape, leaves, lambda _name: State(0, selectivity()))
    return tree, {str(state): float(random.uniform(1, 10)) for state in Model.of(tree).states}


def slowly(tree: Join, lives: Lives, driver_hz: dict[str, float]) -> tuple[float, float]:
    """Output and resources of one setting, by recursion over the tree."""
    spent = 0.0

    def down(node: Join | Stream) -> tuple[float, float]:
        nonlocal spent
        if isinstance(node, Stream):
            return driver_hz[node.name], node.state.rows
        (left, left_rows), (right, right_rows) = down(node.left), down(node.right)
        spent += left * node.right.state.probe_cost + right * node.left.state.probe_cost
        found = left * node.right.state.selectivity * right_rows + right * node.left.state.selectivity * left_rows
        return found, found * lives.get(str(node), 0.0)

    return down(tree)[0], spent


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(2, 6), st.sampled_from(sorted(SHAPES)), st.floats(0, 1))
def test_what_is_said_of_a_setting_is_so(seed: int, streams: int, kind: str, share: float) -> None:
    tree, lives = timed_tree(seed, streams, kind)
    model = Model.of(tree)
    drawn = np.random.default_rng(seed).uniform(0, 1, streams) * share * model.rate_hz
    driver_hz = dict(zip(model.names, drawn.tolist(), strict=True))
    said = steady(tree, lives, driver_hz)
    assert (said.output_hz, said.spent) == pytest.approx(slowly(tree, lives, driver_hz))
    with_rows = flow_of(filled(tree, said.rows), driver_hz | {str(state): 1e300 for state in model.states})
    assert with_rows.output_hz == pytest.approx(said.output_hz)
    for state, rows in said.rows.items():
        assert rows == pytest.approx(with_rows.found_hz[state] * lives[state])


@pytest.mark.parametrize("kind", ["linear", "bushy"])
@pytest.mark.parametrize(("streams", "grid"), [(3, 41), (4, 13)])
def test_settling_is_no_worse_than_a_grid(kind: str, streams: int, grid: int) -> None:
    """All settings of the grid at once, the last stream taking what is left; none is better by more than a hair."""
    for seed in range(8):
        tree, lives = timed_tree(seed, streams, kind)
        model = Model.of(tree)
        full = steady(tree, lives, dict(zip(model.names, model.rate_hz.tolist(), strict=True)))
        budget = full.spent * (0.05 + 0.1 * seed)
        best = settle(tree, lives, budget)
        assert best.spent <= budget * (1 + 1e-6)
        assert all(rate <= model.rate_hz[model.names.index(name)] * (1 + 1e-9) for name, rate in best.driver_hz.items())
        assert slowly(tree, lives, dict(best.driver_hz))[0] == pytest.approx(best.output_hz)
        axes = np.meshgrid(*[np.linspace(0, 1, grid)] * streams)
        points = {name: axis.ravel() * rate for name, axis, rate in zip(model.names, axes, model.rate_hz, strict=True)}
        output, spent = slowly(tree, lives, points)
        assert best.output_hz >= 0.999 * np.where(spent <= budget, output, 0).max()


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(3, 8), st.sampled_from(sorted(SHAPES)), st.floats(0.02, 0.9))
def test_sizes_taken_as_given_are_never_better(seed: int, streams: int, kind: str, share: float) -> None:
    tree, lives = timed_tree(seed, streams, kind)
    model = Model.of(tree)
    full = steady(tree, lives, dict(zip(model.names, model.rate_hz.tolist(), strict=True)))
    budget = share * full.spent
    given_sizes = allocate(filled(tree, full.rows), budget)
    really = steady(tree, lives, given_sizes.driver_hz)
    assert settle(tree, lives, budget).output_hz >= really.output_hz * (1 - 1e-3)


def test_a_store_that_nobody_fills_finds_nothing() -> None:
    """With sizes as given all goes to c, whose partner's state is then empty."""
    pair = Join(stream("a", 100, 1000, 0.001), stream("b", 100, 1000, 0.001), State(0, 0.02))
    tree, lives = Join(pair, stream("c", 100, 1000, 0.0002)), {"(a b)": 5.0}
    full = steady(tree, lives, {"a": 100, "b": 100, "c": 100})
    greedy = allocate(filled(tree, full.rows), 100)
    assert greedy.driver_hz["c"] == pytest.approx(100)
    assert greedy.output_hz == pytest.approx(2000)
    assert steady(tree, lives, greedy.driver_hz).output_hz == 0
    assert settle(tree, lives, 100).output_hz > 100


def test_enough_is_everything_and_nothing_is_nothing() -> None:
    tree, lives = timed_tree(1, 5, "mixed")
    model = Model.of(tree)
    full = steady(tree, lives, dict(zip(model.names, model.rate_hz.tolist(), strict=True)))
    assert settle(tree, lives, full.spent) == full
    nothing = settle(tree, lives, 0.0)
    assert (nothing.output_hz, nothing.spent) == (0, 0)


def test_what_is_not_known_is_refused() -> None:
    tree, lives = timed_tree(1, 3, "linear")
    with pytest.raises(PlanError, match="cannot be given"):
        settle(tree, lives, -1.0)
    with pytest.raises(PlanError, match="how long rows of"):
        settle(tree, {}, 1.0)
    assert written(("a", "b")) in lives
