"""Arrow tables that nobody expects: columns of every type, nested, twice, none at all, in another order, with extreme
values. Each follows from its seed alone.

>>> table_of(3).equals(table_of(3)), table_of(3).schema == table_of(4).schema
(True, False)
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa

NAMES = ("ts", "id", "x", "kind", "v", "price", "day", "flag", "", "a.x", "ts ", "\u0000", "é", "SELECT")
DECLARED = pa.schema(
    [
        ("ts", pa.timestamp("us")), ("id", pa.int64()), ("x", pa.float64()), ("kind", pa.string()),
        ("v", pa.list_(pa.float32(), 3)), ("price", pa.decimal128(9, 2)), ("day", pa.date32()), ("flag", pa.bool_()),
    ]
)  # fmt: skip
PLAIN: tuple[pa.DataType, ...] = (
    pa.null(), pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32(), pa.uint64(),
    pa.float16(), pa.float32(), pa.float64(), pa.string(), pa.large_string(), pa.string_view(), pa.binary(),
    pa.binary(3), pa.large_binary(), pa.date32(), pa.date64(), pa.time32("ms"), pa.time64("ns"), pa.timestamp("s"),
    pa.timestamp("ms", "UTC"), pa.timestamp("us"), pa.timestamp("us", "Europe/Rome"), pa.timestamp("ns"),
    pa.duration("us"), pa.month_day_nano_interval(), pa.decimal128(9, 2), pa.decimal128(38, 10), pa.decimal256(50, 3),
)  # fmt: skip
EXTREME: tuple[Any, ...] = (
    None,
    0,
    1,
    -1,
    2**31,
    2**63 - 1,
    -(2**63),
    1e308,
    float("nan"),
    float("inf"),
    "",
    "x" * 50_000,
)
MOST_ROWS = 12


def table_of(seed: int) -> pa.Table:
    """One table: the declared columns with damage in half of all cases, else any."""
    draw = random.Random(seed)
    rows = draw.choice((0, 1, 2, MOST_ROWS))
    if draw.random() < 0.5:
        columns = [(field.name, _array(field.type, rows, draw)) for field in DECLARED]
        for _ in range(draw.choice((0, 1, 2, 3))):
            draw.choice(DAMAGES)(columns, rows, draw)
    else:
        columns = [(draw.choice(NAMES), _array(_type(draw, 2), rows, draw)) for _ in range(draw.randrange(8))]
    table = pa.Table.from_arrays([array for _, array in columns], [name for name, _ in columns])
    return _chunked(table, draw)


def _type(draw: random.Random, depth: int) -> pa.DataType:
    kind = draw.randrange(12) if depth else 0
    if kind < 6:
        return draw.choice(PLAIN)
    inner = _type(draw, depth - 1)
    makers: tuple[Callable[[], pa.DataType], ...] = (
        lambda: pa.list_(inner),
        lambda: pa.large_list(inner),
        lambda: pa.list_(inner, draw.choice((1, 3))),
        lambda: pa.struct([("x", inner), ("ts", pa.int64())]),
        lambda: pa.map_(pa.string(), inner),
        lambda: pa.dictionary(pa.int8(), draw.choice((pa.string(), pa.int64(), pa.float64(), pa.timestamp("us")))),
    )
    return makers[kind - 6]()


def _array(type_: pa.DataType, rows: int, draw: random.Random) -> pa.Array:
    """Values of a type: extreme ones where the type takes them, others from small integers, or NULLs."""
    values = [draw.choice(EXTREME) if draw.random() < 0.3 else draw.randrange(5) for _ in range(rows)]
    kind = draw.randrange(4)
    for made in (values, [str(value) for value in values], [None if value is None else 1 for value in values]):
        if kind == 0:
            break
        try:
            return pa.array(made, type_)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            continue
    if kind > 1 and pa.types.is_fixed_size_list(type_) and pa.types.is_floating(type_.value_type):
        return pa.array([[float(k)] * type_.list_size for k in range(rows)], type_)
    return pa.nulls(rows, type_)


def _chunked(table: pa.Table, draw: random.Random) -> pa.Table:
    kind = draw.randrange(4)
    if kind == 0 and len(table):
        return pa.concat_tables([table.slice(0, 1), table.slice(0, 0), table.slice(1)])
    if kind == 1 and table.num_columns and not len(table):
        return pa.Table.from_arrays([pa.chunked_array([], field.type) for field in table.schema], schema=table.schema)
    return table.slice(1) if kind == 2 else table


Columns = list[tuple[str, pa.Array]]


def _less(columns: Columns, _: int, draw: random.Random) -> None:
    del columns[draw.randint(0, len(columns)) :]


def _other(columns: Columns, rows: int, draw: random.Random) -> None:
    if columns:
        at = draw.randrange(len(columns))
        columns[at] = (columns[at][0], _array(_type(draw, 2), rows, draw))


def _twice(columns: Columns, rows: int, draw: random.Random) -> None:
    if columns:
        name, _ = draw.choice(columns)
        columns.append((name, _array(_type(draw, 1), rows, draw)))


def _shuffled(columns: Columns, _: int, draw: random.Random) -> None:
    draw.shuffle(columns)


def _renamed(columns: Columns, _: int, draw: random.Random) -> None:
    if columns:
        at = draw.randrange(len(columns))
        columns[at] = (draw.choice(NAMES), columns[at][1])


DAMAGES: tuple[Callable[[Columns, int, random.Random], None], ...] = (_less, _other, _twice, _shuffled, _renamed)
"""What can become of the declared columns."""
