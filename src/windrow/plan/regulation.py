"""Which streams to slow down when there is not time for all rows: rates that give the most output (window-joins, 4.2).

    service μ ──▶ each stream the same share, but none more than it has; what the slower ones leave goes to the others

        10 ┤        ┌──────┐      rows a second: 5, 100 and 60 with μ = 65 become 5, 30 and 30
           ┤ ┌────┐ │      │
           └─┴────┴─┴──────┴─

The output of a join is its selectivity times the product of its streams' rates times what their windows add up to
(eq. 9, with m rates for m streams): σ · λ_1 … λ_m · Σ_i Π_{l≠i} T_l. Windows only scale it. With the sum of the rates
limited, as the paper limits it, the product is largest where the rates are as equal as they can be.

That a row costs the same whatever it probes is the paper's simplification. Where probes of longer windows cost more,
the same question is answered by `windrow.plan.random_drop.keep_rates`, whose optimum is this one when they do not; it
is what a controlled join compares with harvesting (`windrow.control.regulating`).

>>> regulated_hz((5.0, 100.0), 50.0)
(5.0, 45.0)
>>> regulated_hz((5.0, 100.0, 60.0), 65.0)
(5.0, 30.0, 30.0)
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from windrow.errors import PlanError


def regulated_hz(rates_hz: Sequence[float], service_hz: float) -> tuple[float, ...]:
    """The rates that give the most output when `service_hz` rows a second can be handled; none is above its own."""
    if len(rates_hz) < 2 or min(rates_hz) < 0 or not math.isfinite(sum(rates_hz)):
        raise PlanError(f"streams cannot come at {tuple(rates_hz)} rows a second", hint="give two or more from 0 on")
    if not 0 <= service_hz < math.inf:
        raise PlanError(f"no more than {service_hz} rows a second says nothing", hint="give a number from 0 on")
    given: dict[int, float] = {}
    left = service_hz
    for place in sorted(range(len(rates_hz)), key=lambda k: rates_hz[k]):
        given[place] = min(rates_hz[place], left / (len(rates_hz) - len(given)))
        left -= given[place]
    return tuple(given[place] for place in range(len(rates_hz)))


def keep_shares(rates_hz: Sequence[float], service_hz: float) -> tuple[float, ...]:
    """The share of each stream's rows to keep for these rates.

    >>> keep_shares((80.0, 20.0), 10.0)
    (0.0625, 0.25)
    """
    regulated = regulated_hz(rates_hz, service_hz)
    return tuple(kept / rate if rate else 1.0 for kept, rate in zip(regulated, rates_hz, strict=True))


def output_hz(selectivity: float, rates_hz: Sequence[float], windows_s: Sequence[float]) -> float:
    """Results a second (eq. 9): each stream's rows probe the windows of all others.

    >>> output_hz(0.02, (5, 5), (9, 1))
    5.0
    """
    if len(rates_hz) != len(windows_s):
        raise PlanError(f"{len(rates_hz)} rates for {len(windows_s)} windows", hint="give one of each a stream")
    reach = sum(
        math.prod(window for other, window in enumerate(windows_s) if other != driver)
        for driver in range(len(windows_s))
    )
    return selectivity * math.prod(rates_hz) * reach
