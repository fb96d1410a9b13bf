"""Expressions read back as what was written, and mean the same when they are parsed again."""

from __future__ import annotations

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from tests.query.columns import NUMBERS, Duck, bound
from windrow.errors import QueryError
from windrow.query.expression import Column, Literal
from windrow.query.show import quoted, show
from windrow.query.types import DOUBLE, FLOAT, INTERVAL, TIMESTAMPTZ

DUCK = Duck()

AS_WRITTEN = [
    "abs(a.f64 - a.i8) <= 1",
    "abs(a.f32 - a.d52) <= 0.3",
    "a.i8 + 300 < a.id * 2",
    "(a.i8 + 1) * 2 - (3 - a.i8)",
    "a.i32 - (a.i16 - a.i8) - 1",
    "-(a.i8 + 1) % 7 // 2",
    "a.d52 + 1.25 > 2.5",
    "NOT (a.flag OR a.i8 = 1) AND a.name LIKE 'x%'",
    "a.name NOT ILIKE '_b' OR a.name IS NOT NULL",
    "(a.i8 < 3) = a.flag",
    "coalesce(a.i8, 300) IS NULL",
    "CASE WHEN a.i8 > 1 THEN a.f64 WHEN a.flag THEN 2 ELSE a.i32 END",
    "a.ts + INTERVAL '5' SECONDS >= a.day",
    "a.ts - a.zoned < INTERVAL '2' HOURS",
    "date_diff('day', a.day, a.ts) = 2",
    "CAST(a.f64 AS INTEGER) + CAST(a.i8 AS BIGINT)",
    "a.day = DATE '2020-01-02'",
    "cosine(a.v3, a.w3) >= 0.9",
    "a.name = 'it''s'",
    "greatest(a.i8, a.f32, 2)",
]


@pytest.mark.parametrize("text", AS_WRITTEN)
def test_text_reads_as_written(text: str) -> None:
    assert str(bound(text)) == text


def test_names_are_quoted_where_they_have_to_be() -> None:
    assert show(Column("a", "x y", DOUBLE)) == 'a."x y"'
    assert quoted('a"b') == '"a""b"'
    assert quoted("_x1") == "_x1"


def test_literals_of_every_kind_have_a_text() -> None:
    assert str(Literal(0.30000001192092896, FLOAT)) == "0.3"
    assert str(Literal(0, TIMESTAMPTZ)) == "TIMESTAMPTZ '1970-01-01 00:00:00.000000+00'"
    assert str(Literal(-1500, INTERVAL)) == "INTERVAL '-1500' MICROSECONDS"
    assert str(Literal(-2, FLOAT)) == "-2.0"
    assert str(Literal(None, DOUBLE)) == "NULL"


UNPARENTHESISED = [
    "not 1 = 2 and false or true",
    "not null is null",
    "2 - 3 - 4 * 5 // 3 % 2 - -1",
    "- 7 // 2 * 2.5 - 0.5 / 4 / 2",
    "2 between 1 and 3 and not 2 between 3 and 4",
    "3 in (1, 2 + 1) = (1 < 2)",
    "1 is null = false",
    "not 3 not in (1, 2)",
    "5 = 2 + 3 is true",
    "1 is distinct from null or null",
    "case when 1 > 2 or 2 > 1 then 1 else 2 end + 1",
    "'ab' like 'a%' and not 'ab' like 'b%'",
]


@pytest.mark.parametrize("text", UNPARENTHESISED)
def test_operators_bind_as_tightly_as_in_duckdb(text: str) -> None:
    assert DUCK.value(show(bound(text))) == DUCK.value(text)


LITERALS = st.sampled_from(["1", "-2", "300", "3000000000", "0.3", "2.50", "1e3", "-0.5"])
LEAVES = st.one_of(st.sampled_from([f"a.{name}" for name in NUMBERS]), LITERALS)


def calls(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from(["+", "-", "*", "/", "//", "%"])
    two = st.builds("({} {} {})".format, inner, operators, inner)
    one = st.builds("{}({})".format, st.sampled_from(["abs", "-", "floor", "ceil", "sqrt"]), inner)
    many = st.builds("{}({}, {})".format, st.sampled_from(["greatest", "coalesce", "least"]), inner, inner)
    return st.one_of(two, one, many, st.builds("case when a.flag then {} else {} end".format, inner, inner))


@settings(max_examples=150)
@given(st.recursive(LEAVES, calls, max_leaves=6))
def test_random_expressions_have_duckdbs_type_and_survive_being_shown(text: str) -> None:
    try:
        expression = bound(text)
    except QueryError:
        reject()  # the scales of a product add up to more than a DECIMAL holds
    assert str(expression.type) == DUCK.type_of(text), text
    assert bound(str(expression)) == expression, text
