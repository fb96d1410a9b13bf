"""The number of threads is one inside, and what it was before outside, also after an error."""

from __future__ import annotations

import numpy as np
import pytest

from windrow.probe import blas


def test_threads_are_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = [2]
    count = blas.ThreadCount(lambda: threads[-1], threads.append)
    monkeypatch.setattr(blas, "thread_count", lambda: count)
    with blas.one_thread():
        with blas.one_thread():
            assert threads[-1] == 1
        assert threads[-1] == 1
    assert threads[-1] == 2
    with pytest.raises(ZeroDivisionError), blas.one_thread():
        raise ZeroDivisionError
    assert threads == [2, 1, 2, 1, 2]


def test_another_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas, "thread_count", lambda: None)
    with blas.one_thread():
        product = np.ones((2, 3)) @ np.ones((3, 2))
    assert product.tolist() == [[3, 3], [3, 3]]


def test_the_library_in_use() -> None:
    count = blas.thread_count()
    before = count.read() if count else 1
    with blas.one_thread():
        assert count is None or count.read() == 1
    assert before >= 1
    assert count is None or count.read() == before
