"""Functions of the user's: compiled where they compile, over arrays where declared so, else one call a row.

    mode          called with
    vectorised    NumPy arrays, all rows at once; has to return an array of as many values
    auto          machine words, in a compiled loop, if Numba can compile the function for them; else as `pair`
    pair          Python values, once a row

A row with a NULL argument gives NULL without a call. NaN returned is NULL. What the function raises, or returns that
is not of its declared type, ends the query with a `FunctionError` that shows the arguments; so does a call that takes
longer than the function's `limit_s` (`windrow.probe.patience`).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

import numba
import numpy as np
import pyarrow as pa

from windrow.errors import FunctionError
from windrow.probe.patience import Overdue, Progress, call_within
from windrow.query import types
from windrow.query.expression import Call
from windrow.query.spec import UserFunction
from windrow.query.types import Kind, Type
from windrow.store.operand import NUMPY, Array, Form, Operand, from_arrow, to_arrow

_compiled_loops: dict[Callable[..., Any], Callable[..., Any] | None] = {}


def call_user_function(function: UserFunction, node: Call, operands: Sequence[Operand], count: int) -> Operand:
    """The function's values over `count` rows of its arguments."""
    argument_types = [argument.type for argument in node.arguments]
    known = _known(operands, argument_types)
    rows = np.flatnonzero(known) if known is not None else None
    taken = [
        operand if rows is None else _take(operand, type_, rows)
        for operand, type_ in zip(operands, argument_types, strict=True)
    ]
    called = count if rows is None else len(rows)
    if called == 0:
        return _spread(_from_python([], function), rows, count, function.result)
    try:
        values = call_within(
            function.limit_s, lambda progress: _call(function, taken, argument_types, called, progress)
        )
    except Overdue as overdue:
        raise FunctionError(
            f"user function '{function.name}' has not returned for {function.limit_s:g} s",
            place=f"{function.name}({_shown(overdue.arguments)})" if overdue.arguments else f"{called} rows at once",
            hint="make it return, or declare it with a longer limit_s",
        ) from None
    return _spread(values, rows, count, function.result)


def _call(
    function: UserFunction,
    operands: Sequence[Operand],
    argument_types: Sequence[Type],
    count: int,
    progress: Progress,
) -> Operand:
    if function.mode == "vectorised":
        return _vectorised(function, [_column(o, t) for o, t in zip(operands, argument_types, strict=True)], count)
    if (
        function.mode == "auto"
        and all(operand.form in (Form.NUMBER, Form.VECTOR) for operand in operands)
        and _is_word(function.result)
    ):
        values = _compiled(function, [operand.values for operand in operands], argument_types, count, progress)
        if values is not None:
            return _words(values, function)
    columns = [_python_values(o, t) for o, t in zip(operands, argument_types, strict=True)]
    rows = zip(*columns, strict=True) if columns else [()] * count
    return _from_python([_one(function, arguments, progress) for arguments in rows], function)


def _compiled(
    function: UserFunction, arrays: list[Array], argument_types: Sequence[Type], count: int, progress: Progress
) -> Array | None:
    """The values from a compiled loop; None where the function does not compile for these arguments, or raised."""
    if any(t.kind is Kind.DECIMAL or t.is_time or t.kind in (Kind.DATE, Kind.INTERVAL) for t in argument_types):
        return None
    if function.function not in _compiled_loops:
        _compiled_loops[function.function] = _loop(function.function, len(arrays))
    loop = _compiled_loops[function.function]
    if loop is None:
        return None
    values = np.empty(count, np.int64 if function.result.is_integer else NUMPY[function.result.kind])
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            progress.is_free = True
            loop(values[:0], *(array[:0] for array in arrays))  # compiles where it has to
            progress.is_free = False
            returned = loop(values, *arrays)
    except Exception:  # whatever it is, the call in Python says it with the arguments
        returned = ()
    progress.is_free = False
    if not returned or not all(_holds(function.result, kind) for kind in returned):
        _compiled_loops[function.function] = None
        return None
    return values


def _holds(result: Type, returned: Any) -> bool:
    """Whether what compiled code returns goes into the declared type as it is."""
    if result.kind is Kind.BOOLEAN:
        return isinstance(returned, numba.types.Boolean)
    whole = isinstance(returned, numba.types.Integer) and returned != numba.types.uint64
    return whole or (result.is_float and isinstance(returned, numba.types.Float))


def _loop(function: Callable[..., Any], arity: int) -> Callable[..., Any] | None:
    """A compiled loop that calls the compiled function with element k of each array; gives the types it returned."""
    try:
        inner: Any = function if hasattr(function, "py_func") else numba.njit(function)
    except Exception:
        return None

    @numba.njit(nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
    def one(values: Any, a: Any) -> None:
        for k in range(len(values)):
            values[k] = inner(a[k])

    @numba.njit(nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
    def two(values: Any, a: Any, b: Any) -> None:
        for k in range(len(values)):
            values[k] = inner(a[k], b[k])

    @numba.njit(nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
    def three(values: Any, a: Any, b: Any, c: Any) -> None:
        for k in range(len(values)):
            values[k] = inner(a[k], b[k], c[k])

    @numba.njit(nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
    def four(values: Any, a: Any, b: Any, c: Any, d: Any) -> None:
        for k in range(len(values)):
            values[k] = inner(a[k], b[k], c[k], d[k])

    loops: dict[int, Callable[..., Any]] = {1: one, 2: two, 3: three, 4: four}
    if arity not in loops:
        return None

    def run(values: Array, *arrays: Array) -> list[Any]:
        loops[arity](values, *arrays)
        return [signature.return_type for signature in inner.nopython_signatures]

    return run


def _vectorised(function: UserFunction, columns: list[Array], count: int) -> Operand:
    try:
        with np.errstate(all="ignore"):
            returned = np.asarray(function.function(*columns))
    except Exception as error:
        raise FunctionError(
            f"user function '{function.name}' raised {type(error).__name__}: {error}",
            hint="it is called with arrays; make it handle every row",
        ) from error
    if returned.shape != (count,):
        raise FunctionError(
            f"user function '{function.name}' returned shape {returned.shape} for {count} rows",
            hint="a vectorised function returns one value a row",
        )
    if not _is_word(function.result) or returned.dtype.kind == "O":
        return _from_python(returned.tolist(), function)
    allowed = "b" if function.result.kind is Kind.BOOLEAN else "iu" if function.result.is_integer else "iuf"
    if returned.dtype.kind not in allowed:
        raise FunctionError(
            f"user function '{function.name}' returned {returned.dtype} values, declared {function.result}",
            hint="return the declared type",
        )
    return _words(returned, function)


def _words(values: Array, function: UserFunction) -> Operand:
    """The values in the declared type; an integer that does not fit it is an error, as it is in Python."""
    target = NUMPY[function.result.kind]
    if function.result.is_integer and len(values):
        limits = np.iinfo(target)
        beyond = values[(values < limits.min) | (values > limits.max)]
        if len(beyond):
            raise FunctionError(
                f"user function '{function.name}' returned {beyond[0]}, declared {function.result}",
                hint="return the declared type, or None for NULL",
            )
    with np.errstate(over="ignore"):
        return Operand(Form.NUMBER, (values.astype(target, copy=False),))


def _one(function: UserFunction, arguments: tuple[Any, ...], progress: Progress) -> Any:
    progress.begin(arguments)
    try:
        return function.function(*arguments)
    except Exception as error:
        raise FunctionError(
            f"user function '{function.name}' raised {type(error).__name__}: {error}",
            place=f"{function.name}({_shown(arguments)})",
            hint="make it return None for what it cannot handle",
        ) from error


def _shown(arguments: tuple[Any, ...]) -> str:
    return ", ".join(repr(argument)[:60] for argument in arguments)


def _from_python(values: list[Any], function: UserFunction) -> Operand:
    target = types.to_arrow(function.result)
    if function.result.is_float:
        values = [None if isinstance(value, float) and math.isnan(value) else value for value in values]
    cause: Exception | None = None
    try:
        if not function.result.is_integer or all(map(_is_whole, values)):
            return from_arrow(pa.array(values, target), function.result)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        cause = error
    wrong = next((value for value in values if not _converts(value, function.result)), None)
    raise FunctionError(
        f"user function '{function.name}' returned {wrong!r}, declared {function.result}",
        hint="return the declared type, or None for NULL",
    ) from cause


def _is_whole(value: Any) -> bool:
    """Whether a value is an integer or NULL: of a float, Arrow would cut the fraction off."""
    return value is None or isinstance(value, Integral)


def _converts(value: Any, result: Type) -> bool:
    try:
        pa.array([value], types.to_arrow(result))
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return False
    return _is_whole(value) or not result.is_integer


def _is_word(type_: Type) -> bool:
    return type_.kind in (Kind.BOOLEAN, Kind.BIGINT, Kind.INTEGER, Kind.DOUBLE, Kind.FLOAT)


def _known(operands: Sequence[Operand], argument_types: Sequence[Type]) -> Array | None:
    """For which rows no argument is NULL; None where that is all of them."""
    known: Array | None = None
    for operand, type_ in zip(operands, argument_types, strict=True):
        valid = ~np.isnan(operand.values) if type_.is_float else operand.valid
        if valid is not None and not valid.all():
            known = valid if known is None else known & valid
    return known


def _take(operand: Operand, type_: Type, rows: Array) -> Operand:
    if operand.form is Form.TEXT and operand.arrow is not None:
        return from_arrow(operand.arrow.take(pa.array(rows)), type_)
    return Operand(operand.form, (operand.values[rows],))


def _column(operand: Operand, type_: Type) -> Array:
    if operand.form is Form.VECTOR or (
        operand.form is Form.NUMBER and (type_.is_float or type_.is_integer or type_.kind is Kind.BOOLEAN)
    ):
        return operand.values
    return np.asarray(to_arrow(operand, type_).to_numpy(zero_copy_only=False))


def _python_values(operand: Operand, type_: Type) -> list[Any]:
    return list(operand.values) if operand.form is Form.VECTOR else list(to_arrow(operand, type_).to_pylist())


def _spread(values: Operand, rows: Array | None, count: int, result: Type) -> Operand:
    """Put values computed for some rows back in their places; the other rows are NULL."""
    if rows is None:
        return values
    if values.form is Form.TEXT:
        places = np.full(count, -1, np.int64)
        places[rows] = np.arange(len(rows))
        return from_arrow(to_arrow(values, result).take(pa.array(places, mask=places < 0)), result)
    spread = np.full(count, np.nan if result.is_float else 0, values.values.dtype)
    spread[rows] = values.values
    valid = np.zeros(count, np.bool_)
    valid[rows] = True if values.valid is None else values.valid
    return Operand(Form.NUMBER, (spread,), None if result.is_float else valid)
