"""Limited memory: which stream's window gets how much of it, by the paper's model and strategies.

    output = sigma (A lambda_b + B lambda_a),   A + B = M         (tuples of a and b that are stored; section 4.3)

With given rates the best is all memory for the slower stream: the faster one, which probes more often, meets the most
rows, and need not be stored at all. It is then a one-way join, and it should be hashed. Where rates may be chosen too,
of mu tuples a second in all, one stream is stored and the other one let in: sigma mu M, whichever it is.

`STRATEGIES` are the five that the paper compares, for any number of streams: each says how to share memory out, and
what a window has no use for goes to the others. What Windrow does itself (`windrow.plan.holding`) follows the lags of
matches, and comes out as the paper's optimum where lags tell nothing.

With harvesting (GrubJoin, section VII) rows older than the oldest basic window that any direction searches are of no
use, while younger ones that are not searched are about to be: `oldest_searched`.

>>> best_split((5, 45), memory=1000)
(1000.0, 0.0)
>>> {name: share_out(name, (10, 30), memory=100, full=(90, 90)) for name in STRATEGIES}["slowest"]
(90.0, 10.0)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from windrow.errors import PlanError, UsageError
from windrow.plan.bins import Lags

Weights = tuple[float, ...]
Strategy = Callable[[Sequence[float]], Weights]


_BYTES = re.compile(r"\s*(\d[\d_]*(?:\.\d+)?)\s*([kmgt]i?)?b?\s*", re.IGNORECASE)
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def limit_bytes(limit: str | int) -> int:
    """A memory limit in bytes.

    >>> limit_bytes("500MB"), limit_bytes("1.5 GiB"), limit_bytes(1000)
    (500000000, 1610612736, 1000)
    """
    found = _BYTES.fullmatch(str(limit))
    size = 0 if found is None else int(float(found[1].replace("_", "")) * _UNITS[(found[2] or "").lower()])
    if size < 1:
        raise UsageError(f"'{limit}' is not a memory limit", hint="write a number above 0 and a unit, such as 500MB")
    return size


def output_rate(selectivity: float, rates_hz: Sequence[float], stored: Sequence[float]) -> float:
    """Results a second of two streams with so many stored tuples each (equation 9)."""
    (rate_a, rate_b), (stored_a, stored_b) = rates_hz, stored
    return selectivity * (stored_a * rate_b + stored_b * rate_a)


def best_split(rates_hz: Sequence[float], memory: float) -> tuple[float, float]:
    """The tuples of two streams to store: all of the slower one's (equation 13)."""
    slower_first = rates_hz[0] <= rates_hz[1]
    return (float(memory), 0.0) if slower_first else (0.0, float(memory))


def regulated_output(selectivity: float, service_hz: float, memory: float, share: float, stored_a: float) -> float:
    """Results a second when a share of `service_hz` tuples is of stream a, and the memory holds `stored_a` of it
    (equation 14): x, mu, M and A in the paper.
    """
    rates = (share * service_hz, (1 - share) * service_hz)
    return output_rate(selectivity, rates, (stored_a, memory - stored_a))


REGULATED: dict[str, tuple[float, float]] = {
    "a stored, a let in": (1.0, 1.0),
    "a stored, b let in": (0.0, 1.0),
    "b stored, a let in": (1.0, 0.0),
    "b stored, b let in": (0.0, 0.0),
    "equal": (0.5, 0.5),
}
"""The paper's strategies where rates may be chosen (Figure 10): stream a's share of the rows let in, and of the memory.
Of the rows it can only come close to all or none: without a row of a stream there is no join.
"""


def _alone(chosen: Callable[[Sequence[float]], float]) -> Strategy:
    def weights(rates_hz: Sequence[float]) -> Weights:
        first = list(rates_hz).index(chosen(rates_hz))
        return tuple(float(place == first) for place in range(len(rates_hz)))

    return weights


STRATEGIES: dict[str, Strategy] = {
    "slowest": _alone(min),
    "fastest": _alone(max),
    "proportional": tuple,
    "inverse": lambda rates_hz: tuple(1.0 / rate for rate in rates_hz),
    "equal": lambda rates_hz: (1.0,) * len(rates_hz),
}
"""Max A, Max B, lambda proportional, lambda inverse, equal distribution (Figure 9): rates to weights."""


def share_out(strategy: str, rates_hz: Sequence[float], memory: float, full: Sequence[float]) -> tuple[float, ...]:
    """How much of the memory each window gets, at most what it needs when `full`."""
    if strategy not in STRATEGIES:
        raise PlanError(f"there is no strategy '{strategy}'", hint=f"choose one of {', '.join(STRATEGIES)}")
    given = [0.0] * len(full)
    hungry = [place for place, need in enumerate(full) if need > 0]
    rest = float(memory)
    while hungry and rest > 0:
        weights = STRATEGIES[strategy]([max(rates_hz[place], 1e-9) for place in hungry])
        unit = rest / sum(weights)
        for place, weight in zip(hungry, weights, strict=True):
            given[place] += min(weight * unit, full[place] - given[place])
        rest = memory - sum(given)
        still = [place for place in hungry if given[place] < full[place] * (1 - 1e-12)]
        if len(still) == len(hungry):
            break
        hungry = still
    return tuple(given)


def oldest_searched(searched: Sequence[Lags | None], window: int) -> int:
    """The greatest lag that any of some steps looks at in a window: rows that are older may go.

    >>> oldest_searched([((0, 5), (20, 30)), ((5, 10),), ()], window=100)
    29
    >>> oldest_searched([((0, 5),), None], window=100)
    100
    """
    ends = (window if lags is None else max((high - 1 for _, high in lags), default=0) for lags in searched)
    return min(window, max(ends, default=0))


def unsearched(counts: Mapping[int, int]) -> set[int]:
    """Of basic windows 1 to n, those that may go: `counts` says in how many directions each is searched.

    That is the paper's set, of which no younger one is part that an older, searched one needs:

    >>> sorted(unsearched({1: 0, 2: 1, 3: 0, 4: 2, 5: 0, 6: 0}))
    [5, 6]
    """
    oldest = max((number for number, directions in counts.items() if directions), default=0)
    return {number for number in counts if number > oldest}
