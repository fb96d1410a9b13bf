"""Who drives: the paper's worked rows, and what holds for every policy."""

from __future__ import annotations

import math
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import PlanError
from windrow.plan.drivers import AUTO, POLICIES, Load, known_policy, order_of_drivers

BUFFERED, STORED = (10, 20, 30), (100, 200, 300)

loads = st.lists(
    st.builds(Load, st.integers(0, 50), st.integers(0, 1000), st.integers(0, 10_000)), min_size=2, max_size=6
).map(lambda each: {f"s{place}": load for place, load in enumerate(each)})


def named(*orders: int) -> tuple[str, ...]:
    return tuple(f"S{each + 1}" for each in orders)


def streams(buffered: tuple[int, ...], stored: tuple[int, ...], seen: tuple[int, ...]) -> dict[str, Load]:
    parts = zip(buffered, stored, seen, strict=True)
    return {f"S{place + 1}": Load(*each) for place, each in enumerate(parts)}


def test_expected_output_of_a_buffer() -> None:
    """DR-05: |buffer_j| sigma prod of the others is 60 for each stream of the example, so none goes before another."""
    sizes = [
        buffer * 1e-4 * math.prod(other for k, other in enumerate(STORED) if k != j)
        for j, buffer in enumerate(BUFFERED)
    ]
    assert sizes == pytest.approx([60.0, 60.0, 60.0], rel=1e-9)
    assert order_of_drivers("initial_output_size", streams(BUFFERED, STORED, STORED), 0, 0) == named(0, 1, 2)
    fuller = streams((10, 21, 30), STORED, STORED)
    assert order_of_drivers("initial_output_size", fuller, 0, 0) == named(1, 0, 2)


def test_expected_output_of_a_row() -> None:
    """DR-06: per row of a buffer 6, 3, 2; the highest rate first."""
    rates = [1e-4 * math.prod(other for k, other in enumerate(STORED) if k != j) for j in range(3)]
    assert rates == pytest.approx([6.0, 3.0, 2.0], rel=1e-9)
    assert order_of_drivers("output_rate", streams(BUFFERED, STORED, STORED), 0, 0) == named(0, 1, 2)
    backwards = streams(BUFFERED[::-1], STORED[::-1], STORED)
    assert order_of_drivers("output_rate", backwards, 0, 0) == named(2, 1, 0)


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 999), st.integers(1, 9)), min_size=2, max_size=5),
    st.floats(1e-9, 1.0),
)
def test_orders_by_size_and_rate(parts: list[tuple[int, int, int]], selectivity: float) -> None:
    """DR-07: output size orders by descending |buffer_j| / |ht_j|, output rate by ascending |ht_j|, and looking again
    after each buffer (whose rows then are stored) does not change the order.
    """
    waiting = streams(*(tuple(part[k] for part in parts) for k in range(3)))
    by_size = order_of_drivers("initial_output_size", waiting, 0, 0)
    by_rate = order_of_drivers("output_rate", waiting, 0, 0)
    assert by_size is not None
    assert by_rate is not None
    ratios = [waiting[name].buffered / waiting[name].stored for name in by_size]
    assert ratios == sorted(ratios, reverse=True)
    assert [waiting[name].stored for name in by_rate] == sorted(load.stored for load in waiting.values())
    left = dict(waiting)
    again: list[str] = []
    while left:
        expected = {
            name: load.buffered * selectivity * math.prod(waiting[other].stored for other in waiting if other != name)
            for name, load in left.items()
        }
        best = max(expected.values())
        again.append(next(name for name in by_size if name in left and math.isclose(expected[name], best)))
        driven = left.pop(again[-1])
        waiting[again[-1]] = Load(0, driven.stored + driven.buffered, driven.seen)
    assert tuple(again) == by_size


def test_consumption_rates_of_the_papers_datasets() -> None:
    """DR-08: in datasets V and VI, S1, S2, S3 give 100, 10, 1 results a row: S3 first. In I to IV all give 5."""
    unequal = streams((1, 1, 1), (1, 1, 1), (10_000, 100_000, 1_000_000))
    assert order_of_drivers("consumption_rate", unequal, 1_000_000, 0) == named(2, 1, 0)
    equal = streams((3, 1, 2), (7, 5, 6), (1_000_000,) * 3)
    assert order_of_drivers("consumption_rate", equal, 5_000_000, 0) == named(0, 1, 2)


def test_round_robin_starts_one_further_each_batch() -> None:
    waiting = streams(BUFFERED, STORED, STORED)
    orders = [order_of_drivers("round_robin", waiting, 0, batch) for batch in range(4)]
    assert orders == [named(0, 1, 2), named(1, 2, 0), named(2, 0, 1), named(0, 1, 2)]


@pytest.mark.parametrize("policy", POLICIES)
@given(waiting=loads, results=st.integers(0, 10**6), batch=st.integers(0, 99))
def test_every_order_names_each_stream_once(policy: str, waiting: dict[str, Load], results: int, batch: int) -> None:
    order = order_of_drivers(policy, waiting, results, batch)
    if policy == "timestamp":
        assert order is None
    elif order is None:
        assert policy in AUTO.values()
    else:
        assert sorted(order) == sorted(waiting)
        assert order_of_drivers(policy, waiting, results, batch) == order


def test_ties_go_by_the_order_of_from() -> None:
    same = Load(5, 5, 5)
    for names in permutations(("a", "b", "c")):
        for policy in ("consumption_rate", "initial_output_size", "output_rate"):
            assert order_of_drivers(policy, dict.fromkeys(names, same), 9, 1) == names


def test_unknown_policies_are_refused() -> None:
    with pytest.raises(PlanError, match="no driver policy 'fastest'") as caught:
        known_policy("fastest")
    assert all(policy in caught.value.hint for policy in POLICIES)
