"""Figure 11: the output over all ways to share out memory and time (section 4.3).

σ (x μ (M - A) + (1 - x) μ A), where A has the share x of the time and A of the M = 100 rows (eq. 14). There are two
maxima, of σμM = 10, and two minima, of 0, in the corners, at which a stream would stop: x is above 0 and below 1.

Ours: the model over the whole square, and the engine at nine places, of which the outermost are at 5 and 95 %.
"""

from __future__ import annotations

from itertools import product

from windrow.papers.experiment import Chart, Claim, Experiment, Outcome, Series
from windrow.papers.tables import Table
from windrow.papers.window_joins.figure10 import KEYS, MEMORY_ROWS, SERVICE_HZ, strategy
from windrow.papers.window_joins.strategies import compared

SHARES = tuple(place / 10 for place in range(11))
PLACES = (0.05, 0.5, 0.95)
SECONDS, QUICK_SECONDS = 10_000.0, 2_000.0


def run(quick: bool, seed: int) -> Outcome:
    """The surface, and what the engine finds on it."""
    limit = SERVICE_HZ * MEMORY_ROWS / KEYS
    surface = [(x, memory, output(x, memory), None) for x, memory in product(SHARES, SHARES)]
    places = list(product(PLACES, PLACES))
    played = compared(
        [strategy("", memory, x) for x, memory in places],
        keys=KEYS, seconds=QUICK_SECONDS if quick else SECONDS, seed=seed,
    )  # fmt: skip
    measured = [(*place, output(*place), found) for place, found in zip(places, played.numbers("ours"), strict=True)]
    table = Table.of(("time_of_a", "memory_of_a", "model", "ours"), [*surface, *measured])
    highest = sorted((x, memory) for x, memory, found, _ in surface if found > limit - 1e-9)
    lowest = sorted((x, memory) for x, memory, found, _ in surface if found < 1e-9)
    off = max(abs(ours - said) for *_, said, ours in measured) / limit
    lines = tuple(
        Series(f"memory of A {memory:g}", SHARES, tuple(output(x, memory) for x in SHARES))
        for memory in (0.0, 0.25, 0.5, 0.75, 1.0)
    )
    return Outcome(
        table,
        (
            Claim("maxima (time, memory of A)", "0, 1 and 1, 0", _shown(highest), highest == [(0.0, 1.0), (1.0, 0.0)]),
            Claim("minima (time, memory of A)", "0, 0 and 1, 1", _shown(lowest), lowest == [(0.0, 0.0), (1.0, 1.0)]),
            Claim("the engine finds what the model says", "not shown", f"within {100 * off:.1f} % of σμM", off <= 0.1),
        ),
        (Chart("share of the time for A", "results a second", lines),),
    )


def output(time: float, memory: float) -> float:
    """Equation 14, with A's shares.

    >>> output(1.0, 0.0), output(0.5, 0.3), output(0.0, 0.0)
    (10.0, 5.0, 0.0)
    """
    return SERVICE_HZ * MEMORY_ROWS / KEYS * (time * (1 - memory) + (1 - time) * memory)


def _shown(places: list[tuple[float, float]]) -> str:
    return " and ".join(f"{x:g}, {memory:g}" for x, memory in places)


EXPERIMENT = Experiment("window_joins/figure11", "Output over all shares of memory and time", run)
