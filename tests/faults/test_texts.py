"""Texts that are no queries end in one line, whatever they are: never in another error, never in no end."""

from __future__ import annotations

import signal
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pytest

import windrow
from tests.faults.texts import text_of
from windrow.errors import WindrowError

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
    """Whether the text of a seed is a query; anything but one of our errors is raised, with the seed."""
    text = text_of(seed)
    try:
        with time_limit(LONGEST_S), warnings.catch_warnings():
            warnings.simplefilter("error")
            with windrow.local(windrow.sql(text, EMPTY)) as join:
                join.step(now_s=0)
    except WindrowError as error:
        told = error
    except BaseException as error:
        raise AssertionError(f"seed {seed}: {type(error).__name__}: {error}\n{text[:2000]!r}") from error
    else:
        return "a query"
    assert "\n" not in str(told), f"seed {seed}: {told!r}"
    assert len(str(told)) < 1_000, f"seed {seed}: a message of {len(str(told))} characters"
    return type(told).__name__


def check(seeds: range) -> None:
    found = Counter(map(outcome, seeds))
    assert sum(found.values()) == len(seeds)
    assert found["a query"] > len(seeds) / 40
    assert found["QueryError"] > len(seeds) / 3


def test_texts_that_are_almost_queries() -> None:
    check(range(400))


@pytest.mark.long
def test_a_hundred_thousand_texts() -> None:
    check(range(1_000, 101_000))
