"""Late materialisation: the columns of a result are read once, when its pairs are known, from all segments in one
pass.

    handle = segment << 32 | row          addresses  ┌─ values of segment 0
                                                     ├─ values of segment 1        out[i] = segment[row]
    one compiled loop for any number of segments     └─ …

Values are moved as unsigned integers of their width, so that a kernel serves all types of a width, and the number of
segments is not part of any type. Arrow columns of fixed width, of bits, strings and fixed-size lists of those go this
way, validity bits included; other types (dictionaries, structs, lists …) through Arrow's own `take`.

>>> import numpy as np
>>> segments = [np.array([10, 11]), np.array([20, 21, 22])]
>>> gather(segments, handles_of(np.array([1, 0, 1]), np.array([2, 1, 0]))).tolist()
[22, 11, 20]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import numpy as np
import pyarrow as pa
from numba import types
from numba.extending import intrinsic
from numpy.typing import ArrayLike, NDArray

from windrow.errors import UsageError
from windrow.probe.jit import compiled, frozen

Handles = NDArray[np.int64]
Item = TypeVar("Item", bound=np.generic)
Addresses = NDArray[np.uint64]
Words = NDArray[Any]

ROW_BITS = 32
_ROW_MASK = (1 << ROW_BITS) - 1
_WIDTHS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_LARGEST_OFFSET = (1 << 31) - 1
_OFFSET = frozen((), np.int32)


def handles_of(segment: ArrayLike, row: ArrayLike) -> Handles:
    """Handles of rows of segments; either side may be one number for all."""
    high: Handles = np.asarray(segment, np.int64) << ROW_BITS
    return high | np.asarray(row, np.int64)


def gather(arrays: Sequence[NDArray[Item]], handles: Handles) -> NDArray[Item]:
    """The values (of matrices: the lines) that the handles name. All arrays have one dtype, matrices also one width."""
    shapes = {(array.dtype, array.shape[1:]) for array in arrays}
    if len(shapes) != 1:
        raise UsageError(f"arrays of {len(shapes)} different kinds: {sorted(map(str, shapes))}", hint="give one kind")
    ((dtype, shape),) = shapes
    held = [np.ascontiguousarray(array) for array in arrays]
    out = np.empty((len(handles), *shape), dtype)
    _gather_bytes([array.ctypes.data for array in held], dtype.itemsize * int(np.prod(shape, dtype=int)), handles, out)
    return out


def gather_arrow(arrays: Sequence[pa.Array], handles: Handles) -> pa.Array:
    """The values that the handles name, as one Arrow array of the same type."""
    kinds = {array.type for array in arrays}
    if len(kinds) != 1:
        raise UsageError(f"arrays of {len(kinds)} types: {sorted(map(str, kinds))}", hint="give arrays of one type")
    (kind,) = kinds
    way = _way_of(kind)
    if way is None or not len(handles):
        return _take(arrays, handles)
    return way(arrays, handles)


def _gather_bytes(starts: Sequence[int], width: int, handles: Handles, out: NDArray[Any]) -> None:
    """Copy `width` bytes a handle: in one move where there is an integer of that width, else in several."""
    addresses, handles = frozen(starts, np.uint64), frozen(handles, np.int64)
    if not out.nbytes:
        return
    if width in _WIDTHS:
        _move_items(addresses, handles, out.reshape(-1).view(_WIDTHS[width]))
    else:
        word = np.uint64 if width % 8 == 0 else np.uint8
        _move_lines(addresses, handles, out.reshape(-1).view(word).reshape(len(handles), -1))


_Way = Callable[[Sequence[pa.Array], Handles], pa.Array]


def _way_of(kind: pa.DataType) -> _Way | None:
    if pa.types.is_boolean(kind):
        return _gather_bits
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _gather_text
    if pa.types.is_fixed_size_list(kind):
        return _gather_vectors if _is_plain(kind.value_type) else None
    return _gather_plain if _is_plain(kind) else None


def _is_plain(kind: pa.DataType) -> bool:
    """Fixed width, whole bytes, one buffer of values."""
    return bool(
        pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_fixed_size_binary(kind)
    ) and not pa.types.is_boolean(kind)


def _gather_plain(arrays: Sequence[pa.Array], handles: Handles) -> pa.Array:
    kind = arrays[0].type
    width = kind.bit_width // 8
    values = np.empty(len(handles) * width, np.uint8)
    _gather_bytes([_start(array, 1, width * array.offset) for array in arrays], width, handles, values)
    return pa.Array.from_buffers(kind, len(handles), [_validity(arrays, handles), pa.py_buffer(values)])


def _gather_vectors(arrays: Sequence[pa.Array], handles: Handles) -> pa.Array:
    """Fixed-size lists without NULL among their elements: a list is one line of bytes."""
    kind = arrays[0].type
    if any(array.values.null_count for array in arrays):
        return _take(arrays, handles)
    width = kind.list_size * kind.value_type.bit_width // 8
    values = np.empty(len(handles) * width, np.uint8)
    starts = [_start(array.values, 1, width * array.offset + _value_skip(array)) for array in arrays]
    _gather_bytes(starts, width, handles, values)
    flat = pa.Array.from_buffers(kind.value_type, len(handles) * kind.list_size, [None, pa.py_buffer(values)])
    return pa.Array.from_buffers(kind, len(handles), [_validity(arrays, handles)], children=[flat])


def _value_skip(array: pa.Array) -> int:
    return int(array.values.offset * array.type.value_type.bit_width // 8)


def _gather_bits(arrays: Sequence[pa.Array], handles: Handles) -> pa.Array:
    values = _bits([_start(array, 1, 0) for array in arrays], [array.offset for array in arrays], handles)
    return pa.Array.from_buffers(pa.bool_(), len(handles), [_validity(arrays, handles), pa.py_buffer(values)])


def _gather_text(arrays: Sequence[pa.Array], handles: Handles) -> pa.Array:
    places = frozen([_start(array, 1, 4 * array.offset) for array in arrays], np.uint64)
    handles = frozen(handles, np.int64)
    ends = np.zeros(len(handles) + 1, np.int64)
    _measure_text(places, handles, ends, _OFFSET)
    if ends[-1] > _LARGEST_OFFSET:
        raise UsageError(f"{ends[-1]} bytes of text in one column of a result", hint="gather fewer rows at a time")
    data = np.empty(ends[-1], np.uint8)
    _move_text(frozen([_start(array, 2, 0) for array in arrays], np.uint64), places, handles, ends, data, _OFFSET)
    buffers = [_validity(arrays, handles), pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(arrays[0].type, len(handles), buffers)


def _validity(arrays: Sequence[pa.Array], handles: Handles) -> pa.Buffer | None:
    """The bitmap of rows that are not NULL, or None where no array has a NULL."""
    if not any(array.null_count for array in arrays):
        return None
    return pa.py_buffer(_bits([_start(array, 0, 0) for array in arrays], [array.offset for array in arrays], handles))


def _start(array: pa.Array, buffer: int, skip: int) -> int:
    """Address of the first value; 0 where there is no buffer: nothing is NULL, or nothing is stored."""
    held = array.buffers()[buffer]
    return 0 if held is None else int(held.address) + skip


def _bits(starts: Sequence[int], skips: Sequence[int], handles: Handles) -> NDArray[np.uint8]:
    out = np.empty((len(handles) + 7) // 8, np.uint8)
    _move_bits(frozen(starts, np.uint64), frozen(skips, np.int64), frozen(handles, np.int64), out)
    return out


def _take(arrays: Sequence[pa.Array], handles: Handles) -> pa.Array:
    starts = np.cumsum([0, *(len(array) for array in arrays)])
    handles = np.asarray(handles, np.int64)
    places = starts[handles >> ROW_BITS] + (handles & _ROW_MASK)
    taken = pa.chunked_array(arrays, arrays[0].type).take(pa.array(places))
    return taken.chunk(0) if taken.num_chunks == 1 else taken.combine_chunks()


def _item_at(_typing: Any, _address: Any, _position: Any, like: Any) -> Any:
    """The item at a position behind an address, of the type of the items of `like`."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        kind = context.get_data_type(like.dtype)
        start = builder.inttoptr(arguments[0], kind.as_pointer())
        return builder.load(builder.gep(start, [arguments[1]]))

    return like.dtype(types.uint64, types.int64, like), generate


_item = cast(Callable[[int, int, Words], int], intrinsic(_item_at))


@compiled
def _move_items(addresses: Addresses, handles: Handles, out: Words) -> None:
    for place in range(len(handles)):
        handle = handles[place]
        out[place] = _item(addresses[handle >> ROW_BITS], handle & _ROW_MASK, out)


@compiled
def _move_lines(addresses: Addresses, handles: Handles, out: Words) -> None:
    width = out.shape[1]
    for place in range(len(handles)):
        handle = handles[place]
        address, first = addresses[handle >> ROW_BITS], (handle & _ROW_MASK) * width
        for word in range(width):
            out[place, word] = _item(address, first + word, out)


@compiled
def _move_bits(addresses: Addresses, skips: NDArray[np.int64], handles: Handles, out: NDArray[np.uint8]) -> None:
    """Bits in Arrow's order, lowest first; a segment without a bitmap (address 0) has ones."""
    for group in range(len(out)):
        packed = np.uint8(0)
        for bit in range(min(8, len(handles) - 8 * group)):
            handle = handles[8 * group + bit]
            segment = handle >> ROW_BITS
            row = (handle & _ROW_MASK) + skips[segment]
            address = addresses[segment]
            held = 1 if address == 0 else (_item(address, row >> 3, out) >> int(row & 7)) & 1
            packed |= np.uint8(held << bit)
        out[group] = packed


@compiled
def _measure_text(places: Addresses, handles: Handles, ends: NDArray[np.int64], like: NDArray[np.int32]) -> None:
    total = np.int64(0)
    for place in range(len(handles)):
        address, row = places[handles[place] >> ROW_BITS], handles[place] & _ROW_MASK
        total += np.int64(_item(address, row + 1, like)) - np.int64(_item(address, row, like))
        ends[place + 1] = total


@compiled
def _move_text(
    addresses: Addresses,
    places: Addresses,
    handles: Handles,
    ends: NDArray[np.int64],
    data: NDArray[np.uint8],
    like: NDArray[np.int32],
) -> None:
    for place in range(len(handles)):
        segment, row = handles[place] >> ROW_BITS, handles[place] & _ROW_MASK
        start, address = ends[place], addresses[segment]
        first = int(_item(places[segment], row, like))
        for byte in range(ends[place + 1] - start):
            data[start + byte] = _item(address, first + byte, data)
