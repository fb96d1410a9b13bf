"""The user's functions in each mode: NULL, NaN, what raises, and what returns something else than declared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pytest

from tests.probe.scalars import Columns, bound
from windrow.errors import FunctionError
from windrow.probe.evaluate import Evaluator
from windrow.query import types
from windrow.query.spec import Mode, UserFunction
from windrow.query.types import BIGINT, BOOLEAN, DOUBLE, FLOAT, INTEGER, SMALLINT, VARCHAR, Type
from windrow.store.operand import to_arrow

pytestmark = pytest.mark.usefixtures("interpreted")

MODES: tuple[Mode, ...] = ("auto", "vectorised", "pair")


def values_of(
    function: Callable[..., Any],
    columns: dict[str, pa.Array],
    result: Type,
    mode: Mode,
    names: Sequence[str] | None = None,
) -> list[Any]:
    """The function's values over the columns."""
    count = max([len(column) for column in columns.values()], default=2)
    table = pa.table({**columns, "ts": pa.array([0] * count, pa.timestamp("us"))})
    user = UserFunction("f", function, result, mode)
    text = f"f({', '.join(f'a.{name}' for name in (columns if names is None else names))})"
    node = bound(text, table, (user,))
    found = to_arrow(Evaluator((user,)).evaluate(node, Columns(table)), result)
    assert found.type == types.to_arrow(result)
    return list(found.to_pylist())


@pytest.mark.parametrize("mode", MODES)
def test_values_and_nulls(mode: Mode) -> None:
    calls: list[Any] = []

    def gap(x: Any, y: Any) -> Any:
        return abs(x - y)

    def noted(x: Any, y: Any) -> Any:
        calls.append(np.atleast_1d(x).tolist())
        return gap(x, y)

    columns = {"x": pa.array([1.0, None, 3.0, float("nan")]), "y": pa.array([4, 5, None, 6], pa.int32())}
    assert values_of(gap, columns, DOUBLE, mode) == [3.0, None, None, None]
    assert values_of(noted, columns, DOUBLE, mode) == [3.0, None, None, None]
    assert calls == [[1.0]]


@pytest.mark.parametrize("mode", MODES)
def test_nan_returned_is_null(mode: Mode) -> None:
    columns = {"x": pa.array([4.0, -1.0])}
    assert values_of(lambda x: x * float("nan"), columns, DOUBLE, mode) == [None, None]
    assert values_of(lambda x: x * float("nan"), columns, FLOAT, mode) == [None, None]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rows", [0, 3])
def test_functions_are_not_called_without_known_arguments(mode: Mode, rows: int) -> None:
    def never(x: Any) -> Any:
        raise AssertionError(f"called with {x}")

    assert values_of(never, {"x": pa.array([None] * rows, pa.float64())}, DOUBLE, mode) == [None] * rows


RESULTS: tuple[tuple[Type, Callable[[Any], Any], list[Any]], ...] = (
    (BOOLEAN, lambda x: x > 1, [False, True, None]),
    (BIGINT, lambda x: x * 2, [2, 4, None]),
    (INTEGER, lambda x: x + 1, [2, 3, None]),
    (SMALLINT, lambda x: x + 1, [2, 3, None]),
    (DOUBLE, lambda x: x / 2, [0.5, 1.0, None]),
    (FLOAT, lambda x: x / 2, [0.5, 1.0, None]),
    (DOUBLE, lambda x: x + 1, [2.0, 3.0, None]),
)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("place", range(len(RESULTS)))
def test_every_result_type(mode: Mode, place: int) -> None:
    result, function, expected = RESULTS[place]
    assert values_of(function, {"x": pa.array([1, 2, None], pa.int64())}, result, mode) == expected


def test_texts_times_decimals_and_vectors_come_as_python_or_numpy_values() -> None:
    seen: list[Any] = []

    def show(*arguments: Any) -> str:
        seen.append(arguments)
        return "|".join(type(argument).__name__ for argument in arguments)

    columns = {
        "s": pa.array(["ä", None]),
        "m": pa.array([1, 2], pa.timestamp("us")),
        "d": pa.array([Decimal("1.50"), Decimal("2.50")], pa.decimal128(20, 2)),
        "v": pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2)),
    }
    assert values_of(show, columns, VARCHAR, "pair") == ["str|datetime|float|ndarray", None]
    assert seen[0][0] == "ä"
    assert seen[0][3].tolist() == [1.0, 2.0]
    assert values_of(lambda s, v: v[:, 0] + len(s), columns, DOUBLE, "vectorised", ("s", "v")) == [2.0, None]
    assert values_of(lambda v: v[0] + v[1], columns, DOUBLE, "auto", ("v",)) == [3.0, 7.0]


def test_auto_compiles_what_it_can_and_calls_the_rest() -> None:
    kinds: list[str] = []

    def interpreted_only(x: Any) -> float:
        kinds.append(type(x).__name__)
        return {1.0: 10.0}.get(x, 0.0) if isinstance(x, float) else -1.0

    assert values_of(interpreted_only, {"x": pa.array([1.0, 2.0])}, DOUBLE, "auto") == [10.0, 0.0]
    assert kinds == ["float", "float"]

    def both(x: Any) -> float:
        return x + 1.0 if isinstance(x, float) else -1.0

    assert values_of(both, {"x": pa.array([1.0])}, DOUBLE, "auto") == [2.0]
    assert values_of(numba.njit(both), {"x": pa.array([1.0])}, DOUBLE, "auto") == [2.0]


def test_many_and_no_arguments() -> None:
    columns = {name: pa.array([1.0, 2.0]) for name in "pqrstu"}
    assert values_of(lambda *each: float(sum(each)), columns, DOUBLE, "auto") == [6.0, 12.0]
    assert values_of(lambda p, q, r, s: p + q + r + s, columns, DOUBLE, "auto", ("p", "q", "r", "s")) == [4.0, 8.0]
    assert values_of(lambda: 7, {}, BIGINT, "pair") == [7, 7]
    assert values_of(lambda: 7, {}, BIGINT, "auto") == [7, 7]


@pytest.mark.parametrize("mode", MODES)
def test_what_a_function_raises_is_said_with_its_arguments(mode: Mode) -> None:
    def picky(x: Any) -> Any:
        if np.any(x > 1):
            raise ValueError("too large,\nreally")
        return x

    with pytest.raises(FunctionError, match=r"'f' raised ValueError: too large, really") as caught:
        values_of(picky, {"x": pa.array([0.5, 2.0])}, DOUBLE, mode)
    assert caught.value.hint
    assert caught.value.place == ("" if mode == "vectorised" else "f(2.0)")
    assert "\n" not in str(caught.value)


WRONG: tuple[tuple[Type, Callable[[Any], Any]], ...] = (
    (BIGINT, lambda x: x / 2),
    (BIGINT, lambda x: x > 0),
    (INTEGER, lambda x: x + 2**40),
    (SMALLINT, lambda x: x + 2**20),
    (BOOLEAN, lambda x: x + 1),
    (BOOLEAN, lambda x: x / 2),
)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("place", range(len(WRONG)))
def test_what_is_not_of_the_declared_type_is_refused(mode: Mode, place: int) -> None:
    result, function = WRONG[place]
    with pytest.raises(FunctionError, match=f"returned .*declared {result}"):
        values_of(function, {"x": pa.array([1, 3], pa.int64())}, result, mode)


@pytest.mark.parametrize("mode", MODES)
def test_texts_for_numbers_are_refused(mode: Mode) -> None:
    def text(x: Any) -> Any:
        return np.array(["a"] * len(x)) if mode == "vectorised" else "a"

    with pytest.raises(FunctionError, match="declared DOUBLE"):
        values_of(text, {"x": pa.array([1.0])}, DOUBLE, mode)


def test_shapes_of_vectorised_results() -> None:
    columns = {"x": pa.array([1.0, 2.0, 3.0])}
    for wrong in (lambda x: x.sum(), lambda x: x[:2], lambda x: np.stack([x, x])):
        with pytest.raises(FunctionError, match=r"returned shape \(.*\) for 3 rows"):
            values_of(wrong, columns, DOUBLE, "vectorised")
    assert values_of(lambda x: x.tolist(), columns, DOUBLE, "vectorised") == [1.0, 2.0, 3.0]
    some = [None, 2.5, None]
    assert values_of(lambda x: np.array(some, object), columns, DOUBLE, "vectorised") == some
    assert values_of(lambda x: np.array(["a", None, "c"], object), columns, VARCHAR, "vectorised") == ["a", None, "c"]


def test_none_returned_is_null() -> None:
    columns = {"x": pa.array([1, -1], pa.int64())}
    for mode in ("pair", "auto"):
        assert values_of(lambda x: x if x > 0 else None, columns, BIGINT, mode) == [1, None]
        assert values_of(lambda x: None, columns, BOOLEAN, mode) == [None, None]
