"""DuckDB as the judge: the same join, written in SQL, over the whole recorded input.

A `Question` is one join in two languages: the text Windrow reads, and the text DuckDB runs. Hand-written queries use
the same expressions in both (`question`); generated ones put a guard around every node that DuckDB would answer with
NaN or an error where Windrow's definition says NULL (`oracle.phrases`).

    NaN read        cleaned from the columns first            time window      pairwise: ts_j - ts_i <= w_i
    NaN computed    `number_or_null(x)` around float nodes    row window       newest count - own count < w_i
    overflow        `TRY(x)`: NULL for that row alone         no event time    not input

>>> ticks = pa.table({"ts": pa.array([0, 5], pa.timestamp("s")), "x": [1.0, 2.0]})
>>> asked = question("SELECT a.x AS ax, b.x AS bx FROM ticks AS a, ticks AS b WHERE a.x < b.x WINDOW 5 SECONDS")
>>> answer(asked, {"ticks": ticks}).rows
Counter({(1.0, 2.0): 1})
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

UNIT_US = {
    "MILLISECOND": 1_000, "SECOND": 1_000_000, "MINUTE": 60_000_000, "HOUR": 3_600_000_000, "DAY": 86_400_000_000,
}  # fmt: skip

MACROS = (
    "number_or_null(x) AS CASE WHEN isnan(x) THEN NULL ELSE x END",
    "span_abs(x) AS CASE WHEN x < INTERVAL 0 SECONDS THEN -x ELSE x END",
    "total(terms) AS list_reduce(terms, lambda p, q: p + q)",
    "raw_dot(x, y) AS total(list_transform(range(1, len(x) + 1), lambda i: x[i]::DOUBLE * y[i]::DOUBLE))",
    "gaps(x, y) AS list_transform(range(1, len(x) + 1), lambda i: x[i]::DOUBLE - y[i]::DOUBLE)",
    "dot(x, y) AS number_or_null(raw_dot(x, y))",
    "l2(x, y) AS number_or_null(sqrt(raw_dot(gaps(x, y), gaps(x, y))))",
    "cosine(x, y) AS number_or_null(raw_dot(x, y) / nullif(sqrt(raw_dot(x, x)) * sqrt(raw_dot(y, y)), 0))",
    "tokens(t) AS list_distinct(regexp_extract_all(lower(t), '[\\p{L}\\p{N}]+'))",
    "shared(s, t) AS len(list_intersect(tokens(s), tokens(t)))::DOUBLE",
    "jaccard(s, t) AS shared(s, t) / nullif(len(tokens(s)) + len(tokens(t)) - shared(s, t), 0)",
    "jaro_winkler(s, t) AS jaro_winkler_similarity(s, t)",
    "half_sine(p, q) AS pow(sin(radians(q::DOUBLE - p::DOUBLE) / 2), 2)",
    "chord(p, q, r, s) AS half_sine(p, r) + cos(radians(p::DOUBLE)) * cos(radians(r::DOUBLE)) * half_sine(q, s)",
    "haversine_m(p, q, r, s) AS number_or_null(2 * 6371008.8 * asin(sqrt(least(1.0, chord(p, q, r, s)))))",
)
"""Windrow's functions that DuckDB lacks or means otherwise; vectors sum in index order, in 64 bits."""

SETTINGS = (
    "SET TimeZone = 'UTC'",
    "SET error_on_division_by_zero = false",
    "SET ieee_floating_point_ops = false",
)
"""Division by zero gives NULL for every kind of number."""


@dataclass(frozen=True)
class Source:
    """One stream of a question: its alias, what it reads, and its window in one of the two forms."""

    alias: str
    reads: str
    span_us: int | None = None
    rows: int | None = None


@dataclass(frozen=True)
class Question:
    """One join: `text` as Windrow reads it; the rest as DuckDB runs it (`outputs` are `expression AS name`)."""

    text: str
    sources: tuple[Source, ...]
    outputs: tuple[str, ...]
    where: str = "TRUE"
    macros: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class Answer:
    """The rows of a result as a multiset, and the Arrow schema they came in."""

    rows: Counter[tuple[Any, ...]]
    schema: pa.Schema


def question(text: str, *, macros: tuple[str, ...] = ()) -> Question:
    """A hand-written query (`SELECT … FROM s AS a, t AS b [WHERE …] WINDOW … [LATENESS …]`), in the same words."""
    joined = " ".join(text.split())
    match = re.fullmatch(
        r"SELECT (.+?) FROM (.+?)(?: WHERE (.+?))? WINDOW (.+?)(?: LATENESS .+)?(?: FRESHNESS .+)?", joined
    )
    assert match is not None, f"not of the oracle's form: {joined}"
    outputs, sources, where, windows = match.groups()
    pairs = [tuple(reversed(part.strip().split(" AS "))) for part in sources.split(",")]
    spans = _windows(windows, [alias for alias, _ in pairs])
    return Question(
        text=text,
        sources=tuple(Source(alias, reads, *spans[alias]) for alias, reads in pairs),
        outputs=(outputs,),
        where=re.sub(r"\bABS\((\w+\.ts - \w+\.ts)\)", r"span_abs(\1)", where or "TRUE", flags=re.IGNORECASE),
        macros=macros,
    )


def _windows(clause: str, aliases: list[str]) -> dict[str, tuple[int | None, int | None]]:
    found: dict[str, tuple[int | None, int | None]] = {}
    for part in clause.split(","):
        words = part.split()
        names = aliases
        if words[0] in aliases:
            names, words = [words[0]], words[1:]
        window = (
            (None, int(words[1])) if words[0] == "ROWS" else (int(words[0]) * UNIT_US[words[1].removesuffix("S")], None)
        )
        found.update(dict.fromkeys(names, window))
    return found


def answer(
    asked: Question,
    tables: Mapping[str, pa.Table],
    *,
    time: str = "ts",
    counts: Mapping[str, Mapping[str, np.ndarray]] | None = None,
) -> Answer:
    """What the join means for these inputs; `tables` by alias or by what is read, `counts[alias][l]` of `naive`."""
    connection = _connection()
    for macro in asked.macros:
        connection.execute(f"CREATE OR REPLACE MACRO {macro}")
    reach_us = 0
    for source in asked.sources:
        table = tables[source.alias] if source.alias in tables else tables[source.reads]
        clean = cleaned(table, time)
        for name, values in (counts or {}).get(source.alias, {}).items():
            clean = clean.append_column(f"count_{name}", pa.array(values))
        times = pc.min_max(clean["time_us"]).as_py()
        reach_us = max(reach_us, abs(times["min"] or 0), abs(times["max"] or 0), source.span_us or 0)
        connection.register("given", clean)
        connection.execute(f"CREATE OR REPLACE TABLE table_{source.alias} AS SELECT * FROM given")
        connection.unregister("given")
    found = connection.sql(statement_of(asked, wide=reach_us >= 2**61)).to_arrow_table()
    return Answer(rows_of(found), found.schema)


@lru_cache(maxsize=1)
def _connection() -> duckdb.DuckDBPyConnection:
    """One database in memory for all questions: making the functions takes longer than most answers."""
    connection = duckdb.connect(config={"threads": 1})
    for statement in SETTINGS:
        connection.execute(statement)
    for macro in MACROS:
        connection.execute(f"CREATE MACRO {macro}")
    return connection


def statement_of(asked: Question, *, wide: bool = False) -> str:
    """The SQL text DuckDB runs; `wide` computes windows in 128 bits, where 64 could overflow."""
    names = [source.alias for source in asked.sources]
    newest_us = f"greatest({', '.join(f'{name}.time_us' for name in names)})"
    where = [f"({asked.where})"]
    for source in asked.sources:
        if source.rows is not None:
            newest = f"greatest({', '.join(f'{name}.count_{source.alias}' for name in names)})"
            where.append(f"{newest} - {source.alias}.count_{source.alias} < {source.rows}")
        for other in names:
            if source.span_us is not None and other != source.alias:
                kind = "::HUGEINT" if wide else ""
                where.append(f"{other}.time_us{kind} <= {source.alias}.time_us{kind} + {source.span_us}{kind}")
    text = f"""
        SELECT {", ".join(asked.outputs)}
        FROM {", ".join(f"table_{name} AS {name}" for name in names)}
        WHERE {" AND ".join(where)}"""
    return text.replace("result_ts()", f"make_timestamp({newest_us})")


def cleaned(table: pa.Table, time: str) -> pa.Table:
    """The rows that are input (they have an event time), NaN as NULL, with the event time also as `time_us`."""
    for place, column in enumerate(table.schema):
        if pa.types.is_floating(column.type):
            values = table[column.name]
            table = table.set_column(
                place, column.name, pc.if_else(pc.is_nan(values), pa.scalar(None, column.type), values)
            )
        if pa.types.is_timestamp(column.type) and column.type.unit != "us":
            table = table.set_column(place, column.name, table[column.name].cast(pa.timestamp("us", column.type.tz)))
    table = table.filter(pc.is_valid(table[time]))
    stamp = table[time].type
    return table.append_column(
        "time_us", table[time].cast(pa.timestamp("us", getattr(stamp, "tz", None))).cast(pa.int64())
    )


def rows_of(table: pa.Table) -> Counter[tuple[Any, ...]]:
    """The rows as a multiset: floats by value (NaN is NULL, -0.0 is 0.0), times and spans as microseconds."""
    if table.num_columns == 0:
        return Counter({(): table.num_rows} if table.num_rows else {})
    return Counter(zip(*(plain(column) for column in table.columns), strict=True))


def plain(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """A column as Python values that hash and compare alike whatever engine made it."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return plain(column.cast(kind.value_type))
    if pa.types.is_floating(kind):
        return [_number(value) for value in column.to_pylist()]
    if pa.types.is_timestamp(kind):
        return list(column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()).to_pylist())
    if pa.types.is_duration(kind):
        return list(column.cast(pa.duration("us")).cast(pa.int64()).to_pylist())
    if pa.types.is_interval(kind):
        return [None if v is None else v.days * UNIT_US["DAY"] + v.nanoseconds // 1000 for v in column.to_pylist()]
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return [None if value is None else tuple(map(_number, value)) for value in column.to_pylist()]
    return list(column.to_pylist())


def _number(value: float | None) -> float | None:
    return None if value is None or value != value else value + 0.0


def type_names(schema: pa.Schema) -> dict[str, str]:
    """Column types with what carries no meaning taken away: offsets' width, interval's form, a timestamp's unit."""
    return {column.name: _type_name(column.type) for column in schema}


def _type_name(kind: pa.DataType) -> str:
    if pa.types.is_large_string(kind) or pa.types.is_string(kind) or str(kind) == "string_view":
        return "string"
    if pa.types.is_interval(kind) or pa.types.is_duration(kind):
        return "interval"
    if pa.types.is_fixed_size_list(kind):
        return f"{kind.value_type}[{kind.list_size}]"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz is None else "timestamptz"
    return str(kind)


def difference(found: Counter[tuple[Any, ...]], expected: Counter[tuple[Any, ...]], *, shown: int = 3) -> str:
    """A short account of how two multisets differ; empty when they are equal."""
    missing, extra = expected - found, found - expected
    if not missing and not extra:
        return ""
    return (
        f"{missing.total()} missing, {extra.total()} too many, of {expected.total()} expected;"
        f" missing e.g. {list(missing.items())[:shown]}; too many e.g. {list(extra.items())[:shown]}"
    )
