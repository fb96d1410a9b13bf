"""Stores: few segments, no row lost before its time, none kept much longer than the window."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.store.segments import LAYOUT, rows_of, segment_of
from windrow.query.spec import Window
from windrow.store import tiers
from windrow.store.segment import Layout, Segment
from windrow.store.tiers import FAN_IN
from windrow.store.window import Store

pytestmark = pytest.mark.usefixtures("interpreted")

BARE = Layout((), ())


def bare(times_us: list[int], first_clock: int | None = None) -> Segment:
    """A segment of event times alone."""
    clocks = {} if first_clock is None else {"a": np.arange(first_clock, first_clock + len(times_us), dtype=np.int64)}
    return Segment(BARE, np.array(times_us, np.int64), clocks, (), ())


def held(store: Store) -> list[int]:
    return sorted(time for segment in store.segments for time in segment.time_us.tolist())


@pytest.mark.parametrize("batches", [15, 16, 17, 256, 1000, 5000])
def test_the_number_of_segments_stays_logarithmic(batches: int) -> None:
    store = Store("a", BARE, Window(span_us=10**9))
    for tick in range(batches):
        store.add(bare([tick]))
    tiers = math.ceil(math.log(batches, FAN_IN)) + 1
    assert len(store.segments) <= (FAN_IN - 1) * tiers
    assert held(store) == list(range(batches))
    assert store.merged_rows <= batches * tiers
    assert len(store) == batches


def test_sixteen_of_a_tier_become_one_of_the_next() -> None:
    store = Store("a", BARE, Window(span_us=10**9))
    for tick in range(16 * 16):
        store.add(bare([tick]))
        levels = [segment.level for segment in store.segments]
        assert all(levels.count(level) < FAN_IN for level in levels)
    assert [segment.level for segment in store.segments] == [2]


@settings(max_examples=20)
@given(st.lists(st.lists(st.integers(0, 1000), max_size=4).map(sorted), max_size=60), st.integers(0, 400))
def test_no_row_is_lost_before_its_time(batches: list[list[int]], window_us: int) -> None:
    store = Store("a", BARE, Window(span_us=window_us))
    everything: list[int] = []
    for batch in batches:
        cutoff = max([0, *everything]) - 50
        store.expire(cutoff, 0)
        store.add(bare(batch))
        everything += batch
        kept = held(store)
        assert [time for time in kept if time >= cutoff] == sorted(time for time in everything if time >= cutoff)


def test_merged_rows_of_every_form_are_still_there() -> None:
    store = Store("a", LAYOUT, Window(span_us=10**9))
    added = [segment_of([tick, tick + 3], seed=tick) for tick in range(20)]
    for segment in added:
        store.add(segment)
    assert any(segment.level for segment in store.segments)
    assert rows_of(*store.segments) == rows_of(*added)


def test_what_is_kept_past_its_time_is_a_quarter_of_the_window() -> None:
    window_us = 1000
    store = Store("a", BARE, Window(span_us=window_us))
    most = 0
    for tick in range(6000):
        store.expire(tick - window_us, 0)
        store.add(bare([tick]))
        assert all(segment.last_us - segment.first_us <= window_us // 4 for segment in store.segments)
        most = max(most, tick - store.segments[0].first_us)
    assert window_us <= most <= window_us * 5 // 4
    assert len(store) <= window_us * 5 // 4 + 1


def test_a_segment_without_room_waits_for_those_that_follow() -> None:
    store = Store("a", BARE, Window(span_us=4 * (FAN_IN - 2)))
    for tick in range(2 * FAN_IN - 1):
        store.add(bare([tick]))
    assert [(len(segment), segment.level) for segment in store.segments] == [(FAN_IN - 1, 1), (FAN_IN - 1, 1), (1, 0)]
    assert held(store) == list(range(2 * FAN_IN - 1))


def test_expiry_is_closed_at_the_cutoff() -> None:
    store = Store("a", BARE, Window(span_us=100))
    store.add(bare([1, 5]))
    store.add(bare([6]))
    store.expire(5, 0)
    assert held(store) == [1, 5, 6]
    store.expire(6, 0)
    assert held(store) == [6]
    store.expire(7, 0)
    assert store.segments == []
    assert (len(store), store.nbytes) == (0, 0)


def test_rows_windows_expire_by_their_clock() -> None:
    store = Store("a", BARE, Window(rows=8))
    for batch in range(20):
        first = 3 * batch + 1
        store.add(bare([batch] * 3, first_clock=first))
        counted = first + 2
        store.expire(-(2**63), counted - 8 + 1)
        clocks = sorted(clock for segment in store.segments for clock in segment.clocks["a"].tolist())
        assert clocks[-8:] == list(range(max(1, counted - 7), counted + 1))
        assert len(clocks) <= 8 + max(8 // 4, 3)


def test_segments_that_are_too_large_or_far_apart_stay_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    far = Store("a", BARE, Window(span_us=4))
    for tick in range(40):
        far.add(bare([10 * tick]))
    assert [len(segment) for segment in far.segments] == [1] * 40
    assert far.merged_rows == 0
    monkeypatch.setattr(tiers, "LARGEST_SEGMENT_BYTES", 64)
    large = Store("a", BARE, Window(span_us=10**9))
    for tick in range(40):
        large.add(bare([tick]))
    assert max(segment.nbytes for segment in large.segments) <= 64
    assert held(large) == list(range(40))


def test_empty_batches_leave_nothing() -> None:
    store = Store("a", BARE, Window(span_us=10))
    store.add(bare([]))
    store.expire(5, 0)
    assert store.segments == []


def test_old_rows_are_left_behind_when_segments_merge() -> None:
    store = Store("a", BARE, Window(span_us=10**6))
    for tick in range(15):
        store.add(bare([tick, 100 + tick]))
    store.expire(100, 0)
    store.add(bare([15, 115]))
    assert held(store) == [100 + tick for tick in range(16)]
