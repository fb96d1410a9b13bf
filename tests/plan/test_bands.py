"""Bands: keys that differ by a constant are one key, and the width of a band is read off the query."""

from __future__ import annotations

import math

import pytest

from tests.oracle.tables import table_of
from windrow.plan.bands import linear, ranges_over, same_words, width_of
from windrow.query.expression import Call, Expression, Literal
from windrow.query.predicate import Range, Term, searches_of
from windrow.query.spec import QuerySpec
from windrow.query.sql import parse
from windrow.query.types import DOUBLE

SCHEMA = table_of(0, 0).schema


def spec_of(where: str) -> QuerySpec:
    return parse(
        f"SELECT a.id AS out FROM s AS a, s AS b WHERE {where} WINDOW 1 SECOND", {"s": SCHEMA}, time={"s": "ts"}
    )


def ranges_of(spec: QuerySpec, target: str) -> list[Range]:
    return [s for conjunct in spec.conjuncts for s in searches_of(conjunct, target) if isinstance(s, Range)]


WIDTHS: dict[str, tuple[float | None, float | None]] = {
    "abs(a.f64 - b.f64) <= 0.25": (0.5, 0.5),
    "abs(a.f32 - b.f64) <= 0.25": (0.5, 0.5),
    "abs(a.i32 - b.i64) <= 3": (6, 6),
    "abs(a.d52 - b.d52) <= 0.25": (50, 50),
    "abs(a.d52 - b.d18) <= 0.25": (500, 500),
    "abs(a.at - b.at) <= INTERVAL 3 SECONDS": (6e6, 6e6),
    "abs(a.day - b.day) <= 1": (2, 2),
    "a.i64 BETWEEN b.i64 - 2 AND b.i64 + 5": (7, 7),
    "a.i64 BETWEEN 5 + b.i64 - 2 AND b.i64 - -5": (2, 2),
    "a.f64 >= b.f64 - 0.5 AND a.f64 < b.f64 + 1 AND a.f64 < b.f64 + 0.25": (0.75, 0.75),
    "a.d52 BETWEEN b.d52 - 1 AND b.d52 + 0.5": (150, 150),
    "a.f64 - b.f64 <= 1 AND b.f64 - a.f64 <= 2": (3, 3),
    "abs(a.f64 - b.f64 - 1) <= 2": (4, 4),
    "abs((a.f64 + 1) - b.f64) <= 2": (4, 4),
    "a.i64 = b.i64": (0, 0),
    "a.i64 >= b.i64 + 2 AND a.i64 <= b.i64 - 2": (0, 0),
    "a.i64 BETWEEN b.i64 AND b.i64 * 2": (None, None),
    "a.f64 <= b.f64": (None, None),
    "a.f64 >= b.f64 AND a.f32 <= b.f64 + 1": (None, None),
    "a.i64 - b.i64 BETWEEN 1 AND 4": (3, 3),
}


@pytest.mark.parametrize("where", WIDTHS)
def test_widths(where: str) -> None:
    spec = spec_of(where)
    for target, width in zip("ab", WIDTHS[where], strict=True):
        ranges = ranges_of(spec, target)
        found = width_of(ranges_over(ranges[0].key, ranges))
        assert found == (width if width is None else pytest.approx(width))
    assert width_of([]) is None


def test_ranges_move_with_their_key_and_keep_what_they_say() -> None:
    spec = spec_of("a.f64 >= b.f64 - 0.5 AND a.f64 < b.f64 + 1 AND a.i64 < b.i64")
    ranges = ranges_of(spec, "b")
    key = ranges[0].key
    moved = ranges_over(key, ranges)
    assert [str(each.key) for each in moved] == ["b.f64 - 0.5"] * 2
    assert [each.low is None for each in moved] == [True, False]
    assert moved[0].high == ranges[0].high
    low, before = moved[1].low, ranges[1].low
    assert low is not None
    assert before is not None
    parts, constant = linear(low.terms)
    assert ({str(part): factor for part, factor in parts.items()}, constant) == ({"a.f64": 1}, -1.5)
    assert low.slack > before.slack
    assert not low.single
    assert ranges_over(ranges[2].key, ranges) == [ranges[2]]


def test_a_moved_range_over_a_short_float_has_its_roundings() -> None:
    ranges = ranges_of(spec_of("a.f64 >= b.f32 - 0.5 AND a.f64 < b.f32 + 1"), "b")
    for each in ranges_over(ranges[0].key, ranges):
        bound = each.low or each.high
        assert bound is not None
        assert bound.single


def sides(where: str) -> tuple[Expression, Expression]:
    (conjunct,) = spec_of(where).conjuncts
    assert isinstance(conjunct, Call)
    left, right = conjunct.arguments
    return left, right


def test_conversions_that_keep_words_are_looked_through() -> None:
    for where, expected in {
        "a.i32 = b.i64": "a.i32",
        "a.u8 = b.i64": "a.u8",
        "a.f32 = b.f64": "a.f32",
        "a.i32 = b.f64": "CAST(a.i32 AS DOUBLE)",
        "a.d52 = b.d18": "CAST(a.d52 AS DECIMAL(18,3))",
        "CAST(a.i64 AS INTEGER) = b.i32": "CAST(a.i64 AS INTEGER)",
        "CAST(a.i32 AS UINTEGER) = b.u32": "CAST(a.i32 AS UINTEGER)",
        "CAST(a.d52 AS DECIMAL(9,2)) = CAST(b.d52 AS DECIMAL(9,2))": "a.d52",
        "CAST(a.f64 AS FLOAT) = b.f32": "CAST(a.f64 AS FLOAT)",
    }.items():
        assert str(same_words(sides(where)[0])) == expected, where


def test_sums_fall_into_variable_parts_and_a_constant() -> None:
    left, right = sides("-(a.i64 - 3) + 1 - a.i32 = b.i64 * 2")
    parts, constant = linear([Term(1, left), Term(-1, right), Term(-1, right)])
    shown = {str(part): factor for part, factor in parts.items()}
    assert (shown, constant) == ({"a.i64": -1, "a.i32": -1, "b.i64 * 2": -2}, 4.0)
    assert linear([Term(1, left), Term(-1, left)]) == ({}, 0.0)
    assert math.isnan(linear([Term(1, Literal(None, DOUBLE))])[1])
