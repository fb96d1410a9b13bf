import math

import numpy as np
import pytest
from scipy.special import stdtrit

from windrow.control.chance import gamma_quantile, gamma_share, student_quantile

INTERVALS = (  # of a Poisson mean, as tables print them
    (0, 0.0, 3.689),
    (1, 0.0253, 5.572),
    (2, 0.242, 7.225),
    (5, 1.623, 11.668),
    (30, 20.24, 42.83),
    (100, 81.36, 121.63),
)


@pytest.mark.parametrize(("events", "low", "high"), INTERVALS)
def test_intervals_of_a_poisson_mean_are_those_of_the_tables(events: int, low: float, high: float) -> None:
    assert gamma_quantile(events, 0.025) == pytest.approx(low, rel=2e-3)
    assert gamma_quantile(events + 1, 0.975) == pytest.approx(high, rel=2e-4)


@pytest.mark.parametrize("shape", [1, 2, 7, 40])
def test_shares_of_whole_shapes_are_sums_of_poisson_terms(shape: int) -> None:
    for x in (0.1, 1.0, shape - 0.5, shape + 3.0, 2.0 * shape):
        above = sum(math.exp(-x + k * math.log(x) - math.lgamma(k + 1)) for k in range(shape))
        assert gamma_share(shape, x) == pytest.approx(1 - above, abs=1e-10)


@pytest.mark.parametrize("shape", [0.05, 0.7, 3.3, 250.0, 9_999.0, 2e5])
@pytest.mark.parametrize("share", [0.025, 0.5, 0.975])
def test_quantiles_are_those_of_drawn_numbers(shape: float, share: float) -> None:
    drawn = np.random.default_rng(7).gamma(shape, size=200_000)
    assert (drawn < gamma_quantile(shape, share)).mean() == pytest.approx(share, abs=0.003)


def test_nothing_lies_below_nothing() -> None:
    assert gamma_quantile(0, 0.975) == gamma_quantile(3, 0) == gamma_share(2, 0) == 0


@pytest.mark.parametrize("freedom", [1.0, 1.3, 2.0, 4.7, 30.0, 5000.0])
@pytest.mark.parametrize("share", [0.6, 0.975, 0.999])
def test_quantiles_of_students_distribution_are_those_of_scipy(freedom: float, share: float) -> None:
    assert student_quantile(freedom, share) == pytest.approx(float(stdtrit(freedom, share)), rel=1e-8)
