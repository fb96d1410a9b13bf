"""What is not ours runs beside, and is left alone when it gets stuck."""

from __future__ import annotations

import math
import os
import threading

import numpy as np
import pytest

from windrow.probe.patience import Overdue, Progress, call_within


def test_values_and_errors_come_back() -> None:
    def failing(_: Progress) -> int:
        raise KeyError("no")

    assert call_within(60.0, lambda progress: progress.calls) == 0
    with pytest.raises(KeyError, match="no"):
        call_within(60.0, failing)


def test_one_thread_is_beside_each_that_calls_until_it_is_stuck() -> None:
    ended = threading.Event()

    def stuck(progress: Progress) -> None:
        progress.begin((7, "x"))
        ended.wait()

    first = call_within(60.0, lambda _: threading.get_ident())
    assert first != threading.get_ident()
    assert call_within(60.0, lambda _: threading.get_ident()) == first
    with pytest.raises(Overdue) as told:
        call_within(0.05, stuck)
    assert told.value.arguments == (7, "x")
    assert call_within(60.0, lambda _: threading.get_ident()) != first
    ended.set()


def test_many_calls_may_take_longer_than_one() -> None:
    waiting = threading.Event()

    def steady(progress: Progress) -> int:
        for number in range(12):
            progress.begin((number,))
            waiting.wait(0.02)
        return progress.calls

    assert call_within(0.12, steady) == 12


def test_without_a_limit_nothing_runs_beside() -> None:
    assert call_within(math.inf, lambda _: threading.get_ident()) == threading.get_ident()


def test_what_is_set_for_who_calls_holds_beside() -> None:
    with np.errstate(divide="raise"):
        assert call_within(60.0, lambda _: np.geterr()["divide"]) == "raise"


def test_a_fork_has_a_thread_of_its_own() -> None:
    call_within(60.0, lambda _: None)
    child = os.fork()
    if child == 0:
        os._exit(call_within(60.0, lambda _: 3))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
