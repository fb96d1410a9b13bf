"""A length for each stream: the order they are found in, and what the heuristic gives."""

from __future__ import annotations

from itertools import product

import pytest

from windrow.errors import PlanError
from windrow.plan.ring.lengths import SlicedStream, initial_lengths, join_order, mean_latency_s, slicing_order
from windrow.plan.ring.model import RingCosts

COSTS = RingCosts(compare_s=1e-4, send_s=1e-4, hop_s=5e-3)
STREAMS = (SlicedStream(50, 10, 0.1), SlicedStream(20, 10, 0.1), SlicedStream(100, 5, 0.05))


def test_slicing_order() -> None:
    """PS-18."""
    assert slicing_order(STREAMS) == (1, 2, 0)
    assert [join_order(STREAMS, driver) for driver in range(3)] == [(1, 2), (2, 0), (1, 0)]


def test_lengths_are_near_the_best_of_all() -> None:
    slots = 16
    lengths = initial_lengths(STREAMS, COSTS, slots)
    everything = product(range(1, slots + 1), repeat=3)
    best = min(mean_latency_s(STREAMS, each, COSTS) for each in everything)
    alike = min(mean_latency_s(STREAMS, (nodes,) * 3, COSTS) for nodes in range(1, slots + 1))
    assert best <= mean_latency_s(STREAMS, lengths, COSTS) <= min(alike, 1.25 * best)


def test_streams_that_do_not_differ_get_one_length() -> None:
    alike = (SlicedStream(50, 10, 0.1),) * 3
    lengths = initial_lengths(alike, COSTS, 20)
    assert max(lengths) - min(lengths) <= 1
    assert initial_lengths(alike, COSTS, 20, favour="output") == (20, 20, 20)


def test_larger_windows_get_longer_rings() -> None:
    lengths = initial_lengths(
        (SlicedStream(5, 10, 0.1), SlicedStream(5, 10, 0.1), SlicedStream(500, 10, 0.1)), COSTS, 40
    )
    assert lengths[2] == max(lengths) > min(lengths)


def test_what_cannot_be_sliced() -> None:
    with pytest.raises(PlanError, match="a join of 1 streams"):
        initial_lengths(STREAMS[:1], COSTS, 3)
    with pytest.raises(PlanError, match="no stream has a rate"):
        initial_lengths((SlicedStream(0, 1, 0.1),) * 2, COSTS, 3)
    with pytest.raises(PlanError, match="cannot favour"):
        initial_lengths(STREAMS, COSTS, 3, favour="cost")
