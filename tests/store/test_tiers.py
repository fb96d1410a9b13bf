"""Tiers: what is merged fits together, and the number of segments stays small whatever comes."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.query.spec import UNBOUNDED, Window
from windrow.store.tiers import CROWDED, FAN_IN, Extent, Limits, groups, limits_of

EXTENTS = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 12), st.integers(1, 9), st.integers(1, 99), st.integers(0, 2)).map(
        lambda drawn: Extent(drawn[0], drawn[0] + drawn[1], *drawn[2:])
    ),
    max_size=40,
)
LIMITS = st.builds(Limits, st.integers(2, 5), st.integers(0, 30), st.integers(1, 30), st.integers(1, 300))


@settings(max_examples=300)
@given(EXTENTS, LIMITS)
def test_what_is_merged_fits_together(extents: list[Extent], limits: Limits) -> None:
    found = groups(extents, limits)
    members = Counter(place for group in found for place in group)
    assert all(count == 1 for count in members.values())
    tiers = Counter(extent.level for extent in extents)
    for group in found:
        held = [extents[place] for place in group]
        assert 2 <= len(group) <= limits.fan_in
        assert group == sorted(group)
        assert len({extent.level for extent in held}) == 1
        assert sum(extent.bytes for extent in held) <= limits.most_bytes
        if tiers[held[0].level] <= CROWDED * limits.fan_in:
            assert max(e.last_us for e in held) - min(e.first_us for e in held) <= limits.widest_us
            assert sum(extent.rows for extent in held) <= limits.most_rows


@settings(max_examples=300)
@given(EXTENTS, LIMITS)
def test_what_is_left_could_not_be_merged_yet(extents: list[Extent], limits: Limits) -> None:
    """Of the segments left in a tier, two neighbours fit together only if they are the youngest of the tier."""
    merged = {place for group in groups(extents, limits) for place in group}
    for level in {extent.level for extent in extents}:
        tier = [place for place, extent in enumerate(extents) if extent.level == level]
        left = [place for place in tier if place not in merged]
        together = 0
        for one, two in itertools.pairwise(left):
            neighbours = tier.index(two) == tier.index(one) + 1
            together = together + 1 if neighbours and fits(extents[one], extents[two], limits) else 0
        assert together < limits.fan_in


def fits(one: Extent, two: Extent, limits: Limits) -> bool:
    span_us = max(one.last_us, two.last_us) - min(one.first_us, two.first_us)
    rows, size = one.rows + two.rows, one.bytes + two.bytes
    return span_us <= limits.widest_us and rows <= limits.most_rows and size <= limits.most_bytes


def test_a_group_is_closed_by_the_first_segment_without_room() -> None:
    limits = Limits(widest_us=30)
    seconds = [Extent(10 * k, 10 * k + 9, 1, 1, 0) for k in range(7)]
    assert groups(seconds[:3], limits) == []
    assert groups(seconds[:4], limits) == [[0, 1, 2]]
    assert groups(seconds, limits) == [[0, 1, 2], [3, 4, 5]]
    rows = Limits(most_rows=2)
    assert groups(seconds[:3], rows) == [[0, 1]]
    assert groups(seconds[:3], Limits(most_bytes=2)) == [[0, 1]]


def test_sixteen_are_merged_at_once() -> None:
    seconds = [Extent(k, k, 1, 1, 3) for k in range(FAN_IN)]
    assert groups(seconds[:-1], Limits()) == []
    assert groups(seconds, Limits()) == [list(range(FAN_IN))]


def test_a_crowded_tier_is_merged_whatever_it_spans() -> None:
    limits = Limits(fan_in=4, widest_us=1, most_bytes=5)
    wide = [Extent(k, k + 100, 1, 1, 0) for k in range(CROWDED * 4 + 1)]
    assert groups(wide[:-1], limits) == []
    assert groups(wide, limits) == [[0, 1, 2, 3]]
    large = [extent._replace(bytes=5) for extent in wide]
    assert groups(large, limits) == []


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (Window(span_us=800), Limits(FAN_IN, 105, UNBOUNDED)),
        (Window(rows=80), Limits(FAN_IN, UNBOUNDED, 10)),
        (Window(rows=3), Limits(FAN_IN, UNBOUNDED, 1)),
    ],
)
def test_limits_are_a_share_of_the_window_and_the_lateness(window: Window, expected: Limits) -> None:
    assert limits_of(window, 5, 8) == expected


@pytest.mark.parametrize("late_us", [0, 50, 400])
def test_segments_of_disordered_rows_stay_few(late_us: int) -> None:
    draw = np.random.default_rng(late_us)
    limits = limits_of(Window(span_us=1000), late_us, 8)
    held: list[Extent] = []
    most = 0
    for tick in range(4000):
        first = tick - int(draw.integers(0, late_us + 1))
        held = [extent for extent in held if extent.last_us >= tick - late_us - 1000]
        held.append(Extent(first, tick, 1, 1, 0))
        found = groups(held, limits)
        gone = {place for group in found for place in group}
        merged = [joined([held[place] for place in group]) for group in found]
        held = [extent for place, extent in enumerate(held) if place not in gone] + merged
        most = max(most, len(held))
    assert 10 < most < 60


def test_segments_stay_few_in_a_window_of_a_day_of_batches_of_a_second() -> None:
    day = 86_400
    limits = limits_of(Window(span_us=day), 0, 8)
    held: list[Extent] = []
    most = 0
    for tick in range(day + day // 8):
        if held and held[0].last_us < tick - day:
            del held[0]
        held.append(Extent(tick, tick, 1, 1, 0))
        for group in groups(held, limits):
            held[group[0]] = joined([held[place] for place in group])
            del held[group[1] : group[-1] + 1]
        most = max(most, len(held))
    assert day <= sum(extent.rows for extent in held) <= day * 9 // 8 + 1
    assert 20 < most < 75


def joined(members: list[Extent]) -> Extent:
    first_us, last_us = min(e.first_us for e in members), max(e.last_us for e in members)
    rows, size = sum(e.rows for e in members), sum(e.bytes for e in members)
    return Extent(first_us, last_us, rows, size, members[0].level + 1)
