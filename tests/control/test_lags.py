"""What is learned of lags: found and missed add up to everything, little evidence is spread, old evidence fades."""

from __future__ import annotations

import json

import numpy as np
import pytest

from windrow.control.lags import Learned, surprise
from windrow.control.observation import PathTally, StepTally

PATHS = {"a": ("b", "c"), "a/1": ("c", "b")}
BINS = {"b": 10, "c": 5}
EMPTY = Learned.empty(PATHS, BINS)


def at(place: int, count: float, bins: int) -> tuple[float, ...]:
    return tuple(count if k == place else 0.0 for k in range(bins))


def tally(drivers: int, results: int, b: int, c: int, missed: float = 0.0) -> PathTally:
    """Rows that find all their results in one bin of each store."""
    steps = (StepTally(drivers, 100 * drivers, 100 * drivers, drivers), StepTally(drivers, 50 * drivers, 50, results))
    lags, escaped = (
        (at(b, results, 10), at(c, results, 5)),
        (at(b, missed, 10), at(c, missed, 5)),
    )
    return PathTally(drivers, results, steps, lags, missed, escaped, (3, 0))


def test_found_and_missed_make_up_everything() -> None:
    """Some of it is missed by the plan: sampled rows see that, a tenth of them, a fifth of the time."""
    learned = EMPTY
    for _ in range(50):
        others, sample = {"a": tally(90, 180, 2, 1)}, {"a": tally(10, 6, 7, 4, missed=2.0)}
        learned = learned.after(sample, others, throttle=0.2, keep=1.0)
    a_row = 180 / 90 + 2.0 / (10 * 0.2)
    assert learned.results_a_row == pytest.approx(a_row)
    scores = learned.scores()
    assert scores["b"].sum() == pytest.approx(a_row, rel=0.01)
    assert scores["c"].sum() == pytest.approx(a_row, rel=0.01)
    assert int(np.argmax(scores["b"])) == 2
    assert scores["b"][7] > 0.5


def test_rows_of_all_paths_count_whatever_the_order_of_their_stores() -> None:
    turned = tally(30, 60, 2, 1)
    turned = PathTally(30, 60, turned.steps, turned.lags[::-1])
    both = EMPTY.after({"a": tally(10, 2, 2, 1)}, {"a": tally(60, 120, 2, 1), "a/1": turned}, 0.2, 1.0)
    assert both.drivers == 100
    assert both.found["b"][2] == pytest.approx(180 * 100 / 90)
    assert both.found["c"][1] == pytest.approx(180 * 100 / 90)


def test_alone_sampled_rows_say_everything() -> None:
    learned = EMPTY.after({"a": tally(10, 6, 7, 4)}, {}, throttle=0.5, keep=1.0)
    assert learned.results_a_row == pytest.approx(6 / (10 * 0.5))


def test_few_results_are_hardly_believed_and_many_are() -> None:
    few, many = EMPTY, EMPTY
    few = few.after({"a": tally(50, 1, 4, 2, missed=1.0)}, {"a": tally(500, 0, 0, 0)}, 0.5, 1.0)
    many = many.after({"a": tally(50, 2000, 4, 2, missed=2000.0)}, {"a": tally(500, 0, 0, 0)}, 0.5, 1.0)
    spread, sharp = (learned.scores()["b"] / learned.scores()["b"].sum() for learned in (few, many))
    assert int(np.argmax(sharp)) == 4
    assert spread[4] < 0.3
    assert sharp[4] > 0.9


def test_a_direction_that_gave_nothing_is_not_given_up() -> None:
    learned = EMPTY.after({"a": tally(10, 0, 0, 0)}, {"a": tally(90, 0, 0, 0)}, 0.2, 1.0)
    scores = learned.scores()
    assert (scores["b"] > 0).all()
    for _ in range(30):
        learned = learned.after({"a": tally(10, 0, 0, 0)}, {"a": tally(90, 0, 0, 0)}, 0.2, 1.0)
    assert 0 < learned.scores()["b"].sum() < scores["b"].sum() / 20


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.9])
def test_what_moved_is_found_again(keep: float) -> None:
    learned, intervals = EMPTY, 0
    for _ in range(20):
        learned = learned.after({"a": tally(10, 20, 2, 1)}, {"a": tally(90, 180, 2, 1)}, 0.5, keep)
    while int(np.argmax(learned.scores()["b"])) != 7:
        sample = {"a": tally(10, 20, 7, 1, missed=10.0)}
        learned, intervals = learned.after(sample, {"a": tally(90, 0, 7, 1)}, 0.5, keep), intervals + 1
    assert intervals <= 2 / (1 - keep)


def test_passing_and_false_candidates() -> None:
    learned = EMPTY.after({"a": tally(10, 20, 2, 1)}, {}, 1.0, 1.0)
    assert learned.passing("a") == pytest.approx(0.01)
    assert learned.false_share("a") == pytest.approx(0.99)
    assert learned.passing("a/1") is None
    assert learned.false_share("a/1") == 1.0
    assert learned.newer_a_row("b") == pytest.approx(0.3)


def test_surprises_go_both_ways_and_need_rows() -> None:
    assert surprise({"a": tally(100, 10, 0, 0)}, 0.4) < -3
    assert surprise({"a": tally(100, 90, 0, 0)}, 0.4) > 3
    assert abs(surprise({"a": tally(100, 42, 0, 0)}, 0.4)) < 1
    assert surprise({"a": tally(1000, 250, 0, 0)}, 0.4) == surprise({"a": tally(1000, 700, 0, 0)}, 0.4) == 0.0
    assert surprise({}, 0.4) == surprise({"a": tally(100, 10, 0, 0)}, 0.0) == 0.0


def test_nothing_new_changes_nothing_and_the_state_comes_back() -> None:
    learned = EMPTY.after({"a": tally(10, 6, 7, 4, missed=2.0)}, {"a": tally(90, 10, 1, 1)}, 0.2, 1.0)
    assert learned.after({}, {}, 0.2, 0.5) == learned
    assert Learned.from_values(json.loads(json.dumps(learned.to_values()))) == learned
