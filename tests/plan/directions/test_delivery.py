"""What running batches can promise, beside a batch loop played by the clock."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from windrow.errors import PlanError
from windrow.plan.directions import Batches, Terms, promises

SPANS = st.floats(0.0, 50.0)


def oldest_delivery_s(terms: Terms, batches: Batches, rounds: int = 7, ticks: int = 40) -> float:
    """The oldest row ever delivered, if a result's newest row happens at any time and comes as late as it may."""
    oldest = 0.0
    for number in range(rounds * ticks):
        happened_s = number * batches.trigger_s / ticks
        here_s = happened_s + terms.lateness_s + batches.backlog_s
        begun_s = (math.floor(here_s / batches.trigger_s) + 1) * batches.trigger_s
        oldest = max(oldest, begun_s + batches.batch_s - (happened_s - terms.window_s))
    return oldest


@given(SPANS, SPANS, SPANS, st.floats(0.1, 10), st.floats(0, 1), st.floats(0, 1))
def test_the_least_freshness_is_never_exceeded_and_nearly_met(
    window_s: float, lateness_s: float, backlog_s: float, trigger_s: float, fixed: float, load: float
) -> None:
    batches = Batches(trigger_s, fixed * trigger_s / 2, load / 2, backlog_s=backlog_s)
    terms = Terms("a", window_s, 1e9, lateness_s)
    (verdict,) = promises((terms,), batches)
    assert verdict.holds
    assert 0 <= verdict.least_s - oldest_delivery_s(terms, batches) + 1e-9 <= trigger_s / 20


@given(SPANS, SPANS, SPANS, st.floats(0.1, 10), st.floats(0, 0.9), st.floats(0.01, 8))
def test_the_workers_named_are_enough_and_fewer_are_not(
    window_s: float, lateness_s: float, beyond_s: float, trigger_s: float, fixed: float, load: float
) -> None:
    asked = (Terms("a", window_s, window_s + beyond_s, lateness_s),)
    (verdict,) = promises(asked, Batches(trigger_s, fixed * trigger_s, load))
    if verdict.workers is None:
        assert verdict.floor_s >= verdict.asked_s
        assert not verdict.holds
        return
    assume(verdict.workers < 1e6)
    (enough,) = promises(asked, Batches(trigger_s, fixed * trigger_s, load, workers=verdict.workers * (1 + 1e-6)))
    (fewer,) = promises(asked, Batches(trigger_s, fixed * trigger_s, load, workers=verdict.workers * 0.99))
    assert enough.holds
    assert not fewer.holds


def test_a_growing_backlog_promises_nothing() -> None:
    (verdict,) = promises((Terms("a", 10, 1e6),), Batches(trigger_s=1, fixed_s=0.1, work_s=1.8, workers=1.5))
    assert not verdict.holds
    assert math.isinf(verdict.least_s)
    assert (
        str(verdict) == "a freshness of 1e+06 s cannot be promised for 'a': the backlog grows, and it takes 2 workers"
    )
    with pytest.raises(PlanError, match="cannot run like this"):
        Batches(trigger_s=0, fixed_s=0, work_s=1)
