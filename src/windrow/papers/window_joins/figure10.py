"""Figure 10: which stream gets the memory, and which the time, when both are short (section 4.3).

μ = 10 rows a second, M = 100 rows, σ = .01. The best is to keep the rows of one stream and to let the other probe them
(σμM = 10 results a second, as a limit: the stream that is kept has to come at some rate); equal shares of both give
half of that; to give one stream both memory and time gives next to nothing.

Ours: "all the time" is 95 % of it. Model and engine, as Figure 9.
"""

from __future__ import annotations

from windrow.papers.experiment import Chart, Claim, Experiment, Outcome, Series
from windrow.papers.window_joins.strategies import Strategy, claims, compared

SERVICE_HZ, MEMORY_ROWS, KEYS = 10.0, 100.0, 100.0
MOST = 0.95
SECONDS, QUICK_SECONDS = 10_000.0, 2_000.0
PRINTED = (("Max A / Max λ_b", "Max B / Max λ_a"), ("equal",), ("Max A / Max λ_a", "Max B / Max λ_b"))


def run(quick: bool, seed: int) -> Outcome:
    """Each strategy, in the model and in the engine."""
    table = compared(strategies(), keys=KEYS, seconds=QUICK_SECONDS if quick else SECONDS, seed=seed)
    limit = SERVICE_HZ * MEMORY_ROWS / KEYS
    best = max(table.numbers("model")) / MOST
    reached = Claim("the best that can be reached", f"σμM = {limit:g}", f"{best:g}", abs(best - limit) < 1e-9)
    series = tuple(Series.of(table, name, x="strategy", y=name) for name in ("model", "ours"))
    return Outcome(
        table, (*claims(table, PRINTED), reached), (Chart("strategy", "results a second", series, bars=True),)
    )


def strategies() -> tuple[Strategy, ...]:
    """The paper's five: which share of the memory, and of the time, A has."""
    shares = {
        "Max A / Max λ_a": (1.0, MOST),
        "Max A / Max λ_b": (1.0, 1 - MOST),
        "Max B / Max λ_a": (0.0, MOST),
        "Max B / Max λ_b": (0.0, 1 - MOST),
        "equal": (0.5, 0.5),
    }
    return tuple(strategy(name, memory, time) for name, (memory, time) in shares.items())


def strategy(name: str, memory: float, time: float) -> Strategy:
    """A strategy by the shares of A.

    >>> strategy("", 0.0, 0.99).model_hz(0.01)                 # KN-22: towards σμM = 10
    9.9
    """
    kept = (memory * MEMORY_ROWS, (1 - memory) * MEMORY_ROWS)
    return Strategy(name, round(time * SERVICE_HZ, 9), round((1 - time) * SERVICE_HZ, 9), *kept)


EXPERIMENT = Experiment("window_joins/figure10", "Which stream gets memory and time, when both are short", run)
