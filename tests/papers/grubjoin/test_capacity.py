"""The machine of the experiments on output rates, and RandomDrop on it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from windrow.papers.grubjoin.capacity import AT_LEISURE, Workload, compared, fitted, machine, output_hz
from windrow.papers.grubjoin.scenario import DOMAIN, PERIOD_S, Scenario
from windrow.streams.arrivals import Constant

SHORT = Scenario(60.0, run_s=36.0, warm_up_s=20.0)


@pytest.fixture(scope="module")
def work() -> Workload:
    return Workload.of(SHORT, seed=1)


def test_the_machine_has_the_load_it_was_fitted_to(work: Workload) -> None:
    for load in (0.5, 3.0):
        assert work.load(fitted(work, load)) == pytest.approx(load)


def test_the_machine_just_keeps_up_with_100_rows_a_second() -> None:
    """GJ-39: no shedding until the rates reach 100, with either kind of streams."""
    loads = [Workload.of(scenario, 1).load(machine()) for scenario in (Scenario(100.0), Scenario(100.0).aligned())]
    assert 0.4 < min(loads) < max(loads) < 0.95
    assert machine(4).costs.step("loop").per_candidate == pytest.approx(4 * machine().costs.step("loop").per_candidate)


def test_the_full_join_is_what_its_steps_say(work: Workload) -> None:
    """What the static optimisation is told adds up to what the run gave."""
    statistics = work.statistics(AT_LEISURE)
    expected_hz = sum(
        stream.rate_hz * math.prod(step.selectivity * stream.rows for step in steps)
        for stream, steps in zip(statistics.streams, statistics.directions, strict=True)
    )
    assert output_hz(SHORT, work.full) == pytest.approx(expected_hz, rel=0.2)


def test_random_drop_keeps_up_and_keeps_the_share_there_is_time_for(work: Workload) -> None:
    on = fitted(work, 2.0)
    dropped = work.random_drop(on)
    assert dropped.load(SHORT.warm_up_s) == pytest.approx(0.95, abs=0.1)
    assert output_hz(SHORT, dropped) / output_hz(SHORT, work.full) == pytest.approx(0.95 / 2, rel=0.25)


def test_without_overload_nothing_is_left_out() -> None:
    found = compared(SHORT, machine(), [1])
    assert found.load < 0.5
    assert found.grubjoin_hz == found.random_drop_hz == found.full_hz > 0
    assert found.gain == 0


def test_under_overload_grubjoin_finds_more() -> None:
    found = compared(SHORT, machine(20), [1])
    assert found.load > 2
    assert found.random_drop_hz < found.grubjoin_hz < found.full_hz


@pytest.mark.parametrize("noise", [(0.0, 0.0, 0.0), (2.0, 2.0, 50.0), (20.0, 400.0, 1000.0)])
def test_agreeing_rows_lie_in_the_window_as_often_as_drawn(noise: tuple[float, ...]) -> None:
    scenario = replace(Scenario(100.0), noise=noise)
    drawn = np.random.default_rng(1).standard_normal((2, 20_000))
    for driver in range(3):
        for other in {0, 1, 2} - {driver}:
            off = (noise[driver] * drawn[0] - noise[other] * drawn[1]) * PERIOD_S / DOMAIN
            lags_s = np.mod(scenario.lags_s[other] - scenario.lags_s[driver] + off, PERIOD_S)
            share = float(((lags_s >= 0) & (lags_s < scenario.window_s)).mean())
            exact_at_an_edge = 0.5 if share in (0.0, 1.0) else 0.02
            assert scenario.agreeing(driver, other) == pytest.approx(share, abs=exact_at_an_edge)


def test_orders_begin_where_little_passes() -> None:
    """The full join costs less in these orders than in the opposite ones."""
    work = Workload.of(SHORT, 1, Constant(60.0))
    turned = Workload(
        Turned(60.0, run_s=SHORT.run_s, warm_up_s=SHORT.warm_up_s), work.query, Workload.of(TURNED, 1).plan
    )
    assert work.full.results == turned.full.results
    assert work.load(machine()) < turned.load(machine())


class Turned(Scenario):
    """Visits stores the other way round."""

    def orders(self) -> dict[str, tuple[str, ...]]:
        return {driver: order[::-1] for driver, order in Scenario.orders(self).items()}


TURNED = Turned(60.0, run_s=SHORT.run_s, warm_up_s=SHORT.warm_up_s)
