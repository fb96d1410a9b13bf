"""Nodes that come and go: amounts that move, places of new nodes, ends of slices."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import PlanError
from windrow.plan.ring.relocation import Growth, even_ends, passive_ends, relocated

SIZES = st.tuples(st.integers(1, 8), st.integers(0, 8))


def test_passive_from_3_to_4_nodes() -> None:
    """PS-20: slices W/3 become W/4, the new node is the tail."""
    assert even_ends(12, 3) == (4, 8, 12)
    assert passive_ends(12, 3, 1) == (3, 6, 9, 12)
    assert passive_ends(12, 4, -2) == (6, 12, 12, 12)


def test_amounts_that_move() -> None:
    """PS-21."""
    growth = Growth.of(3, 1)
    assert [float(each) for each in growth.passed_on] == pytest.approx([1 / 3, 2 / 3, 0], abs=1e-6)
    assert growth.behind == (3,)


def test_all_slices_are_equal_afterwards() -> None:
    """PS-22."""
    for nodes in range(1, 9):
        for added in range(1, 9):
            assert Growth.of(nodes, added).slices() == (Fraction(1),) * (nodes + added)


def test_new_nodes_have_a_place() -> None:
    """PS-23: the smallest k with M/N · k >= j; with ">" the last new node has none."""
    for nodes in range(1, 9):
        for added in range(1, 9):
            growth = Growth.of(nodes, added)
            for new, behind in enumerate(growth.behind, start=1):
                places = range(1, nodes + 1)
                assert behind == min(k for k in places if Fraction(added, nodes) * k >= new)
            assert not [k for k in range(1, nodes + 1) if Fraction(added, nodes) * k > added]


@given(SIZES, st.integers(1, 50))
def test_what_moves_is_what_does_not_stay(sizes: tuple[int, int], rows: int) -> None:
    nodes, added = sizes
    before = [rows * (nodes + added)] * nodes
    after = [rows * nodes] * (nodes + added)
    growth = Growth.of(nodes, added)
    moved = relocated(before, after, growth.places())
    through = sum(growth.passed_on) * rows * nodes
    into_new = added * rows * nodes
    assert into_new <= moved <= through + into_new
    assert growth.places()[0] == 0
    assert len(set(growth.places())) == nodes


def test_what_cannot_be() -> None:
    with pytest.raises(PlanError, match="added to 0"):
        Growth.of(0, 1)
    with pytest.raises(PlanError, match="3 of 3 nodes cannot go"):
        passive_ends(1, 3, -3)
