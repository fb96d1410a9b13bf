"""Casts: turning a bound expression into another type, and reading the type a CAST asks for.

A literal is converted on the spot, a column that is all NULL becomes a NULL of the type, everything else gets a call of
`cast`.

>>> from windrow.query.expression import Column
>>> coerce(Literal(1, types.INTEGER), types.DOUBLE).value
1.0
>>> coerce(Column("a", "n", types.INTEGER), types.DOUBLE).function
'cast'
>>> str(type_named("decimal(10, 2)")), str(type_named("int")), str(type_named("Float"))
('DECIMAL(10,2)', 'INTEGER', 'FLOAT')
"""

from __future__ import annotations

import re

from sqlglot import exp

from windrow.errors import QueryError
from windrow.query import literals, types
from windrow.query.expression import Call, Expression, Literal
from windrow.query.types import Kind, Type

_NAMED: dict[str, Type] = {
    "BOOL": types.BOOLEAN, "LOGICAL": types.BOOLEAN, "INT1": types.TINYINT, "INT2": types.SMALLINT,
    "INT16": types.SMALLINT, "SHORT": types.SMALLINT, "INT": types.INTEGER, "INT4": types.INTEGER,
    "INT32": types.INTEGER, "SIGNED": types.INTEGER, "INT8": types.BIGINT, "INT64": types.BIGINT,
    "LONG": types.BIGINT, "UINT8": Type(Kind.UTINYINT), "UINT16": Type(Kind.USMALLINT), "UINT": Type(Kind.UINTEGER),
    "UINT32": Type(Kind.UINTEGER), "REAL": types.FLOAT, "FLOAT4": types.FLOAT, "FLOAT8": types.DOUBLE,
    "TEXT": types.VARCHAR, "STRING": types.VARCHAR, "CHAR": types.VARCHAR, "STR": types.VARCHAR,
    "DATETIME": types.TIMESTAMP, "TIMESTAMPNTZ": types.TIMESTAMP, "TIMESTAMPTZ": types.TIMESTAMPTZ,
    **{kind.value: Type(kind) for kind in Kind if kind not in (Kind.DECIMAL, Kind.VECTOR, Kind.NULL, Kind.OTHER)},
}  # fmt: skip
_DECIMAL = re.compile(r"(?:DECIMAL|NUMERIC|DEC)(?:\s*\(\s*(\d{1,3})\s*(?:,\s*(\d{1,3})\s*)?\))?")

# What sqlglot calls a type that DuckDB's users write under another name.
_PARSED_NAMES = {
    "TINYINT": "TINYINT", "SMALLINT": "SMALLINT", "INT": "INTEGER", "BIGINT": "BIGINT", "UTINYINT": "UTINYINT",
    "USMALLINT": "USMALLINT", "UINT": "UINTEGER", "FLOAT": "FLOAT", "DOUBLE": "DOUBLE", "BOOLEAN": "BOOLEAN",
    "VARCHAR": "VARCHAR", "TEXT": "VARCHAR", "CHAR": "VARCHAR", "DATE": "DATE", "TIMESTAMP": "TIMESTAMP",
    "TIMESTAMPNTZ": "TIMESTAMP", "DATETIME": "TIMESTAMP", "TIMESTAMPTZ": "TIMESTAMPTZ", "INTERVAL": "INTERVAL",
}  # fmt: skip


def coerce(expression: Expression, target: Type) -> Expression:
    """The expression in the type `target`."""
    if expression.type == target:
        return expression
    if isinstance(expression, Literal):
        return literals.convert(expression, target)
    if expression.type.kind is Kind.NULL:
        return Literal(None, target)
    return Call("cast", (expression,), target)


def type_named(name: str) -> Type:
    """The type of a name, in any case; DECIMAL takes its width and scale in parentheses."""
    plain = " ".join(name.upper().split())
    if parts := _DECIMAL.fullmatch(plain):
        width, scale = int(parts[1] or 18), int(parts[2] or (0 if parts[1] else 3))
        if not 1 <= width <= 38 or scale > width:
            raise QueryError(
                f"there is no {name}", hint="a DECIMAL has 1 to 38 digits, at most all of them after the point"
            )
        return types.decimal(width, scale)
    if plain not in _NAMED:
        known = ", ".join(dict.fromkeys(str(type_) for type_ in _NAMED.values()))
        raise QueryError(f"there is no type '{name}' in a query", hint=f"types are {known}, DECIMAL(width, scale)")
    return _NAMED[plain]


def asked_type(node: exp.Expr) -> Type:
    """The type of a parsed CAST."""
    written = node.this.value if isinstance(node.this, exp.DType) else str(node.this)
    if written == "DECIMAL":
        sizes = ", ".join(part.name for part in node.expressions)
        return type_named(f"DECIMAL({sizes})" if sizes else "DECIMAL")
    if (
        node.args.get("nested")
        or written not in _PARSED_NAMES
        or (node.expressions and written not in ("VARCHAR", "TEXT", "CHAR"))
    ):
        raise QueryError(f"cannot cast to {written}", hint="cast to a number, BOOLEAN, DATE, TIMESTAMP or TIMESTAMPTZ")
    return type_named(_PARSED_NAMES[written])
