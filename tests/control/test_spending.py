"""Windows that fill: how long they are meanwhile, and what is found in longer ones."""

from __future__ import annotations

import numpy as np
import pytest

from windrow.control.spending import growth, mean_length, older_half, stretched
from windrow.plan.bins import Bins
from windrow.plan.cost import StepStatistics, StreamStatistics

BINS = Bins(100, 10)


@pytest.mark.parametrize("from_s", [0.0, 3.0, 9.0, 20.0])
@pytest.mark.parametrize("spent_s", [0.5, 5.0, 40.0])
def test_the_mean_length_of_a_growing_window(from_s: float, spent_s: float) -> None:
    times = from_s + spent_s * (np.arange(10_000) + 0.5) / 10_000
    assert mean_length(8.0, from_s, from_s + spent_s) == pytest.approx(float(np.minimum(times, 8.0).mean()), rel=1e-3)


def test_the_older_half_of_what_is_there() -> None:
    flat, recent = np.ones(10), np.eye(10)[0]
    assert older_half(flat, BINS, 100) == 0.5
    assert older_half(flat * (np.arange(10) < 4), BINS, 40) == 0.5
    assert older_half(recent, BINS, 40) == 0.0
    assert older_half(np.zeros(10), BINS, 40) == 0.5


@pytest.mark.parametrize(("old", "found"), [(0.0, 1.0), (0.25, 2.0), (0.5, 3.0), (0.9, 3.0)])
def test_longer_windows_give_more_where_older_rows_gave_any(old: float, found: float) -> None:
    streams = [StreamStatistics(10.0, 5.0), StreamStatistics(10.0, 5.0)]
    later = [StreamStatistics(10.0, 15.0), StreamStatistics(10.0, 15.0)]
    (step,) = stretched((StepStatistics(1, 0.02, (1.0,)),), [old], streams, later)
    assert step.selectivity * later[1].rows == pytest.approx(found)


@pytest.mark.parametrize(("old", "times"), [(0.0, 3.0), (0.5, 9.0)])
def test_work_grows_with_what_there_is_to_look_at_and_to_find(old: float, times: float) -> None:
    """Second steps are most of the work: as many as before where older rows gave nothing, else more, too."""
    streams = tuple(StreamStatistics(10.0, 100.0) for _ in range(3))
    paths = tuple(
        ((StepStatistics(i, 1.0, (1.0,)), StepStatistics(k, 1e-9, (1.0,))),) for i, k in ((1, 2), (0, 2), (0, 1))
    )
    olds = [[[old, old]]] * 3
    assert growth((streams, paths), olds, 10.0, 10.0, 20.0 - 1e-9) >= 1.0
    assert growth((streams, paths), olds, 10.0, 0.0, 40.0) == pytest.approx(times, rel=0.05)
    assert growth((streams, paths), olds, 200.0, 5.0, 5.0) == 1.0
