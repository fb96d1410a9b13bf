"""One condition (or one result column) a line, each against DuckDB's own reading of the same words.

Where DuckDB raises an error for a row, `TRY` makes it the NULL that Windrow's definition asks for.
"""

from __future__ import annotations

import pytest

import windrow
from tests.oracle.arrivals import run, shuffled
from tests.oracle.duck import Question, Source, answer, difference, type_names
from tests.oracle.tables import table_of

CONDITIONS = """
a.i32 IN (1, NULL)
a.i32 NOT IN (1, NULL)
a.i32 NOT IN (1, b.i32)
a.i32 = NULL
FALSE OR a.flag
a.i32 IS NOT DISTINCT FROM b.i32
a.f64 IS DISTINCT FROM b.f64
(a.f64 = b.f64) IS NULL
CASE a.i32 WHEN 1 THEN b.flag WHEN 2 THEN TRUE END
CASE WHEN a.flag THEN 1 END = b.u8
CASE WHEN a.flag THEN a.s ELSE b.s END = 'a'
CASE WHEN a.flag THEN a.i32 WHEN b.flag THEN b.d52 ELSE 0.5 END <= 1
CAST(a.d18 AS INTEGER) = b.i32
CAST(a.d52 AS DECIMAL(4,1)) = b.d52
CAST(a.i32 AS DOUBLE) < b.f64
a.at::DATE = b.day
a.flag IS TRUE
a.flag IS NOT FALSE
a.flag = (b.i32 = 1)
a.flag < b.flag
a.i32 = b.flag
greatest(a.i32, b.i64, 2) = 2
least(a.f32, b.f64, 0.3) <= 0.1
a.s < b.s
a.s BETWEEN 'a' AND b.s
a.s LIKE 'x_y' OR b.s LIKE '%!'
a.s NOT LIKE '%a%'
a.s LIKE 'é%'
a.s ILIKE 'É%'
lower(a.s) = lower(b.s)
upper(a.s) = upper(b.s)
length(a.s) + 1 = b.i64
levenshtein(a.s, b.s) <= 1
jaro_winkler(a.s, b.s) = 0
jaro_winkler(a.s, b.s) >= 0.5
jaccard(a.s, 'a b') >= 0.5
jaccard(lower(a.s), b.s) > 0
a.k = b.s OR a.k = 'z'
a.day = DATE '2020-02-28'
a.day = '2020-02-28'
a.day <= b.at
a.day - b.day = 1
a.day - 1 <= b.day
a.at - INTERVAL 1 DAY < b.at
a.at + INTERVAL '1' HOUR > b.at
a.at > '2020-03-01 00:00:01'
a.atz > b.at
a.atz - b.atz <= INTERVAL 1 SECOND
a.at - b.day <= INTERVAL 10 HOURS
date_diff('day', a.at, b.at) = 1
date_diff('month', a.day, b.at) <= 1
date_diff('year', a.day, b.at) <= 0
date_diff('minute', a.at, b.at) > 0
date_diff('second', a.day, b.day) = 86400
- a.f64 = b.f64
NOT a.flag AND NOT b.flag
NOT (a.i32 = b.i32 OR a.flag)
(a.i32 = 1 OR a.f64 = b.f64) AND (a.flag OR b.i32 / a.i32 > 0)
a.i32 / b.i32 = 1
a.i32 % b.t8 = 1
a.i32 // b.i32 = 1
a.f64 % b.f64 < 1
a.f32 % 0.3 < 0.2
a.d52 % b.d52 = 0
a.d52 // b.d52 = 1
a.d52 * b.d18 > 1
a.d18 * b.d18 * a.d18 > 1
a.d52 + b.i64 = 2
a.d52 = b.f32
a.f32 = b.f64
a.f32 = 0.1
a.f32 * 3 = b.f32
a.f32 / b.f32 < 1
a.u32 = b.t8
a.u8 + b.t8 = 2
a.u16 * b.s16 = 0
a.i64 = b.f32
a.big = b.f64
a.big <= b.f32
a.big = 9223372036854775807
a.i32 < 2.5
a.t8 < 300
a.t8 = 1e0
a.u8 > -0.5
1 < 2 AND a.i32 = b.i32
a.f64 + b.f64 = 0.1 + 0.2
ABS(a.f64 - b.f64) <= 0.1 + 0.2
floor(a.f64) = b.i32
floor(a.d18) = floor(b.d18)
ceil(a.f32) = ceil(b.f32)
coalesce(a.i32, b.i64, 7) = 7
coalesce(a.s, b.s, 'zz') = 'zz'
coalesce(a.f32, 0.3) = coalesce(b.f64, 0.3)
coalesce(a.at, b.ts) = b.at
cosine(a.w, b.w) > 0.7071067811865475
l2(a.v, b.v) = 0
dot(a.v, b.v) + a.i32 > 1
dot(a.v, b.v) >= b.f64
haversine_m(a.i32 % 90, 0.1, b.i32 % 90, 0.3) <= 200000
""".strip().split("\n")

VECTORS_OF_TWO_WIDTHS = ("dot(a.v, b.w) = 1", "cosine(a.v, b.w) > 0.5", "l2(a.w, b.v) < 1")

OVERFLOWING = """
-a.u8 = b.i32
a.u8 - b.u8 = 1
a.u8 - b.u16 <= 1
a.u32 + b.u32 > 4294967295
a.t8 + b.t8 = 2
a.t8 * b.t8 <= 2
a.t8 - b.u8 < 2
ABS(a.t8 - b.t8) <= 1
a.s16 + b.s16 > 3
a.i32 * b.i32 > 2
a.i32 + b.i32 = 1 + 2
a.big + 1 > b.big
a.big - b.big <= 1
ABS(a.big - b.big) <= 1
ABS(a.big) = b.big
a.big * 2 = b.big
a.big * b.i32 = b.big
a.big // b.i32 = a.big
sqrt(a.i32) = b.i32
""".strip().split("\n")

COLUMNS = """
a.f32 + b.f32
a.d52 * b.d18
a.d18 * b.d18
a.i32 / b.i32
a.u8 + b.t8
a.t8 + 300
1
0.3
'x'
NULL
a.day + 1
a.day - b.day
a.at - b.at
a.at + INTERVAL 3 SECONDS
a.day + INTERVAL 3 SECONDS
a.atz - INTERVAL 1 DAY
a.v
a.k
lower(a.s)
length(a.s)
levenshtein(a.s, b.s)
jaro_winkler(a.s, b.s)
jaccard(a.s, b.s)
dot(a.v, b.v)
cosine(a.v, b.v)
l2(a.w, b.w)
a.flag AND b.flag
a.i32 = b.i32
CASE WHEN a.flag THEN 1 ELSE 2.5 END
coalesce(a.s, 'q')
greatest(a.t8, b.u32)
floor(a.d18)
ceil(a.i32)
a.d52 / 3
a.d52 // 3
a.i32 % 2
date_diff('hour', a.at, b.at)
a.i32 IS NULL
-a.d52
""".strip().split("\n")

WINDOW_US = 20_000_000

pytestmark = pytest.mark.usefixtures("interpreted")


def check(text: str, output: str, where: str) -> None:
    """Windrow's rows and types, in a few cuts and methods, are DuckDB's."""
    tables = {"s": table_of(60, 1), "t": table_of(60, 2)}
    sources = (Source("a", "s", span_us=WINDOW_US), Source("b", "t", span_us=WINDOW_US))
    expected = answer(Question(text, sources, ("a.id AS i", "b.id AS j", output), where), tables)
    query = windrow.sql(text, streams=tables, time={"s": "ts", "t": "ts"})
    for size, methods in ((None, None), (7, None), (50, ("loop",))):
        found = run(query, tables, shuffled(tables, 1), size=size, methods=methods)
        assert difference(found.rows, expected.rows) == ""
        assert type_names(found.schema) == type_names(expected.schema)


def asking(selected: str, condition: str) -> str:
    return (
        f"SELECT a.id AS i, b.id AS j, {selected} AS k FROM s AS a, t AS b WHERE {condition}"
        " WINDOW 20 SECONDS LATENESS 1000 DAYS"
    )


@pytest.mark.parametrize("condition", [*CONDITIONS, *VECTORS_OF_TWO_WIDTHS])
def test_condition(condition: str) -> None:
    check(asking("1", condition), "1 AS k", condition)


@pytest.mark.parametrize("condition", OVERFLOWING)
def test_overflow_is_null_in_that_row_alone(condition: str) -> None:
    check(asking("1", condition), "1 AS k", f"TRY({condition})")


@pytest.mark.parametrize("selected", COLUMNS)
def test_result_column(selected: str) -> None:
    check(asking(selected, "a.flag"), f"{selected} AS k", "a.flag")
