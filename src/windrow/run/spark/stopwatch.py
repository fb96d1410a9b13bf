"""A stopwatch for the phases of a batch.

>>> watch = Stopwatch()
>>> with watch.phase("plan"):
...     pass
>>> list(watch.seconds), watch.seconds["plan_s"] <= watch.elapsed_s
(['plan_s'], True)
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Stopwatch:
    """Seconds spent in the phases of a batch."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._started = time.perf_counter()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the batch began."""
        return time.perf_counter() - self._started

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the block towards a phase."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[f"{name}_s"] = self.seconds.get(f"{name}_s", 0.0) + time.perf_counter() - started
