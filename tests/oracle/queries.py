"""Random questions: a query of two to eight streams, with tables that make it match, tie, overflow and go unknown.

The structure of a query is drawn by hypothesis, so that a failure shrinks to a small query; the contents of its tables
come from one drawn seed.

    streams     2 … 4 (now and then 8), sometimes the same source twice
    conjuncts   most streams are tied to an earlier one, some to none; plus filters, ORs, three-stream sums …
    windows     0 … years, on a grid of ticks, so that rows fall exactly on the edge
    values      few distinct ones, with NULL, NaN, infinities, the ends of their types
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

import pyarrow as pa
from hypothesis import strategies as st

from tests.oracle.duck import Question, Source
from tests.oracle.phrases import (
    COLUMNS,
    NUMBERS,
    Phrase,
    arithmetic,
    call,
    chosen,
    column,
    is_null,
    joined,
    literal,
    negated,
)
from tests.oracle.tables import table_of

Drawn = TypeVar("Drawn")


class Draw(Protocol):
    """What hypothesis passes to a composite strategy."""

    def __call__(self, strategy: st.SearchStrategy[Drawn], /) -> Drawn: ...


ROWS_AT_MOST = {2: 60, 3: 30, 4: 14, 5: 8, 6: 6, 7: 5, 8: 4}
"""Rows of a stream by number of streams: a query without any condition must still fit."""

UNIT_US = {"MILLISECONDS": 1_000, "SECONDS": 1_000_000, "MINUTES": 60_000_000, "DAYS": 86_400_000_000}

BASES_US = (0, -1_000_000, 1_583_020_800_000_000, -2_000_000_000_000_000, 253_000_000_000_000_000)
"""Where event times start: 1970, just before, 2020, 1906, 9987."""

OPERATORS = ("=", "<=", "<", ">=", ">", "<>")


@dataclass(frozen=True, repr=False)
class Case:
    """A question with the tables it is asked of, by the name of what is read."""

    question: Question
    tables: dict[str, pa.Table]
    seed: int

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}: {len(table)} rows" for name, table in self.tables.items())
        return f"Case({self.question.text!r}, {sizes}, seed {self.seed})"

    @property
    def schemas(self) -> dict[str, pa.Schema]:
        return {name: table.schema for name, table in self.tables.items()}


@st.composite
def numbers(draw: Draw, aliases: tuple[str, ...], depth: int = 2) -> Phrase:
    """A number over the columns of some streams."""
    leaf = depth == 0 or draw(st.booleans())
    alias = draw(st.sampled_from(aliases))
    if leaf:
        name = draw(st.sampled_from([name for name, family in COLUMNS.items() if family in NUMBERS]))
        return column(alias, name)
    kind = draw(
        st.sampled_from(
            ("+", "-", "*", "/", "//", "%", "abs", "floor", "ceil", "sqrt", "extreme", "coalesce", "case", "length")
        )
    )
    first = draw(numbers(aliases, depth - 1))
    if kind in ("abs", "floor", "ceil", "sqrt"):
        return call(kind, (first,), "float" if kind == "sqrt" else first.family)
    if kind == "length":
        return call("length", (column(alias, "s"),), "integer")
    second = draw(
        st.one_of(
            numbers(aliases, depth - 1), st.sampled_from(("1", "2", "0.3", "1.5", "1e-1", "300", "0")).map(literal)
        )
    )
    wider = max(first.family, second.family, key=NUMBERS.index)
    if kind == "extreme":
        return call(draw(st.sampled_from(("greatest", "least"))), (first, second), wider)
    if kind == "coalesce":
        return call("coalesce", (first, second), wider)
    if kind == "case":
        condition = draw(st.sampled_from((column(alias, "flag"), column(alias, "i32").compared(">", literal("0")))))
        return chosen(condition, first, second)
    return arithmetic(kind, first, second)


@st.composite
def bands(draw: Draw, here: str, there: str) -> Phrase:
    """|x - y| within a threshold, of numbers of any two kinds."""
    names = [name for name, family in COLUMNS.items() if family in NUMBERS]
    left, right = column(here, draw(st.sampled_from(names))), column(there, draw(st.sampled_from(names)))
    threshold = literal(draw(st.sampled_from(("0", "0.1", "0.2", "0.3", "1", "1.5", "2", "1e-1", "300"))))
    distance = call("ABS", (arithmetic("-", left, right),), max(left.family, right.family, key=NUMBERS.index))
    return draw(
        st.sampled_from(
            (distance.compared("<=", threshold), distance.compared("<", threshold), threshold.compared(">=", distance))
        )
    )


@st.composite
def comparisons(draw: Draw, here: str, there: str) -> Phrase:
    """Columns or expressions of two streams compared: numbers of mixed kinds, text, booleans, dates, times."""
    kind = draw(st.sampled_from(("same", "number", "expression", "between", "big", "moment", "day")))
    operator = draw(st.sampled_from(OPERATORS))
    if kind == "number":
        names = [name for name, family in COLUMNS.items() if family in NUMBERS]
        return column(here, draw(st.sampled_from(names))).compared(
            operator, column(there, draw(st.sampled_from(names)))
        )
    if kind == "expression":
        return draw(numbers((here,))).compared(operator, draw(numbers((there,))))
    if kind == "between":
        subject, low = draw(numbers((here,), 1)), draw(numbers((there,), 1))
        high = arithmetic("+", low, literal(draw(st.sampled_from(("1", "0.3", "2")))))
        return joined("AND", (subject.compared(">=", low), subject.compared("<=", high)))
    if kind == "big":
        offset = arithmetic(draw(st.sampled_from("+-")), column(there, "big"), literal("1"))
        return column(here, "big").compared(
            operator, draw(st.sampled_from((offset, column(there, "big"), column(there, "i32"))))
        )
    if kind == "moment":
        return draw(moments(here, there))
    if kind == "day":
        return draw(days(here, there))
    name = draw(st.sampled_from([name for name, family in COLUMNS.items() if family not in ("single", "double")]))
    return column(here, name).compared(operator, column(there, name))


@st.composite
def moments(draw: Draw, here: str, there: str) -> Phrase:
    """Times of two streams: apart by an interval, in either order, zoned against plain, against a date."""
    later, earlier = (column(alias, draw(st.sampled_from(("at", "ts")))) for alias in (here, there))
    amount = draw(st.sampled_from(("0 SECONDS", "1 SECONDS", "3 SECONDS", "1 DAY", "1000 MILLISECONDS")))
    span = Phrase(f"INTERVAL {amount}", f"INTERVAL {amount}", "span")
    gap = Phrase(f"({later.ours} - {earlier.ours})", f"({later.ours} - {earlier.ours})", "span")
    after = Phrase(f"({earlier.ours} + {span.ours})", f"({earlier.ours} + {span.ours})", "time")
    return draw(
        st.sampled_from(
            (
                call("abs", (gap,), "span", duck="span_abs").compared("<=", span),
                gap.compared("<", span),
                later.compared(">=", after),
                joined("AND", (later.compared(">=", earlier), later.compared("<=", after))),
                column(here, "atz").compared("=", column(there, "at")),
                column(here, "day").compared("<=", column(there, "at")),
            )
        )
    )


@st.composite
def days(draw: Draw, here: str, there: str) -> Phrase:
    """Dates of two streams: differences in days, shifted dates, boundaries crossed."""
    left, right = column(here, "day"), column(there, "day")
    gap = Phrase(f"({left.ours} - {right.ours})", f"({left.ours} - {right.ours})", "integer")
    shifted = Phrase(f"({right.ours} + 1)", f"({right.ours} + 1)", "date")
    unit = draw(st.sampled_from(("day", "hour", "second")))
    crossed = f"date_diff('{unit}', {here}.at, {there}.at)"
    return draw(
        st.sampled_from(
            (
                call("abs", (gap,), "integer").compared("<=", literal("1")),
                left.compared("=", shifted),
                Phrase(crossed, crossed, "integer").compared("<=", literal(draw(st.sampled_from(("0", "1", "3"))))),
                gap.compared("=", column(there, "i32")),
            )
        )
    )


@st.composite
def resemblances(draw: Draw, here: str, there: str) -> Phrase:
    """Texts and vectors alike enough, thresholds on values that occur."""
    texts = (column(here, "s"), column(there, "s"))
    singles, doubles = (column(here, "v"), column(there, "v")), (column(here, "w"), column(there, "w"))
    operator = draw(st.sampled_from((">=", ">", "<=")))
    kind = draw(
        st.sampled_from(("jaccard", "levenshtein", "jaro_winkler", "cosine", "dot", "l2", "mixed", "like", "lower"))
    )
    if kind == "levenshtein":
        return call(kind, texts, "integer").compared("<=", literal(draw(st.sampled_from("012"))))
    if kind in ("jaccard", "jaro_winkler"):
        return call(kind, texts, "float").compared(operator, literal(draw(st.sampled_from(("0.5", "0.3", "1", "0")))))
    if kind == "like":
        word = draw(st.sampled_from(("LIKE", "ILIKE")))
        pattern = draw(st.sampled_from(("'a%'", "'_b'", "'%b%'", "''", "'%'")))
        matches = [
            Phrase(f"{alias}.s {word} {pattern}", f"{alias}.s {word} {pattern}", "boolean") for alias in (here, there)
        ]
        return joined("OR", (matches[0], joined("AND", (matches[1], texts[0].compared("<=", texts[1])))))
    if kind == "lower":
        word = draw(st.sampled_from(("lower", "upper")))
        return call(word, texts[:1], "text").compared("=", call(word, texts[1:], "text"))
    pair = (singles[0], doubles[1]) if kind == "mixed" else draw(st.sampled_from((singles, doubles)))
    function = "dot" if kind == "mixed" else kind
    return call(function, pair, "float").compared(
        operator, literal(draw(st.sampled_from(("0.5", "1", "0", "0.8", "5"))))
    )


@st.composite
def filters(draw: Draw, alias: str) -> Phrase:
    """A condition on one stream."""
    kind = draw(st.sampled_from(("compare", "in", "null", "flag", "text", "case")))
    if kind == "compare":
        threshold = literal(draw(st.sampled_from(("0", "1", "0.3", "1.5", "3000000000"))))
        return draw(numbers((alias,), 1)).compared(draw(st.sampled_from(OPERATORS)), threshold)
    if kind == "in":
        listed = draw(
            st.sampled_from(
                ("i32 IN (0, 1, 2)", "s IN ('a', 'b', 'ab')", "f64 IN (0.1, 0.3, 1.5)", "d52 NOT IN (0.3, 1)")
            )
        )
        return Phrase(f"{alias}.{listed}", f"TRY({alias}.{listed})", "boolean")
    if kind == "null":
        return is_null(column(alias, draw(st.sampled_from(sorted(COLUMNS)))), no=draw(st.booleans()))
    if kind == "flag":
        return draw(st.sampled_from((column(alias, "flag"), negated(column(alias, "flag")))))
    if kind == "text":
        return Phrase(f"{alias}.k <> 'z'", f"{alias}.k <> 'z'", "boolean")
    number = chosen(column(alias, "flag"), column(alias, "i32"), literal("1"))
    return number.compared("<=", literal("1"))


@st.composite
def ties(draw: Draw, aliases: tuple[str, ...], here: str) -> Phrase:
    """A conjunct that ties `here` to other streams."""
    there = draw(st.sampled_from([alias for alias in aliases if alias != here]))
    kind = draw(
        st.sampled_from(("equal", "band", "compare", "resemble", "or", "not", "coalesce", "three", "in", "any"))
    )
    if kind == "equal":
        name = draw(st.sampled_from(("i32", "s", "k", "f64", "d52", "flag", "u8", "day", "f32", "at")))
        return column(here, name).compared("=", column(there, name))
    if kind == "band":
        return draw(bands(here, there))
    if kind == "resemble":
        return draw(resemblances(here, there))
    if kind == "or":
        return joined(
            "OR", [draw(st.one_of(bands(here, there), comparisons(here, there), filters(here))) for _ in range(2)]
        )
    if kind == "not":
        return negated(draw(st.one_of(bands(here, there), comparisons(here, there))))
    if kind == "coalesce":
        name = draw(st.sampled_from(("i32", "f64", "d52")))
        values = [call("coalesce", (column(alias, name), literal("0")), COLUMNS[name]) for alias in (here, there)]
        return values[0].compared(draw(st.sampled_from(("=", "<="))), values[1])
    if kind == "three":
        third = draw(st.sampled_from(aliases))
        name = draw(st.sampled_from(("i32", "f64", "f32", "d52", "t8")))
        total = arithmetic("+", column(here, name), column(there, name))
        return total.compared(draw(st.sampled_from(("<=", "=", ">"))), column(third, name))
    if kind == "in":
        text = f"{here}.i32 IN ({there}.i32, 1)"
        return Phrase(text, text, "boolean")
    if kind == "any":
        sides = [draw(numbers(aliases, 1)) for _ in range(2)]
        return joined(
            "AND", (sides[0].compared(draw(st.sampled_from(OPERATORS)), sides[1]), draw(comparisons(here, there)))
        )
    return draw(comparisons(here, there))


@st.composite
def cases(
    draw: Draw, *, streams: int | None = None, row_windows: bool = False, lateness: str = "LATENESS 4000000 DAYS"
) -> Case:
    """A query, and tables for it that are all in time under a lateness of ten thousand years."""
    count = streams or draw(st.sampled_from((2, 2, 2, 3, 3, 4, 5, 8)))
    aliases = tuple("abcdefgh"[:count])
    reads = {alias: f"in_{alias}" for alias in aliases}
    if draw(st.integers(0, 4)) == 0:
        reads[aliases[1]] = reads[aliases[0]]
    unit = draw(st.sampled_from(sorted(UNIT_US)))
    tick_us, base_us = UNIT_US[unit], draw(st.sampled_from(BASES_US))
    sources, clauses = [], []
    for alias in aliases:
        if row_windows and (alias == aliases[0] or draw(st.booleans())):
            rows = draw(st.sampled_from((1, 2, 3, 7, 20, 100)))
            sources.append(Source(alias, reads[alias], rows=rows))
            clauses.append(f"{alias} ROWS {rows}")
        else:
            ticks = draw(st.sampled_from((20, 20, 5, 2, 1, 0, 30_000) if count <= 4 else (20, 10, 30_000)))
            sources.append(Source(alias, reads[alias], span_us=ticks * tick_us))
            clauses.append(f"{alias} {ticks} {unit}")
    tied = [place for place in range(1, count) if draw(st.integers(0, 5)) > (0 if count <= 4 else 3)]
    where = [draw(ties(aliases[: place + 1], aliases[place])) for place in tied]
    where += [draw(filters(draw(st.sampled_from(aliases)))) for _ in range(draw(st.sampled_from((0, 0, 1))))]
    where += [draw(ties(aliases, draw(st.sampled_from(aliases)))) for _ in range(draw(st.sampled_from((0, 0, 1))))]
    outputs = [(column(alias, name), f"{alias}_{name}") for alias in aliases for name in ("id", "ts")]
    outputs.append((draw(numbers(aliases)), "computed"))
    condition = " WHERE " + " AND ".join(part.ours for part in where) if where else ""
    text = (
        f"SELECT {', '.join(f'{phrase.ours} AS {name}' for phrase, name in outputs)}"
        f" FROM {', '.join(f'{reads[alias]} AS {alias}' for alias in aliases)}{condition}"
        f" WINDOW {', '.join(clauses)} {lateness}"
    )
    asked = Question(
        text=text,
        sources=tuple(sources),
        outputs=tuple(f"{phrase.duck} AS {name}" for phrase, name in outputs),
        where=" AND ".join(part.duck for part in where) or "TRUE",
    )
    seed, most = draw(st.integers(0, 2**32 - 1)), ROWS_AT_MOST[count]
    tables = {}
    for place, name in enumerate(dict.fromkeys(reads.values())):
        rows = 0 if draw(st.integers(0, 24)) == 0 else draw(st.integers(most // 2, most))
        tables[name] = table_of(
            rows, seed + place, base_us=base_us, tick_us=tick_us, null_times=draw(st.integers(0, 9)) == 0
        )
    return Case(asked, tables, seed)
