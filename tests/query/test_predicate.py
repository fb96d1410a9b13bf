"""What a predicate offers to a search: which forms are seen, with which keys, and what NULL does to them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from windrow.query import types
from windrow.query.expression import Call, Column, Expression, Literal, streams_of, walk
from windrow.query.predicate import (
    TOKENS,
    Bound,
    Equality,
    Range,
    Search,
    Similarity,
    leaves_of,
    rejects_null,
    searches_of,
    with_token_sets,
)
from windrow.query.spec import UserFunction
from windrow.query.sql import parse

SCHEMA = pa.schema({
    "ts": pa.timestamp("us"), "x": pa.float64(), "g": pa.float32(), "i": pa.int64(), "n": pa.int16(),
    "d": pa.decimal128(9, 2), "s": pa.string(), "flag": pa.bool_(), "day": pa.date32(), "v": pa.list_(pa.float32(), 3),
})  # fmt: skip


def conjunct_of(text: str) -> Expression:
    query = f"SELECT a.x AS out FROM t AS a, t AS b, t AS c WHERE {text} WINDOW 1 SECOND"
    near = UserFunction("near", lambda x, y: x == y, types.BOOLEAN)
    (conjunct,) = parse(query, {"t": SCHEMA}, time={"t": "ts"}, functions=(near,)).conjuncts
    return conjunct


def shown_bound(bound: Bound | None) -> str:
    if bound is None:
        return "open"
    return " ".join(f"{'+' if term.sign > 0 else '-'} {term.expression}" for term in bound.terms)


def shown(search: Search) -> str:
    if isinstance(search, Equality):
        return f"{search.key} = {search.value}" + (" exactly" if search.exact else "")
    if isinstance(search, Range):
        return f"{search.key} in [{shown_bound(search.low)}, {shown_bound(search.high)}]"
    relation = "at least" if search.at_least else "at most"
    return f"{search.function} of {search.key} and {search.value} {relation} {search.threshold}"


FORMS = {
    ("a.i = b.i", "a"): ["a.i = b.i exactly", "a.i in [+ b.i, + b.i]"],
    ("a.i = b.i", "b"): ["b.i = a.i exactly", "b.i in [+ a.i, + a.i]"],
    ("a.i = b.i", "c"): [],
    ("a.x = b.x", "a"): ["a.x = b.x", "a.x in [+ b.x, + b.x]"],
    ("a.s = b.s", "b"): ["b.s = a.s"],
    ("a.s < b.s", "b"): [],
    ("lower(a.s) = b.s", "a"): ["lower(a.s) = b.s"],
    ("a.flag = b.flag", "a"): ["a.flag = b.flag exactly"],
    ("a.i + 1 = b.i + c.i", "a"): ["a.i + 1 = b.i + c.i exactly", "a.i + 1 in [+ b.i + c.i, + b.i + c.i]"],
    ("a.i + 1 = b.i + c.i", "b"): ["b.i in [- c.i + a.i + 1, - c.i + a.i + 1]"],
    ("a.x < b.x", "a"): ["a.x in [open, + b.x]"],
    ("a.x < b.x", "b"): ["b.x in [+ a.x, open]"],
    ("a.x >= b.x", "a"): ["a.x in [+ b.x, open]"],
    ("-a.x <= b.x", "a"): ["-a.x in [open, + b.x]"],
    ("-(a.x - b.x) <= 1", "a"): ["a.x in [+ b.x - 1.0, open]"],
    ("a.x - b.x <= c.x", "a"): ["a.x in [open, + b.x + c.x]"],
    ("a.x - b.x <= c.x", "b"): ["b.x in [+ a.x - c.x, open]"],
    ("a.x - b.x <= c.x", "c"): ["c.x in [+ a.x - b.x, open]"],
    ("0.5 >= a.x + b.x", "b"): ["b.x in [open, - a.x + 0.5]"],
    ("abs(a.x - b.x) <= 0.5", "a"): ["a.x in [+ b.x - 0.5, + b.x + 0.5]"],
    ("abs(a.x - b.x) <= 0.5", "b"): ["b.x in [+ a.x - 0.5, + a.x + 0.5]"],
    ("0.5 > abs(a.x + b.x)", "b"): ["b.x in [- a.x - 0.5, - a.x + 0.5]"],
    ("abs(a.x - b.x) > 0.5", "a"): [],
    ("abs(a.x - b.x) <> 0.5", "a"): [],
    ("abs(a.x + b.x - c.x) < 1", "a"): ["a.x in [- b.x + c.x - 1.0, - b.x + c.x + 1.0]"],
    ("abs(a.x) <= b.x", "a"): ["abs(a.x) in [open, + b.x]"],
    ("abs(a.x) <= b.x", "b"): ["b.x in [+ abs(a.x), open]"],
    ("a.x * 2 - b.x < 1", "a"): ["a.x * 2 in [open, + b.x + 1.0]"],
    ("a.x * b.x < 1", "a"): [],
    ("a.x < a.g + b.x", "a"): [],
    ("a.x < b.x OR a.i = b.i", "a"): [],
    ("NOT (a.x = b.x)", "a"): [],
    ("a.i IS NULL OR b.i IS NULL", "a"): [],
    ("a.ts >= b.ts - INTERVAL 5 SECONDS", "a"): ["a.ts in [+ b.ts - INTERVAL '5' SECONDS, open]"],
    ("abs(a.day - b.day) <= 1", "b"): ["b.day in [+ a.day - 1, + a.day + 1]"],
    ("cosine(a.v, b.v) >= 0.9", "b"): ["cosine of b.v and a.v at least 0.9"],
    ("0.5 > l2(a.v, b.v)", "a"): ["l2 of a.v and b.v at most 0.5"],
    ("dot(a.v, b.v) < c.x", "a"): ["dot of a.v and b.v at most c.x"],
    ("dot(a.v, b.v) < c.x", "c"): ["c.x in [+ dot(a.v, b.v), open]"],
    ("cosine(a.v, b.v) = 1", "a"): [],
    ("near(a.x, b.x)", "a"): [],
}


@pytest.mark.parametrize(("text", "target"), FORMS)
def test_searches_of_each_form(text: str, target: str) -> None:
    assert [shown(search) for search in searches_of(conjunct_of(text), target)] == FORMS[text, target]


def test_sums_under_widening_casts_are_seen_through() -> None:
    for text in ("a.d + b.d + c.d >= 1", "a.i - b.n - c.d <= 2", "abs(a.d - b.d) <= c.x", "a.n + b.n <= c.x"):
        conjunct = conjunct_of(text)
        for target in streams_of(conjunct):
            (search,) = searches_of(conjunct, target)
            assert isinstance(search, Range), f"{text} of {target}"
            assert streams_of(search.key) == {target}


def test_narrowing_casts_are_not_seen_through() -> None:
    casts = ("CAST(a.x - b.x AS INTEGER) <= 2", "CAST(a.d - b.d AS DECIMAL(9, 1)) <= 2", "CAST(a.i - b.i AS BOOLEAN)")
    for text in casts:
        assert searches_of(conjunct_of(text), "a") == ()


def test_every_search_names_only_what_it_may_read() -> None:
    for text, target in FORMS:
        for search in searches_of(conjunct_of(text), target):
            assert streams_of(search.key) == {target}
            read: list[Expression] = []
            if isinstance(search, Range):
                read = [term.expression for bound in (search.low, search.high) if bound for term in bound.terms]
                assert search.low is not None or search.high is not None
            elif isinstance(search, Similarity):
                read = [search.value, search.threshold]
            else:
                read = [search.value]
            assert all(target not in streams_of(each) for each in read)


def test_slack_grows_with_the_expression_and_32_bits_are_told() -> None:
    short, long = (searches_of(conjunct_of(text), "a")[0] for text in ("a.x < b.x", "a.x + b.x + 1 - c.x < b.x * 3"))
    single = searches_of(conjunct_of("a.g < b.x"), "a")[0]
    assert isinstance(short, Range)
    assert isinstance(long, Range)
    assert isinstance(single, Range)
    assert short.high is not None
    assert long.high is not None
    assert single.high is not None
    assert long.high.slack > short.high.slack >= 6
    assert (short.high.single, single.high.single) == (False, True)


X, Y = Column("a", "x", types.DOUBLE), Column("b", "x", types.DOUBLE)

REJECTED = {
    "a.x < b.x": True,
    "a.x + 1 = b.x": True,
    "NOT (a.x = b.x)": True,
    "abs(a.x) + b.x > 0": True,
    "near(a.x, b.x)": True,
    "CAST(a.x AS FLOAT) = b.g": True,
    "a.x BETWEEN b.x AND b.i OR a.x < b.x": True,
    "a.x IN (b.x, 1)": True,
    "(a.x > 0 OR a.x < b.x)": True,
    "(a.x > 0 OR b.x > 0)": False,
    "(a.x > b.x AND b.i = 1 OR a.x = 2 AND b.i = 2)": True,
    "a.x IS NULL OR b.x IS NULL": False,
    "a.x IS NOT NULL OR b.x > 1": False,
    "coalesce(a.x, 1) = b.x": False,
    "greatest(a.x, b.x) > 1": False,
    "CASE WHEN a.x > b.x THEN FALSE ELSE TRUE END": False,
    "a.i = b.i": False,
}


@pytest.mark.parametrize("text", REJECTED)
def test_what_null_rules_out(text: str) -> None:
    assert rejects_null(conjunct_of(text), X) == REJECTED[text]


def test_leaves_are_the_largest_parts_of_one_stream() -> None:
    forms = {
        "abs(a.x * 2 + a.i - b.x) <= 0.5": ["a.x * 2 + a.i", "b.x"],
        "a.x + 1 < b.x OR a.x + 1 > b.x * b.x": ["a.x + 1", "b.x", "b.x * b.x"],
        "near(abs(a.x), coalesce(b.x, b.i))": ["abs(a.x)", "coalesce(b.x, b.i)"],
        "a.x > 0 AND a.i < 1 OR b.flag": ["a.x > 0 AND a.i < 1", "b.flag"],
        "CASE WHEN a.flag THEN a.x ELSE b.x END > c.i - 1": ["a.flag", "a.x", "b.x", "CAST(c.i - 1 AS DOUBLE)"],
    }
    for text, expected in forms.items():
        assert [str(leaf) for leaf in leaves_of(conjunct_of(text))] == expected
    assert leaves_of(Literal(True, types.BOOLEAN)) == ()
    assert leaves_of(X) == (X,)


def calls(tree: Expression, name: str) -> list[Call]:
    return [node for node in walk(tree) if isinstance(node, Call) and node.function == name]


def test_token_sets_are_put_under_jaccard_wherever_it_is() -> None:
    similar = "jaccard(a.s, lower(b.s)) > 0.5 OR coalesce(jaccard(b.s, 'red'), 0) > 0.1"
    conjunct = conjunct_of(f"({similar}) AND a.x < b.x OR a.flag")
    rewritten = with_token_sets(conjunct)
    assert calls(conjunct, TOKENS) == []
    assert [str(call.arguments[0]) for call in calls(rewritten, TOKENS)] == ["a.s", "lower(b.s)", "b.s", "'red'"]
    assert all(call.type == types.OTHER for call in calls(rewritten, TOKENS))
    assert all(argument.type == types.OTHER for call in calls(rewritten, "jaccard") for argument in call.arguments)
    untouched = conjunct_of("levenshtein(a.s, b.s) < 2")
    assert with_token_sets(untouched) == untouched
    assert with_token_sets(X) is X
    assert rejects_null(with_token_sets(conjunct_of("jaccard(a.s, b.s) > 0.5")), calls(rewritten, TOKENS)[0])


def test_a_shifted_event_time_is_also_a_range_of_the_time_itself() -> None:
    schema = [("ts", pa.timestamp("us")), ("x", pa.float64())]
    text = "SELECT a.x FROM a, b WHERE b.ts >= a.ts - INTERVAL 5 SECONDS WINDOW 1 MINUTE"
    (conjunct,) = parse(text, {"a": pa.schema(schema), "b": pa.schema(schema)}).conjuncts
    found = [search for search in searches_of(conjunct, "a") if isinstance(search, Range)]
    assert [str(search.key) for search in found] == ["a.ts - INTERVAL '5' SECONDS", "a.ts"]
    time = found[1]
    assert time.low is None
    assert time.high is not None
    assert [(term.sign, str(term.expression)) for term in time.high.terms] == [(1, "b.ts"), (1, "INTERVAL '5' SECONDS")]
