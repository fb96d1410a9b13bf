"""The first keys of many ranges against a plain binary search, on keys that are spread in every way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from windrow.probe.jit import frozen
from windrow.probe.search import first_places, ladder

SMALLEST, LARGEST = -(2**63), 2**63 - 1


def found(keys: NDArray[Any], low: NDArray[Any], high: NDArray[Any]) -> dict[int, int]:
    kind = keys.dtype.type
    passed, places = np.full(len(low), -1, np.int32), np.full(len(low), -1, np.int32)
    rows = frozen(np.arange(len(keys)), np.int32)
    count = first_places(frozen(keys, kind), rows, ladder(keys), frozen(low, kind), frozen(high, kind), passed, places)
    assert (np.diff(passed[:count]) > 0).all()
    return dict(zip(passed[:count].tolist(), places[:count].tolist(), strict=True))


def expected(keys: NDArray[Any], low: NDArray[Any], high: NDArray[Any]) -> dict[int, int]:
    first, behind = np.searchsorted(keys, low), np.searchsorted(keys, high, "right")
    return {at: int(first[at]) for at in range(len(low)) if first[at] < behind[at]}


def spread(kind: str, chance: np.random.Generator, size: int) -> NDArray[Any]:
    match kind:
        case "even":
            return chance.uniform(-1e6, 1e6, size)
        case "bell":
            return chance.normal(0, 1e-9, size)
        case "outliers":
            return np.where(chance.random(size) < 0.01, chance.normal(0, 1e300, size), chance.normal(0, 1, size))
        case "infinite":
            return chance.choice([-np.inf, 0.0, 1.0, np.inf], size)
        case "clustered":
            return chance.integers(0, 50, size) * 1e6 + chance.uniform(0, 1, size)
        case "one value":
            return np.full(size, 42)
        case "whole numbers":
            return chance.integers(0, 40 * size, size)
        case _:
            return chance.integers(SMALLEST, LARGEST, size, endpoint=True)


@pytest.mark.parametrize("size", [1, 15, 16, 17, 255, 256, 257, 5000, 700_000])
@pytest.mark.parametrize(
    "kind", ["even", "bell", "outliers", "infinite", "clustered", "one value", "whole numbers", "all words"]
)
def test_same_places_as_a_binary_search(kind: str, size: int) -> None:
    chance = np.random.default_rng(size)
    keys = np.sort(spread(kind, chance, size))
    about = chance.choice(keys, 600)
    nearby = np.concatenate([about, spread(kind, chance, 600)])
    width = chance.choice([0, 1, 2, 1000], 1200).astype(keys.dtype)
    if keys.dtype.kind == "f":
        low, high = nearby - width * 1e-9, nearby + width * 1e-9
    else:
        low, high = np.maximum(nearby, SMALLEST + width) - width, np.minimum(nearby, LARGEST - width) + width
    ends = np.array([-np.inf, np.inf] if keys.dtype.kind == "f" else [SMALLEST, LARGEST], keys.dtype)
    low, high = np.append(low, [ends[0], ends[0], keys[0]]), np.append(high, [ends[1], keys[0], ends[1]])
    order = np.argsort(low)
    low, high = low[order], high[order]
    assert found(keys, low, high) == expected(keys, low, high) != {}


words = st.sampled_from([SMALLEST, SMALLEST + 1, -1, 0, 1, 2**53, 2**53 + 1, LARGEST - 1, LARGEST])


@given(st.lists(words, max_size=40), st.lists(st.tuples(words, words).map(sorted), max_size=20))
def test_words_that_floats_cannot_tell_apart(keys: list[int], ranges: list[list[int]]) -> None:
    low, high = np.array(sorted(ranges), np.int64).reshape(-1, 2).T
    ascending = np.sort(np.array(keys, np.int64))
    assert found(ascending, low, high) == expected(ascending, low, high)


def test_marks_turn_most_ranges_away() -> None:
    chance = np.random.default_rng(3)
    keys = np.sort(chance.uniform(0, 1e9, 10_000))
    steps = ladder(keys)
    marked = sum(bin(word).count("1") for word in steps.marks.tolist())
    assert 9_000 < marked <= len(keys) < 64 * len(steps.marks) / 8
    assert steps.fences.tolist() == keys[::16].tolist()
    assert steps.posts.tolist() == keys[::256].tolist()


def test_no_keys() -> None:
    nothing = np.zeros(0, np.float64)
    assert found(nothing, np.array([-np.inf]), np.array([np.inf])) == {}
    assert found(np.array([1.0]), nothing, nothing) == {}
