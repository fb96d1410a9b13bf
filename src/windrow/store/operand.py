"""Operands: the values of one expression over the rows of a segment, in the form that compiled code reads.

    form      arrays                                   of the types
    number    values (bool, intN, uintN, floatN)       everything with one machine word
    text      offsets, bytes                           VARCHAR
    vector    rows x length, float32 or float64        VECTOR
    tokens    offsets, sorted token hashes             token sets of texts, for `jaccard`

NULL is a False in `valid`; `valid` is None where nothing is NULL. Floats need no `valid`: their NULL is NaN.
Arrays are views of Arrow memory wherever the layout allows, so a column that is both searched and selected is held
once.

>>> from_arrow(pa.array([1, None, 3], pa.int32()), types.INTEGER).valid
array([ True, False,  True])
>>> from_arrow(pa.array([0.5, None]), types.DOUBLE).arrays
(array([0.5, nan]),)
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import InputError
from windrow.query import types
from windrow.query.types import Kind, Type

Array = np.ndarray[Any, np.dtype[Any]]


class Form(Enum):
    """How the values of an operand lie in memory."""

    NUMBER = "number"
    TEXT = "text"
    VECTOR = "vector"
    TOKENS = "tokens"


@dataclass(frozen=True, slots=True, eq=False)
class Operand:
    """Values of one expression, row by row; `arrow` is their Arrow array where one exists (always, for text and
    tokens).
    """

    form: Form
    arrays: tuple[Array, ...]
    valid: Array | None = None
    arrow: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.arrays[0]) - (1 if self.form in (Form.TEXT, Form.TOKENS) else 0)

    @property
    def values(self) -> Array:
        """The machine words of a number, or the rows of a vector."""
        return self.arrays[0]

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays) + (0 if self.valid is None else self.valid.nbytes)


NUMPY: dict[Kind, np.dtype[Any]] = {
    Kind.BOOLEAN: np.dtype(np.bool_),
    Kind.TINYINT: np.dtype(np.int8),
    Kind.SMALLINT: np.dtype(np.int16),
    Kind.INTEGER: np.dtype(np.int32),
    Kind.BIGINT: np.dtype(np.int64),
    Kind.UTINYINT: np.dtype(np.uint8),
    Kind.USMALLINT: np.dtype(np.uint16),
    Kind.UINTEGER: np.dtype(np.uint32),
    Kind.FLOAT: np.dtype(np.float32),
    Kind.DOUBLE: np.dtype(np.float64),
    Kind.DECIMAL: np.dtype(np.int64),
    Kind.DATE: np.dtype(np.int32),
    Kind.TIMESTAMP: np.dtype(np.int64),
    Kind.TIMESTAMPTZ: np.dtype(np.int64),
    Kind.INTERVAL: np.dtype(np.int64),
    Kind.NULL: np.dtype(np.bool_),
}


def form_of(type_: Type) -> Form:
    """The form values of a type take."""
    if type_.kind is Kind.VARCHAR:
        return Form.TEXT
    return Form.VECTOR if type_.kind is Kind.VECTOR else Form.NUMBER


def from_arrow(array: pa.Array, type_: Type) -> Operand:
    """The operand of an Arrow array whose query type is `type_`."""
    if type_.kind is Kind.VARCHAR:
        return _from_text(array)
    if type_.kind is Kind.VECTOR:
        return _from_vectors(array, type_)
    if type_.kind is Kind.OTHER:
        raise InputError(
            f"values of Arrow type {array.type} can be selected but not computed with",
            hint="cast the column before joining",
        )
    return _from_numbers(array, type_)


def from_values(values: Array, valid: Array | None = None) -> Operand:
    """The operand of plain NumPy values: one word a row, or one row of a matrix a row."""
    return Operand(Form.VECTOR if values.ndim == 2 else Form.NUMBER, (values,), valid)


def tokens_operand(arrow: pa.LargeListArray, valid: Array | None) -> Operand:
    """The operand of token sets that lie in an Arrow array of lists of hashes."""
    offsets = np.zeros(1, np.int64)
    if len(arrow):
        offsets = np.frombuffer(arrow.buffers()[1], np.int64)[arrow.offset : arrow.offset + len(arrow) + 1]
    return Operand(Form.TOKENS, (offsets, arrow.values.to_numpy()), valid, arrow)


def to_arrow(operand: Operand, type_: Type) -> pa.Array:
    """The values as an Arrow array of the type's delivery form."""
    if operand.arrow is not None and operand.form is Form.TEXT:
        return operand.arrow
    target = types.to_arrow(type_)
    if operand.form is Form.VECTOR:
        flat = pa.array(np.ascontiguousarray(operand.values).reshape(-1))
        missing = None if operand.valid is None else pa.array(~operand.valid)
        return pa.FixedSizeListArray.from_arrays(flat, type=target, mask=missing)
    values = operand.values
    missing_mask = np.isnan(values) if type_.is_float else None if operand.valid is None else ~operand.valid
    if missing_mask is not None and not missing_mask.any():
        missing_mask = None
    if type_.kind is Kind.NULL:
        return pa.nulls(len(values))
    if type_.kind is Kind.DECIMAL:
        return _decimals(values, missing_mask, target)
    if pa.types.is_temporal(target):
        words = pa.array(values, pa.int32() if type_.kind is Kind.DATE else pa.int64(), mask=missing_mask)
        return words.cast(target) if type_.kind is Kind.DATE else words.view(target)
    return pa.array(values, target, mask=missing_mask)


def time_us(array: pa.Array) -> pa.Array:
    """Timestamps, dates or durations of any unit as int64 microseconds; finer units are cut downwards, and what does
    not fit 64 bits is NULL.
    """
    kind = array.type
    if pa.types.is_date(kind):
        return pc.cast(array, pa.timestamp("us")).view(pa.int64())
    if not (pa.types.is_timestamp(kind) or pa.types.is_duration(kind)):
        return pc.cast(array, pa.int64())
    words = array.view(pa.int64())
    if kind.unit == "us":
        return words
    if kind.unit == "ns":
        values, missing = np.asarray(words.fill_null(0)), np.asarray(words.is_null())
        return pa.array(values // 1000, mask=missing)
    factor = 1_000_000 if kind.unit == "s" else 1_000
    furthest = (2**63 - 1) // factor
    fits = pc.and_(pc.less_equal(words, furthest), pc.greater_equal(words, -furthest))
    return pc.multiply(pc.if_else(fits, words, pa.scalar(None, pa.int64())), pa.scalar(factor, pa.int64()))


def _from_numbers(array: pa.Array, type_: Type) -> Operand:
    kind = type_.kind
    if kind is Kind.NULL:
        return Operand(Form.NUMBER, (np.zeros(len(array), np.bool_),), np.zeros(len(array), np.bool_))
    if kind is Kind.DECIMAL:
        return _from_decimals(array)
    if kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.INTERVAL):
        array = time_us(array)
    elif kind is Kind.DATE:
        array = array.cast(pa.date32()).view(pa.int32())
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if type_.is_float:
        if array.null_count:
            array = array.fill_null(float("nan"))
        return Operand(Form.NUMBER, (array.to_numpy(zero_copy_only=True),))
    valid = np.asarray(array.is_valid()) if array.null_count else None
    if valid is not None:
        array = array.fill_null(False if kind is Kind.BOOLEAN else 0)
    return Operand(Form.NUMBER, (array.to_numpy(zero_copy_only=kind is not Kind.BOOLEAN),), valid)


def _from_decimals(array: pa.Array) -> Operand:
    """The low words of the unscaled integers; a value that needs more than 64 bits is an overflow, hence NULL."""
    array = array.cast(pa.decimal128(array.type.precision, array.type.scale))
    words = np.frombuffer(array.buffers()[1], np.int64)[2 * array.offset : 2 * (array.offset + len(array))].reshape(
        -1, 2
    )
    values = np.ascontiguousarray(words[:, 0])
    fits = words[:, 1] == (values >> 63)
    valid = np.asarray(array.is_valid()) & fits
    return Operand(Form.NUMBER, (np.where(valid, values, 0),), None if valid.all() else valid)


def _from_text(array: pa.Array) -> Operand:
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if array.type != pa.string():
        array = array.cast(pa.string())
    valid = np.asarray(array.is_valid()) if array.null_count else None
    offsets, data = list_parts(array)
    return Operand(Form.TEXT, (offsets, data), valid, array)


def _from_vectors(array: pa.FixedSizeListArray, type_: Type) -> Operand:
    element = np.float32 if type_.width == 32 else np.float64
    elements = array.values.slice(array.offset * type_.length, len(array) * type_.length)
    if elements.null_count:
        elements = elements.fill_null(float("nan"))
    rows = elements.to_numpy(zero_copy_only=True).astype(element, copy=False).reshape(len(array), type_.length)
    valid = np.asarray(array.is_valid()) if array.null_count else None
    return Operand(Form.VECTOR, (rows,), valid, array)


def list_parts(array: pa.Array) -> tuple[Array, Array]:
    """Offsets (int32, starting anywhere) and elements of a string array; NULL is empty in well-formed Arrow data."""
    _, offsets, data = array.buffers()
    count = len(array)
    if offsets is None or count == 0:
        return np.zeros(count + 1, np.int32), np.zeros(0, np.uint8)
    starts = np.frombuffer(offsets, np.int32)[array.offset : array.offset + count + 1]
    return starts, np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)


def _decimals(values: Array, missing: Array | None, target: pa.Decimal128Type) -> pa.Array:
    words = np.empty((len(values), 2), np.int64)
    words[:, 0] = values
    words[:, 1] = values >> 63
    bitmap = None if missing is None else pa.array(~missing).buffers()[1]
    return pa.Array.from_buffers(target, len(values), [bitmap, pa.py_buffer(words)])
