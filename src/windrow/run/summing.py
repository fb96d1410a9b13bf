"""Aggregates over results while they are found: COUNT, SUM and AVG a span and a group, with intervals where something
was left out.

    tally of a batch ──take──▶ open spans, a line a group ──final──▶ lines of spans that all watermarks have passed
                                    │
                                    └─ to_table ─▶ kept between batches ─▶ restore

What a span left out is not known below 30 sampled results, nor where rows were dropped before the join or let go for
memory: then there is the value, and no interval. Where nothing was left out the interval is the value.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from windrow.control.cells import Cells, Floats, together
from windrow.control.sample import Weights
from windrow.control.sums import Line, Shape
from windrow.plan.shedding import Shedding
from windrow.query.spec import Aggregate, Summary
from windrow.run.tally import Key, Lines, Tally

Range = tuple[int, int]
_SPAN, _NUMBERS, _PARTS = "span", "numbers", b"windrow.parts"


class Summing:
    """The open spans of a join with these outputs, as `summary` asks."""

    def __init__(self, summary: Summary, outputs: pa.Schema, drivers: Iterable[str]) -> None:
        self.summary = summary
        self.shape = Shape(1 + 2 * len(summary.places))
        self.schema = _schema(summary, outputs)
        self._drivers = tuple(drivers)
        self._lines = Lines(self.shape.width)
        self._lost: list[Range] = []
        self._blind: list[Range] = []

    def begin(self, oldest_us: int | None, newest_us: int, shedding: Shedding, lets_go: bool = False) -> None:
        """A batch, whose oldest row is of `oldest_us` (None: it has no rows), runs by `shedding`: its results are no
        older. `lets_go`: stored rows are gone before their time.
        """
        weights = [Weights.of(shedding, driver) for driver in self._drivers]
        if oldest_us is None:
            return
        reach = (oldest_us, newest_us)
        if lets_go or any(each is not None for each in weights):
            self._lost = _joined([*self._lost, reach])
        dropped = lets_go or any(share < 1 for _, share in shedding.keep)
        if dropped or any(each is not None and not each.tells for each in weights):
            self._blind = _joined([*self._blind, reach])

    def take(self, tallies: Sequence[Tally], shedding: Shedding) -> None:
        """Take in all that a batch found."""
        places = [self._lines.places_of(tally.keys) for tally in tallies]
        for tally, own in zip(tallies, places, strict=True):
            if len(own):
                self._lines.add(own, tally.sums)
        for driver in self._drivers:
            weights = Weights.of(shedding, driver)
            parts = [
                tally.cells[driver].at(own) for tally, own in zip(tallies, places, strict=True) if driver in tally.cells
            ]
            if parts and weights is not None:
                self._square(parts, weights)

    def _square(self, parts: Sequence[Cells], weights: Weights) -> None:
        """Add the squares of sampled rows' sums, of which all parts are here, to the lines they belong to."""
        cells = together(parts)
        touched, lines = np.unique(cells.lines, return_inverse=True)
        squares = replace(cells, lines=lines.reshape(-1)).squares(weights, self.shape.columns, len(touched))
        for name, numbers in squares.items():
            self._lines.numbers[touched, self.shape.place(name)] += numbers

    def final(self, before_us: int | None) -> pa.Table:
        """The lines of spans that end by `before_us` (None: of all), which are then forgotten."""
        every = self.summary.every_us
        done = sorted(
            (
                key for key in self._lines.keys
                if before_us is None or (every is not None and (key[0] + 1) * every <= before_us)
            ),
            key=_in_order,
        )  # fmt: skip
        table = self._table(list(zip(done, self._lines.pop(done), strict=True)) if done else [])
        if every is not None and before_us is not None:
            edge = before_us // every * every
            self._lost = [part for part in self._lost if part[1] >= edge]
            self._blind = [part for part in self._blind if part[1] >= edge]
        return table

    def to_table(self) -> pa.Table:
        """The state, as a table."""
        keys = self._lines.keys
        arrays = [pa.array([key[0] for key in keys], pa.int64())]
        for number, (name, _) in enumerate(self.summary.groups, start=1):
            arrays.append(pa.array([key[number] for key in keys], self.schema.field(name).type))
        numbers = pa.array(self._lines.numbers.reshape(-1), pa.float64())
        arrays.append(pa.FixedSizeListArray.from_arrays(numbers, self.shape.width))
        names = [_SPAN, *(f"group {number}" for number in range(len(self.summary.groups))), _NUMBERS]
        table = pa.Table.from_arrays(arrays, names=names)
        return table.replace_schema_metadata({_PARTS: json.dumps([self._lost, self._blind])})

    def restore(self, table: pa.Table) -> None:
        """Go on from a state that `to_table` gave."""
        columns = [table.column(number).to_pylist() for number in range(table.num_columns - 1)]
        self._lines = Lines(self.shape.width)
        numbers = table.column(_NUMBERS).combine_chunks().flatten()
        places = self._lines.places_of(list(zip(*columns, strict=True)))
        if len(places):
            self._lines.add(places, np.asarray(numbers).reshape(-1, self.shape.width))
        held = json.loads((table.schema.metadata or {})[_PARTS])
        self._lost, self._blind = ([(low, high) for low, high in parts] for parts in held)

    def _table(self, found: Sequence[tuple[Key, Floats]]) -> pa.Table:
        columns: dict[str, list[object]] = {name: [] for name in self.schema.names}
        every = self.summary.every_us
        for key, numbers in found:
            if every is not None:
                columns["span_start"].append(key[0] * every)
            for (name, _), value in zip(self.summary.groups, key[1:], strict=True):
                columns[name].append(value)
            lost, blind = (self._touches(parts, key[0]) for parts in (self._lost, self._blind))
            for aggregate in self.summary.aggregates:
                value, low, high = self._estimate(aggregate, Line(self.shape, numbers), lost, blind)
                for suffix, each in (("", value), ("_low", low), ("_high", high)):
                    columns[f"{aggregate.name}{suffix}"].append(each)
        return pa.table({name: pa.array(columns[name], self.schema.field(name).type) for name in columns}, self.schema)

    def _touches(self, parts: Sequence[Range], span: int) -> bool:
        every = self.summary.every_us
        return any(every is None or (low < (span + 1) * every and high >= span * every) for low, high in parts)

    def _estimate(
        self, aggregate: Aggregate, line: Line, lost: bool, blind: bool
    ) -> tuple[float | None, float | None, float | None]:
        """The value, and where it lies."""
        there = 0 if aggregate.place is None else 1 + 2 * self.summary.places.index(aggregate.place)
        column = there + (aggregate.kind != "count")
        if aggregate.kind != "count" and not line.of("found")[there]:
            return None, None, None
        total = line.of("estimate" if lost else "found")
        if aggregate.kind == "avg":
            value, within = float(total[column] / total[there]), None
            if lost:
                value, within = line.ratio_of(there)
        else:
            value, within = float(total[column]), line.sum_within(column) if lost else None
        if not lost and not blind:
            return value, value, value
        low, high = (None, None) if blind or within is None else within
        return value, low, high


def _schema(summary: Summary, outputs: pa.Schema) -> pa.Schema:
    kinds = {name: outputs.field(place).type for name, place in summary.groups}
    start = [] if summary.every_us is None else [pa.field("span_start", outputs.field(0).type)]
    rest = [pa.field(name, kinds.get(name, pa.float64())) for name in summary.columns[len(start) :]]
    return pa.schema([*start, *rest])


def _in_order(key: Key) -> tuple[object, ...]:
    """Spans by time; the groups of one by their values, NULL last, whatever order they came in."""
    return (key[0], *((value is None, str(type(value)), 0 if value is None else value) for value in key[1:]))


def _joined(parts: Sequence[Range]) -> list[Range]:
    """Ranges, those that touch made one."""
    found: list[Range] = []
    for low, high in sorted(parts):
        if found and low <= found[-1][1]:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return found
