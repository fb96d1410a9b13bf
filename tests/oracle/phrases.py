"""Pieces of predicates in two spellings: as Windrow reads them and, guarded, as DuckDB runs them.

A guard stands around each node that DuckDB would answer with an error or NaN where the definition says NULL for that
node alone: `TRY(x)` for overflow, `number_or_null(x)` for NaN. Types are DuckDB's: a phrase knows its family only.

>>> band = Phrase("ABS(a.x - b.x)", "ABS(a.x - b.x)", "float").compared("<=", literal("0.3"))
>>> band.ours, band.duck
('ABS(a.x - b.x) <= 0.3', 'TRY(ABS(a.x - b.x) <= 0.3)')
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

Family: TypeAlias = Literal[
    "integer", "decimal", "float", "text", "boolean", "date", "time", "zoned", "span", "single", "double"
]
"""What a phrase may be combined with; `single` and `double` are vectors."""

NUMBERS: tuple[Family, ...] = ("integer", "decimal", "float")

COLUMNS: dict[str, Family] = {
    "t8": "integer", "s16": "integer", "i32": "integer", "i64": "integer", "u8": "integer", "u16": "integer",
    "u32": "integer", "f32": "float", "f64": "float", "d52": "decimal", "d18": "decimal", "s": "text", "k": "text",
    "flag": "boolean", "day": "date", "at": "time", "atz": "zoned", "v": "single", "w": "double",
}  # fmt: skip
"""Columns of every generated stream, besides `ts`, `id` (both in the SELECT list) and `big` (the ends of BIGINT)."""


@dataclass(frozen=True)
class Phrase:
    """One expression in both spellings."""

    ours: str
    duck: str
    family: Family

    def compared(self, operator: str, other: Phrase) -> Phrase:
        """A comparison; a conversion it needs may overflow."""
        return Phrase(f"{self.ours} {operator} {other.ours}", f"TRY({self.duck} {operator} {other.duck})", "boolean")


def column(alias: str, name: str) -> Phrase:
    """A column of a generated stream."""
    return Phrase(f"{alias}.{name}", f"{alias}.{name}", COLUMNS.get(name, "integer"))


def literal(text: str) -> Phrase:
    """A number as written."""
    family: Family = "float" if "e" in text else "decimal" if "." in text else "integer"
    return Phrase(text, text, family)


def guarded(ours: str, duck: str, family: Family) -> Phrase:
    """A computed value: NULL where DuckDB fails, and where it is NaN."""
    return Phrase(ours, f"number_or_null(TRY({duck}))" if family == "float" else f"TRY({duck})", family)


def arithmetic(operator: str, left: Phrase, right: Phrase) -> Phrase:
    """`left operator right`, in parentheses."""
    float_result = (
        operator == "/"
        or "float" in (left.family, right.family)
        or (operator == "//" and "decimal" in (left.family, right.family))
    )
    family: Family = "float" if float_result else "decimal" if "decimal" in (left.family, right.family) else "integer"
    return guarded(f"({left.ours} {operator} {right.ours})", f"({left.duck} {operator} {right.duck})", family)


def call(function: str, arguments: Sequence[Phrase], family: Family, *, duck: str | None = None) -> Phrase:
    """`function(arguments)`; `duck` is its name there where it differs."""
    ours = ", ".join(argument.ours for argument in arguments)
    theirs = ", ".join(argument.duck for argument in arguments)
    return guarded(f"{function}({ours})", f"{duck or function}({theirs})", family)


def joined(word: str, parts: Sequence[Phrase]) -> Phrase:
    """Conditions tied by AND or OR, in parentheses."""
    return Phrase(
        "(" + f" {word} ".join(part.ours for part in parts) + ")",
        "(" + f" {word} ".join(part.duck for part in parts) + ")",
        "boolean",
    )


def negated(condition: Phrase) -> Phrase:
    """NOT (condition)."""
    return Phrase(f"NOT ({condition.ours})", f"NOT ({condition.duck})", "boolean")


def is_null(subject: Phrase, *, no: bool = False) -> Phrase:
    """IS NULL or IS NOT NULL."""
    words = "IS NOT NULL" if no else "IS NULL"
    return Phrase(f"({subject.ours}) {words}", f"({subject.duck}) {words}", "boolean")


def chosen(condition: Phrase, then: Phrase, otherwise: Phrase) -> Phrase:
    """CASE WHEN condition THEN then ELSE otherwise END."""
    family: Family = then.family
    if then.family in NUMBERS and otherwise.family in NUMBERS:
        family = max(then.family, otherwise.family, key=NUMBERS.index)
    ours = f"(CASE WHEN {condition.ours} THEN {then.ours} ELSE {otherwise.ours} END)"
    return Phrase(ours, f"TRY(CASE WHEN {condition.duck} THEN {then.duck} ELSE {otherwise.duck} END)", family)
