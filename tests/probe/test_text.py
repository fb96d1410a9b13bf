"""Strings and token sets in compiled code against Python's own."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.probe import naive
from windrow.errors import InputError
from windrow.probe.jit import compiled
from windrow.probe.text import (
    Bytes,
    Offsets,
    bytes_compare,
    bytes_equal,
    hash_rows,
    jaccard,
    parts,
    token_sets,
)

letters = st.sampled_from("abAB09 -_,.äÄßéЖж中½²'\n")
texts = st.lists(st.none() | st.text(letters, max_size=20), max_size=12)


def rows_of(offsets: Offsets, data: Bytes) -> list[bytes]:
    return [bytes(data[start:stop]) for start, stop in pairwise(offsets)]


@given(texts, st.integers(0, 5), st.booleans())
def test_parts_of_slices(values: list[str | None], skip: int, large: bool) -> None:
    array = pa.array(values, pa.large_string() if large else pa.string())[skip:]
    offsets, data = parts(array)
    assert offsets.dtype == np.int64
    assert data.dtype == np.uint8
    assert rows_of(offsets, data) == [(value or "").encode() for value in values[skip:]]


def test_bytes_under_a_null_do_not_show() -> None:
    buffers = [pa.py_buffer(b"\x05"), pa.py_buffer(np.array([0, 1, 3, 4], np.int32)), pa.py_buffer(b"abcd")]
    array = pa.Array.from_buffers(pa.string(), 3, buffers)
    assert array.to_pylist() == ["a", None, "d"]
    assert rows_of(*parts(array)) == [b"a", b"", b"d"]


def test_bytes_are_not_copied() -> None:
    array = pa.array([b"abc", b"de"])
    _, data = parts(array)
    assert data.ctypes.data == array.buffers()[2].address


def test_other_types_are_refused() -> None:
    with pytest.raises(InputError, match="int64"):
        parts(pa.array([1]))


@given(texts)
def test_order_and_equality_are_those_of_bytes(values: list[str | None]) -> None:
    offsets, data = parts(pa.array(values, pa.string()))
    rows = [(value or "").encode() for value in values]
    for a, one in enumerate(rows):
        for b, two in enumerate(rows):
            assert bytes_equal(offsets, data, a, offsets, data, b) == (one == two)
            assert bytes_compare(offsets, data, a, offsets, data, b) == (one > two) - (one < two)


def test_hashes_tell_all_short_texts_apart() -> None:
    values = [
        *(f"{'x' * length}{number}" for length in range(20) for number in range(200)),
        "",
        "\0",
        "\0\0",
        "\0" * 8,
        "\0" * 9,
    ]
    hashes = hash_rows(*parts(pa.array(values)))
    assert hashes.dtype == np.int64
    assert len(set(hashes.tolist())) == len(set(values))
    assert hash_rows(*parts(pa.array(values)[7:])).tolist() == hashes[7:].tolist()


@given(texts, texts)
def test_jaccard(first: list[str | None], second: list[str | None]) -> None:
    one, two = token_sets(pa.array(first, pa.string())), token_sets(pa.array(second, pa.large_string()))
    assert np.diff(one.offsets).tolist() == [len(naive.tokens(text)) for text in first]
    for a, left in enumerate(first):
        for b, right in enumerate(second):
            found, expected = jaccard(*one, a, *two, b), naive.jaccard(left, right)
            assert found == expected or (math.isnan(found) and math.isnan(expected))


def test_tokens_are_ascending_without_repeats_in_short_and_long_texts() -> None:
    chance = np.random.default_rng(2)
    rows = [" ".join(map(str, chance.integers(0, size, size))) for size in (1, 5, 50, 3000)]
    sets = token_sets(pa.array(rows))
    for row, text in enumerate(rows):
        tokens = sets.tokens[sets.offsets[row] : sets.offsets[row + 1]].tolist()
        assert len(tokens) == len(naive.tokens(text))
        assert tokens == sorted(set(tokens))


@compiled
def count_equal(offsets: Offsets, data: Bytes) -> int:
    """Equal pairs, counted from inside other compiled code."""
    count = 0
    for a in range(len(offsets) - 1):
        for b in range(len(offsets) - 1):
            count += bytes_equal(offsets, data, a, offsets, data, b)
    return count


def test_callable_from_compiled_code() -> None:
    assert count_equal(*parts(pa.array(["a", "b", "a", ""]))) == 6
