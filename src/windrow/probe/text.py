"""Strings and token sets in compiled code: one array of bytes, one of offsets, as Arrow lays them out.

    offsets  0     2        5  5         row 0 = data[0:2], row 1 = data[2:5], row 2 is empty
    data     a  b  c  d  e

`parts` gives this view of an Arrow array without copying the bytes. A NULL reads as an empty string: whether a row is
NULL is the caller's to know. Order is that of unsigned bytes, which for UTF-8 is the order of code points.

A token is a maximal run of letters and digits of the lower-cased text. The tokens of a row are kept as sorted 64-bit
hashes, so that the Jaccard similarity of two rows is one merge of two short arrays.

>>> import pyarrow as pa
>>> offsets, data = parts(pa.array(["ab", None, "abc"]))
>>> offsets.tolist(), bytes(data)
([0, 2, 2, 5], b'ababc')
>>> bytes_compare(offsets, data, 0, offsets, data, 2), bytes_equal(offsets, data, 0, offsets, data, 0)
(-1, True)
>>> sets = token_sets(pa.array(["Red pump, 5kW", "pump: RED!"]))
>>> jaccard(sets.offsets, sets.tokens, 0, sets.offsets, sets.tokens, 1)
0.6666666666666666
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from windrow.errors import InputError
from windrow.probe.hashed import mix
from windrow.probe.jit import compiled, frozen

Offsets = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Tokens = NDArray[np.uint64]

_BETWEEN_TOKENS = r"[^\p{L}\p{N}]+"
_SEED = 0xD1B54A32D192ED03


class TokenSets(NamedTuple):
    """The tokens of row i are `tokens[offsets[i]:offsets[i + 1]]`: hashes, ascending, without repeats."""

    offsets: Offsets
    tokens: Tokens


def parts(array: pa.Array) -> tuple[Offsets, Bytes]:
    """Offsets and bytes of an Arrow string or binary array, also of a slice; offsets start at 0, a NULL is empty."""
    if pa.types.is_string(array.type) or pa.types.is_binary(array.type):
        width: np.dtype[Any] = np.dtype(np.int32)
    elif pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type):
        width = np.dtype(np.int64)
    else:
        raise InputError(f"strings of Arrow type {array.type} cannot be read", hint="cast them to string")
    _, places, held = array.buffers()
    if len(array) == 0 or places is None:
        return frozen((0,) * (len(array) + 1), np.int64), frozen((), np.uint8)
    offsets = np.frombuffer(places, width, len(array) + 1, array.offset * width.itemsize).astype(np.int64)
    if array.null_count and np.diff(offsets)[array.is_null().to_numpy(zero_copy_only=False)].any():
        return parts(array.fill_null(b"" if "binary" in str(array.type) else ""))
    first, last = int(offsets[0]), int(offsets[-1])
    data = np.frombuffer(held, np.uint8, last - first, first) if last > first else ()
    return frozen(offsets - first, np.int64), frozen(data, np.uint8)


def hash_rows(offsets: Offsets, data: Bytes) -> NDArray[np.int64]:
    """A 64-bit hash of the bytes of each row."""
    hashes = np.empty(len(offsets) - 1, np.int64)
    _fill_hashes(frozen(offsets, np.int64), frozen(data, np.uint8), hashes)
    return hashes


def token_sets(array: pa.Array) -> TokenSets:
    """The token set of each text; a NULL has none."""
    lists = pc.split_pattern_regex(pc.utf8_lower(array.fill_null("")), _BETWEEN_TOKENS)
    offsets, data = parts(lists.flatten())
    bounds = lists.offsets.to_numpy().astype(np.int64)
    bounds -= bounds[0] if len(bounds) else 0
    tokens = np.empty(len(offsets) - 1, np.uint64)
    offsets_out = np.zeros(len(array) + 1, np.int64)
    count = _fill_tokens(frozen(bounds, np.int64), offsets, data, offsets_out, tokens)
    return TokenSets(frozen(offsets_out, np.int64), frozen(tokens[:count].copy(), np.uint64))


@compiled
def bytes_equal(offsets_a: Offsets, data_a: Bytes, row_a: int, offsets_b: Offsets, data_b: Bytes, row_b: int) -> bool:
    """Whether two rows hold the same bytes."""
    start_a, start_b = offsets_a[row_a], offsets_b[row_b]
    length = int(offsets_a[row_a + 1] - start_a)
    if length != offsets_b[row_b + 1] - start_b:
        return False
    place = 0
    while place < length and data_a[start_a + place] == data_b[start_b + place]:
        place += 1
    return place == length


@compiled
def bytes_compare(offsets_a: Offsets, data_a: Bytes, row_a: int, offsets_b: Offsets, data_b: Bytes, row_b: int) -> int:
    """-1, 0 or 1 as row a comes before, equals, or comes after row b in the order of unsigned bytes."""
    start_a, start_b = offsets_a[row_a], offsets_b[row_b]
    length_a, length_b = offsets_a[row_a + 1] - start_a, offsets_b[row_b + 1] - start_b
    for place in range(min(length_a, length_b)):
        byte_a, byte_b = data_a[start_a + place], data_b[start_b + place]
        if byte_a != byte_b:
            return -1 if byte_a < byte_b else 1
    return int(length_a > length_b) - int(length_a < length_b)


@compiled
def bytes_hash(data: Bytes, start: int, stop: int) -> np.uint64:
    """A 64-bit hash of data[start:stop], eight bytes at a time; the length counts too."""
    total = np.uint64(_SEED) + np.uint64(stop - start)
    while stop - start >= 8:
        word = np.uint64(0)
        for place in range(8):
            word |= np.uint64(data[start + place]) << np.uint64(8 * place)
        total = mix(total ^ word) + np.uint64(_SEED)
        start += 8
    word = np.uint64(0)
    for place in range(stop - start):
        word |= np.uint64(data[start + place]) << np.uint64(8 * place)
    return mix(total ^ word)


@compiled
def jaccard(
    offsets_a: Offsets, tokens_a: Tokens, row_a: int, offsets_b: Offsets, tokens_b: Tokens, row_b: int
) -> float:
    """Shared tokens over all tokens of two rows; NaN where neither has any."""
    place_a, stop_a = offsets_a[row_a], offsets_a[row_a + 1]
    place_b, stop_b = offsets_b[row_b], offsets_b[row_b + 1]
    total = (stop_a - place_a) + (stop_b - place_b)
    shared = 0
    while place_a < stop_a and place_b < stop_b:
        token_a, token_b = tokens_a[place_a], tokens_b[place_b]
        shared += token_a == token_b
        place_a += token_a <= token_b
        place_b += token_b <= token_a
    return np.nan if total == 0 else shared / (total - shared)


@compiled
def _fill_hashes(offsets: Offsets, data: Bytes, hashes: NDArray[np.int64]) -> None:
    for row in range(len(hashes)):
        hashes[row] = np.int64(bytes_hash(data, offsets[row], offsets[row + 1]))


@compiled
def _fill_tokens(bounds: Offsets, offsets: Offsets, data: Bytes, offsets_out: Offsets, tokens: Tokens) -> int:
    """Hash the pieces of each row, leave out empty ones, order them and drop repeats; the number of tokens kept."""
    count = 0
    for row in range(len(bounds) - 1):
        start = stop = count
        for piece in range(bounds[row], bounds[row + 1]):
            if offsets[piece] < offsets[piece + 1]:
                tokens[stop] = bytes_hash(data, offsets[piece], offsets[piece + 1])
                stop += 1
        _order(tokens, start, stop)
        for place in range(start, stop):
            if place == start or tokens[place] != tokens[count - 1]:
                tokens[count] = tokens[place]
                count += 1
        offsets_out[row + 1] = count
    return count


@compiled
def _order(tokens: Tokens, start: int, stop: int) -> None:
    """Order tokens[start:stop] in place: insertion at shrinking distances, which serves short and very long texts."""
    distance = 1
    while distance < (stop - start) // 9:
        distance = 3 * distance + 1
    while distance > 0:
        for place in range(start + distance, stop):
            token, gap = tokens[place], place
            while gap >= start + distance and tokens[gap - distance] > token:
                tokens[gap] = tokens[gap - distance]
                gap -= distance
            tokens[gap] = token
        distance //= 3
