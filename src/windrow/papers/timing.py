"""Times for experiments that are about time: medians, after what compiles on first use has been compiled."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable


def median_ms(calls: Iterable[Callable[[], object]], repeats: int = 3) -> float:
    """The median over several calls of the time one takes; of each, the shortest of its repeats.

    The shortest is what the call itself takes: a busy machine can only add to it. The first call runs once more,
    before, untimed.

    >>> median_ms([lambda: None, lambda: None]) < 10
    True
    """
    times_ms: list[float] = []
    for number, call in enumerate(calls):
        if number == 0:
            call()
        times_ms.append(min(_once_ms(call) for _ in range(repeats)))
    return statistics.median(times_ms)


def _once_ms(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1e3
