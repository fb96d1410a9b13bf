"""Batches in real time: none before its time, none forgotten, whoever asks when."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from windrow.streams.schedule import Schedule

ENDS = some.lists(some.integers(0, 60_000_000), min_size=1, max_size=20, unique=True).map(sorted)


class Watch:
    """A clock that goes on by what is waited, and by what is worked."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def wait(self, seconds: float) -> None:
        assert seconds > 0
        self.now_s += seconds


@given(ENDS, some.sampled_from([0.5, 1.0, 60.0]), some.lists(some.floats(0, 20), min_size=20, max_size=20))
def test_batches_come_when_they_are_due(ends_us: list[int], pace: float, work_s: list[float]) -> None:
    watch = Watch()
    schedule = Schedule(ends_us, pace, lambda: watch.now_s, watch.wait)
    given_so_far = 0
    for worked_s in work_s:
        before = given_so_far
        given_so_far = schedule.due(before)
        assert before < given_so_far <= len(ends_us) or before == given_so_far == len(ends_us)
        due_us = (watch.now_s - 100.0) * pace * 1e6 + ends_us[0]
        assert all(end_us <= due_us + 1 for end_us in ends_us[:given_so_far])
        assert all(end_us > due_us - 1 for end_us in ends_us[given_so_far:])
        watch.now_s += worked_s / pace
