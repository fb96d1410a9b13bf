"""Tables of experiments: what fits into them, and how they leave."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from windrow.errors import UsageError
from windrow.papers.tables import Table, plain

TABLE = Table.of(
    ("name", "z", "share"),
    [("a, b", np.float64(0.1), 1), ("c", np.float32(0.5), float("nan")), ("c", 0.75, np.int64(2))],
)


def test_csv_reads_back() -> None:
    rows = list(csv.reader(io.StringIO(TABLE.csv())))
    assert rows == [["name", "z", "share"], ["a, b", "0.1", "1"], ["c", "0.5", ""], ["c", "0.75", "2"]]


def test_columns_and_rows_are_picked() -> None:
    assert TABLE.column("share") == (1, None, 2)
    assert TABLE.where(name="c").numbers("share") == (2.0,)
    assert TABLE.where(name="c", z=0.5).rows == (("c", 0.5, None),)
    assert TABLE.where(name="d").rows == ()


def test_numbers_of_numpy_become_plain() -> None:
    assert [type(value) for value in TABLE.rows[2]] == [str, float, int]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(UsageError, match="does not fit the columns"):
        Table.of(("a", "b"), [(1,)])
    with pytest.raises(UsageError, match="two columns have one name"):
        Table.of(("a", "a"), [])
    with pytest.raises(UsageError, match="no column 'x'"):
        TABLE.column("x")
    with pytest.raises(UsageError, match="not a plain value"):
        plain([1, 2])
