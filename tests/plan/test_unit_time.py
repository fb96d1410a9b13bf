"""The unit-time model against the formulas and the figures that window-joins prints."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import PlanError
from windrow.plan.unit_time import (
    JOINS,
    MODELS,
    Side,
    access_costs,
    accesses,
    cheapest,
    crossing_hz,
    determinant,
    direction_cost,
    join_cost,
    kept_lazily,
    ratio_of,
    segment_work,
)
from windrow.plan.work import REFERENCE

PAPER = {"loop": 0.5, "hashed": 0.65}
RATES = st.floats(0.1, 1e4)
SIZES = st.floats(1, 1e4)


def a_and_b(b_hz: float, sigma: float = 0.1) -> tuple[Side, Side]:
    """The streams of Figures 2 to 7."""
    return Side(10, keys=1 / sigma, window_s=60), Side(b_hz, keys=1 / sigma, window_s=60)


@given(RATES, RATES, SIZES, SIZES, SIZES, SIZES)
def test_joins_are_the_sum_of_their_directions(
    a_hz: float, b_hz: float, a_s: float, b_s: float, a_keys: float, b_keys: float
) -> None:
    """KN-01: equations 4 to 6, as printed, are what the one-way costs add up to."""
    a, b = Side(a_hz, a_keys, window_s=a_s), Side(b_hz, b_keys, window_s=b_s)
    loop, hashed = PAPER["loop"], PAPER["hashed"]
    in_a, in_b = a_s * a_hz / a_keys, b_s * b_hz / b_keys
    printed = {
        "HHJ": (a_hz + b_hz) * (in_b + in_a + 1) * hashed,
        "NNJ": a_hz * (b_s * b_hz + 2) * loop + b_hz * (a_s * a_hz + 2) * loop,
        "HNJ": a_hz * (b_s * b_hz * loop + in_a * hashed + hashed) + b_hz * (in_a * hashed + 2 * loop),
        "NHJ": b_hz * (a_s * a_hz * loop + in_b * hashed + hashed) + a_hz * (in_b * hashed + 2 * loop),
    }
    for name, cost in printed.items():
        assert join_cost(name, a, b, PAPER) == pytest.approx(cost, rel=1e-9), name
        in_window_a, in_window_b = JOINS[name]
        parts = (direction_cost(in_window_b, a_hz, b, PAPER), direction_cost(in_window_a, b_hz, a, PAPER))
        assert sum(part.total for part in parts) == pytest.approx(cost, rel=1e-9)


@pytest.mark.parametrize(("sigma", "printed", "exact"), [(0.1, 70, 67.0128), (0.05, 140, 144.0256)])
def test_where_the_loop_takes_over(sigma: float, printed: float, exact: float) -> None:
    """KN-05, KN-06."""
    found = crossing_hz(10, keys=1 / sigma, window_s=60, costs=PAPER)
    assert found == pytest.approx(exact, abs=1e-4)
    assert found == pytest.approx(printed, rel=0.06)
    a, b = a_and_b(found, sigma)
    assert join_cost("HHJ", a, b, PAPER) == pytest.approx(join_cost("HNJ", a, b, PAPER), rel=1e-9)


@pytest.mark.parametrize(
    ("b_hz", "sigma", "wins"),
    [(20, 0.1, "HHJ"), (60, 0.1, "HHJ"), (80, 0.1, "HNJ"), (200, 0.1, "HNJ"), (130, 0.05, "HHJ"), (160, 0.05, "HNJ")],
)
def test_which_join_wins(b_hz: float, sigma: float, wins: str) -> None:
    """KN-07: NNJ and NHJ never do while B is the faster stream."""
    a, b = a_and_b(b_hz, sigma)
    assert min(JOINS, key=lambda name: join_cost(name, a, b, PAPER)) == wins
    assert cheapest(10, b, PAPER) == JOINS[wins][1]
    assert cheapest(b_hz, a, PAPER) == "hashed"


def test_the_determinant() -> None:
    """KN-08, KN-09, KN-10."""
    assert determinant(10, 1.3) == pytest.approx(6.7, abs=0.05)
    assert cheapest(10, a_and_b(100)[1], PAPER) == "loop"
    assert determinant(10, 1.3) < 100 / 10
    assert ratio_of(10, 6.7) == pytest.approx(1.3, abs=0.005)
    assert ratio_of(10, 7) == 1.25


def full_time_hz(cost: Callable[[Side, Side], float]) -> float:
    """The rate of B from which on sixty seconds of input take longer than sixty seconds: units are milliseconds."""
    low, high = 1.0, 1000.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if cost(*a_and_b(middle)) < 60_000 else (low, middle)
    return low


def test_where_the_paper_s_machine_is_busy_all_the_time() -> None:
    """KN-11, KN-12, KN-13."""
    one_way = full_time_hz(lambda a, b: direction_cost("hashed", a.rate_hz, b, PAPER).total)
    assert one_way == pytest.approx(120, rel=0.02)
    assert 110 <= full_time_hz(lambda a, b: join_cost("HHJ", a, b, PAPER)) <= 120
    assert full_time_hz(lambda a, b: join_cost("HNJ", a, b, PAPER)) == pytest.approx(175.3, abs=0.1)


@pytest.mark.parametrize(("keys", "method", "turns_at"), [(10, "loop", 6.69), (20, "hashed", 14.38)])
def test_methods_follow_the_regulated_rates(keys: float, method: str, turns_at: float) -> None:
    """KN-18: at 5 and 45 rows a second."""
    assert determinant(keys, 1.3) == pytest.approx(turns_at, abs=0.01)
    assert cheapest(5, Side(45, keys=keys, window_s=60), PAPER) == method


@pytest.mark.parametrize("method", MODELS)
@given(RATES, RATES, SIZES, st.floats(1, 1e3))
def test_a_row_window_costs_what_a_time_window_of_as_many_rows_does(
    method: str, probing_hz: float, rate_hz: float, window_s: float, keys: float
) -> None:
    timed = Side(rate_hz, keys, window_s=window_s)
    counted = Side(rate_hz, keys, window_rows=timed.rows)
    for lazy in (False, True):
        assert accesses(method, probing_hz, counted, lazy=lazy) == accesses(method, probing_hz, timed, lazy=lazy)


def test_lazy_invalidation() -> None:
    """The paper's formula for the loop; for buckets, that a row that left is looked at once more."""
    window = Side(100, keys=10, window_s=60)
    looks = math.floor(math.log2(math.ceil(100 / 10)) + 1)
    assert accesses("loop", 10, window, lazy=True).total == 10 * (6000 + looks) + 100
    assert accesses("hashed", 10, window, lazy=True).total == 10 * 600 + 2 * 100
    assert accesses("sorted", 10, window, lazy=True).invalidate == 100
    for method in MODELS:
        assert accesses(method, 10, window, lazy=True).total < accesses(method, 10, window).total
        assert accesses(method, 0, window, lazy=True).probe == 0
        assert kept_lazily(method, 0, window) == math.inf


def test_lazily_kept_rows_are_those_that_leave_between_probes() -> None:
    """A table of buckets, each probed in turn: what has left since the bucket's last probe, counted."""
    keys, a_hz, b_hz = 20, 10, 100
    between_probes_s = keys / a_hz
    leaving_a_bucket = [between_probes_s * b_hz / keys for _ in range(keys)]
    assert kept_lazily("hashed", a_hz, Side(b_hz, keys, window_s=60)) == sum(leaving_a_bucket)


def test_work_of_segments() -> None:
    """As many candidates as the model's accesses; rows indexed and merged only where that is done."""
    window = Side(1000, keys=10, window_s=60)
    looped, hashed = (segment_work(method, 10, window, batch_hz=4) for method in ("loop", "hashed"))
    assert looped.steps[0].candidates == accesses("loop", 10, window).probe
    assert hashed.steps[0].candidates == accesses("hashed", 10, window).probe
    assert (looped.indexed_rows, hashed.indexed_rows, hashed.merged_rows) == (0, 2000, 1000)
    assert segment_work("hashed", 10, window, batch_hz=0.1).merged_rows == 0
    assert segment_work("sorted", 10, replace(window, rate_hz=0.0), batch_hz=1).indexed_rows == 0
    spent = REFERENCE.seconds_of(segment_work("hashed", 0, window, batch_hz=4))
    assert spent.index_row_s == 2000 * REFERENCE.index_row_s
    assert spent.step_s == 0


def test_costs_of_the_machine() -> None:
    costs = access_costs(REFERENCE)
    assert set(costs) == set(MODELS)
    assert costs["loop"] < costs["hashed"] < costs["sorted"]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: Side(1, 1), "a time or a number of rows"),
        (lambda: Side(1, 0, window_s=1), "cannot have"),
        (lambda: Side(-1, 1, window_s=1), "cannot have"),
        (lambda: accesses("matrix", 1, Side(1, 1, window_s=1)), "no method 'matrix'"),
        (lambda: segment_work("matrix", 1, Side(1, 1, window_s=1), 1), "no method 'matrix'"),
        (lambda: accesses("loop", math.nan, Side(1, 1, window_s=1)), "cannot come nan"),
        (lambda: direction_cost("sorted", 1, Side(1, 1, window_s=1), PAPER), "no cost of method 'sorted'"),
        (lambda: join_cost("HJH", Side(1, 1, window_s=1), Side(1, 1, window_s=1), PAPER), "no join 'HJH'"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: Callable[[], object], says: str) -> None:
    with pytest.raises(PlanError, match=says):
        wrong()
