"""Where many key ranges begin in ascending keys, when most of them hold no key at all.

    marks    .1.. 1..1 ..1.      a bit a cell of the key's scale: ranges over cells without a key are turned away
    posts    every 256th key     swept forward; both sides ascend
    fences   every 16th key      ┐ sixteen are halved without a branch, and what the next searches
    keys                         ┘ will read is asked for ahead, so that the waits for memory overlap

Cells are numbered along the scale and wrap around at the end of the marks, so no key is outside of them. A cell never
goes down as keys go up, whatever is lost in rounding: a range over cells without a mark holds no key.

>>> import numpy as np
>>> keys = frozen([1.5, 2.5, 7.0], np.float64)
>>> low, high = frozen([0.0, 2.0, 3.0], np.float64), frozen([1.0, 7.5, 4.0], np.float64)
>>> passed, places = np.empty(3, np.int32), np.empty(3, np.int32)
>>> count = first_places(keys, frozen([0, 1, 2], np.int32), ladder(keys), low, high, passed, places)
>>> passed[:count].tolist(), places[:count].tolist()
([1], [1])
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from windrow.probe.jit import compiled, frozen
from windrow.probe.pairs import Rows
from windrow.probe.prefetch import prefetch

Keys = NDArray[Any]
Marks = NDArray[np.uint64]

_SIXTEEN = 16
_MARKS_A_KEY = 8
_WORD_BITS = 64
_NEAR_WORDS = 1 << 16
_FARTHEST_CELL = 2.0**62
_FINEST = 1e300
_AHEAD = 16


class Ladder(NamedTuple):
    """What leads to a place in ascending keys; `cells` is the number of cells a unit of the key."""

    fences: Keys
    posts: Keys
    marks: Marks
    cells: float


def ladder(keys: Keys) -> Ladder:
    """The ladder of ascending keys (int64 or float64, no NaN)."""
    words = 1 << (_MARKS_A_KEY * len(keys) // _WORD_BITS).bit_length()
    marks, cells = np.zeros(words, np.uint64), _cells_a_unit(keys, words * _WORD_BITS)
    _fill_marks(keys, cells, marks)
    kind = keys.dtype.type
    return Ladder(frozen(keys[::_SIXTEEN], kind), frozen(keys[:: _SIXTEEN**2], kind), frozen(marks, np.uint64), cells)


def first_places(keys: Keys, rows: Rows, steps: Ladder, low: Keys, high: Keys, passed: Rows, places: Rows) -> int:
    """Which of the closed ranges, ascending by their low ends, hold a key, and the place of the first: how many do.

    `passed` and `places` are filled with them. `rows` go with the keys and are only asked for ahead of their use.
    """
    return _search((keys, rows, steps.fences, steps.posts, steps.marks), steps.cells, low, high, passed, places)


def _cells_a_unit(keys: Keys, cells: int) -> float:
    """As many as give the bulk of the keys the given number of cells; outliers wrap around."""
    aside = len(keys) // 20
    if len(keys) == 0:
        return 1.0
    with np.errstate(all="ignore"):
        spread = (float(keys[-1 - aside]) - float(keys[aside])) * len(keys) / (len(keys) - 2 * aside)
    return min(cells / spread, _FINEST) if 0 < spread < np.inf else 1.0


@compiled
def _cell(key: float, cells: float) -> np.int64:
    return np.int64(max(-_FARTHEST_CELL, min(_FARTHEST_CELL, key * cells)))


@compiled
def _fill_marks(keys: Keys, cells: float, marks: Marks) -> None:
    last = np.uint64(len(marks) - 1)
    for place in range(len(keys)):
        cell = np.uint64(_cell(keys[place], cells))
        marks[cell >> np.uint64(6) & last] |= np.uint64(1) << (cell & np.uint64(63))


@compiled
def _survivors(marks: Marks, cells: float, low: Keys, high: Keys, passed: Rows) -> int:
    """List the ranges that the marks do not turn away. Written without a branch, so that loads overlap."""
    last, one, six, most = np.uint64(len(marks) - 1), np.uint64(1), np.uint64(6), np.uint64(63)
    count, far = 0, len(marks) > _NEAR_WORDS
    for at in range(len(low)):
        if far:
            coming = np.uint64(_cell(low[min(at + _AHEAD, len(low) - 1)], cells))
            prefetch(marks, coming >> six & last)
        cell = np.uint64(_cell(low[at], cells))
        more = np.uint64(_cell(high[at], cells)) - cell
        word, shift = cell >> six, cell & most
        seen = marks[word & last] >> shift | marks[(word + one) & last] << one << (most - shift)
        passed[count] = at
        count += int(more > most) | int(seen << (most - min(more, most)) != np.uint64(0))
    return count


@compiled
def _fill_posts(posts: Keys, low: Keys, passed: Rows, places: Rows) -> None:
    """For each survivor the last post below its low end; strides double until they have passed it."""
    post = 0
    for turn in range(len(passed)):
        target, stride = low[passed[turn]], 1
        while post + stride <= len(posts) and posts[post + stride - 1] < target:
            post += stride
            stride *= 2
        length = min(stride, len(posts) - post)
        while length > 0:
            half = (length + 1) >> 1
            if posts[post + half - 1] < target:
                post += half
                length -= half
            else:
                length = half - 1
        places[turn] = max(0, post - 1)


@compiled
def _first_of_sixteen(keys: Keys, start: int, target: float) -> int:
    """The first of sixteen keys that is not below the target, or the place behind them.

    Unsigned numbers, because then no index is tested for being negative. Only the end of the keys is searched one by
    one.
    """
    if start + _SIXTEEN > len(keys):
        while start < len(keys) and keys[start] < target:
            start += 1
        return start
    eight, four, two, one = np.uint64(8), np.uint64(4), np.uint64(2), np.uint64(1)
    place = np.uint64(start)
    place += np.uint64(keys[place + eight - one] < target) * eight
    place += np.uint64(keys[place + four - one] < target) * four
    place += np.uint64(keys[place + two - one] < target) * two
    place += np.uint64(keys[place] < target)
    place += np.uint64(keys[place] < target)
    return int(place)


@compiled
def _fill_fences(fences: Keys, low: Keys, passed: Rows, places: Rows) -> None:
    """From posts to fences: for each survivor the last fence below its low end."""
    for turn in range(len(passed)):
        _ask_for_sixteen(fences, places[min(turn + _AHEAD, len(passed) - 1)])
        fence = _first_of_sixteen(fences, int(places[turn]) * _SIXTEEN, low[passed[turn]])
        places[turn] = max(0, fence - 1)


@compiled
def _fill_places(keys: Keys, rows: Rows, low: Keys, high: Keys, passed: Rows, places: Rows) -> int:
    """From fences to keys: leave the survivors that hold a key, and the place of the first."""
    count = 0
    for turn in range(len(passed)):
        _ask_for_sixteen(keys, places[min(turn + _AHEAD, len(passed) - 1)])
        at = passed[turn]
        place = _first_of_sixteen(keys, int(places[turn]) * _SIXTEEN, low[at])
        prefetch(rows, place)
        passed[count], places[count] = at, place
        count += int(place < len(keys)) & int(keys[np.uint64(min(place, len(keys) - 1))] <= high[at])
    return count


@compiled
def _ask_for_sixteen(keys: Keys, group: int) -> None:
    prefetch(keys, group * _SIXTEEN)
    prefetch(keys, group * _SIXTEEN + _SIXTEEN // 2)


@compiled
def _search(
    index: tuple[Keys, Rows, Keys, Keys, Marks], cells: float, low: Keys, high: Keys, passed: Rows, places: Rows
) -> int:
    keys, rows, fences, posts, marks = index
    passed = passed[: _survivors(marks, cells, low, high, passed)]
    _fill_posts(posts, low, passed, places)
    _fill_fences(fences, low, passed, places)
    return _fill_places(keys, rows, low, high, passed, places)
