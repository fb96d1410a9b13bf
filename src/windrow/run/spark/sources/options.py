"""The options of a source: texts that are checked and turned into numbers, times and flags.

Spark gives a source its options as texts under names in lower case. An option nobody knows, a number that is none, a
value out of its limits: each is a `UsageError` that names the source and the option.

>>> given = SourceOptions("windrow-clock", {"every_s": "0.5"}, known=("every_s",))
>>> given.number("every_s", default=0.0)
0.5
>>> SourceOptions("windrow-clock", {"evry_s": "1"}, known=("every_s",))
Traceback (most recent call last):
    ...
windrow.errors.UsageError: windrow-clock has no option 'evry_s'. Next: the options are every_s
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from windrow.errors import UsageError

_FLAGS = {"true": True, "false": False}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class SourceOptions:
    """What a source was given; each method reads one option, or returns its default."""

    def __init__(self, source: str, given: Mapping[str, str], known: Sequence[str]) -> None:
        self._source = source
        self._given = {name.lower(): str(value).strip() for name, value in given.items()}
        for name in self._given:
            if name not in known:
                raise UsageError(f"{source} has no option '{name}'", hint=f"the options are {', '.join(known)}")

    def __contains__(self, name: str) -> bool:
        return name in self._given

    def text(self, name: str, default: str) -> str:
        return self._given.get(name, default)

    def needed(self, name: str, hint: str) -> str:
        """A text without which the source cannot be."""
        if not self._given.get(name):
            raise UsageError(f"{self._source} needs the option '{name}'", hint=hint)
        return self._given[name]

    def number(self, name: str, default: float, *, above_zero: bool = False, signed: bool = False) -> float:
        """A finite number; zero or more unless `signed`, and not zero if `above_zero`."""
        if name not in self._given:
            return default
        try:
            value = float(self._given[name])
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or (value < 0 and not signed) or (above_zero and value <= 0):
            raise self._wrong(name, "a number above zero" if above_zero else "a number" if signed else "zero or more")
        return value

    def integer(self, name: str, default: int, *, least: int = 0) -> int:
        if name not in self._given:
            return default
        try:
            value = int(self._given[name])
        except ValueError:
            value = least - 1
        if value < least:
            raise self._wrong(name, f"a whole number of {least} or more")
        return value

    def flag(self, name: str, default: bool) -> bool:
        if name not in self._given:
            return default
        value = _FLAGS.get(self._given[name].lower())
        if value is None:
            raise self._wrong(name, "true or false")
        return value

    def choice(self, name: str, default: str, choices: Sequence[str]) -> str:
        value = self._given.get(name, default)
        if value not in choices:
            raise self._wrong(name, f"one of {', '.join(choices)}")
        return value

    def instant_us(self, name: str) -> int | None:
        """An ISO time as microseconds since 1970; without a zone it is UTC.

        >>> SourceOptions("s", {"start": "1970-01-01T00:00:02"}, known=("start",)).instant_us("start")
        2000000
        """
        if name not in self._given:
            return None
        try:
            moment = datetime.fromisoformat(self._given[name])
        except ValueError:
            raise self._wrong(name, "an ISO time such as 2024-01-01T00:00:00Z") from None
        return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // timedelta(microseconds=1)

    def _wrong(self, name: str, wanted: str) -> UsageError:
        return UsageError(f"{name} of {self._source} is '{self._given[name]}'", hint=f"give {wanted}")
