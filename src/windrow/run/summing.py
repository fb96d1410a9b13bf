"""Aggregates over results while they are found: COUNT, SUM and AVG a span and a group, with intervals where something
was left out.

    block of results ─▶ span and group ─┬─ found      sums as they are
                        arguments       ├─ estimate   each result weighed by the chance to find it
                                        └─ cov        rows of sampled results, and their strata: squares of their sums
    watermark passes a span's end ─▶ its line a group, and forget it

Each result has one column of ones, and for each argument one that says whether it is there, and one of its value. COUNT
and SUM are sums of a column, AVG is a ratio of two. `windrow.control.sample` has the weights and the variance, here
with the shares as planned and γ = 1, so that lines of all spans and groups add up to those of the whole.

What a span left out is not known below 30 sampled results, nor where rows were dropped before the join: then there is
the value, and no interval. Where nothing was left out the interval is the value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from windrow.control.recall import LEAST_MATCHES, Sum
from windrow.plan.shedding import Shedding
from windrow.query.spec import Aggregate, Summary
from windrow.run.admit import Gate
from windrow.run.partial import Partial
from windrow.run.program import Program
from windrow.run.reach import stratum_length
from windrow.run.results import result_batch
from windrow.run.weighing import Scale, member_clock
from windrow.store.operand import Array
from windrow.store.segment import Segment

Floats = NDArray[np.float64]
Key = tuple[int, ...]
NORMAL = 1.959964


@dataclass
class Line:
    """One span of one group: sums of the columns. `matches` of its results were sampled, and weigh `heaviest` at most;
    `u` and `uu` are the sums over sampled rows of what each found, and of its squares; `large` the sums of squares of
    the sampled results' values, `plain` of the values, `least` and `most` their extremes.
    """

    columns: int
    matches: int = 0
    heaviest: float = 0.0
    u: float = 0.0
    uu: float = 0.0
    found: Floats = field(init=False)
    estimate: Floats = field(init=False)
    cov: Floats = field(init=False)
    plain: Floats = field(init=False)
    large: Floats = field(init=False)
    negative: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        self.found, self.estimate, self.plain, self.large = (np.zeros(self.columns) for _ in range(4))
        self.cov = np.zeros((self.columns, self.columns))
        self.negative = np.zeros(self.columns, np.bool_)

    def variance(self, weights: Floats) -> float:
        """The variance of a weighed sum of the columns, corrected for few rows that count."""
        counted = self.counted
        fitted = counted / (counted - 2) if counted > 3 else 3.0
        return max(0.0, float(weights @ self.cov @ weights)) * fitted

    @property
    def counted(self) -> float:
        """How many rows of equal size would tell as much."""
        return self.u**2 / self.uu if self.uu > 0 else 0.0

    def reach(self, weights: Floats) -> float:
        """How far a weighed sum of the columns may be off, by Student's distribution (to first order)."""
        quantile = NORMAL + (NORMAL**3 + NORMAL) / 4 / max(1.0, self.counted - 1)
        return quantile * float(self.variance(weights) ** 0.5)


@dataclass(frozen=True, slots=True)
class _Sampled:
    """Results of sampled rows in a batch: their lines, rows, strata, columns, and what portions would find of them."""

    lines: Array
    rows: Array
    strata: Array
    values: Floats
    held: Floats


class Summing:
    """Sums the results of a join up, as `summary` asks."""

    def __init__(self, program: Program, summary: Summary) -> None:
        self.program = program
        self.summary = summary
        self.columns = 1 + 2 * len(summary.places)
        self.schema = self._schema()
        self.results = 0
        self._coded = 0
        self._keys: dict[Key, Line] = {}
        self._codes: list[dict[object, int]] = [{} for _ in summary.groups]
        self._sampled: dict[str, tuple[Scale, list[_Sampled]]] = {}
        self._lost: list[tuple[int, int]] = []
        self._blind: list[tuple[int, int]] = []

    def begin(
        self,
        fresh: Mapping[str, Segment],
        gates: Iterable[Gate],
        shedding: Shedding,
        scales: Mapping[str, Scale],
        lets_go: bool = False,
    ) -> None:
        """A batch begins: its results are no older than its oldest row. `lets_go`: stored rows are gone before their
        time.
        """
        firsts = [int(segment.time_us[0]) for segment in fresh.values() if len(segment)]
        if not firsts:
            return
        reach = (min(firsts), max(gate.newest_us for gate in gates))
        if scales or lets_go:
            self._lost = _joined([*self._lost, reach])
        dropped = lets_go or any(share < 1 for _, share in shedding.keep)
        if dropped or any(not scale.weights.tells for scale in scales.values()):
            self._blind = _joined([*self._blind, reach])

    def found(self, partial: Partial, scale: Scale | None, sampled: bool, target: str) -> None:
        """Complete results: of sampled rows, or of others."""
        self.results += len(partial)
        if not len(partial):
            return
        batch = result_batch(self.program, partial)
        values = self._values(batch)
        keys, places = np.unique(self._keys_of(batch), axis=0, return_inverse=True)
        lines = [self._keys.setdefault(tuple(key), Line(self.columns)) for key in keys.tolist()]
        places = places.reshape(-1)
        sums = _summed(places, values, len(lines))
        for line, total in zip(lines, sums, strict=True):
            line.found += total
        if scale is None or not sampled or not scale.weights.tells:
            weight = 1.0 if scale is None else scale.weights.others
            for line, total in zip(lines, sums, strict=True):
                line.estimate += weight * total
            return
        self._note(partial, scale, target, values, (keys, places))

    def _note(self, partial: Partial, scale: Scale, target: str, values: Floats, where: tuple[Array, Array]) -> None:
        """Results of sampled rows, which have different weights; squares wait for the end of the batch."""
        keys, places = where
        weights, held = scale.weights, scale.held_of(partial)
        mean = np.array(weights.shares) @ held if len(held) else np.zeros(len(partial))
        each = (1.0 / weights.throttle - weights.rest * mean) / weights.share
        lines = [self._keys[tuple(key)] for key in keys.tolist()]
        estimates, plain, large = (
            _summed(places, found, len(lines)) for found in (each[:, None] * values, values, values**2)
        )
        negative = _summed(places, (values < 0).astype(np.float64), len(lines)) > 0
        counts = np.bincount(places, minlength=len(lines))
        for number, line in enumerate(lines):
            line.estimate += estimates[number]
            line.plain += plain[number]
            line.large += large[number]
            line.negative |= negative[number]
            line.matches += int(counts[number])
            line.heaviest += weights.heaviest * int(counts[number])
        numbers = {id(line): number for number, line in enumerate(self._keys.values())}
        own = np.array([numbers[id(line)] for line in lines])[places]
        strata = member_clock(partial, target) // stratum_length(partial.views[target].stream, scale.strata)
        noted = _Sampled(own, scale.content(partial), strata, values, held)
        self._sampled.setdefault(scale.driver, (scale, []))[1].append(noted)

    def take(self, blocks: Iterable[Partial]) -> int:
        """Take in all results of a batch; each block has come to `found` when it is here. How many there were."""
        before = self.results
        for _ in blocks:
            continue
        lines = list(self._keys.values())
        for scale, noted in self._sampled.values():
            parts = _Sampled(*(
                np.concatenate([getattr(each, name) for each in noted], axis=axis)
                for name, axis in (("lines", 0), ("rows", 0), ("strata", 0), ("values", 0), ("held", 1))
            ))  # fmt: skip
            _square(lines, scale, parts)
        self._sampled.clear()
        return self.results - before

    def final(self, blocks: Iterable[Partial], gates: Iterable[Gate], last: bool) -> tuple[pa.Table, int]:
        """Take in a batch. The lines of spans that all watermarks have passed (at last, of all), and how many results
        it had.
        """
        found = self.take(blocks)
        return self.lines(None if last else min(gate.watermark_us for gate in gates)), found

    def lines(self, before_us: int | None) -> pa.Table:
        """The lines of spans that end by `before_us` (None: of all), which are then forgotten."""
        every = self.summary.every_us
        done = sorted(
            key for key in self._keys
            if before_us is None or (every is not None and (key[0] + 1) * every <= before_us)
        )  # fmt: skip
        table = self._table([(key, self._keys.pop(key)) for key in done])
        self._forget(before_us)
        return table

    def _forget(self, before_us: int | None) -> None:
        """What only spans that are gone needed: values of groups, and where something was left out."""
        for number, codes in enumerate(self._codes, start=1):
            used = {key[number] for key in self._keys}
            self._codes[number - 1] = {value: code for value, code in codes.items() if code in used}
        every = self.summary.every_us
        if every is not None and before_us is not None:
            edge = before_us // every * every
            self._lost = [part for part in self._lost if part[1] >= edge]
            self._blind = [part for part in self._blind if part[1] >= edge]

    def _table(self, found: Sequence[tuple[Key, Line]]) -> pa.Table:
        columns: dict[str, list[object]] = {name: [] for name in self.schema.names}
        groups = [{code: value for value, code in codes.items()} for codes in self._codes]
        every = self.summary.every_us
        for key, line in found:
            if every is not None:
                columns["span_start"].append(key[0] * every)
            for (name, _), values, code in zip(self.summary.groups, groups, key[1:], strict=True):
                columns[name].append(values[code])
            lost, blind = (self._touches(parts, key[0]) for parts in (self._lost, self._blind))
            for aggregate in self.summary.aggregates:
                value, low, high = self._estimate(aggregate, line, lost, blind)
                for suffix, each in (("", value), ("_low", low), ("_high", high)):
                    columns[f"{aggregate.name}{suffix}"].append(each)
        return pa.table({name: pa.array(columns[name], self.schema.field(name).type) for name in columns}, self.schema)

    def _touches(self, parts: Sequence[tuple[int, int]], span: int) -> bool:
        every = self.summary.every_us
        return any(every is None or (low < (span + 1) * every and high >= span * every) for low, high in parts)

    def _estimate(
        self, aggregate: Aggregate, line: Line, lost: bool, blind: bool
    ) -> tuple[float | None, float | None, float | None]:
        """The value, and where it lies."""
        there = 0 if aggregate.place is None else 1 + 2 * self.summary.places.index(aggregate.place)
        column = there + (aggregate.kind != "count")
        if aggregate.kind != "count" and not line.found[there]:
            return None, None, None
        total = line.estimate if lost else line.found
        value = float(total[column])
        if aggregate.kind == "avg":
            value /= float(total[there])
        if not lost and not blind:
            return value, value, value
        if blind or line.matches < LEAST_MATCHES:
            return value, None, None
        if aggregate.kind == "avg":
            ratio = np.zeros(self.columns)
            ratio[column], ratio[there] = 1.0, -value
            reach = line.reach(ratio) / float(total[there])
            return value, value - reach, value + reach
        only = np.zeros(self.columns)
        only[column] = 1.0
        return (value, *_interval(line, column, only))

    def _values(self, batch: pa.RecordBatch) -> Floats:
        values = np.ones((batch.num_rows, self.columns))
        for number, place in enumerate(self.summary.places):
            column = batch.column(place)
            if self._is_number(place):
                held = np.asarray(pc.fill_null(pc.cast(column, pa.float64(), safe=False), float("nan")))
                there = ~np.isnan(held)
                values[:, 2 + 2 * number] = np.where(there, held, 0.0)
            else:
                there = ~np.asarray(pc.is_null(column, nan_is_null=True))
                values[:, 2 + 2 * number] = 0.0
            values[:, 1 + 2 * number] = there
        return values

    def _is_number(self, place: int) -> bool:
        kind = self.program.schema.field(place).type
        return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))

    def _keys_of(self, batch: pa.RecordBatch) -> Array:
        """The span of each result, and a number for the value of each group."""
        every = self.summary.every_us
        keys = np.zeros((batch.num_rows, 1 + len(self._codes)), np.int64)
        if every is not None:
            keys[:, 0] = np.asarray(batch.column(0).cast(pa.int64())) // every
        for number, ((_, place), codes) in enumerate(zip(self.summary.groups, self._codes, strict=True), start=1):
            encoded = batch.column(place).dictionary_encode(null_encoding="encode")
            values = [None if value != value else value for value in encoded.dictionary.to_pylist()]
            numbers = np.array([self._code(codes, value) for value in values], np.int64)
            keys[:, number] = numbers[np.asarray(encoded.indices)]
        return keys

    def _code(self, codes: dict[object, int], value: object) -> int:
        if value not in codes:
            self._coded += 1
            codes[value] = self._coded
        return codes[value]

    def _schema(self) -> pa.Schema:
        inner, groups = self.program.schema, dict(self.summary.groups)
        kinds = {name: inner.field(place).type for name, place in groups.items()}
        start = [] if self.summary.every_us is None else [pa.field("span_start", inner.field(0).type)]
        rest = [pa.field(name, kinds.get(name, pa.float64())) for name in self.summary.columns[len(start) :]]
        return pa.schema([*start, *rest])


def _interval(line: Line, column: int, only: Floats) -> tuple[float, float]:
    """Where a sum lies: what is missing of values of one sign is like a count, of others nearly normal."""
    value, found = float(line.estimate[column]), float(line.found[column])
    plain, large = float(line.plain[column]), float(line.large[column])
    if line.negative[column] or not plain > 0:
        reach = line.reach(only)
        return value - reach, value + reach
    low, high = Sum(
        value - found, line.variance(only), line.matches, line.heaviest * large / plain, shed=True
    ).interval()
    return found + low, max(found + high, value)


def _square(lines: Sequence[Line], scale: Scale, noted: _Sampled) -> None:
    """Add the squares of sampled rows' sums to the lines they belong to."""
    weights = scale.weights
    share, rest, throttle = weights.share, weights.rest, weights.throttle
    shares, full = np.array(weights.shares), 1.0 / throttle
    mean = shares @ noted.held if len(noted.held) else np.zeros(len(noted.lines))
    rows = (noted.lines, noted.rows)
    cells = (noted.lines, noted.rows, noted.strata)
    _add_squares(lines, rows, (full - mean)[:, None] * noted.values, rest / share**2)
    for part, held in zip(shares, noted.held, strict=True):
        _add_squares(lines, cells, held[:, None] * noted.values, -(1 - throttle) / share * rest * part)
        if len(shares) > 1:
            _add_squares(lines, rows, held[:, None] * noted.values, rest / share * part)
    if len(shares) > 1:
        _add_squares(lines, rows, mean[:, None] * noted.values, -rest / share)
    _add_squares(lines, cells, full * noted.values, (1 - throttle) / share)
    places, sums = _by(rows, full * noted.values[:, :1])
    for number, total in zip(places, sums[:, 0], strict=True):
        lines[number].u += total
        lines[number].uu += total**2


def _add_squares(lines: Sequence[Line], by: tuple[Array, ...], values: Floats, weight: float) -> None:
    places, sums = _by(by, values)
    for number in np.unique(places):
        own = sums[places == number]
        lines[number].cov += weight * (own.T @ own)


def _by(by: tuple[Array, ...], values: Floats) -> tuple[Array, Floats]:
    """Sums of lines of values that agree in some numbers, the first of which is returned with them."""
    order = np.lexsort(by[::-1])
    changes = np.zeros(len(order), np.bool_)
    changes[0] = True
    for numbers in by:
        held = numbers[order]
        changes[1:] |= held[1:] != held[:-1]
    starts = np.flatnonzero(changes)
    return by[0][order][starts], np.add.reduceat(values[order], starts, axis=0)


def _summed(places: Array, values: Floats, count: int) -> Floats:
    """Sums of lines of values, place by place."""
    columns = [np.bincount(places, values[:, number], minlength=count) for number in range(values.shape[1])]
    return np.stack(columns, axis=1)


def _joined(parts: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges, those that touch made one."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(parts):
        if found and low <= found[-1][1]:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return found
