"""Timing: each call is made as often as said."""

from __future__ import annotations

from windrow.papers.timing import median_ms


def test_the_first_call_is_made_once_more() -> None:
    calls: list[str] = []
    spent = median_ms([lambda: calls.append("a"), lambda: calls.append("b")], repeats=3)
    assert calls == ["a"] * 4 + ["b"] * 3
    assert spent >= 0
