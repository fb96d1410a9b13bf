"""From text to a parsed tree: sqlglot with DuckDB's dialect, fenced in so that it fails in one way only.

Every function call parses to its plain name and arguments (sqlglot would turn some into other functions), nothing is
logged, and whatever the parser stumbles over becomes a QueryError that says where.

>>> text_of(parse_condition("abs(a.x - b.x) <= 1"))
'abs(a.x - b.x) <= 1'
>>> parse_condition("a.x <= ")
Traceback (most recent call last):
    ...
windrow.errors.QueryError: the query breaks off after '<=' (at: line 1, column 5). Next: complete it
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from sqlglot import ErrorLevel, Token, TokenType, exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.parsers.duckdb import DuckDBParser

from windrow.errors import QueryError
from windrow.query.clauses import place_of

DIALECT = DuckDB()
_KEPT_PARSERS = ("CAST", "TRY_CAST", "EXTRACT")


class _Parser(DuckDBParser):
    """DuckDB's grammar with no function known by name but the casts."""

    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: parser for name, parser in DuckDBParser.FUNCTION_PARSERS.items() if name in _KEPT_PARSERS
    }


def tokens_of(text: str) -> list[Token]:
    """The tokens of a text, without a semicolon at its end."""
    try:
        tokens = list(DIALECT.tokenize(text))
    except (SqlglotError, RecursionError, ValueError, IndexError):
        # Nothing else stops the tokeniser: a character it does not know is left to the parser.
        raise QueryError("a quote or a comment is left open", place=text[-60:], hint="close it") from None
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            raise QueryError("there is more than one statement", place=place_of(token), hint="give one SELECT")
    return tokens


def parse_select(tokens: list[Token], text: str) -> exp.Select:
    """The one SELECT these tokens are."""
    if not tokens:
        raise QueryError("the query is empty", hint="write SELECT … FROM a, b WHERE … WINDOW 20 SECONDS")
    first = tokens[0]
    if first.token_type is not TokenType.SELECT:
        message = (
            f"{first.text.upper()} is not supported"
            if first.text.upper() == "WITH"
            else f"a query starts with SELECT, not '{first.text}'"
        )
        raise QueryError(message, place=place_of(first), hint="write SELECT … FROM a, b WHERE … WINDOW 20 SECONDS")
    with _one_kind_of_error(tokens):
        parsed = _Parser(dialect=DIALECT, error_level=ErrorLevel.RAISE).parse(tokens, text)
    tree = parsed[0] if len(parsed) == 1 else None
    if isinstance(tree, exp.SetOperation):
        raise QueryError(f"{tree.key.upper()} is not supported", hint="write one SELECT")
    if not isinstance(tree, exp.Select):
        raise QueryError(
            "this is not a SELECT", place=text[:60], hint="write SELECT … FROM a, b WHERE … WINDOW 20 SECONDS"
        )
    return tree


def parse_condition(text: str) -> exp.Expr:
    """A condition as it stands after WHERE."""
    return _parse_part(exp.Condition, text)


def parse_item(text: str) -> exp.Expr:
    """One item of a SELECT list: an expression with or without an alias, or `*`."""
    return _parse_part(exp.Expr, text)


def text_of(node: exp.Expr) -> str:
    """A parsed part as text, shortened, for messages."""
    try:
        with _quiet():
            text = node.sql(dialect=DIALECT, normalize_functions=False)
    except (SqlglotError, RecursionError, ValueError, TypeError):
        return ""
    return text if len(text) <= 100 else text[:97] + "…"


def _parse_part(kind: type[exp.Expr], text: str) -> exp.Expr:
    tokens = tokens_of(text)
    if not tokens:
        raise QueryError("the expression is empty", hint="write a condition such as a.x = b.x")
    with _one_kind_of_error(tokens):
        parsed = _Parser(dialect=DIALECT, error_level=ErrorLevel.RAISE).parse_into(kind, tokens, text)
    tree = parsed[0] if len(parsed) == 1 else None
    if not isinstance(tree, exp.Expr):
        raise QueryError("this is not an expression", place=text[:60], hint="write a condition such as a.x = b.x")
    return tree


@contextmanager
def _one_kind_of_error(tokens: list[Token]) -> Iterator[None]:
    try:
        with _quiet():
            yield
    except RecursionError:
        raise too_deep() from None
    except ParseError as error:
        raise _from_parse_error(error, tokens) from None
    except (SqlglotError, ValueError, TypeError, KeyError, IndexError, AttributeError, AssertionError) as error:
        # The parser's own slips on odd input, not ours: nothing of Windrow runs inside this block.
        raise QueryError("cannot read the query as SQL", place=str(error)[:80], hint="check its syntax") from None


def too_deep() -> QueryError:
    """The error for expressions nested beyond reason."""
    return QueryError("the query is nested too deeply", hint="take parentheses away or split the expression")


def _from_parse_error(error: ParseError, tokens: list[Token]) -> QueryError:
    details = error.errors[0] if error.errors else {}
    line, column = details.get("line"), details.get("col")
    at = next((token for token in tokens if (token.line, token.col) == (line, column)), tokens[-1])
    if at is tokens[-1]:
        return QueryError(f"the query breaks off after '{at.text}'", place=place_of(at), hint="complete it")
    return QueryError(
        f"cannot read the query as SQL at '{at.text}'", place=place_of(at), hint="check the words and commas around it"
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Nothing the parser logs reaches the user's terminal; what matters comes as an error."""
    logger = logging.getLogger("sqlglot")

    def nothing(_: logging.LogRecord) -> bool:
        return False

    logger.addFilter(nothing)
    try:
        yield
    finally:
        logger.removeFilter(nothing)
