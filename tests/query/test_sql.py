"""Whole queries: what is understood, what it becomes, and what is refused with which words."""

from __future__ import annotations

import logging

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from windrow.errors import QueryError
from windrow.query.spec import UNBOUNDED, QuerySpec, UserFunction, Window
from windrow.query.sql import parse
from windrow.query.types import BIGINT, BOOLEAN, DOUBLE, TIMESTAMP, TIMESTAMPTZ

CAMERA = pa.schema(
    [
        ("ts", pa.timestamp("us")),
        ("id", pa.int64()),
        ("x", pa.float64()),
        ("kind", pa.string()),
        ("lateness", pa.int32()),
        ("v", pa.list_(pa.float32(), 3)),
    ]
)
LOG = pa.schema([("at", pa.timestamp("us", tz="UTC")), ("id", pa.int64()), ("word", pa.string())])
SCHEMAS = {"cam1": CAMERA, "cam2": CAMERA, "Log": LOG, "my stream": LOG}


def asked(text: str, **options: object) -> QuerySpec:
    return parse(text, SCHEMAS, **options)  # type: ignore[arg-type]


def names(text: str) -> list[str]:
    return [output.name for output in asked(text + " WINDOW 1 SECOND").outputs]


def test_the_designs_example() -> None:
    spec = asked("""
        SELECT a.id AS a_id, b.id AS b_id, c.id AS c_id
        FROM cam1 AS a, cam2 AS b, Log AS c
        WHERE ABS(a.x - b.x) <= 1 AND a.id = c.id AND a.kind = c.word
        WINDOW a 20 SECONDS, b 5 MINUTES, c ROWS 1000      -- a comment with WINDOW 9 DAYS
        LATENESS 2 SECONDS
        FRESHNESS a 30 SECONDS
        IDLE TIMEOUT 1 MINUTE
    """)
    assert [(stream.name, stream.source, stream.time) for stream in spec.streams] == [
        ("a", "cam1", "ts"),
        ("b", "cam2", "ts"),
        ("c", "Log", "at"),
    ]
    assert [stream.window for stream in spec.streams] == [
        Window(span_us=20_000_000),
        Window(span_us=300_000_000),
        Window(rows=1000),
    ]
    assert [stream.lateness_us for stream in spec.streams] == [2_000_000] * 3
    assert [stream.freshness_us for stream in spec.streams] == [30_000_000, None, None]
    assert [stream.idle_us for stream in spec.streams] == [60_000_000] * 3
    assert [str(conjunct) for conjunct in spec.conjuncts] == [
        "abs(a.x - b.x) <= 1",
        "a.id = c.id",
        "a.kind = c.word",
    ]
    assert [output.name for output in spec.outputs] == ["a_id", "b_id", "c_id"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a.x FROM cam1 a, cam2 b WHERE a.id = b.id AND a.x < b.x WINDOW 1 SECOND",
        "SELECT a.x FROM cam1 a JOIN cam2 b ON a.id = b.id AND a.x < b.x WINDOW 1 SECOND",
        "SELECT a.x FROM cam1 a INNER JOIN cam2 b ON a.id = b.id WHERE a.x < b.x WINDOW 1 SECOND",
        "SELECT a.x FROM cam1 a CROSS JOIN cam2 b WHERE (a.id = b.id) AND (a.x < b.x AND TRUE) WINDOW 1 SECOND",
        "SELECT a.x FROM cam1 a JOIN cam2 b USING (id) WHERE a.x < b.x WINDOW 1 SECOND",
        "select A.X from CAM1 a, Cam2 b where A.ID = B.Id and a.x < b.x window 1 second;",
    ],
)
def test_joins_are_written_in_many_ways(text: str) -> None:
    spec = asked(text)
    assert [str(conjunct) for conjunct in spec.conjuncts] == ["a.id = b.id", "a.x < b.x"]


def test_using_makes_two_columns_one() -> None:
    spec = asked("SELECT * FROM cam1 a JOIN Log l USING (id) WHERE id = 3 WINDOW 1 SECOND")
    assert [output.name for output in spec.outputs] == ["ts", "id", "x", "kind", "lateness", "v", "at", "word"]
    assert [str(conjunct) for conjunct in spec.conjuncts] == ["a.id = l.id", "a.id = 3"]


def test_eight_streams_and_a_join_of_a_stream_with_itself() -> None:
    sources = ", ".join(f"cam1 AS s{number}" for number in range(8))
    spec = asked(f"SELECT s0.id FROM {sources} WHERE s0.x = s7.x WINDOW 1 HOUR")
    assert [stream.source for stream in spec.streams] == ["cam1"] * 8


def test_names_of_results() -> None:
    assert names("SELECT a.id, b.id, a.x, word FROM cam1 a, Log b") == ["a_id", "b_id", "x", "word"]
    assert names("SELECT a.id AS id, b.id FROM cam1 a, Log b") == ["id", "b_id"]
    assert names("SELECT a.x - 1, abs(a.x) d FROM cam1 a, Log b") == ["a.x - 1", "d"]
    assert names("SELECT b.*, a.x FROM cam1 a, Log b") == ["at", "id", "word", "x"]
    assert names('SELECT l.at, result_ts(), result_id() AS r FROM cam1 a, "my stream" l') == ["at", "result_ts()", "r"]
    assert names("SELECT * FROM cam1 a, Log b") == ["ts", "a_id", "x", "kind", "lateness", "v", "at", "b_id", "word"]


def test_the_time_and_the_name_of_a_result_have_types() -> None:
    zoned = asked("SELECT result_ts(), result_id() FROM Log a, Log b WINDOW 1 S")
    assert [output.expression.type for output in zoned.outputs] == [TIMESTAMPTZ, BIGINT]
    mixed = asked("SELECT RESULT_TS() FROM Log a, cam1 b WINDOW 1 S")
    assert mixed.outputs[0].expression.type == TIMESTAMP


def test_event_times() -> None:
    counted = pa.schema([("day", pa.date32()), ("n", pa.int64()), ("TS", pa.int64())])
    schemas = {"s": counted, "two": pa.schema([("p", pa.timestamp("s")), ("q", pa.timestamp("ns"))])}
    text = "SELECT a.n FROM s a, two b WINDOW 1 S"
    spec = parse(text, schemas, time={"b": "Q"})
    assert [stream.time for stream in spec.streams] == ["TS", "q"]
    assert [stream.time for stream in parse(text, schemas, time={"s": "day", "two": "p"}).streams] == ["day", "p"]
    with pytest.raises(QueryError, match=r"stream 'b' has 2 timestamp columns and none named ts .*: p, q"):
        parse(text, schemas)
    with pytest.raises(QueryError, match="stream 'b' has no column 'r' for its event time"):
        parse(text, schemas, time={"b": "r"})
    with pytest.raises(QueryError, match="there is no stream 'c'"):
        parse(text, schemas, time={"b": "p", "c": "q"})
    with pytest.raises(QueryError, match=r"a\.x is DOUBLE and cannot be an event time"):
        asked("SELECT a.x FROM cam1 a, cam2 b WINDOW 1 S", time={"a": "x"})


def test_windows_that_never_end_and_columns_named_like_clauses() -> None:
    spec = asked("SELECT a.x FROM cam1 a, cam2 b WHERE a.lateness > b.lateness - 5 WINDOW 999999999 DAYS")
    assert spec.streams[0].window == Window(span_us=UNBOUNDED)
    assert [str(conjunct) for conjunct in spec.conjuncts] == ["a.lateness > b.lateness - 5"]


def test_only_functions_that_are_called_are_kept() -> None:
    near = UserFunction("near", lambda x, y: x < y, BOOLEAN)
    far = UserFunction("far", lambda x: x, DOUBLE)
    spec = asked("SELECT a.x FROM cam1 a, cam2 b WHERE NEAR(a.x, b.x) WINDOW 1 S", functions=(near, far))
    assert spec.functions == (near,)


REFUSED = [
    ("", "the query is empty"),
    ("hello world", "a query starts with SELECT, not 'hello'"),
    ("UPDATE cam1 SET x = 1", "a query starts with SELECT, not 'UPDATE'"),
    ("WITH q AS (SELECT 1) SELECT * FROM q", "WITH is not supported"),
    ("SELECT 1 UNION SELECT 2", "UNION is not supported"),
    ("SELECT 1; SELECT 2", "there is more than one statement"),
    ("SELECT 1", "the query has no FROM"),
    ("SELECT FROM cam1 a, cam2 b WINDOW 1 S", "nothing is selected"),
    ("SELECT DISTINCT a.x FROM cam1 a, cam2 b WINDOW 1 S", "DISTINCT is not supported"),
    ("SELECT a.x FROM cam1 a, cam2 b GROUP BY a.x WINDOW 1 S", "GROUP BY and EVERY need an aggregate"),
    ("SELECT a.x FROM cam1 a, cam2 b ORDER BY a.x WINDOW 1 S", "ORDER BY is not supported"),
    ("SELECT a.x FROM cam1 a, cam2 b LIMIT 5 WINDOW 1 S", "LIMIT is not supported"),
    ("SELECT a.x FROM cam1 a, cam2 b HAVING a.x > 1 WINDOW 1 S", "HAVING is not supported"),
    ("SELECT a.x FROM cam1 a LEFT JOIN cam2 b ON TRUE WINDOW 1 S", "LEFT JOIN is not supported: inner joins only"),
    ("SELECT a.x FROM cam1 a FULL OUTER JOIN cam2 b ON TRUE WINDOW 1 S", "inner joins only"),
    ("SELECT a.x FROM cam1 a NATURAL JOIN cam2 b WINDOW 1 S", "NATURAL JOIN is not supported"),
    ("SELECT a.x FROM cam1 a ASOF JOIN cam2 b ON a.x > b.x WINDOW 1 S", "ASOF JOIN is not supported"),
    ("SELECT a.x FROM (SELECT 1) a, cam2 b WINDOW 1 S", "not subqueries"),
    ("SELECT a.x FROM range(5) a, cam2 b WINDOW 1 S", "FROM takes streams by name"),
    ("SELECT a.x FROM cam1 a TABLESAMPLE 5 PERCENT, cam2 b WINDOW 1 S", "FROM takes plain streams"),
    ("SELECT a.x FROM main.cam1 a, cam2 b WINDOW 1 S", "FROM takes plain streams"),
    ("SELECT a.x FROM cam1 AS a(p, q), cam2 b WINDOW 1 S", "FROM takes plain streams"),
    ("SELECT max(a.x) FROM cam1 a, cam2 b WINDOW 1 S", r"max\(\) is an aggregate"),
    ("SELECT * EXCLUDE (x) FROM cam1 a, cam2 b WINDOW 1 S", r"\* takes no EXCLUDE"),
    ("SELECT (SELECT 1) FROM cam1 a, cam2 b WINDOW 1 S", "a subquery is not supported"),
    ("SELECT a.x FROM cam1 a WINDOW 1 S", "a join needs at least two streams"),
    ("SELECT a.x FROM cam1 a, cam9 b WINDOW 1 S", "there is no stream 'cam9' .*did you mean cam2 or cam1"),
    ("SELECT c.x FROM cam1 a, cam2 b WINDOW 1 S", "there is no stream 'c'"),
    ("SELECT c.* FROM cam1 a, cam2 b WINDOW 1 S", "there is no stream 'c'"),
    ("SELECT a.knd FROM cam1 a, cam2 b WINDOW 1 S", "stream 'a' has no column 'knd' .*did you mean kind"),
    ("SELECT wrd FROM cam1 a, Log b WINDOW 1 S", "no stream has a column 'wrd' .*did you mean word"),
    ("SELECT x FROM cam1 a, cam2 b WINDOW 1 S", "'x' could be a.x or b.x"),
    ("SELECT a.x FROM cam1 a, cam2 A WINDOW 1 S", "two streams are named 'A'"),
    ("SELECT a.x AS y, b.x AS Y FROM cam1 a, cam2 b WINDOW 1 S", "two result columns are named 'Y'"),
    ("SELECT a.x, result_id(a.x) FROM cam1 a, cam2 b WINDOW 1 S", "result_id takes nothing"),
    ("SELECT a.x FROM cam1 a, cam2 b", "stream 'a' has no window"),
    ("SELECT a.x FROM cam1 a, cam2 b WINDOW a 1 S", "stream 'b' has no window"),
    ("SELECT a.x FROM cam1 a, cam2 b WINDOW 1 S, c 2 S", "there is no stream 'c'"),
    ("SELECT a.x FROM cam1 a, cam2 b WINDOW 1 S, a 2 S, A 3 S", "WINDOW names stream 'a' twice"),
    ("SELECT a.x FROM cam1 a, cam2 b WINDOW -1 S", "cannot be negative"),
    ("SELECT a.x FROM cam1 a, cam2 b WINDOW 1 S LATENESS -1 S", "cannot be negative"),
    ("SELECT a.x FROM cam1 a, cam2 b WINDOW 2 S FRESHNESS 1 S", "freshness of stream 'a' .* is below its window"),
    ("SELECT a.x FROM cam1 a, cam2 b WHERE a.kind = 5 WINDOW 1 S", "= does not take VARCHAR and INTEGER"),
    ("SELECT a.x FROM cam1 a, cam2 b WHERE a.id WINDOW 1 S", "a condition has to be BOOLEAN, not BIGINT"),
    ("SELECT a.x FROM cam1 a, cam2 b WHERE frob(a.x) WINDOW 1 S", "there is no function 'frob'"),
    ("SELECT a.x FROM cam1 a, cam2 b WHERE a.x = WINDOW 1 S", r"as SQL at '1' \(at: line 1, column 51\)"),
    ("SELECT a.x FROM cam1 a, cam2 b\nWHERE a.x = ", r"the query breaks off after '=' \(at: line 2, column 11\)"),
    ("SELECT a.x FROM cam1 a, cam2 b WHERE (a.x = 1 WINDOW 1 S", "cannot read the query as SQL"),
    ("SELECT a.x FROM cam1 a, cam2 b WHERE a.kind = 'open WINDOW 1 S", "a quote or a comment is left open"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_what_is_not_understood_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(QueryError, match=message) as caught:
        asked(text)
    assert "\n" not in str(caught.value)
    assert caught.value.hint


def test_two_columns_of_one_name_are_found_before_they_confuse() -> None:
    twice = pa.schema([("ts", pa.timestamp("us")), ("x", pa.int8()), ("x", pa.int8())])
    with pytest.raises(QueryError, match="stream 'a' has two columns named 'x'"):
        parse("SELECT a.ts FROM s a, s b WINDOW 1 S", {"s": twice})


def test_names_in_several_cases_are_matched_as_written() -> None:
    schemas = {"s": pa.schema([("ts", pa.timestamp("us")), ("x", pa.int8()), ("X", pa.int64())])}
    spec = parse("SELECT a.x AS low, a.X AS high FROM s a, s b WINDOW 1 S", schemas)
    assert [str(output.expression) for output in spec.outputs] == ["a.x", "a.X"]
    upper = {"s": pa.schema([("ts", pa.timestamp("us")), ("Xy", pa.int8()), ("XY", pa.int64())])}
    with pytest.raises(QueryError, match=r"'xy' could be a.Xy or a.XY"):
        parse("SELECT a.xy FROM s a, s b WINDOW 1 S", upper)


def test_the_parser_says_nothing_on_its_own(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.DEBUG), pytest.raises(QueryError):
        asked("SELECT a.x FROM cam1 a, cam2 b WHERE a.x -> 1 = EXTRACT(year FROM a.ts) WINDOW 1 S")
    assert not caplog.records
    assert capfd.readouterr() == ("", "")


WORDS = """
    SELECT FROM WHERE WINDOW LATENESS FRESHNESS IDLE TIMEOUT JOIN LEFT ON USING AND OR NOT IN BETWEEN LIKE CASE
    WHEN THEN ELSE END IS NULL TRUE ROWS SECONDS MINUTES AS CAST INTERVAL DATE UNION WITH GROUP BY ( ) , . * + -
    / // % = <= < > <> || :: ; [ ] { } ? $1 : -> => ' " -- /* */ @ ! ^ ~ ` # 1 20 0.3 1e3 1e 'x' '2020-01-01' a
    b cam1 cam2 x id ts kind abs coalesce result_ts ä 99999999999999999999 "q" a.x b.x a.id b.id a.* cam1.x
"""
TEMPLATES = st.sampled_from(
    [
        "{}",
        "SELECT a.x FROM cam1 a, cam2 b WHERE {} WINDOW 1 SECOND",
        "SELECT {} FROM cam1 a, cam2 b WINDOW 1 SECOND",
        "SELECT a.x FROM cam1 a, cam2 b {}",
        "SELECT a.x FROM {} WINDOW 1 S",
    ]
)


@settings(max_examples=400)
@given(TEMPLATES, st.one_of(st.lists(st.sampled_from(WORDS.split()), max_size=12).map(" ".join), st.text(max_size=20)))
@example("SELECT a.x FROM cam1 a, cam2 b WHERE {} WINDOW 1 SECOND", "a.x")
def test_any_text_is_a_specification_or_a_query_error(template: str, text: str) -> None:
    try:
        spec = asked(template.replace("{}", text))
    except QueryError as error:
        said = str(error)
    else:
        said = f"{len(spec.streams)} streams"
    assert said.splitlines() == [said]
