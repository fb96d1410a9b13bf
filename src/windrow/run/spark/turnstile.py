"""Between Spark and the batches: lets one batch through at a time, notes how it failed, and can be closed.

    Spark's thread  ──▶ batch 7 ──▶ batch 8 ──▶ │ closed │     stop() closes, waits until batch 8 is through,
                                                               and only then stops Spark's query

A batch that is through is committed, so a stop costs nothing. Spark is told of a failure in one line (`failures`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from pyspark.sql import DataFrame

from windrow.errors import WindrowError
from windrow.run.spark.failures import brief

STOPPED_WITHIN_S = 30.0
"""How long the thread of a batch waits for the stop that it was told of."""
_POLL_S = 0.005


class Turnstile:
    """What foreachBatch calls. `first` is called before the first batch, `run` for each."""

    def __init__(self, run: Callable[[DataFrame, int], None], first: Callable[[], None]) -> None:
        self.began = threading.Event()
        self.failure: Exception | None = None
        self.is_running: Callable[[], bool] = lambda: False
        self._run = run
        self._first = first
        self._lock = threading.Lock()
        self._idle = threading.Event()
        self._idle.set()
        self._is_closed = False
        self._is_cut_off = False
        self._thread = 0

    def __call__(self, frame: DataFrame, batch: int) -> None:
        with self._lock:
            if not self._is_closed:
                self._thread = threading.get_ident()
                self._idle.clear()
        if self._thread != threading.get_ident():
            # Returning would tell Spark that this batch is done.
            self._is_cut_off = True
            self._await_stop()
            raise WindrowError("the join is being stopped", place=f"batch {batch}")
        try:
            if not self.began.is_set():
                self._first()
                self.began.set()
            self._run(frame, batch)
        except Exception as error:
            if not self._is_cut_off:
                self.failure = error
            raise brief(error, place=f"batch {batch}") from None
        finally:
            self._thread = 0
            self._idle.set()
        if self._is_closed:
            # Spark would begin the next batch before it hears of the stop, and cut it off.
            self._await_stop()

    def close(self, timeout_s: float) -> None:
        """Let no further batch in, and wait for the one inside; one that is not through in time is cut off."""
        with self._lock:
            self._is_closed = True
        if not self._idle.wait(timeout_s):
            self._is_cut_off = True

    @property
    def is_cut_off(self) -> bool:
        """Whether a batch was ended before it was through, on purpose: what it then says is no failure."""
        return self._is_cut_off

    @property
    def is_inside(self) -> bool:
        """Whether the caller is the batch that is running, which cannot wait for its own end."""
        return self._thread == threading.get_ident()

    def _await_stop(self) -> None:
        until_s = time.monotonic() + STOPPED_WITHIN_S
        while self.is_running() and time.monotonic() < until_s:
            time.sleep(_POLL_S)
