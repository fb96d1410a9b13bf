"""Texts that are no queries end in one line, whatever they are: never in another error, never in no end."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pytest

import windrow
from tests.faults.one_line import DONE, one_line
from tests.faults.texts import text_of

pytestmark = pytest.mark.usefixtures("interpreted")

LONGEST_S = 20
SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us")), ("id", pa.int64()), ("x", pa.float64()), ("kind", pa.string()),
        ("v", pa.list_(pa.float32(), 3)), ("price", pa.decimal128(9, 2)), ("day", pa.date32()), ("flag", pa.bool_()),
    ]
)  # fmt: skip
EMPTY = {name: SCHEMA.empty_table() for name in ("cam1", "cam2", "log")}


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    def late(*_: object) -> None:
        raise TimeoutError(f"it took more than {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def outcome(seed: int) -> str:
    """Whether the text of a seed is a query."""
    text = text_of(seed)

    def ask() -> None:
        with time_limit(LONGEST_S), windrow.local(windrow.sql(text, EMPTY)) as join:
            join.step(now_s=0)

    return one_line(seed, ask, text)


def check(seeds: range) -> None:
    found = Counter(map(outcome, seeds))
    assert sum(found.values()) == len(seeds)
    assert found[DONE] > len(seeds) / 40
    assert found["QueryError"] > len(seeds) / 3


def test_texts_that_are_almost_queries() -> None:
    check(range(400))


@pytest.mark.long
def test_a_hundred_thousand_texts() -> None:
    check(range(1_000, 101_000))
