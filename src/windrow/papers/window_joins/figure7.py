"""Figure 7: output rates over the rate of B, and where each join gets out of breath (section 4.1).

As long as there is time, the output is σ λ_a λ_b (T_a + T_b) (eq. 9), half of that one way. Beyond, the paper's machine
falls behind: one-way HJ from 120 rows a second on, HHJ from 110, HNJ from 190, with peaks of 11,844 (HHJ) and 18,939
(HNJ) results a second. HHJ's output falls steeply then, HNJ's gracefully.

Ours: the model's machine, which takes the rows in order and gets through the share of them it has time for. It has no
feeder that delays rows; the paper says that its own did, and lies 10 to 17 % below eq. 9 at the peaks.
"""

from __future__ import annotations

from collections.abc import Callable

from windrow.papers.experiment import Chart, Claim, Experiment, Outcome, Series
from windrow.papers.tables import Table
from windrow.papers.window_joins.machine import COSTS, FULL_TIME, SIGMA, full_time_hz, streams
from windrow.plan.regulation import output_hz
from windrow.plan.unit_time import Side, direction_cost, join_cost

RATES_HZ = tuple(float(rate) for rate in range(10, 261, 10))
COST: dict[str, Callable[[Side, Side], float]] = {
    "HJ": lambda a, b: direction_cost("hashed", a.rate_hz, b, COSTS).total,
    "NLJ": lambda a, b: direction_cost("loop", a.rate_hz, b, COSTS).total,
    "HHJ": lambda a, b: join_cost("HHJ", a, b, COSTS),
    "HNJ": lambda a, b: join_cost("HNJ", a, b, COSTS),
}
ONE_WAY = ("HJ", "NLJ")
PEAKS = {"HHJ": 11844.0, "HNJ": 18939.0}
NEAR, NEAR_RATIO = 0.25, 0.15


def run(quick: bool, seed: int) -> Outcome:  # noqa: ARG001 - quick as it is, and nothing in it is random
    """The output of all four at each rate."""
    table = Table.of(("b_hz", *COST), [(b_hz, *(output_at(name, b_hz) for name in COST)) for b_hz in RATES_HZ])
    series = tuple(Series.of(table, name, x="b_hz", y=name) for name in COST)
    return Outcome(table, _claims(table), (Chart("rate of B (rows/s)", "results a second", series),))


def output_at(name: str, b_hz: float) -> float:
    """Results a second of a machine that has no more time than there is.

    >>> output_at("HHJ", 100), round(output_at("HHJ", 200))
    (12000.0, 8366)
    """
    a, b = streams(b_hz)
    windows = (0.0 if name in ONE_WAY else a.window_s or 0.0, b.window_s or 0.0)
    return output_hz(SIGMA, (a.rate_hz, b.rate_hz), windows) * min(1.0, FULL_TIME / COST[name](a, b))


def _claims(table: Table) -> tuple[Claim, ...]:
    full = {name: full_time_hz(COST[name]) for name in ("HJ", "HHJ", "HNJ")}
    order = sorted(full, key=lambda name: full[name])
    peaks = {name: output_at(name, full[name]) for name in PEAKS}
    ratio, printed = peaks["HNJ"] / peaks["HHJ"], PEAKS["HNJ"] / PEAKS["HHJ"]
    falls = {name: table.numbers(name)[-1] / peaks[name] for name in PEAKS}
    return (
        Claim(
            "out of breath first",
            "HHJ at 110, HJ at 120, HNJ at 190",
            ", ".join(f"{name} at {full[name]:.0f}" for name in order),
            order == ["HHJ", "HJ", "HNJ"],
        ),
        *(
            Claim(
                f"the peak of {name}, results/s",
                f"{PEAKS[name]:,.0f}",
                f"{peaks[name]:,.0f}",
                abs(peaks[name] / PEAKS[name] - 1) <= NEAR,
            )
            for name in PEAKS
        ),
        Claim("HNJ's peak to HHJ's", f"{printed:.2f}", f"{ratio:.2f}", abs(ratio / printed - 1) <= NEAR_RATIO),
        Claim(
            "beyond its peak HHJ falls, HNJ hardly does",
            "yes",
            ", ".join(f"{name} at {100 * share:.0f} % of its peak" for name, share in falls.items()),
            falls["HHJ"] < 0.8 < falls["HNJ"],
        ),
    )


EXPERIMENT = Experiment("window_joins/figure7", "Output rates, and where joins get out of breath", run)
