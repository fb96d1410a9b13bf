"""Names, conversions and constants of single expressions."""

from __future__ import annotations

import pytest

from tests.query.columns import binder_over, bound
from windrow.errors import QueryError
from windrow.query.expression import Call, Column, Literal, walk
from windrow.query.functions import FUNCTIONS, USER_PREFIX, is_strict
from windrow.query.grammar import parse_condition
from windrow.query.literals import FALSE
from windrow.query.spec import UserFunction
from windrow.query.types import BIGINT, BOOLEAN, DATE, DOUBLE, FLOAT, INTEGER, SMALLINT, TIMESTAMP, VARCHAR, decimal


def conjuncts(text: str) -> list[str]:
    return [str(part) for part in binder_over("a", "b").conjuncts(parse_condition(text))]


def test_every_implicit_conversion_is_written_out() -> None:
    expression = bound("abs(a.i32 - a.f64) <= 1")
    widened = Call("cast", (Column("a", "i32", INTEGER),), DOUBLE)
    assert expression == Call(
        "less_equal",
        (
            Call("abs", (Call("subtract", (widened, Column("a", "f64", DOUBLE)), DOUBLE),), DOUBLE),
            Literal(1.0, DOUBLE),
        ),
        BOOLEAN,
    )


def test_operands_of_arithmetic_and_comparison_have_one_type() -> None:
    text = "a.i8 + a.f32 < a.d52 - a.i16 and a.day < a.ts and a.u8 = a.i8 and a.d52 % 3 > a.id // a.u32 and 1 = a.flag"
    checked = 0
    for node in walk(bound(text)):
        if isinstance(node, Call) and node.function in (
            "add",
            "subtract",
            "less",
            "equal",
            "modulo",
            "integer_divide",
            "greater",
        ):
            assert len({argument.type for argument in node.arguments}) == 1, str(node)
            checked += 1
    assert checked == 9


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("a.f32 <= 0.3", Literal(0.30000001192092896, FLOAT)),
        ("a.f64 <= 0.3", Literal(0.3, DOUBLE)),
        ("a.d52 <= 0.3", Literal(30, decimal(5, 2))),
        ("a.i32 <= 0.3", Literal(3, decimal(11, 1))),
        ("a.i16 = 7", Literal(7, SMALLINT)),
        ("a.i16 = '7'", Literal(7, SMALLINT)),
        ("a.i16 = 70000", Literal(70000, INTEGER)),
        ("a.day = '1970-01-03'", Literal(2, DATE)),
        ("a.ts < '1970-01-01 00:00:01'", Literal(1_000_000, TIMESTAMP)),
        ("a.id > 0.5", Literal(0, BIGINT)),
        ("a.id >= -0.5", Literal(0, BIGINT)),
        ("a.f64 = null", FALSE),
    ],
)
def test_literals_take_the_type_of_what_they_are_compared_with(text: str, literal: Literal) -> None:
    (conjunct,) = binder_over("a").conjuncts(parse_condition(text))
    assert (conjunct.arguments[1] if isinstance(conjunct, Call) else conjunct) == literal


def test_a_whole_bound_stands_on_either_side() -> None:
    assert conjuncts("0.5 < a.id and -1.5 >= a.id") == ["0 < a.id", "-2 >= a.id"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.flag and (b.flag and (a.i8 = 1 and b.i8 = 2))", ["a.flag", "b.flag", "a.i8 = 1", "b.i8 = 2"]),
        ("1 = 1 and a.flag and true", ["a.flag"]),
        ("a.flag and 1 = 2", ["false"]),
        ("a.i8 = null", ["false"]),
        ("null in (1, 2)", ["false"]),
        ("not ('b' < 'a') and null is null", []),
        ("a.i8 = 1 or (a.i8 = 2 or false)", ["a.i8 = 1 OR a.i8 = 2"]),
        ("a.i8 between 1 and 2", ["a.i8 >= 1", "a.i8 <= 2"]),
        ("a.i8 not between 1 and 2", ["NOT (a.i8 >= 1 AND a.i8 <= 2)"]),
        ("a.i8 in (1, 2)", ["a.i8 = 1 OR a.i8 = 2"]),
        ("a.i8 in (1)", ["a.i8 = 1"]),
        ("a.i8 is not null", ["a.i8 IS NOT NULL"]),
        ("a.flag is true", ["coalesce(a.flag, false)"]),
        ("a.flag is not false", ["NOT NOT coalesce(a.flag, true)"]),
        ("ifnull(a.i8, 1) = 2", ["coalesce(a.i8, 1) = 2"]),
        ("if(a.flag, 1, 2) = 2", ["CASE WHEN a.flag THEN 1 ELSE 2 END = 2"]),
        ("case a.i8 when 1 then a.flag end", ["CASE WHEN a.i8 = 1 THEN a.flag ELSE NULL END"]),
        ("nullif(a.i8, 1) = 2", ["CASE WHEN a.i8 = 1 THEN NULL ELSE a.i8 END = 2"]),
        ("@a.i8 = mod(b.i8, 3)", ["abs(a.i8) = b.i8 % 3"]),
        ('A.I8 = "B"."Name" or true', []),
    ],
)
def test_conditions_are_cut_into_conjuncts(text: str, expected: list[str]) -> None:
    assert conjuncts(text.replace('"B"."Name"', "b.i8")) == expected


def test_in_and_between_compare_all_their_values_in_one_type() -> None:
    for text, expected in (("a.f32 in (0.3, a.f64)", DOUBLE), ("a.f32 in (0.3, 1)", FLOAT), ("a.f32 = 0.3", FLOAT)):
        tests = [part for part in walk(bound(text)) if isinstance(part, Call) and part.function == "equal"]
        assert {argument.type for part in tests for argument in part.arguments} == {expected}


def test_null_safe_equality_knows_null() -> None:
    assert conjuncts("a.i8 is not distinct from b.i8") == [
        "a.i8 IS NULL AND b.i8 IS NULL OR coalesce(a.i8 = b.i8, false)"
    ]
    assert conjuncts("a.i8 is distinct from b.i8")[0].startswith("NOT (")


def test_a_column_of_nulls_is_null() -> None:
    assert bound("a.none") == Literal(None, bound("null").type)
    assert bound("coalesce(a.none, a.i8)") == Call(
        "coalesce", (Literal(None, bound("a.i8").type), bound("a.i8")), bound("a.i8").type
    )


def test_the_time_comes_first_in_a_sum() -> None:
    assert str(bound("interval 5 seconds + a.ts")) == "a.ts + INTERVAL '5' SECONDS"
    assert str(bound("2 + a.day")) == "a.day + 2"


def test_date_diff_reads_texts_as_times() -> None:
    call = bound("date_diff('days', '2020-01-01', a.day)")
    assert isinstance(call, Call)
    assert call.arguments[0] == Literal("day", VARCHAR)
    assert [argument.type for argument in call.arguments[1:]] == [TIMESTAMP, TIMESTAMP]


def test_user_functions_are_called_by_name_with_decimals_as_floats() -> None:
    near = UserFunction("Near", lambda x, y: x < y, BOOLEAN)
    call = bound("near(a.d52, 0.5)", functions=(near,))
    assert call == Call(
        f"{USER_PREFIX}Near",
        (Call("cast", (Column("a", "d52", decimal(5, 2)),), DOUBLE), Literal(0.5, DOUBLE)),
        BOOLEAN,
    )
    assert str(call) == "Near(a.d52, 0.5)"
    with pytest.raises(QueryError, match="Near does not take 1 argument"):
        bound("near(a.d52)", functions=(near,))
    with pytest.raises(QueryError, match="a type functions cannot take"):
        bound("near(a.big, 1)", functions=(near,))


def test_what_null_does_to_each_function_is_known() -> None:
    lenient = {name for name in FUNCTIONS if not is_strict(name)}
    assert lenient == {"and", "or", "is_null", "coalesce", "case", "greatest", "least"}
    assert is_strict("cast")
    assert is_strict("udf:anything")


MISMATCHES = [
    ("a.name + 1", r"\+ does not take VARCHAR and INTEGER"),
    ("a.flag and a.i8", "AND does not take BOOLEAN and TINYINT"),
    ("not a.i8", "NOT does not take TINYINT"),
    ("a.name < a.i8", "< does not take VARCHAR and TINYINT"),
    ("a.name = 5", "= does not take VARCHAR and INTEGER"),
    ("cosine(a.v3, a.v2)", r"cosine does not take FLOAT\[3\] and FLOAT\[2\]"),
    ("jaccard(a.i8, a.name)", "jaccard does not take TINYINT and VARCHAR"),
    ("a.v3 = a.v3", r"= does not take FLOAT\[3\] and FLOAT\[3\]"),
    ("a.big > 1", "> does not take OTHER and INTEGER"),
    ("a.i8 like 'x'", "LIKE does not take TINYINT and VARCHAR"),
    ("a.i8 in ('x')", "'x' cannot be read as TINYINT"),
    ("a.day in (1, 2)", "cannot compare DATE and INTEGER and INTEGER"),
    ("a.day = 'soon'", "'soon' cannot be read as DATE"),
    ("case when a.i8 then 1 end", "CASE does not take"),
    ("case when a.flag then a.i8 else a.name end", "CASE does not take"),
    ("coalesce()", "coalesce does not take zero arguments"),
    ("abs(a.name)", "abs does not take VARCHAR"),
    ("date_diff('day', a.ts)", "date_diff does not take"),
    ("date_diff('aeon', a.ts, a.ts)", "'aeon' is not a unit"),
    ("date_diff(a.name, a.ts, a.ts)", "the unit of date_diff has to be a text"),
    ("a.ts + interval 1 month", "'MONTH' has no fixed length"),
    ("interval (a.i8) seconds", "an INTERVAL has to be a constant"),
    ("cast(a.name as int)", "cannot cast VARCHAR to INTEGER"),
    ("cast(a.i8 as uuid)", "cannot cast to UUID"),
    ("cast(a.i8 as decimal(99, 2))", r"there is no DECIMAL\(99, 2\)"),
    ("a.i8 + 99999999999999999999", "does not fit in 64 bits"),
    ("sum(a.i8)", r"sum\(\) is an aggregate"),
    ("levenstein(a.name, a.name)", "there is no function 'levenstein'"),
    ("row_number() over ()", "a window function is not supported"),
    ("(select 1)", "a subquery is not supported"),
    ("a.i8 in (select 1)", "not a subquery"),
    ("exists (select 1)", "a subquery is not supported"),
    ("[1, 2]", "a list is not supported"),
    ("a.i8 ** 2", "a power is not supported"),
    ("a.name || 'x'", "joining texts with || is not supported"),
    ("a.name like 'x' escape '!'", "ESCAPE is not supported"),
    ("?", "PLACEHOLDER is not supported"),
    ("result_ts()", r"result_ts\(\) describes a result"),
    ("x.a.i8", "is not a column"),
    ("a.i8 < a.i8 < 3", "comparisons cannot be chained"),
]


@pytest.mark.parametrize(("text", "message"), MISMATCHES)
def test_what_has_no_meaning_is_said_in_one_line(text: str, message: str) -> None:
    with pytest.raises(QueryError, match=message) as caught:
        bound(text)
    assert "\n" not in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(
    "text", ["(" * 40 + "1" + ")" * 40, "1" + " + 1" * 90, "not " * 50 + "a.flag", "a.i8 = 1" + " or a.i8 = 2" * 3000]
)
def test_reasonable_nesting_is_bound(text: str) -> None:
    assert bound(text) is not None


@pytest.mark.parametrize(
    "text",
    ["(" * 4000 + "1" + ")" * 4000, "1" + " + 1" * 5000, "not " * 3000 + "a.flag", "abs(" * 999 + "1" + ")" * 999],
)
def test_nesting_beyond_reason_is_refused(text: str) -> None:
    with pytest.raises(QueryError, match="nested too deeply"):
        bound(text)
