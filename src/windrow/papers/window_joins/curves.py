"""Model costs of the four joins over the rate of B: what Figures 2 and 3 have in common."""

from __future__ import annotations

from windrow.papers.experiment import Chart, Claim, Outcome, Series
from windrow.papers.tables import Table
from windrow.papers.window_joins.machine import A_HZ, COSTS, ORDER, WINDOW_S, costs_at
from windrow.plan.unit_time import crossing_hz

NEAR = 0.06


def outcome(sigma: float, rates_hz: tuple[float, ...], printed_hz: float) -> Outcome:
    """The curves at a selectivity, and where the paper reads off that the loop takes over."""
    costs = {b_hz: costs_at(b_hz, sigma) for b_hz in rates_hz}
    cheapest = {b_hz: min(found, key=found.__getitem__) for b_hz, found in costs.items()}
    rows = [(b_hz, *found.values(), cheapest[b_hz]) for b_hz, found in costs.items()]
    table = Table.of(("b_hz", *ORDER, "cheapest"), rows)
    crossing = crossing_hz(A_HZ, keys=1 / sigma, window_s=WINDOW_S, costs=COSTS)
    before = {winner for b_hz, winner in cheapest.items() if b_hz < crossing}
    after = {winner for b_hz, winner in cheapest.items() if b_hz > crossing}
    series = tuple(Series.of(table, name, x="b_hz", y=name) for name in ORDER)
    near = abs(crossing / printed_hz - 1) <= NEAR
    return Outcome(
        table,
        (
            Claim("HNJ takes over from HHJ", f"at about {printed_hz:g} rows/s", f"at {crossing:.1f} rows/s", near),
            Claim("HHJ wins before, HNJ after", "yes", f"{_all(before)}, then {_all(after)}", (before, after) == _WINS),
        ),
        (Chart("rate of B (rows/s)", "cost a second", series),),
    )


_WINS = ({"HHJ"}, {"HNJ"})


def _all(names: set[str]) -> str:
    return " and ".join(sorted(names))
