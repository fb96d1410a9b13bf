"""The rules of types are DuckDB's: every pair of kinds under every operator, against typeof()."""

from __future__ import annotations

from itertools import product

import pytest

from tests.query.columns import DUCKDB_TYPES, Duck, bound
from windrow.errors import QueryError
from windrow.query.coercion import can_cast, common_type, product_types, sum_type
from windrow.query.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, NULL, TIMESTAMP, VARCHAR, decimal


@pytest.fixture(scope="module")
def duck() -> Duck:
    return Duck()


def type_of(text: str) -> str | None:
    try:
        return str(bound(text).type)
    except QueryError:
        return None


def is_refused_by_us_alone(left: str, operator: str, right: str) -> bool:
    """An interval times or by a number: DuckDB has it, a join has little use for it."""
    return operator in ("*", "/") and "span" in (left, right)


@pytest.mark.parametrize("operator", ["+", "-", "*", "/", "//", "%"])
def test_arithmetic_has_duckdbs_types(duck: Duck, operator: str) -> None:
    typed = 0
    for left, right in product(DUCKDB_TYPES, repeat=2):
        text = f"a.{left} {operator} a.{right}"
        expected = None if is_refused_by_us_alone(left, operator, right) else duck.type_of(text)
        assert type_of(text) == expected, text
        typed += expected is not None
    assert typed >= 144


@pytest.mark.parametrize("form", ["coalesce({}, {})", "greatest({}, {})", "case when a.flag then {} else {} end"])
def test_values_side_by_side_have_duckdbs_types(duck: Duck, form: str) -> None:
    typed = 0
    for left, right in product(DUCKDB_TYPES, repeat=2):
        text = form.format(f"a.{left}", f"a.{right}")
        expected = duck.type_of(text)
        assert type_of(text) == expected, text
        typed += expected is not None
    assert typed >= 144


@pytest.mark.parametrize("number", ["1", "-1", "300", "-129", "70000", "3000000000", "0.3", "-2.50", ".5", "1e3", "0"])
def test_literals_beside_columns_have_duckdbs_types(duck: Duck, number: str) -> None:
    for name, form in product(
        DUCKDB_TYPES, ("{} + {}", "{} * {}", "{} / {}", "{} // {}", "{} % {}", "greatest({}, {})")
    ):
        if name == "span" and form in ("{} * {}", "{} / {}"):
            continue
        text = form.format(f"a.{name}", number)
        # DuckDB gives .5 no digit before the point, sqlglot gives it one: a digit more of width.
        assert type_of(text) == duck.type_of(text.replace(".5", "0.5") if number == ".5" else text), text


@pytest.mark.parametrize("function", ["-{}", "abs({})", "floor({})", "ceil({})", "sqrt({})", "lower({})", "length({})"])
def test_functions_of_one_argument_have_duckdbs_types(duck: Duck, function: str) -> None:
    typed = 0
    for name in DUCKDB_TYPES:
        text = function.format(f"a.{name}")
        expected = "INTERVAL" if text == "abs(a.span)" else duck.type_of(text)
        assert type_of(text) == expected, text
        typed += expected is not None
    assert typed


def test_products_of_wide_decimals_stay_in_range() -> None:
    assert product_types(decimal(18, 9), decimal(18, 8)) == (decimal(18, 9), decimal(18, 8), decimal(18, 17))
    assert product_types(decimal(18, 9), decimal(18, 9)) == (decimal(18, 9), decimal(18, 9), decimal(36, 18))
    assert product_types(decimal(38, 20), decimal(38, 19)) is None
    assert sum_type(decimal(38, 30), decimal(38, 0)) == decimal(38, 30)


def test_null_takes_the_other_type() -> None:
    assert common_type(NULL, DATE) == DATE
    assert common_type(DOUBLE, NULL) == DOUBLE


def test_booleans_are_numbers_only_where_they_are_compared() -> None:
    assert common_type(BOOLEAN, BIGINT) == BIGINT
    assert common_type(BOOLEAN, DOUBLE) is None
    assert common_type(BOOLEAN, DOUBLE, booleans_as_numbers=True) == DOUBLE


def test_casts_stay_within_numbers_and_within_times() -> None:
    assert can_cast(DOUBLE, INTEGER)
    assert can_cast(BOOLEAN, decimal(5, 2))
    assert can_cast(TIMESTAMP, DATE)
    assert not can_cast(VARCHAR, INTEGER)
    assert not can_cast(INTEGER, TIMESTAMP)
