"""JAQPOT's numbers, by the names they have in the paper's list: JQ-01 to JQ-28."""

from __future__ import annotations

import numpy as np
import pytest

from windrow.plan.directions import (
    HEURISTICS,
    InputPath,
    Join,
    Model,
    State,
    Step,
    allocate,
    best_first,
    best_multiples,
    greedy_multiples,
    grepp,
    paths,
    stream,
    susceptible,
)
from windrow.plan.directions.flow import Flow

A, B = stream("a", 500, 5000, 0.001), stream("b", 700, 500, 0.005)
SINGLE = Join(A, B)
TREE = Join(
    Join(stream("a", 500, 5000, 0.001), stream("b", 700, 500, 0.001), State(200, 0.005)), stream("c", 300, 1000, 0.005)
)
FIGURE_4 = Join(
    Join(stream("a", 1000, 1, 5 / 11), stream("b", 1000, 1, 4 / 11), State(1, 0.1)), stream("c", 1000, 1, 1)
)
USES, YIELDS = (15, 16, 10), (4, 5, 1)


def path_of(tree: Join, name: str) -> InputPath:
    return next(path for path in paths(tree) if path.driver.name == name)


def flow_by(name: str, budget: float = 300) -> Flow:
    return next(heuristic for heuristic in HEURISTICS if heuristic.name == name).flow(TREE, budget)


def test_half_way_productivity() -> None:
    """JQ-01, JQ-04, JQ-28."""
    assert [Step(A, B).productivity, Step(B, A).productivity] == pytest.approx([2.5, 5.0])
    assert [path.productivity for path in paths(SINGLE)] == pytest.approx([2.5, 5.0])
    found = [path_of(TREE, "a").steps[0], path_of(TREE, "b").steps[0], path_of(TREE, "a").steps[1]]
    assert [step.productivity for step in (*found, *path_of(TREE, "c").steps)] == pytest.approx([0.5, 5.0, 5.0, 1.0])


def test_best_direction_of_one_join() -> None:
    """JQ-02, JQ-03."""
    both = Step(A, B), Step(B, A)
    assert best_first(both, (500, 700), 300) == (0.0, 300.0)
    assert grepp(Model.of(SINGLE), 300).tolist() == [0.0, 300.0]
    assert [allocate(SINGLE, 300).output_hz, allocate(SINGLE, 1e6).output_hz] == pytest.approx([1500.0, 4750.0])
    assert Model.of(SINGLE).saturation == pytest.approx(1200)


def test_resources_within_a_path() -> None:
    """JQ-05, JQ-08."""
    path = path_of(TREE, "b")
    assert path.divide(600) == pytest.approx((100.0, 500.0))
    assert path.productivity * 600 == pytest.approx(2500.0)
    assert path_of(FIGURE_4, "a").divide(15) == pytest.approx((11.0, 4.0))


def test_path_productivity() -> None:
    """JQ-07, JQ-27: a path taken M times yields M * X * rho_p."""
    assert [path.productivity for path in paths(FIGURE_4)] == pytest.approx([4 / 15, 0.3125, 0.1])
    assert [use * path.productivity for use, path in zip(USES, paths(FIGURE_4), strict=True)] == pytest.approx(
        list(YIELDS)
    )


def test_knapsacks() -> None:
    """JQ-09, JQ-10, JQ-11."""
    greedy, best = greedy_multiples(USES, YIELDS, 30), best_multiples(USES, YIELDS, 30)
    assert (greedy, best) == ((0, 1, 1), (2, 0, 0))
    used, found = (np.dot(greedy, USES), np.dot(best, USES)), (np.dot(greedy, YIELDS), np.dot(best, YIELDS))
    assert (30 - used[0], *found) == (4, 6, 8)
    allocation = allocate(FIGURE_4, 30, method="grepp")
    assert [allocation.probing_hz["b"], allocation.probing_hz["(a b)"]] == pytest.approx([20.625, 9.375])
    assert allocation.output_hz == pytest.approx(9.375)


@pytest.mark.parametrize(
    ("name", "probing", "found", "output"),
    [
        ("EqualHJ", (75.0, 75.0, 75.0, 75.0), 412.5, 450.0),  # JQ-13
        ("GlobalHJPR", (300 / 23, 3000 / 23, 3000 / 23, 600 / 23), 658.695652, 678.26087),  # JQ-15
        ("EBestHJP", (0.0, 150.0, 150.0, 0.0), 750.0, 750.0),  # JQ-16
        ("SBestHJP", (0.0, 50.0, 250.0, 0.0), 250.0, 1250.0),  # JQ-17
    ],
)
def test_heuristics(name: str, probing: tuple[float, ...], found: float, output: float) -> None:
    flow = flow_by(name)
    assert [flow.probing_hz[node] for node in ("a", "b", "(a b)", "c")] == pytest.approx(probing)
    assert (flow.found_hz["(a b)"], flow.output_hz) == pytest.approx((found, output))
    assert flow.spent == pytest.approx(300)


def test_printed_global_ratio_is_rounded() -> None:
    """JQ-14: 13 * .5 + 130 * 5 and 130 * 5 + 27."""
    flow = flow_by("GlobalHJPR")
    assert (flow.found_hz["(a b)"], flow.output_hz) == pytest.approx((656.5, 677.0), rel=0.01)


def test_mismatch() -> None:
    """Appendix B: of the rows found, those that may not go on; none with SBestHJP, contrary to the print."""
    assert flow_by("EqualHJ").wasted_hz == pytest.approx(412.5 - 75)
    assert flow_by("EBestHJP").wasted_hz == pytest.approx(750 - 150)
    assert flow_by("SBestHJP").wasted_hz == pytest.approx(0)


def test_the_root_has_no_state() -> None:
    """JQ-19, JQ-20 for the tree of Figure 2.b: one susceptible state."""
    assert [str(node) for node in susceptible(TREE)] == ["(a b)"]
    assert susceptible(SINGLE) == ()
