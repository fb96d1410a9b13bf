"""The clauses that are Windrow's own: WINDOW, LATENESS, FRESHNESS, IDLE and EVERY, taken out of the text before it is
parsed as SQL.

    WINDOW 20 SECONDS                                     every stream
    WINDOW a 20 SECONDS, b 5 MINUTES, c ROWS 1000         each stream its own
    WINDOW 20 SECONDS, b ROWS 100                         all but b
    LATENESS 2 SECONDS    FRESHNESS b 30 SECONDS    IDLE TIMEOUT 1 MINUTE    EVERY 1 MINUTE

They are found among the tokens, so strings, comments and quoted names that contain these words are left alone, and so
are columns and streams of these names: a clause begins where a word stands after something complete, outside
parentheses, after FROM. Spans are whole microseconds; what exceeds 64 bits never ends.

>>> span_us("1.5 s"), span_us("20 SECONDS"), span_us("5min")
(1500000, 20000000, 300000000)
>>> span_us("-1 s")
Traceback (most recent call last):
    ...
windrow.errors.QueryError: a span of time cannot be negative: -1 s (at: -1 s). Next: give a span of zero or more
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal

from sqlglot import Token, TokenType

from windrow.errors import QueryError
from windrow.query.literals import unit_us
from windrow.query.scope import Scope
from windrow.query.spec import UNBOUNDED, Window

CLAUSES = ("WINDOW", "LATENESS", "FRESHNESS", "IDLE")
"""Those that say something of streams."""
_KEYWORDS = (*CLAUSES, "EVERY")

_SPAN = re.compile(r"\s*([+-]?)\s*(\d[\d_]*\.?\d*(?:[eE][+-]?\d+)?|\.\d+)\s*([^\W\d_]+)\s*")
_ROWS = re.compile(r"\s*(?:rows\s+([+-]?\d+)|([+-]?\d+)\s+rows?)\s*", re.IGNORECASE)
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)
_AWAITS_MORE = frozenset((
    "select", "from", "where", "and", "or", "not", "on", "using", "join", "cross", "inner", "left", "right", "full",
    "outer", "natural", "as", "in", "like", "ilike", "is", "between", "case", "when", "then", "else", "interval",
    "distinct", "by", "having", "limit", "offset", "escape", "all", "any", "exists", "date", "timestamp",
    "timestamptz",
))  # fmt: skip
_FOLLOWS_A_NAME = frozenset((
    "where", "join", "cross", "inner", "left", "right", "full", "outer", "natural", "on", "using", "and", "or", "is",
    "in", "like", "ilike", "between", "not", "as", "group", "order", "limit", "having", "union", "except",
    "intersect", "then", "else", "end", "when", "positional", "asof", "semi", "anti",
))  # fmt: skip


@dataclass(slots=True)
class Clause:
    """What one clause says: a default for all streams, and exceptions by the name a stream is called in it."""

    default: Window | None = None
    exceptions: dict[str, Window] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Clauses:
    """The clauses of a query, each perhaps empty; `every_us` is the span of EVERY."""

    window: Clause
    lateness: Clause
    freshness: Clause
    idle: Clause
    every_us: int | None = None

    def check_names(self, scope: Scope) -> None:
        """Every stream an exception names exists, and none is named twice."""
        for keyword in CLAUSES:
            seen: set[str] = set()
            for called in getattr(self, keyword.lower()).exceptions:
                name = scope.stream(called, place=f"{keyword} {called} …").name
                if name in seen:
                    raise QueryError(
                        f"{keyword} names stream '{name}' twice",
                        place=f"{keyword} {called} …",
                        hint="keep one of the two",
                    )
                seen.add(name)


def setting_for(clause: Clause, name: str) -> Window | None:
    """What a clause says of a stream."""
    if name in clause.exceptions:
        return clause.exceptions[name]
    folded = [given for called, given in clause.exceptions.items() if called.casefold() == name.casefold()]
    return folded[0] if folded else clause.default


def span_us(text: str) -> int:
    """A span of time as text, in microseconds: "20 seconds", "1.5 s", "5min"."""
    parts = _SPAN.fullmatch(text)
    if parts is None:
        raise QueryError(
            f"cannot read '{text}' as a span of time", place=text, hint="write a number and a unit, such as 20 SECONDS"
        )
    try:
        exact_us = Decimal(parts[2].replace("_", "")) * unit_us(parts[3], place=text)
    except ArithmeticError:
        exact_us = Decimal("Infinity")
    if parts[1] == "-" and exact_us:
        raise QueryError(
            f"a span of time cannot be negative: {text.strip()}", place=text, hint="give a span of zero or more"
        )
    if exact_us > UNBOUNDED:
        return UNBOUNDED
    if exact_us != exact_us.to_integral_value():
        raise QueryError(
            f"{text.strip()} is not a whole number of microseconds", place=text, hint="round it to microseconds"
        )
    return int(exact_us)


def window_of(text: str) -> Window:
    """A window as text: a span of time, or rows.

    >>> window_of("5 minutes"), window_of("ROWS 100")
    (Window(span_us=300000000, rows=None), Window(span_us=None, rows=100))
    """
    rows = _ROWS.fullmatch(text)
    return Window(rows=min(int(rows[1] or rows[2]), UNBOUNDED)) if rows else Window(span_us=span_us(text))


def split_clauses(tokens: list[Token]) -> tuple[list[Token], Clauses]:
    """The tokens of the plain SQL that remains, and the clauses that were among them."""
    remaining: list[Token] = []
    found: dict[str, Clause] = {}
    at, depth, after_from = 0, 0, False
    while at < len(tokens):
        token = tokens[at]
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        after_from = after_from or token.token_type is TokenType.FROM
        if depth == 0 and after_from and _begins_clause(tokens, at):
            keyword = token.text.upper()
            if keyword in found:
                raise QueryError(
                    f"{keyword} is given twice",
                    place=place_of(token),
                    hint="give it once, with a comma between streams",
                )
            found[keyword], at = _Reader(tokens, at).clause()
            if keyword == "EVERY" and (found[keyword].exceptions or found[keyword].default is None):
                raise QueryError("EVERY is of all streams", place=place_of(token), hint="write EVERY 1 MINUTE")
        else:
            remaining.append(token)
            at += 1
    every = found.get("EVERY", Clause()).default
    window, lateness, freshness, idle = (found.get(keyword, Clause()) for keyword in CLAUSES)
    return remaining, Clauses(window, lateness, freshness, idle, None if every is None else every.span_us)


def place_of(token: Token) -> str:
    """Where a token stands in the text."""
    return f"line {token.line}, column {token.col - (token.end - token.start)}"


def _begins_clause(tokens: list[Token], at: int) -> bool:
    token = tokens[at]
    if token.token_type is TokenType.IDENTIFIER or token.text.upper() not in _KEYWORDS or at == 0:
        return False
    before, after = tokens[at - 1], tokens[at + 1] if at + 1 < len(tokens) else None
    complete = before.token_type in (*_CLOSING, TokenType.STRING, TokenType.IDENTIFIER, TokenType.NUMBER) or (
        before.text[:1].isalpha() and before.text.lower() not in _AWAITS_MORE
    )
    return complete and (after is None or _may_begin_setting(after))


def _may_begin_setting(token: Token) -> bool:
    if token.token_type in (
        TokenType.NUMBER,
        TokenType.STRING,
        TokenType.DASH,
        TokenType.PLUS,
        TokenType.IDENTIFIER,
        TokenType.SEMICOLON,
    ):
        return True
    return token.text[:1].isalpha() and token.text.lower() not in _FOLLOWS_A_NAME


class _Reader:
    """Reads one clause: settings between commas, from the keyword at `at` on."""

    def __init__(self, tokens: list[Token], at: int) -> None:
        self.tokens = tokens
        self.at = at + 1
        self.keyword = tokens[at].text.upper()
        self.start = tokens[at]

    def clause(self) -> tuple[Clause, int]:
        clause = Clause()
        if self.keyword == "IDLE" and self._word() == "TIMEOUT":
            self.at += 1
        while True:
            name, setting = self._setting()
            if name is None:
                if clause.default is not None:
                    raise self._error(
                        f"{self.keyword} has two settings without a stream", "write the stream before the second"
                    )
                clause.default = setting
            elif name in clause.exceptions:
                raise self._error(f"{self.keyword} names stream '{name}' twice", "keep one of the two")
            else:
                clause.exceptions[name] = setting
            if not self._is(TokenType.COMMA):
                return clause, self.at
            self.at += 1

    def _setting(self) -> tuple[str | None, Window]:
        name = self._name()
        if self._word() == "ROWS":
            if self.keyword != "WINDOW":
                raise self._error(
                    f"{self.keyword} is a span of time, not a number of rows", f"write {self.keyword} 2 SECONDS"
                )
            self.at += 1
            return name, self._rows()
        return name, self._span()

    def _name(self) -> str | None:
        if self.at + 1 >= len(self.tokens) or self._word() == "ROWS":
            return None
        token = self.tokens[self.at]
        named = token.token_type is TokenType.IDENTIFIER or token.text[:1].isalpha() or token.text[:1] == "_"
        if not named or token.token_type in (TokenType.STRING, TokenType.NUMBER):
            return None
        self.at += 1
        return token.text

    def _rows(self) -> Window:
        sign, number = self._sign(), self._number("a number of rows")
        if not number.isdigit():
            raise self._error(f"{number} is not a number of rows", "write a whole number, as in WINDOW ROWS 100")
        return Window(rows=min(-int(number) if sign == "-" else int(number), UNBOUNDED))

    def _span(self) -> Window:
        if self._is(TokenType.STRING):
            self.at += 1
            return Window(span_us=span_us(self.tokens[self.at - 1].text))
        sign, number = self._sign(), self._number("a span of time")
        unit = self._word()
        if not unit or unit in _KEYWORDS:
            raise self._error(f"{self.keyword} {sign}{number} has no unit", f"write {self.keyword} {number} SECONDS")
        self.at += 1
        try:
            return Window(span_us=span_us(f"{sign}{number} {unit}"))
        except QueryError as error:
            raise self._error(error.message, error.hint) from None

    def _sign(self) -> str:
        if self._is(TokenType.DASH) or self._is(TokenType.PLUS):
            self.at += 1
            return "-" if self.tokens[self.at - 1].token_type is TokenType.DASH else ""
        return ""

    def _number(self, expected: str) -> str:
        point = "." if self._is(TokenType.DOT) else ""
        self.at += len(point)
        if not self._is(TokenType.NUMBER):
            found = f"'{self.tokens[self.at].text}'" if self.at < len(self.tokens) else "the end of the query"
            raise self._error(f"{self.keyword} needs {expected}, not {found}", f"write {self.keyword} 20 SECONDS")
        self.at += 1
        return point + self.tokens[self.at - 1].text

    def _is(self, kind: TokenType) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at].token_type is kind

    def _word(self) -> str:
        if self.at >= len(self.tokens):
            return ""
        token = self.tokens[self.at]
        return token.text.upper() if token.token_type is not TokenType.IDENTIFIER and token.text[:1].isalpha() else ""

    def _error(self, message: str, hint: str) -> QueryError:
        return QueryError(message, place=place_of(self.start), hint=hint)
