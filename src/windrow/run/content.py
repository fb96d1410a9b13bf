"""A row's content as one number: the hidden leaf behind `result_id()`, the same wherever and whenever it is computed.

It covers the event time and the columns the query uses, not others that are kept besides. It is computed when a row
enters; of rows that were stored before the query asked for it, when they are read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa

from windrow.probe.bounds import key_words
from windrow.probe.hashed import combine
from windrow.query import types
from windrow.query.expression import Column
from windrow.query.spec import UNBOUNDED
from windrow.query.types import Kind
from windrow.store.operand import Array, Form, Operand, from_arrow


def content_hash(times_us: Array, used: Iterable[Column], array_of: Callable[[Column], pa.Array]) -> Operand:
    """One hash a row over its event time and its `used` columns; what cannot be computed with does not count."""
    parts = [times_us]
    for column in used:
        if column.type.kind is Kind.OTHER:
            continue
        operand = from_arrow(array_of(column), column.type)
        if operand.form is Form.VECTOR:
            lines = (Operand(Form.NUMBER, (np.ascontiguousarray(line),)) for line in operand.values.T)
            parts.extend(key_words(line, types.DOUBLE)[0] for line in lines)
            continue
        words, valid = key_words(operand, column.type)
        parts.append(words if valid is None else np.where(valid, words, UNBOUNDED))
    return Operand(Form.NUMBER, (combine(parts),))
