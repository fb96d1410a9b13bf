"""Specifications to plan."""

from __future__ import annotations

import pyarrow as pa

from windrow.query import types
from windrow.query.spec import QuerySpec, UserFunction
from windrow.query.sql import parse

SCHEMA = pa.schema({
    "ts": pa.timestamp("us"), "x": pa.float64(), "y": pa.float64(), "i": pa.int64(), "k": pa.string(),
    "v": pa.list_(pa.float32(), 3),
})  # fmt: skip


def spec_of(where: str, streams: tuple[str, ...] = ("a", "b")) -> QuerySpec:
    """A query over some streams of one schema."""
    near = UserFunction("near", lambda x, y: x == y, types.BOOLEAN)
    text = f"SELECT a.x AS out FROM {', '.join(f't AS {name}' for name in streams)} WHERE {where} WINDOW 1 SECOND"
    return parse(text, {"t": SCHEMA}, functions=(near,))
