"""A small table: what an experiment measured, row by row, and how it leaves as CSV.

Values are plain: text, numbers, truth values, or None where there is none. Numbers of NumPy become Python's; a number
that is not finite becomes None, because neither JSON nor a plot has a place for it.

>>> table = Table.of(("metric", "z", "share"), [("greedy", 0.1, 0.98), ("greedy", 0.2, float("nan")), ("ours", 0.1, 1)])
>>> table.where(metric="greedy").column("share")
(0.98, None)
>>> print(table.csv(), end="")
metric,z,share
greedy,0.1,0.98
greedy,0.2,
ours,0.1,1
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from windrow.errors import UsageError

Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Table:
    """Named columns and rows of values; all rows are as long as there are columns."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]

    def __post_init__(self) -> None:
        if len(set(self.columns)) != len(self.columns):
            raise UsageError(f"two columns have one name: {self.columns}", hint="name each column once")
        for row in self.rows:
            if len(row) != len(self.columns):
                raise UsageError(f"the row {row} does not fit the columns {self.columns}", hint="give one value each")

    @classmethod
    def of(cls, columns: Iterable[str], rows: Iterable[Sequence[object]]) -> Table:
        """A table of anything that is a plain value or a number of NumPy."""
        return cls(tuple(columns), tuple(tuple(plain(value) for value in row) for row in rows))

    def column(self, name: str) -> tuple[Value, ...]:
        """The values of one column."""
        place = self._place(name)
        return tuple(row[place] for row in self.rows)

    def numbers(self, name: str) -> tuple[float, ...]:
        """The values of a column of numbers, without those that are missing.

        >>> Table.of(("z",), [(0.1,), (None,), (2,)]).numbers("z")
        (0.1, 2.0)
        """
        return tuple(float(value) for value in self.column(name) if isinstance(value, (int, float)))

    def where(self, **wanted: Value) -> Table:
        """The rows that hold these values in these columns."""
        places = {self._place(name): value for name, value in wanted.items()}
        kept = (row for row in self.rows if all(row[place] == value for place, value in places.items()))
        return Table(self.columns, tuple(kept))

    def csv(self) -> str:
        """The table as CSV; a missing value is an empty field."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return text.getvalue()

    def _place(self, name: str) -> int:
        if name not in self.columns:
            raise UsageError(f"there is no column '{name}'", hint=f"the columns are {', '.join(self.columns)}")
        return self.columns.index(name)


def plain(value: object) -> Value:
    """A value as JSON and CSV can hold it.

    >>> plain(np.int64(3)), plain(np.float64(0.5)), plain(float("inf")), plain(np.True_), plain("x")
    (3, 0.5, None, True, 'x')
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (str, int)):
        return value
    raise UsageError(f"{value!r} is not a plain value", hint="give text, a number, a truth value or None")
