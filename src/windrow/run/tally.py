"""A tally: what the results of a batch, or of a task's part of one, add up to by span and group.

    block of results ─▶ span and group, columns ─┬─ sums a line        (windrow.control.sums)
                                                 └─ of sampled rows: cells, for squares  (windrow.control.cells)

A span is numbered by its begin, in units of its length; of no span, all results have number 0. Groups are told apart by
their values; NaN is NULL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.control.cells import BUCKETS, Cells, Floats, Numbers, summed, together
from windrow.control.sums import Shape
from windrow.query.spec import Summary
from windrow.run.draw import ROW_BUCKET, draw
from windrow.run.partial import Partial
from windrow.run.program import Program
from windrow.run.reach import stratum_length
from windrow.run.results import result_batch
from windrow.run.weighing import Scale, member_clock

Key = tuple[Any, ...]
"""The number of a span, and the values of groups."""
MOST_CELLS = 1 << 18
"""So many cells are waited for before they are added up."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Of so many `results`: lines by key, and the cells of each driver."""

    results: int = 0
    keys: tuple[Key, ...] = ()
    sums: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    cells: dict[str, Cells] = field(default_factory=dict)


class Lines:
    """Lines of numbers by their keys, which are added to."""

    def __init__(self, width: int) -> None:
        self.places: dict[Key, int] = {}
        self._held = np.zeros((16, width))

    def __len__(self) -> int:
        return len(self.places)

    @property
    def keys(self) -> tuple[Key, ...]:
        return tuple(self.places)

    @property
    def numbers(self) -> Floats:
        """The lines, in the order of their keys; a view."""
        return self._held[: len(self.places)]

    def places_of(self, keys: Sequence[Key]) -> Numbers:
        """The numbers of lines, which are there after it."""
        found = np.array([self.places.setdefault(key, len(self.places)) for key in keys], np.int64)
        while len(self.places) > len(self._held):
            self._held = np.concatenate([self._held, np.zeros_like(self._held)])
        return found

    def add(self, places: Numbers, numbers: Floats) -> None:
        """Add to the first numbers of some lines, each of which is there once."""
        self._held[places, : numbers.shape[1]] += numbers

    def pop(self, keys: Sequence[Key]) -> list[Floats]:
        """Take lines out."""
        found = [self._held[self.places[key]].copy() for key in keys]
        gone = set(keys)
        kept = [key for key in self.places if key not in gone]
        held = self._held[[self.places[key] for key in kept]]
        self._held = np.zeros((max(16, len(kept)), self._held.shape[1]))
        self._held[: len(kept)] = held
        self.places = {key: number for number, key in enumerate(kept)}
        return found


class Tallying:
    """Adds up blocks of results, as `summary` asks."""

    def __init__(self, program: Program, summary: Summary) -> None:
        self.program = program
        self.summary = summary
        self.results = 0
        self._shape = Shape(1 + 2 * len(summary.places))
        self._lines = Lines(self._shape.told)
        self._cells: dict[str, list[Cells]] = {}
        self._waiting = 0

    def found(self, partial: Partial, scale: Scale | None, sampled: bool, target: str) -> None:
        """Complete results: of sampled rows, or of others."""
        self.results += len(partial)
        if not len(partial):
            return
        batch = result_batch(self.program, partial)
        values = self._values(batch)
        keys, places = self._keys(batch)
        lines = self._lines.places_of(keys)
        totals = summed(places, values, len(keys))
        added = np.zeros((len(keys), self._shape.told))
        added[:, self._shape.place("found")] = totals
        if scale is None or not sampled or not scale.weights.tells:
            added[:, self._shape.place("estimate")] = totals * (1.0 if scale is None else scale.weights.others)
        else:
            held = scale.held_of(partial)
            self._weigh(added, places, values, held, scale)
            self._note(partial, scale, target, lines[places], values, held)
        self._lines.add(lines, added)

    def done(self) -> Tally:
        """All that was added up."""
        cells = {driver: together(parts) for driver, parts in self._cells.items()}
        return Tally(self.results, self._lines.keys, self._lines.numbers.copy(), cells)

    def _weigh(self, added: Floats, places: Numbers, values: Floats, held: Floats, scale: Scale) -> None:
        """Results of sampled rows, which have different weights."""
        weights = scale.weights
        mean = np.array(weights.shares) @ held if len(held) else np.zeros(len(values))
        each = (1.0 / weights.throttle - weights.rest * mean) / weights.share
        counts = np.bincount(places, minlength=len(added))
        for name, numbers in (
            ("estimate", summed(places, each[:, None] * values, len(added))),
            ("own", summed(places, values, len(added)) / (weights.throttle * weights.share)),
            ("plain", summed(places, values, len(added))),
            ("large", summed(places, values**2, len(added))),
            ("negative", summed(places, (values < 0).astype(np.float64), len(added))),
            ("matches", counts[:, None]),
            ("heaviest", weights.heaviest * counts[:, None]),
            ("whole", counts[:, None] / weights.throttle),
        ):
            added[:, self._shape.place(name)] = numbers

    def _note(self, partial: Partial, scale: Scale, target: str, lines: Numbers, values: Floats, held: Floats) -> None:
        drawn = (draw(scale.content(partial), scale.seed, ROW_BUCKET) * (2 * BUCKETS)).astype(np.int64)
        signed = values * (1.0 - 2.0 * (drawn & 1))[:, None]
        strata = member_clock(partial, target) // stratum_length(partial.views[target].stream, scale.strata)
        sums = np.concatenate([signed, *(part[:, None] * signed for part in held)], axis=1)
        cells = together([Cells(lines, drawn >> 1, np.asarray(strata), sums)])
        parts = self._cells.setdefault(scale.driver, [])
        parts.append(cells)
        self._waiting += len(cells)
        if self._waiting > MOST_CELLS:
            self._cells = {driver: [together(own)] for driver, own in self._cells.items()}
            self._waiting = 0

    def _values(self, batch: pa.RecordBatch) -> Floats:
        values = np.ones((batch.num_rows, self._shape.columns))
        for number, place in enumerate(self.summary.places):
            column = batch.column(place)
            if _is_number(column.type):
                held = np.asarray(pc.fill_null(pc.cast(column, pa.float64(), safe=False), float("nan")))
                there = ~np.isnan(held)
                values[:, 2 + 2 * number] = np.where(there, held, 0.0)
            else:
                there = ~np.asarray(pc.is_null(column, nan_is_null=True))
                values[:, 2 + 2 * number] = 0.0
            values[:, 1 + 2 * number] = there
        return values

    def _keys(self, batch: pa.RecordBatch) -> tuple[list[Key], Numbers]:
        """The keys that occur, and which of them each result has."""
        every = self.summary.every_us
        codes = np.zeros((batch.num_rows, 1 + len(self.summary.groups)), np.int64)
        if every is not None:
            codes[:, 0] = np.asarray(batch.column(0).cast(pa.int64())) // every
        values: list[list[object]] = []
        for number, (_, place) in enumerate(self.summary.groups, start=1):
            encoded = batch.column(place).dictionary_encode(null_encoding="encode")
            # As in SQL there is one group of NULLs, and NaN is NULL.
            known = [None if value != value else value for value in encoded.dictionary.to_pylist()]
            same = {value: code for code, value in enumerate(known)}
            codes[:, number] = np.array([same[value] for value in known], np.int64)[np.asarray(encoded.indices)]
            values.append(known)
        distinct, places = np.unique(codes, axis=0, return_inverse=True)
        keys = [
            (span, *(known[code] for known, code in zip(values, coded, strict=True)))
            for span, *coded in distinct.tolist()
        ]
        return keys, places.reshape(-1)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
