"""Ctrl-C and a request to end, noted where they arrive and raised where they do no harm.

Between two calls into Java a run can be ended cleanly; inside one, an interrupt would cut the conversation with it.

    with noted() as raise_noted:
        while not running.await_termination(0.25):
            raise_noted()
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def noted() -> Iterator[Callable[[], None]]:
    """Inside, signals to end are noted; the function raises one that was. A second one is raised at once."""
    arrived: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of handlers
        arrived.append(number)
        if len(arrived) > 1:
            raise KeyboardInterrupt

    def raise_noted() -> None:
        if arrived:
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield raise_noted
        return
    before = {number: signal.signal(number, note) for number in SIGNALS}
    try:
        yield raise_noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
