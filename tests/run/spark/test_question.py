"""What must stay the same between runs on one checkpoint, and how a difference is told."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest

import windrow
from windrow.errors import StateError
from windrow.plan.order import plan_query
from windrow.query.spec import UNBOUNDED, Window
from windrow.run.program import Keep, Program
from windrow.run.spark.question import Question, check_same, question_of

SCHEMA = pa.schema(
    [("ts", pa.timestamp("us")), ("seen", pa.timestamp("us")), ("x", pa.float64()), ("k", pa.int32()),
     ("more", pa.list_(pa.int8()))]
)  # fmt: skip
ASKED = """SELECT a.x AS x, b.k AS k FROM s AS a, t AS b
    WHERE ABS(a.x - b.x) <= 0.3 AND a.k = b.k WINDOW a 20 SECONDS, b ROWS 9 LATENESS 2 SECONDS"""


def question(text: str = ASKED, schema: pa.Schema = SCHEMA, time: str = "ts", keep: Keep = "used") -> Question:
    streams = {name: schema.empty_table() for name in ("s", "t", "u")}
    join = windrow.sql(text, streams=streams, time=dict.fromkeys(streams, time))
    spec = join.spec()
    arrow_types = {column: schema.field(column.name).type for stream in spec.streams for column in stream.columns}
    return question_of(Program(spec, plan_query(spec), arrow_types, keep))


def test_a_question_survives_its_passage_through_text() -> None:
    asked = question()
    assert Question.from_fields(json.loads(json.dumps(asked.to_fields()))) == asked
    assert asked.streams["a"].columns["x"] == "DOUBLE"
    assert asked.streams["b"].window == "9 rows"
    assert len(asked.conditions) == 2


SAME = {
    "select list": question(ASKED.replace("a.x AS x, b.k AS k", "a.ts AS t, result_id() AS id")),
    "lateness": question(ASKED.replace("LATENESS 2", "LATENESS 5")),
    "freshness": question(ASKED + " FRESHNESS a 30 SECONDS"),
    "order of conditions": question(
        ASKED.replace("ABS(a.x - b.x) <= 0.3 AND a.k = b.k", "a.k = b.k AND ABS(a.x - b.x) <= 0.3")
    ),
}


@pytest.mark.parametrize("what", SAME)
def test_what_may_change_is_no_other_question(what: str) -> None:
    check_same(question(), SAME[what])


OTHER = {
    "window of stream 'a' was 20 seconds, is 30 seconds": question(ASKED.replace("20 SECONDS", "30 SECONDS")),
    "window of stream 'a' was 20 seconds, is 2 minutes": question(ASKED.replace("20 SECONDS", "120 SECONDS")),
    "window of stream 'b' was 9 rows, is 1 row": question(ASKED.replace("ROWS 9", "ROWS 1")),
    "event time of stream 'a' was ts, is seen; event time of stream 'b' was ts, is seen": question(time="seen"),
    "source of stream 'b' was t, is u": question(ASKED.replace("t AS b", "u AS b")),
    "streams were 'a', 'b', are 'b', 'a'": question(ASKED.replace("s AS a, t AS b", "t AS b, s AS a")),
    "condition a.k = b.k is gone": question(ASKED.replace("AND a.k = b.k", "")),
    "condition a.k < 5 is new": question(ASKED.replace("a.k = b.k", "a.k = b.k AND a.k < 5")),
    "what is kept of rows was 'used', is 'all'": question(keep="all"),
    "column k of stream 'a' was INTEGER, is BIGINT; column k of stream 'b' was INTEGER, is BIGINT": question(
        schema=SCHEMA.set(3, pa.field("k", pa.int64()))
    ),
    "column more of stream 'a' was list<item: int8>, is list<item: int16>; column more of stream 'b' was "
    "list<item: int8>, is list<item: int16>": question(schema=SCHEMA.set(4, pa.field("more", pa.list_(pa.int16())))),
    "column z of stream 'a' was not there, is DOUBLE; column z of stream 'b' was not there, is DOUBLE": question(
        schema=SCHEMA.append(pa.field("z", pa.float64()))
    ),
}


@pytest.mark.parametrize("difference", OTHER)
def test_a_difference_is_told_in_words(difference: str) -> None:
    with pytest.raises(StateError) as caught:
        check_same(question(), OTHER[difference])
    assert caught.value.message == f"the checkpoint belongs to another query: {difference}"
    assert caught.value.hint


def test_every_difference_is_told() -> None:
    three = question("SELECT c.x AS x FROM s AS a, u AS c WHERE a.k = c.k WINDOW 5 SECONDS")
    assert question().differences(three) == (
        "streams were 'a', 'b', are 'a', 'c'",
        "window of stream 'a' was 20 seconds, is 5 seconds",
        "condition abs(a.x - b.x) <= 0.3 is gone",
        "condition a.k = b.k is gone",
        "condition a.k = c.k is new",
    )


def test_windows_are_told_in_the_largest_unit_that_fits() -> None:
    texts = {}
    streams = {name: SCHEMA.empty_table() for name in ("s", "t")}
    spec = windrow.sql(ASKED, streams=streams, time={"s": "ts", "t": "ts"}).spec()
    for span_us in (0, 1, 1_500, 90_000_000, 86_400_000_000, UNBOUNDED):
        streams_now = (replace(spec.streams[0], window=Window(span_us=span_us)), *spec.streams[1:])
        program = Program(replace(spec, streams=streams_now), plan_query(spec), {})
        texts[span_us] = question_of(program).streams["a"].window
    expected = ["0 seconds", "1 microsecond", "1500 microseconds", "90 seconds", "1 day", "without end"]
    assert list(texts.values()) == expected
