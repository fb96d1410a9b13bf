"""Time limits for code that is not ours: it runs in a thread beside, and who waits for it gives up when it gets stuck.

    call_within ──work──▶ thread beside ── begins a call, begins the next, … ──▶ value or error
         └ looks a few times in the limit whether another call has begun; if none has for all of it: `Overdue`

What is stuck cannot be ended, only left alone: its thread goes on until it returns or the process ends. Code that
keeps the interpreter to itself, as a regular expression may, stops who waits as well. Each thread that calls has one
thread beside it, so what the user's code keeps for a thread is there again at the next call.

>>> call_within(60.0, lambda progress: progress.begin((1, 2)) or "done")
'done'
"""

from __future__ import annotations

import contextvars
import math
import os
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

Value = TypeVar("Value")

LOOKS = 4
"""How often in a limit the one who waits looks."""


class Overdue(Exception):  # noqa: N818 - who calls makes an error of it
    """A call has not returned for as long as it may take; `arguments` are those it was called with."""

    def __init__(self, arguments: tuple[Any, ...]) -> None:
        super().__init__("a call has not returned")
        self.arguments = arguments


class Progress:
    """Which call is under way; while `is_free` nobody looks how long it takes, such as while code is compiled."""

    def __init__(self) -> None:
        self.calls = 0
        self.is_free = False
        self.arguments: tuple[Any, ...] = ()

    def begin(self, arguments: tuple[Any, ...]) -> None:
        """Another call begins."""
        self.arguments = arguments
        self.calls += 1


class _Beside:
    """A thread that does what it is asked, one thing after the other."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self._asked: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        threading.Thread(target=_serve, args=(self._asked,), name="windrow user function", daemon=True).start()

    def ask(self, work: Callable[[], Any]) -> queue.SimpleQueue[tuple[Any, BaseException | None]]:
        """Have something done; where its value, or its error, will be."""
        answer: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
        context = contextvars.copy_context()

        def answered() -> None:
            try:
                answer.put((context.run(work), None))
            except BaseException as error:
                answer.put((None, error))

        self._asked.put(answered)
        return answer

    def __del__(self) -> None:
        self._asked.put(None)


def _serve(asked: queue.SimpleQueue[Callable[[], None] | None]) -> None:
    while (work := asked.get()) is not None:
        work()
        del work


_held = threading.local()


def call_within(limit_s: float, work: Callable[[Progress], Value]) -> Value:
    """What `work` returns or raises; `Overdue` if one of the calls it tells of takes longer than the limit."""
    progress = Progress()
    if math.isinf(limit_s):
        return work(progress)
    beside: _Beside | None = getattr(_held, "beside", None)
    if beside is None or beside.process != os.getpid():
        beside = _Beside()
    _held.beside = None  # whatever happens while it is waited for, a thread that may be stuck is not asked again
    answer = beside.ask(lambda: work(progress))
    seen = looks = 0
    while looks < LOOKS:
        try:
            value, error = answer.get(timeout=limit_s / LOOKS)
        except queue.Empty:
            looks = 0 if progress.is_free or progress.calls != seen else looks + 1
            seen = progress.calls
            continue
        _held.beside = beside
        if error is not None:
            raise error
        return value  # type: ignore[no-any-return]
    raise Overdue(progress.arguments)
