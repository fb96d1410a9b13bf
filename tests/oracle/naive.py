"""The parts of the definition that plain SQL does not say: row clocks, and which rows are too late to be input.

Row clocks: all rows of all streams stand in one order, by (event time, place of the stream, content of the columns
the query uses). `count_l` of a row is the number of rows of stream l up to and including it, filtered-out rows too. A
row s of a row-windowed stream l is in a result with newest row N iff count_l(N) - count_l(s) < w_l.

    order     a0  b0  a1  a2  b1      window a ROWS 2: with N = b1, count_a(N) = 3: a1 (3 - 2) and a2 (3 - 3) qualify,
    count_a    1   1   2   3   3      a0 (3 - 1 = 2) does not
    count_b    0   1   1   1   2

Watermark: after a batch, W of a stream is its largest event time so far less its lateness, and never goes back; a row
of the next batch below W is late.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from tests.oracle.duck import cleaned, plain

Row = dict[str, Any]


def content_key(values: Sequence[Any]) -> tuple[Any, ...]:
    """Content in an order that holds for every kind of value: text by bytes, NULL (and NaN) last."""
    return tuple(_value_key(value) for value in values)


def _value_key(value: Any) -> tuple[Any, ...]:
    if value is None or value != value:
        return (1,)
    if isinstance(value, tuple):
        return (0, content_key(value))
    return (0, value.encode() if isinstance(value, str) else value)


def row_counts(
    tables: Mapping[str, pa.Table], used: Mapping[str, Sequence[str]], windowed: Sequence[str], *, time: str = "ts"
) -> dict[str, dict[str, np.ndarray]]:
    """`count_l` of every row with an event time, as `counts[alias][l]`, for tables by alias in FROM order."""
    clean = {alias: cleaned(table, time) for alias, table in tables.items()}
    order = []
    for place, (alias, table) in enumerate(clean.items()):
        columns = [plain(table[name]) for name in used[alias]]
        for row, time_us in enumerate(table["time_us"].to_pylist()):
            order.append((time_us, place, content_key([column[row] for column in columns]), row))
    order.sort()
    names = list(clean)
    counts = {alias: {one: np.zeros(len(table), np.int64) for one in windowed} for alias, table in clean.items()}
    seen = dict.fromkeys(windowed, 0)
    for _, place, _, row in order:
        alias = names[place]
        if alias in seen:
            seen[alias] += 1
        for one in windowed:
            counts[alias][one][row] = seen[one]
    return counts


def join(
    tables: Mapping[str, Sequence[Row]],
    predicate: Callable[..., bool],
    spans_us: Mapping[str, int],
    rows: Mapping[str, int],
    counts: Mapping[str, Mapping[str, np.ndarray]],
) -> Counter[tuple[int, ...]]:
    """Row numbers of every result, by trying every combination; rows carry their event time as `time_us`."""
    found: Counter[tuple[int, ...]] = Counter()
    names = list(tables)
    for numbers in itertools.product(*(range(len(tables[name])) for name in names)):
        members = {name: tables[name][number] for name, number in zip(names, numbers, strict=True)}
        newest_us = max(member["time_us"] for member in members.values())
        if any(newest_us - members[name]["time_us"] > span for name, span in spans_us.items()):
            continue
        clocks = {one: [counts[name][one][number] for name, number in zip(names, numbers, strict=True)] for one in rows}
        if any(max(clocks[one]) - clocks[one][names.index(one)] >= width for one, width in rows.items()):
            continue
        if predicate(**members):
            found[numbers] += 1
    return found


@dataclass
class Watermarks:
    """Which rows are input, batch after batch; late ones and those without an event time are counted."""

    lateness_us: Mapping[str, int]
    reached_us: dict[str, int] = field(default_factory=dict)
    late: Counter[str] = field(default_factory=Counter)
    bad: Counter[str] = field(default_factory=Counter)

    def admit(
        self, batch: Mapping[str, pa.Table], *, time: str = "ts", limit_us: int | None = None
    ) -> dict[str, pa.Table]:
        """The rows of a batch that are input; those above `limit_us` (clock + `max_ahead`) are bad."""
        kept = {}
        for name, table in batch.items():
            clean = cleaned(table, time)
            times = clean["time_us"].to_numpy()
            ahead = times > limit_us if limit_us is not None else np.zeros(len(times), bool)
            late = ~ahead & (times < self.reached_us.get(name, -(2**63)))
            self.bad[name] += len(table) - len(clean) + int(ahead.sum())
            self.late[name] += int(late.sum())
            kept[name] = clean.filter(pa.array(~late & ~ahead))
        for name, table in kept.items():
            if len(table):
                newest_us = int(table["time_us"].to_numpy().max()) - self.lateness_us[name]
                self.reached_us[name] = max(self.reached_us.get(name, newest_us), newest_us)
        return {name: table.drop_columns(["time_us"]) for name, table in kept.items()}
