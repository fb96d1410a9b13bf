"""The cost model of the ring, on the paper's worked example: 50 rows a second, windows of 10 s, S = .1, M = 3."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import PlanError
from windrow.plan.ring.length import (
    meeting_length,
    ring_length,
    shortest_latency,
    stationary_length,
    waiting_length,
)
from windrow.plan.ring.model import RingCosts, RingLoad, most_hops, sub_joins, tree_nodes

COSTS = RingCosts(compare_s=1e-4, send_s=1e-4, hop_s=5e-3)
EXAMPLE = RingLoad.alike(streams=3, stored=500, selectivity=0.1, costs=COSTS)

loads = st.builds(
    RingLoad.alike,
    streams=st.integers(2, 5),
    stored=st.floats(1, 1000),
    selectivity=st.floats(1e-3, 1),
    costs=st.builds(RingCosts, st.floats(1e-6, 1e-3), send_s=st.floats(0, 1e-3), hop_s=st.floats(1e-5, 1e-2)),
)


def naive_pairs(stored: tuple[float, ...], selectivities: tuple[float, ...]) -> float:
    """Equation 1's sum, over streams 2 … M, of what is compared with each."""
    return sum(stored[k] * math.prod(stored[i] * selectivities[i] for i in range(k)) for k in range(len(stored)))


def test_hops_tasks_and_trees() -> None:
    """PS-07, PS-31."""
    assert (most_hops(4, 5), sub_joins(4, 3), tree_nodes(4)) == (15, 27, 3)


def test_work_counts_compared_pairs() -> None:
    """PS-08: then equation 2 is an equality; as printed it is off by 17.6 %."""
    approximate = EXAMPLE.alone_s * (1 + COSTS.send_s * 10 / (500 * COSTS.compare_s))
    assert EXAMPLE.ring_s(10) - approximate == pytest.approx(0.0, abs=1e-9)
    printed = COSTS.compare_s * (50 + 50**2)
    off = (printed + COSTS.send_s * 10 * (1 + 50)) / (printed * (1 + COSTS.send_s * 10 / (500 * COSTS.compare_s)))
    assert off - 1 == pytest.approx(0.176, abs=0.001)


@given(st.lists(st.tuples(st.floats(0, 1000), st.floats(0, 1)), min_size=1, max_size=5))
def test_work_of_streams_that_differ(steps: list[tuple[float, float]]) -> None:
    stored, selectivities = tuple(rows for rows, _ in steps), tuple(selectivity for _, selectivity in steps)
    load = RingLoad(stored, selectivities, RingCosts(2.0, insert_s=1.0, purge_s=3.0))
    assert load.alone_s == pytest.approx(4 + 2 * naive_pairs(stored, selectivities))


def test_service_and_output() -> None:
    """PS-10: N nodes serve N / L_PSP rows a second, which is what equation 4 says of the output."""
    assert EXAMPLE.service_hz(10) == pytest.approx(10 / EXAMPLE.ring_s(10))
    alone_hz = EXAMPLE.results / EXAMPLE.alone_s
    equation_4 = alone_hz / (1 / 10 + COSTS.send_s / (500 * COSTS.compare_s))
    assert EXAMPLE.output_hz(10) == pytest.approx(equation_4, rel=1e-9)


def test_latency() -> None:
    """PS-12."""
    assert EXAMPLE.latency_s(10) == pytest.approx(0.2826, rel=1e-9)


def test_best_lengths() -> None:
    """PS-13, PS-14, PS-15, PS-16."""
    assert meeting_length(EXAMPLE) == pytest.approx(13.209513, rel=1e-6)
    assert waiting_length(EXAMPLE) == pytest.approx(32.441352, rel=1e-6)
    assert stationary_length(EXAMPLE) == pytest.approx(31.937439, rel=1e-6)
    assert ring_length(EXAMPLE, 20) == 13
    assert ring_length(EXAMPLE, 20, "output") == 20


def test_smaller_selectivity_makes_shorter_rings() -> None:
    """The paper expects the opposite of what its equation 5 says (section 8.2)."""
    lengths = [shortest_latency(replace(EXAMPLE, selectivities=(s, s)), 100) for s in (0.05, 0.1, 0.5)]
    assert lengths == sorted(lengths)
    assert lengths[0] < lengths[-1]


def test_bandwidth() -> None:
    """PS-17."""
    assert EXAMPLE.bandwidth_bytes_s(10, 60_000) == pytest.approx(12_000_000, rel=1e-9)


def test_extra_traffic() -> None:
    """PS-19."""
    assert EXAMPLE.extra_traffic(10) == pytest.approx(0.2, rel=1e-9)


@given(loads, st.integers(1, 60))
def test_the_best_length_is_the_best(load: RingLoad, slots: int) -> None:
    best = shortest_latency(load, slots)
    assert load.latency_s(best) == min(load.latency_s(nodes) for nodes in range(1, slots + 1))
    assert best <= math.ceil(max(1.0, min(meeting_length(load), stationary_length(load))))
    assert ring_length(load, slots, "output") == slots or load.costs.send_s == 0 or load.output_hz(slots) > 0


@given(loads, st.integers(1, 40), st.integers(2, 4))
def test_the_meeting_length_is_where_terms_meet(load: RingLoad, nodes: int, rounds: int) -> None:
    length = meeting_length(load, rounds)
    assert load.alone_s / length + load.costs.send_s * load.travelling == pytest.approx(
        rounds * length * load.costs.hop_s
    )
    assert load.latency_s(nodes, rounds) == pytest.approx(load.latency_over_s([nodes] * (load.streams - 1), rounds))


def test_without_hops_longer_is_better() -> None:
    load = replace(EXAMPLE, costs=RingCosts(1e-4))
    assert meeting_length(load) == waiting_length(load) == stationary_length(load) == math.inf
    assert ring_length(load, 33) == 33


def test_what_is_no_load() -> None:
    with pytest.raises(PlanError, match="send_s is -1"):
        RingCosts(1.0, send_s=-1)
    with pytest.raises(PlanError, match="2 probed windows and 1 selectivities"):
        RingLoad((1, 2), (0.5,), COSTS)
    with pytest.raises(PlanError, match="below zero"):
        RingLoad((-1,), (0.5,), COSTS)
    with pytest.raises(PlanError, match="a ring of 0 nodes"):
        EXAMPLE.ring_s(0)
    with pytest.raises(PlanError, match="0 slots"):
        ring_length(EXAMPLE, 0)
    with pytest.raises(PlanError, match="cannot favour 'speed'"):
        ring_length(EXAMPLE, 3, "speed")
