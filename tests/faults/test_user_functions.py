"""A user function that hangs, raises, or returns what it must not: one line that shows the call, in every mode, and the
join goes on right once the function is mended; NaN is NULL.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import windrow
from tests.oracle.duck import rows_of
from tests.run.spark.played import Played, Way
from tests.run.spark.test_worker import batches_of, joined
from windrow.errors import FunctionError, QueryError
from windrow.query.spec import Mode

pytestmark = pytest.mark.usefixtures("interpreted")

LIMIT_S = 0.2
ROWS = pa.table({"ts": pa.array([1, 2, 3], pa.timestamp("us")), "x": [1.0, 2.0, 3.0]})
TEXT = "SELECT a.x AS ax, b.x AS bx FROM a, b WHERE near(a.x, b.x) WINDOW 1 SECONDS"

_ended = threading.Event()


@pytest.fixture(autouse=True)
def ends() -> Iterator[None]:
    """What hangs in a test ends after it."""
    _ended.clear()
    yield
    _ended.set()


def hung(*_: Any) -> bool:
    return _ended.wait()


def spinning(*_: Any) -> bool:
    while not _ended.is_set():
        continue
    return True


def joined_by(function: Callable[..., Any], mode: Mode, returns: str = "BOOLEAN", text: str = TEXT) -> pa.Table:
    near = windrow.function("near", returns=returns, mode=mode, limit_s=LIMIT_S)(function)
    with windrow.local(windrow.sql(text, {"a": ROWS, "b": ROWS}, functions=(near,))) as join:
        join.push("a", ROWS)
        join.push("b", ROWS)
        return join.finish()


@pytest.mark.parametrize("mode", ["pair", "vectorised"])
@pytest.mark.parametrize("function", [hung, spinning])
def test_what_hangs_ends_the_query(function: Callable[..., bool], mode: Mode) -> None:
    with pytest.raises(FunctionError, match=r"'near' has not returned for 0\.2 s") as told:
        joined_by(function, mode)
    assert "\n" not in str(told.value)
    assert re.fullmatch(r"near\(\d\.0, \d\.0\)" if mode == "pair" else r"\d rows at once", told.value.place)


def test_compiled_code_that_hangs_ends_the_query() -> None:
    def mixed(x: float, y: float) -> bool:
        state, rounds = np.uint64(88172645463325252), int(1e9) if y > 2 else 1
        for _ in range(rounds):
            state ^= state << np.uint64(13)
            state ^= state >> np.uint64(7)
            state ^= state << np.uint64(17)
        return bool(x + state % np.uint64(2) >= 0)

    near = windrow.function("near", returns="BOOLEAN", limit_s=LIMIT_S)(mixed)
    early = ROWS.slice(0, 2)
    with windrow.local(windrow.sql(TEXT, {"a": ROWS, "b": ROWS}, functions=(near,))) as join:
        join.push("a", early)
        join.push("b", early)
        assert len(join.finish()) == 4
    with pytest.raises(FunctionError, match=r"\d rows at once"):
        joined_by(mixed, "auto")


def test_wrong_shapes_and_types_end_the_query() -> None:
    with pytest.raises(FunctionError, match=r"shape \(2, 1\) for \d rows"):
        joined_by(lambda x, y: np.zeros((2, 1), np.bool_), "vectorised")
    with pytest.raises(FunctionError, match="returned 'yes', declared BOOLEAN"):
        joined_by(lambda x, y: "yes", "pair")
    with pytest.raises(FunctionError, match=r"ZeroDivisionError: .* \(at: near\(\d\.0, \d\.0\)\)"):
        joined_by(lambda x, y: 1 / 0, "pair")


@pytest.mark.parametrize("mode", ["auto", "pair", "vectorised"])
def test_nan_is_null(mode: Mode) -> None:
    text = TEXT.replace("near(a.x, b.x)", "near(a.x, b.x) > 0 OR near(a.x, b.x) IS NULL AND a.x = b.x")
    found = joined_by(lambda x, y: (x - y) * float("inf"), mode, "DOUBLE", text)
    assert rows_of(found) == rows_of(pa.table({"ax": [1.0, 2.0, 2.0, 3.0, 3.0, 3.0], "bx": [1.0, 1, 2, 1, 2, 3]}))


@pytest.mark.parametrize("limit_s", [0, -1, float("nan"), "1", True])
def test_limits_are_checked(limit_s: Any) -> None:
    with pytest.raises(QueryError, match=r"may take .* s"):
        windrow.function("near", limit_s=limit_s)(hung)


class Trouble:
    """A function that fails in its own way while it is broken."""

    way: Callable[..., bool] | None = None


def near(x: float, y: float) -> bool:
    return abs(x - y) <= 0.5 if Trouble.way is None else Trouble.way(x, y)


@pytest.mark.parametrize(
    ("way", "hops"),
    [(hung, True), (lambda x, y: 1 // 0, False), (lambda x, y: [1], False)],
    ids=["hangs", "raises", "a list"],
)
def test_a_batch_runs_again_once_the_function_is_mended(
    way: Callable[..., bool], hops: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "SELECT a.id AS i, b.id AS j FROM s AS a, t AS b WHERE near(a.f64, b.f64) WINDOW 9 SECONDS LATENESS 9 SECONDS"
    )
    sources = joined(text.replace("near(a.f64, b.f64)", "a.f64 < b.f64")).sources
    declared = windrow.function(returns="BOOLEAN", mode="pair", limit_s=LIMIT_S)(near)
    query = windrow.sql(text, sources, time=dict.fromkeys(sources, "ts"), functions=(declared,))
    batches = batches_of(query.sources, rows=8)[:4]
    with windrow.local(query) as join:
        expected = []
        for tables in batches:
            for name, table in tables.items():
                join.push(name, table)
            expected.append(rows_of(join.step(now_s=0)))
    played = Played(query, tmp_path, Way(2, hops=hops))
    for batch, tables in enumerate(batches):
        if batch == 2:
            monkeypatch.setattr(Trouble, "way", staticmethod(way))
            with pytest.raises(FunctionError, match="user function 'near' "):
                played.run(batch, tables)
            assert batch not in played.found
            monkeypatch.setattr(Trouble, "way", None)
            played.restart()
        assert played.run(batch, tables) == expected[batch]
    assert sum(rows.total() for rows in expected[2:]) > 2
