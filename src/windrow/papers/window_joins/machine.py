"""The paper's machine: its costs, the streams of Figures 2 to 7, and the rate at which its time is up.

C_n = .5 and C_h = .65 are thousandths of a second a minute of input: with them "the HJ requires full computing power"
where sixty seconds of input cost 60,000 (Figure 4). Stream A brings 10 rows a second, both windows are of 60 s, and a
window of selectivity σ has 1/σ keys.

>>> a, b = streams(100)
>>> a.rows, b.rows, round(full_time_hz(lambda a, b: join_cost("HHJ", a, b, COSTS)))
(600.0, 6000.0, 114)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from windrow.plan.unit_time import Side, join_cost

COSTS: Mapping[str, float] = MappingProxyType({"loop": 0.5, "hashed": 0.65})
RATIO = COSTS["hashed"] / COSTS["loop"]
A_HZ, WINDOW_S, SIGMA = 10.0, 60.0, 0.1
FULL_TIME = 60_000.0
ORDER = ("HHJ", "HNJ", "NHJ", "NNJ")
BISECTIONS = 60
MOST_HZ = 1000.0


def streams(b_hz: float, sigma: float = SIGMA, a_s: float = WINDOW_S, scale: float = 1.0) -> tuple[Side, Side]:
    """Streams A and B; `scale` multiplies both rates."""
    a = Side(scale * A_HZ, keys=1 / sigma, window_s=a_s)
    return a, Side(scale * b_hz, keys=1 / sigma, window_s=WINDOW_S)


def full_time_hz(cost: Callable[[Side, Side], float]) -> float:
    """The rate of B from which on the machine has no time left."""
    low, high = 0.0, MOST_HZ
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if cost(*streams(middle)) < FULL_TIME else (low, middle)
    return low


def costs_at(b_hz: float, sigma: float = SIGMA) -> dict[str, float]:
    """What each join costs a second, in the model."""
    return {name: join_cost(name, *streams(b_hz, sigma), COSTS) for name in ORDER}
