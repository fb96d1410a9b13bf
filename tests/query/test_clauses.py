"""WINDOW, LATENESS, FRESHNESS and IDLE: wherever they stand, and never where only their letters do."""

from __future__ import annotations

import pytest

from windrow.errors import QueryError
from windrow.query.clauses import CLAUSES, Clauses, setting_for, span_us, split_clauses, window_of
from windrow.query.grammar import tokens_of
from windrow.query.spec import UNBOUNDED, Window

SECOND = 1_000_000


def split(text: str) -> tuple[str, Clauses]:
    tokens, clauses = split_clauses(tokens_of(text))
    return " ".join(token.text for token in tokens), clauses


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("20 seconds", 20 * SECOND),
        ("1.5 s", 1_500_000),
        ("5min", 300 * SECOND),
        (" 2 HOURS ", 7200 * SECOND),
        ("1 day", 86_400 * SECOND),
        ("3d", 3 * 86_400 * SECOND),
        ("250 ms", 250_000),
        ("7 us", 7),
        ("0.000001 second", 1),
        (".5 s", 500_000),
        ("1_000 microseconds", 1000),
        ("0 seconds", 0),
        ("400000000 days", UNBOUNDED),
        ("1e99999999 days", UNBOUNDED),
    ],
)
def test_spans(text: str, expected: int) -> None:
    assert span_us(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("-1 s", "cannot be negative"),
        ("20", "cannot read '20' as a span"),
        ("soon", "cannot read 'soon'"),
        ("1 month", "no fixed length"),
        ("1 fortnight", "not a unit"),
        ("0.5 us", "not a whole number of microseconds"),
        ("", "cannot read ''"),
    ],
)
def test_spans_that_are_none(text: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        span_us(text)


def test_windows_are_spans_or_rows() -> None:
    assert window_of("20 seconds") == Window(span_us=20 * SECOND)
    assert window_of("rows 100") == Window(rows=100)
    assert window_of("1 row") == Window(rows=1)
    with pytest.raises(QueryError, match="at least one row"):
        window_of("ROWS 0")


def test_a_default_and_exceptions() -> None:
    rest, clauses = split("SELECT * FROM a, b, c WINDOW 20 SECONDS, b 5 MINUTES, \"c\" ROWS 1000 LATENESS '2 s'")
    assert rest == "SELECT * FROM a , b , c"
    assert setting_for(clauses.window, "a") == Window(span_us=20 * SECOND)
    assert setting_for(clauses.window, "B") == Window(span_us=300 * SECOND)
    assert setting_for(clauses.window, "c") == Window(rows=1000)
    assert setting_for(clauses.lateness, "a") == Window(span_us=2 * SECOND)
    assert setting_for(clauses.freshness, "a") is None


ORDERS = [
    "SELECT * FROM a, b WINDOW 1 S LATENESS 2 S FRESHNESS 3 S IDLE TIMEOUT 4 S WHERE x = 1",
    "SELECT * FROM a, b IDLE 4 S WHERE x = 1 FRESHNESS 3 S WINDOW 1 S LATENESS 2 S",
    "SELECT * FROM a, b WHERE x = 1 lateness 2 s window 1 s idle timeout 4 s freshness 3 s;",
    "SELECT * FROM a, b WHERE x = 1 WINDOW 1 /* WINDOW 9 */ S -- LATENESS 9 S\n LATENESS 2 S FRESHNESS 3 S IDLE 4 S",
]


@pytest.mark.parametrize("text", ORDERS)
def test_clauses_stand_anywhere_after_from_in_any_order(text: str) -> None:
    rest, clauses = split(text)
    assert rest == "SELECT * FROM a , b WHERE x = 1"
    found = [getattr(clauses, keyword.lower()).default for keyword in CLAUSES]
    assert found == [Window(span_us=seconds * SECOND) for seconds in (1, 2, 3, 4)]


UNTOUCHED = [
    "SELECT window FROM a , b WHERE window > 5 AND a.lateness - 5 < idle",
    "SELECT window , lateness AS freshness FROM window , lateness WHERE ( window ) = 1",
    "SELECT 1 FROM a window , b idle WHERE window.x = idle.x",
    "SELECT 1 FROM a AS window JOIN b AS lateness ON window.x = lateness.x",
    "SELECT 1 FROM a , b WHERE x IN ( idle , window ) AND freshness",
]


@pytest.mark.parametrize("text", UNTOUCHED)
def test_columns_and_streams_of_these_names_are_left_alone(text: str) -> None:
    rest, clauses = split(text)
    assert rest.replace(" . ", ".") == text
    assert all(getattr(clauses, keyword.lower()).default is None for keyword in CLAUSES)


def test_strings_and_quoted_names_are_left_alone() -> None:
    rest, clauses = split("SELECT 1 FROM a, b WHERE x = 'WINDOW 5 SECONDS' AND \"WINDOW\" = 5 WINDOW 1 SECOND")
    assert "WINDOW 5 SECONDS" in rest
    assert clauses.window.default == Window(span_us=SECOND)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("WINDOW", "WINDOW needs a span of time, not the end of the query"),
        ("WINDOW a", "WINDOW needs a span of time"),
        ("WINDOW 20", "WINDOW 20 has no unit"),
        ("WINDOW 20 LATENESS 2 S", "WINDOW 20 has no unit"),
        ("WINDOW -5 SECONDS", "cannot be negative"),
        ("WINDOW a -5 SECONDS", "cannot be negative"),
        ("WINDOW 5 MONTHS", "'MONTHS' has no fixed length"),
        ("WINDOW 5 PARSECS", "'PARSECS' is not a unit"),
        ("WINDOW 5 S WINDOW 6 S", "WINDOW is given twice"),
        ("WINDOW 5 S, 6 S", "two settings without a stream"),
        ("WINDOW a 5 S, a 6 S", "WINDOW names stream 'a' twice"),
        ("WINDOW ROWS", "WINDOW needs a number of rows"),
        ("WINDOW ROWS 0", "at least one row"),
        ("WINDOW ROWS -3", "at least one row"),
        ("WINDOW ROWS 1.5", "1.5 is not a number of rows"),
        ("LATENESS ROWS 5", "LATENESS is a span of time"),
        ("WINDOW 5 S,", "WINDOW needs a span of time, not the end"),
        ("WINDOW twenty SECONDS", "WINDOW needs a span of time, not 'SECONDS'"),
    ],
)
def test_clauses_that_say_nothing_understandable(text: str, message: str) -> None:
    with pytest.raises(QueryError, match=message) as caught:
        split(f"SELECT * FROM a, b\n{text}")
    assert "\n" not in str(caught.value)
