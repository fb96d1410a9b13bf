"""From JSON to dataclasses by their annotations; what does not fit is refused.

Event files come from a folder that anybody may have written to, so nothing is taken on trust: numbers have to be
finite, names are cut to a length, and for what is missing or of another type the whole value is refused with a
`DamagedError`. Fields that nobody asks for are left aside.

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True)
... class Point:
...     x: float
...     tags: tuple[str, ...] = ()
>>> decoded(Point, {"x": 1, "tags": ["a"], "more": None})
Point(x=1.0, tags=('a',))
>>> decoded(Point, {"x": "1"})
Traceback (most recent call last):
    ...
windrow.dashboard.decode.DamagedError: Point.x is not a number
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")

LONGEST_TEXT = 400
LARGEST = 1e300
"""Beyond it numbers are not taken: sums of them would not be finite."""


class DamagedError(ValueError):
    """The value is not what was promised."""


def decoded(kind: type[T], value: Any) -> T:
    """The value as a dataclass."""
    declared: Any = kind
    found: T = _reader(declared, kind.__name__)(value)
    return found


@lru_cache(maxsize=512)
def _reader(kind: Any, place: str) -> Callable[[Any], Any]:
    simple = {float: _number, int: _whole, str: _text, bool: _flag}.get(kind)
    if simple is not None:
        return lambda value: simple(value, place)
    if is_dataclass(kind):
        return _record(kind, place)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        inner = _reader(next(each for each in arguments if each is not type(None)), place)
        return lambda value: None if value is None else inner(value)
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        inner = _reader(arguments[0], place)
        return lambda value: tuple(map(inner, _checked(value, list, "a list", place)))
    if origin is tuple:
        readers = tuple(_reader(each, place) for each in arguments)
        return lambda value: _tuple(readers, value, place)
    if origin is dict:
        inner = _reader(arguments[1], place)
        return lambda value: {
            _text(name, place): inner(each) for name, each in _checked(value, dict, "a mapping", place).items()
        }
    raise TypeError(f"{place} is declared as {kind}, which has no reader")


def _record(kind: Any, place: str) -> Callable[[Any], Any]:
    hints = get_type_hints(kind)
    readers = {field.name: _reader(hints[field.name], f"{place}.{field.name}") for field in fields(kind)}
    needed = {field.name for field in fields(kind) if field.default is MISSING and field.default_factory is MISSING}

    def read(value: Any) -> Any:
        held = _checked(value, dict, "a mapping", place)
        for name in needed:
            if name not in held:
                raise DamagedError(f"{place}.{name} is missing")
        return kind(**{name: reader(held[name]) for name, reader in readers.items() if name in held})

    return read


def _tuple(readers: tuple[Callable[[Any], Any], ...], value: Any, place: str) -> tuple[Any, ...]:
    held = _checked(value, list, "a list", place)
    if len(held) != len(readers):
        raise DamagedError(f"{place} has {len(held)} parts, not {len(readers)}")
    return tuple(reader(each) for reader, each in zip(readers, held, strict=True))


def _checked(value: Any, kind: type[T], what: str, place: str) -> T:
    if not isinstance(value, kind):
        raise DamagedError(f"{place} is not {what}")
    return value


def _number(value: Any, place: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DamagedError(f"{place} is not a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not abs(number) < LARGEST:
        raise DamagedError(f"{place} is not a finite number")
    return number


def _whole(value: Any, place: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 2**80:
        raise DamagedError(f"{place} is not a whole number")
    return value


def _text(value: Any, place: str) -> str:
    return _checked(value, str, "a text", place)[:LONGEST_TEXT]


def _flag(value: Any, place: str) -> bool:
    return _checked(value, bool, "true or false", place)
