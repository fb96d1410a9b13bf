"""Literals: from the text of a query to a value, and from one type to another while the query is bound.

A literal beside a value of another type becomes a literal of that type, so nothing is converted while rows run: `0.3`
beside a FLOAT is the 32-bit 0.3, `'2020-01-01'` beside a DATE is a DATE. Roundings are DuckDB's: decimals and text to
the nearest, halves away from zero; floats to integers, halves to even.

>>> from windrow.query.types import DATE, FLOAT, INTEGER
>>> number("0.3"), number("3000000000").type == BIGINT
(Literal(value=3, type=Type(kind=<Kind.DECIMAL: 'DECIMAL'>, width=2, scale=1, length=0)), True)
>>> convert(number("0.3"), FLOAT).value
0.30000001192092896
>>> convert(Literal("2020-01-02", VARCHAR), DATE).value
18263
>>> convert(Literal("2.5", VARCHAR), INTEGER).value
3
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

import numpy as np

from windrow.errors import QueryError
from windrow.query.expression import Literal, Value
from windrow.query.types import BIGINT, BITS, BOOLEAN, DOUBLE, INTEGER, INTERVAL, SIGNED, VARCHAR, Kind, Type, decimal

BIGGEST = 2**63 - 1
INTEGER_BIGGEST = 2**31 - 1

MICROSECONDS = {
    "microsecond": 1, "millisecond": 1_000, "second": 1_000_000, "minute": 60_000_000,
    "hour": 3_600_000_000, "day": 86_400_000_000, "week": 604_800_000_000,
}  # fmt: skip
"""Units of fixed length. Months and years are not among them: how long they are depends on the date."""

UNIT_NAMES = {
    **{form: unit for unit in MICROSECONDS for form in (unit, f"{unit}s")}, "us": "microsecond",
    "usec": "microsecond", "usecs": "microsecond", "ms": "millisecond", "msec": "millisecond", "msecs": "millisecond",
    "s": "second", "sec": "second", "secs": "second", "m": "minute", "min": "minute", "mins": "minute", "h": "hour",
    "hr": "hour", "hrs": "hour", "d": "day", "w": "week",
}  # fmt: skip

_EXACT = Context(prec=120)
_DATE = re.compile(r"\s*(\d{1,6})([-/])(\d{1,2})\2(\d{1,2})(?:[T ]+(.*?))?\s*", re.DOTALL)
_CLOCK = re.compile(
    r"(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?\s*(Z|UTC|[+-]\d{1,2}(?::?\d{2})?)?", re.IGNORECASE
)
_INTERVAL_CLOCK = re.compile(r"\s*([+-]?)(\d+):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6}))?)?\s*")
_INTERVAL_PART = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+))\s*([a-zA-Z]+)\s*,?")
_TRUE = frozenset(("true", "t", "yes", "y", "1"))
_FALSE = frozenset(("false", "f", "no", "n", "0"))


def number(text: str) -> Literal:
    """A number as written: INTEGER or BIGINT, DECIMAL with a point, DOUBLE with an exponent."""
    plain = text.replace("_", "")
    whole, point, part = plain.partition(".")
    try:
        if "e" in plain.lower() or len(whole) + len(part) > 38:
            return Literal(_finite(float(plain), text), DOUBLE)
        return Literal(int(whole + part), decimal(len(whole) + len(part), len(part))) if point else integer(int(plain))
    except ValueError:
        raise QueryError(
            f"'{text[:40]}' is not a number Windrow can take", hint="write a number such as 0.5 or 1e9"
        ) from None


def integer(value: int) -> Literal:
    """An integer literal in the smallest of INTEGER and BIGINT; beyond 64 bits a DECIMAL, which only a DOUBLE can take
    in."""
    if -INTEGER_BIGGEST - 1 <= value <= INTEGER_BIGGEST:
        return Literal(value, INTEGER)
    return Literal(value, BIGINT if -BIGGEST - 1 <= value <= BIGGEST else decimal(38, 0))


def negative(literal: Literal) -> Literal:
    """The literal with its sign turned."""
    if literal.type.is_integer or literal.type == decimal(38, 0):
        return integer(-_whole(literal))
    return Literal(None if literal.value is None else -literal.value, literal.type)  # type: ignore[operator]


def fits(value: int, type_: Type) -> bool:
    """Whether an integer is in the range of an integer type."""
    bits = BITS[type_.kind]
    lowest, count = (-(1 << (bits - 1)) if type_.kind in SIGNED else 0), 1 << bits
    return lowest <= value < lowest + count


def convert(literal: Literal, target: Type) -> Literal:
    """The same literal in another type; a QueryError where it has no place there."""
    source, value = literal.type, literal.value
    if source == target:
        return literal
    if value is None:
        return Literal(None, target)
    converted: Value
    if source.kind is Kind.VARCHAR:
        converted = _from_text(str(value), target)
    elif target.kind is Kind.BOOLEAN and (source.is_numeric or source.kind is Kind.BOOLEAN):
        converted = bool(value)
    elif target.is_numeric and (source.is_numeric or source.kind is Kind.BOOLEAN):
        converted = _number_to(literal, target)
    else:
        converted = _time_to(literal, target)
    return Literal(converted, target)


def interval(text: str, unit: str = "") -> Literal:
    """An INTERVAL as written: a number and its unit, several of them, or a time of day; in microseconds.

    >>> interval("1.5", "seconds").value, interval("1 day 2 hours").value, interval("00:01:30").value
    (1500000, 93600000000, 90000000)
    """
    if clock := _INTERVAL_CLOCK.fullmatch(text):
        sign, hours, minutes, seconds, part = clock.groups(default="")
        total = _seconds(int(hours), int(minutes), int(seconds or 0)) * 1_000_000 + int(part.ljust(6, "0"))
        return _interval(-total if sign == "-" else total, text)
    spelled = f"{text} {unit}"
    end, total_us = 0, Decimal(0)
    while end < len(spelled.rstrip()):
        part_match = _INTERVAL_PART.match(spelled, end)
        if part_match is None:
            raise QueryError(
                f"cannot read the interval '{spelled.strip()}'",
                hint="write INTERVAL '1 day 2 hours' or INTERVAL 5 SECONDS",
            )
        total_us += Decimal(part_match[1]) * unit_us(part_match[2], place=f"INTERVAL '{spelled.strip()}'")
        end = part_match.end()
    return _interval(int(total_us.to_integral_value(ROUND_HALF_UP)), text)


def unit_us(name: str, *, place: str = "") -> int:
    """Microseconds of a unit of time."""
    unit = UNIT_NAMES.get(name.lower())
    if unit is None:
        months = name.lower().rstrip("s") in ("month", "mon", "quarter", "year", "yr", "decade", "century")
        message = f"'{name}' has no fixed length" if months else f"'{name}' is not a unit of time"
        raise QueryError(
            message, place=place, hint="units are MICROSECONDS, MILLISECONDS, SECONDS, MINUTES, HOURS, DAYS"
        )
    return MICROSECONDS[unit]


def timestamp(text: str) -> tuple[int, int]:
    """A date with or without a time of day as (microseconds since 1970 as written, microseconds its zone is ahead of
    UTC)."""
    parts = _DATE.fullmatch(text)
    if parts is None:
        raise ValueError(text)
    day = np.datetime64(f"{int(parts[1]):04d}-{int(parts[3]):02d}-{int(parts[4]):02d}", "D")
    clock = _CLOCK.fullmatch(parts[5] or "00:00")
    if clock is None:
        raise ValueError(text)
    hours, minutes, seconds, part, zone = clock.groups(default="")
    second = _seconds(int(hours), int(minutes), int(seconds or 0))
    if int(minutes) > 59 or int(seconds or 0) > 59 or second > 86_400:
        raise ValueError(text)
    zone_digits = "0" if zone.upper() in ("", "Z", "UTC") else zone.replace(":", "")
    ahead_s = int(zone_digits[:3]) * 3600 + int((zone_digits[0] + zone_digits[3:]) if zone_digits[3:] else 0) * 60
    return int(day.astype(np.int64)) * MICROSECONDS["day"] + second * 1_000_000 + int(
        part[:6].ljust(6, "0")
    ), ahead_s * 1_000_000


def _from_text(text: str, target: Type) -> Value:
    try:
        if target.kind is Kind.BOOLEAN:
            if text.lower() not in _TRUE | _FALSE:
                raise ValueError(text)
            return text.lower() in _TRUE
        if target.is_float:
            value = float(text)
            return None if math.isnan(value) else _rounded_float(value, target)
        if target.is_numeric:
            exact = Decimal(text.strip().replace("_", ""))
            return _scaled(exact, target)
        if target.kind is Kind.INTERVAL:
            return interval(text).value
        if target.kind is Kind.DATE:
            return _in_64_bits(timestamp(text)[0]) // MICROSECONDS["day"]
        if target.is_time:
            written, ahead = timestamp(text)
            return _in_64_bits(written - ahead if target.kind is Kind.TIMESTAMPTZ else written)
    except (ValueError, InvalidOperation, OverflowError):
        pass
    raise QueryError(f"'{text}' cannot be read as {target}", hint=f"write it as {target} or cast the other side")


def _number_to(literal: Literal, target: Type) -> Value:
    source, value = literal.type, literal.value
    if isinstance(value, float):
        if target.is_float:
            return _rounded_float(value, target)
        if not math.isfinite(value):
            raise QueryError(f"{value} cannot be {target}", hint="use a finite number")
        return _in_range(round(value), target, literal) if target.is_integer else _scaled(Decimal(value), target)
    whole = _whole(literal)
    scale = source.scale if source.kind is Kind.DECIMAL else 0
    if target.is_float:
        return _decimal_to_float(whole, scale, target)
    return _scaled(Decimal(whole).scaleb(-scale, _EXACT), target)


def _scaled(exact: Decimal, target: Type) -> int:
    """A number in the unscaled form of an integer or decimal type, halves away from zero."""
    if not exact.is_finite() or exact.adjusted() > 60:
        raise QueryError(f"{exact} cannot be {target}", hint="use a smaller number")
    value = int(exact.scaleb(target.scale, _EXACT).to_integral_value(ROUND_HALF_UP, _EXACT))
    return _in_range(value, target, exact)


def _in_range(value: int, target: Type, shown: object) -> int:
    inside = abs(value) < 10**target.width if target.kind is Kind.DECIMAL else fits(value, target)
    if not inside:
        raise QueryError(f"{shown} does not fit {target}", hint="cast the other side to a wider type")
    return value


def _decimal_to_float(unscaled: int, scale: int, target: Type) -> float:
    """The way DuckDB goes from a decimal to a float: one division where both parts are exact, else whole and rest
    apart."""
    if target.kind is Kind.DOUBLE:
        exact_below, cast = 2**53, np.float64
    else:
        exact_below, cast = 2**24, np.float32  # type: ignore[assignment]
    power = 10**scale
    with np.errstate(over="ignore"):
        if scale == 0 or abs(unscaled) <= exact_below:
            return float(cast(cast(unscaled) / cast(power)))
        whole, rest = divmod(abs(unscaled), power)
        magnitude = float(cast(cast(whole) + cast(rest) / cast(power)))
    return -magnitude if unscaled < 0 else magnitude


def _rounded_float(value: float, target: Type) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(value)) if target.kind is Kind.FLOAT else value


def _time_to(literal: Literal, target: Type) -> int:
    source, value = literal.type.kind, _whole(literal)
    if source is Kind.DATE and target.is_time and abs(value) <= BIGGEST // MICROSECONDS["day"]:
        return value * MICROSECONDS["day"]
    if literal.type.is_time and target.is_time:
        return value
    if literal.type.is_time and target.kind is Kind.DATE:
        return value // MICROSECONDS["day"]
    raise QueryError(f"{literal} cannot be {target}", hint="cast it to a type that fits")


def _interval(total_us: int, text: str) -> Literal:
    if abs(total_us) > BIGGEST:
        raise QueryError(f"the interval '{text}' is too long", hint="an interval is at most 292,271 years")
    return Literal(total_us, INTERVAL)


def _in_64_bits(value: int) -> int:
    if abs(value) > BIGGEST:
        raise OverflowError(value)
    return value


def _finite(value: float, text: str) -> float:
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _whole(literal: Literal) -> int:
    if not isinstance(literal.value, int):
        raise QueryError(f"{literal} is not a whole number", hint="write a number")
    return int(literal.value)


def _seconds(hours: int, minutes: int, seconds: int) -> int:
    return (hours * 60 + minutes) * 60 + seconds


TRUE = Literal(True, BOOLEAN)
FALSE = Literal(False, BOOLEAN)


def text_literal(text: str) -> Literal:
    """A string literal."""
    return Literal(text, VARCHAR)
