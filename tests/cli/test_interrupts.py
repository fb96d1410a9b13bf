"""Signals to end are noted, and raised where it is asked for."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence

import pytest

from windrow.cli.interrupts import SIGNALS, noted


def steps(numbers: Sequence[signal.Signals], passed: list[str]) -> None:
    """Get signals, one after the other, and ask after each."""
    with noted() as raise_noted:
        raise_noted()
        for number in numbers:
            os.kill(os.getpid(), number)
            passed.append(f"{number.name} has come")
        raise_noted()
        passed.append("asked")


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_is_raised_where_it_is_asked_for(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    passed: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        steps([number], passed)
    assert passed == [f"{number.name} has come"]
    assert signal.getsignal(number) is before


def test_a_second_signal_does_not_wait() -> None:
    passed: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        steps([signal.SIGTERM, signal.SIGINT], passed)
    assert passed == ["SIGTERM has come"]


def test_other_threads_have_no_signals() -> None:
    before = signal.getsignal(signal.SIGINT)
    inside = []

    def enter() -> None:
        with noted() as raise_noted:
            raise_noted()
            inside.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert inside == [before]
