"""Texts that are almost queries: made from a grammar, then damaged. Each follows from its seed alone.

>>> text_of(3) == text_of(3), text_of(3) == text_of(4)
(True, False)
"""

from __future__ import annotations

import random
from collections.abc import Callable

STREAMS = ("cam1", "cam2", "log")
NUMBERS, OTHERS = ("id", "x", "price"), ("ts", "kind", "v", "day", "flag", "missing")
OF_NUMBERS = ("ABS", "ROUND", "FLOOR", "SQRT")
FUNCTIONS = (
    "COALESCE", "cosine", "dot", "l2", "haversine_m", "jaccard", "levenshtein", "jaro_winkler", "date_diff", "lower",
    "result_ts", "result_id", "COUNT", "nothing", "CAST", "TRY_CAST", "EXTRACT", "__import__", "eval",
)  # fmt: skip
COMPARISONS, ARITHMETIC = ("=", "<>", "!=", "<", "<=", ">", ">="), ("+", "-", "*", "/", "//", "%")
SMALL = ("0", "1", "-1", "0.3", "7", "1e3")
LITERALS = (
    "1e308", "1e999", "99999999999999999999", "0.00000000000000000000000001", "'a'", "''", "'%_'", "NULL", "TRUE",
    "INTERVAL 3 SECONDS", "INTERVAL '1' DAY", "DATE '2024-02-30'", "TIMESTAMP '2024-01-01'", "[1, 2, 3]", "'it''s'",
    "$1", "?", ":name", "0x1F", "1_000", "NaN", "'\u0000'", "'\U0001f600'",
)  # fmt: skip
UNITS, ODD_UNITS = ("SECONDS", "MILLISECONDS", "DAYS"), ("YEARS", "FORTNIGHTS", "", "ROWS")
SPANS, ODD_SPANS = ("20", "0", "3"), ("-5", "1.5", "1e3", "999999999999999999999", "0.0000001", "x")
WORDS = (
    "SELECT", "FROM", "WHERE", "WINDOW", "LATENESS", "FRESHNESS", "JOIN", "ON", "LEFT", "GROUP BY", "ORDER BY",
    "LIMIT 3", "UNION", "WITH", "CASE", "WHEN", "THEN", "ELSE", "END", "NOT", "BETWEEN", "EXISTS", "DISTINCT", "AS",
    "IDLE TIMEOUT", "OVER", "VALUES", "AND", "OR", "IS", "LIKE", "IN", "||", ",", "(", ")", ";", "--", "/*", "*/", "*",
    ".", "'", '"', "`", "\\", "\t", "\n", "{", "}", "@", "#",
)  # fmt: skip
LONGEST_DEPTH = 3
ODD = 0.02
"""How often a grammatical piece is one that does not fit."""


def text_of(seed: int) -> str:
    """One text: a query without damage in a quarter of all cases, though not always a sound one."""
    draw = random.Random(seed)
    text = _query(draw)
    for _ in range(draw.choice((0, 1, 1, 2, 3, 8))):
        text = draw.choice(DAMAGES)(text, draw)
    return text


def _query(draw: random.Random) -> str:
    aliases = "abcdefgh"[: draw.choice((2, 2, 2, 3, 4, 8))]
    chosen = ", ".join(f"{_number(draw, aliases, 2)} AS o{k}" for k in range(draw.randint(1, 3)))
    tables = ", ".join(f"{draw.choice(STREAMS)} AS {alias}" for alias in aliases)
    if draw.random() < 0.1:
        chosen = draw.choice(("*", "a.*", "a.id"))
    where = " AND ".join(_condition(draw, aliases, LONGEST_DEPTH) for _ in range(draw.randint(1, 3)))
    clauses = [f"WINDOW {_spans(draw, aliases)}"]
    if draw.random() < 0.3:
        clauses.append(f"LATENESS {_spans(draw, aliases)}")
    if draw.random() < 0.2:
        clauses.append(f"FRESHNESS {_spans(draw, aliases)}")
    return f"SELECT {chosen} FROM {tables} WHERE {where} {' '.join(clauses)}"


def _spans(draw: random.Random, aliases: str) -> str:
    def span() -> str:
        number = draw.choice(ODD_SPANS if draw.random() < ODD else SPANS)
        return f"{number} {draw.choice(ODD_UNITS if draw.random() < ODD else UNITS)}"

    if draw.random() < 0.6:
        return span()
    return ", ".join(f"{alias} {span()}" for alias in aliases)


def _condition(draw: random.Random, aliases: str, depth: int) -> str:
    kind = draw.randrange(8) if depth else 0
    if kind == 1:
        sides = (_condition(draw, aliases, depth - 1) for _ in range(2))
        return f"({draw.choice((' AND ', ' OR ')).join(sides)})"
    if kind == 2:
        return f"NOT ({_condition(draw, aliases, depth - 1)})"
    if kind == 3:
        return f"{_number(draw, aliases, depth)} BETWEEN {_number(draw, aliases, 1)} AND {_number(draw, aliases, 1)}"
    if kind == 4:
        return f"{_number(draw, aliases, depth)} IN ({', '.join(draw.choices(SMALL, k=draw.randint(1, 4)))})"
    if kind == 5:
        return f"{_number(draw, aliases, depth)} IS {draw.choice(('', 'NOT '))}NULL"
    return f"{_number(draw, aliases, depth)} {draw.choice(COMPARISONS)} {_number(draw, aliases, depth)}"


def _number(draw: random.Random, aliases: str, depth: int) -> str:
    if draw.random() < ODD:
        return _anything(draw, aliases, depth)
    kind = draw.randrange(6) if depth else draw.randrange(3)
    if kind == 0:
        return draw.choice(SMALL)
    if kind < 3:
        return f"{draw.choice(aliases)}.{draw.choice(NUMBERS)}"
    if kind == 3:
        return f"{draw.choice(OF_NUMBERS)}({_number(draw, aliases, depth - 1)})"
    if kind == 4:
        then, other = (_number(draw, aliases, depth - 1) for _ in range(2))
        return f"CASE WHEN {_number(draw, aliases, 0)} < 1 THEN {then} ELSE {other} END"
    return f"({_number(draw, aliases, depth - 1)} {draw.choice(ARITHMETIC)} {_number(draw, aliases, depth - 1)})"


def _anything(draw: random.Random, aliases: str, depth: int) -> str:
    kind = draw.randrange(3 if depth else 2)
    if kind == 0:
        return draw.choice(LITERALS)
    if kind == 1:
        return f"{draw.choice(aliases)}.{draw.choice(OTHERS)}"
    arguments = ", ".join(_anything(draw, aliases, depth - 1) for _ in range(draw.randint(0, 3)))
    return f"{draw.choice(FUNCTIONS)}({arguments})"


def _without(text: str, draw: random.Random) -> str:
    at = draw.randrange(len(text) + 1)
    return text[:at] + text[at + draw.randint(1, 12) :]


def _with_word(text: str, draw: random.Random) -> str:
    at = draw.randrange(len(text) + 1)
    return f"{text[:at]} {draw.choice(WORDS + LITERALS + COMPARISONS)} {text[at:]}"


def _with_noise(text: str, draw: random.Random) -> str:
    at = draw.randrange(len(text) + 1)
    return (
        text[:at]
        + "".join(chr(draw.choice((draw.randrange(32), draw.randrange(0x3000)))) for _ in range(3))
        + text[at:]
    )


def _twice(text: str, draw: random.Random) -> str:
    first, last = sorted((draw.randrange(len(text) + 1), draw.randrange(len(text) + 1)))
    return text[:last] + text[first:]


def _shuffled(text: str, draw: random.Random) -> str:
    words = text.split(" ")
    one, other = draw.randrange(len(words)), draw.randrange(len(words))
    words[one], words[other] = words[other], words[one]
    return " ".join(words)


def _nested(text: str, draw: random.Random) -> str:
    depth = draw.choice((10, 100, 3000))
    where = text.find("WHERE ")
    at = where + 6 if where >= 0 else 0
    return f"{text[:at]}{'(' * depth}1 = 1{')' * draw.choice((depth, depth - 1))} AND {text[at:]}"


DAMAGES: tuple[Callable[[str, random.Random], str], ...] = (
    _without, _without, _with_word, _with_word, _with_noise, _twice, _shuffled, _shuffled, _nested,
)  # fmt: skip
"""What can become of a text."""
