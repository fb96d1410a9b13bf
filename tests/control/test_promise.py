"""What batches tell of freshness: feasible or not, before anything ran and while batches take longer and longer."""

from __future__ import annotations

import pytest

from windrow.control.promise import AVERAGED, Promise
from windrow.plan.directions.delivery import Terms

ASKED = (Terms("a", window_s=10, freshness_s=13, lateness_s=1), Terms("b", window_s=2, freshness_s=13, lateness_s=1))


@pytest.mark.parametrize(
    ("trigger_s", "broken"), [(0.0, []), (1.0, []), (2.0, []), (2.5, ["a"]), (11.0, ["a", "b"])]
)  # fmt: skip
def test_windows_lateness_and_trigger_alone_may_be_too_much(trigger_s: float, broken: list[str]) -> None:
    promise = Promise.of(ASKED, trigger_s)
    assert [verdict.stream for verdict in promise.infeasible] == broken
    if broken:
        assert promise.infeasible[0].workers is None


def test_longer_batches_need_more_workers_until_the_backlog_grows() -> None:
    promise = Promise.of(ASKED, 1.0)
    for busy_s, broken, workers in ((0.5, False, None), (1.0, False, None), (1.3, True, 1.3)):
        for _ in range(AVERAGED):
            promise = promise.observe(1.0, busy_s, 0.0)
        assert bool(promise.infeasible) == broken
        if workers is not None:
            assert [verdict.workers for verdict in promise.infeasible] == [pytest.approx(workers)] * 2
            assert {verdict.least_s for verdict in promise.infeasible} == {float("inf")}


def test_rows_that_come_later_than_allowed_need_as_much_more_freshness() -> None:
    before = {verdict.stream: verdict.least_s for verdict in Promise.of(ASKED).observe(1.0, 0.1, 0.0).verdicts}
    after = {verdict.stream: verdict.least_s for verdict in Promise.of(ASKED).observe(1.0, 0.1, 4.0).verdicts}
    assert {name: after[name] - before[name] for name in before} == {"a": pytest.approx(4), "b": pytest.approx(4)}


def test_a_window_of_rows_lasts_as_long_as_it_was_seen_to() -> None:
    promise = Promise.of((Terms("a", window_s=0, freshness_s=5),)).observe(1.0, 0.1, 0.0, {"a": 4.5})
    assert [verdict.stream for verdict in promise.infeasible] == ["a"]
    assert not promise.observe(1.0, 0.1, 0.0, {"a": 3.0}).infeasible
