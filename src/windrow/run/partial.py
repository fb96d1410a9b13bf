"""Partial results: rows of several streams found to belong together so far, by reference.

A member is a *handle*, segment << 32 | row, into the segments its store had when the batch began (a `View`). Values
are fetched when a step or the SELECT list asks for them, once for all rows: index pairs first, columns last.

    newest_us = max ts             dies_us = min(ts + window)            over the members (saturating)
    p and s fit  iff  newest_p <= dies_s  and  newest_s <= dies_p

Row windows are the same on another clock: `newest_clock[l]` and `dies_clock[l]` count rows of stream l instead of time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from windrow.probe.gather import gather, gather_arrow, handles_of
from windrow.probe.hashed import combine
from windrow.query.expression import Call, Column, Expression, streams_of
from windrow.query.spec import UNBOUNDED, Stream
from windrow.run.sources import Source, Stored, covered_by
from windrow.store.operand import Array, Form, Operand, from_arrow, tokens_operand
from windrow.store.segment import Segment

EVENT_TIME = "event_time"
"""The hidden leaf with the event time of a stream's rows, where a node has to keep it."""

Ends: TypeAlias = tuple[Array, dict[str, Array]]
"""When rows leave: by event time, and by each row clock."""


@dataclass(frozen=True, slots=True)
class View:
    """The segments of one stream, or of an inner node, as a batch sees them: what was stored before it, and the batch's
    own rows.
    """

    stream: Source
    stored: tuple[Segment, ...]
    fresh: Segment | None

    @property
    def segments(self) -> tuple[Segment, ...]:
        return self.stored if self.fresh is None else (*self.stored, self.fresh)

    def operand(self, slot: int, expression: Expression, handles: Array) -> Operand:
        """The values of a leaf for the rows that `handles` name."""
        parts = [segment.operands[slot] for segment in self.segments]
        valid = None
        if any(part.valid is not None for part in parts):
            flags = [np.ones(len(part), np.bool_) if part.valid is None else part.valid for part in parts]
            valid = gather(flags, handles)
        if parts[0].form is Form.TOKENS:
            return tokens_operand(gather_arrow([part.arrow for part in parts], handles), valid)
        if parts[0].form is Form.TEXT:
            return from_arrow(gather_arrow([part.arrow for part in parts], handles), expression.type)
        return Operand(parts[0].form, (gather([part.values for part in parts], handles),), valid)

    def column(self, place: int, handles: Array) -> pa.Array:
        """The values of a delivered column for the rows that `handles` name."""
        return gather_arrow([segment.columns[place] for segment in self.segments], handles)

    def times(self, handles: Array) -> Array:
        """The event times of the rows that `handles` name."""
        return gather([segment.time_us for segment in self.segments], handles)

    def ends(self, handles: Array, times_us: Array, clocks: Mapping[str, Array]) -> Ends:
        """When the rows that `handles` name leave: by event time, and by each row clock."""
        if not isinstance(self.stream, Stored):
            return ends(self.stream, times_us, clocks)
        segments = self.segments
        dies_us = gather([s.time_us if s.dies_us is None else s.dies_us for s in segments], handles)
        return dies_us, {name: gather([s.dies_clocks[name] for s in segments], handles) for name in clocks}


@dataclass(frozen=True, slots=True)
class Times:
    """The times of partial rows: `turn_us` is the event time of the driver's row, which gives a result its position."""

    turn_us: Array
    newest_us: Array
    dies_us: Array
    newest_clock: Mapping[str, Array]
    dies_clock: Mapping[str, Array]

    def pick(self, rows: Array) -> Times:
        """Those of some of the rows."""
        return Times(
            self.turn_us[rows],
            self.newest_us[rows],
            self.dies_us[rows],
            {name: clock[rows] for name, clock in self.newest_clock.items()},
            {name: clock[rows] for name, clock in self.dies_clock.items()},
        )

    def extend(self, probes: Array, times_us: Array, clocks: Mapping[str, Array], ends_at: Ends) -> Times:
        """Those of the rows `probes`, each with one more member, which leaves at `ends_at`."""
        dies_us, dies_clock = ends_at
        return Times(
            self.turn_us[probes],
            np.maximum(self.newest_us[probes], times_us),
            np.minimum(self.dies_us[probes], dies_us),
            {clock: np.maximum(held[probes], clocks[clock]) for clock, held in self.newest_clock.items()},
            {clock: np.minimum(held[probes], dies_clock[clock]) for clock, held in self.dies_clock.items()},
        )


@dataclass
class Partial:
    """Rows of partial results. Their times are computed when asked for, of some rows or of all (None): who delivers
    results mostly does not, who takes notes on them looks at a few.
    """

    views: Mapping[str, View]
    handles: Mapping[str, Array]
    times_of: Callable[[Array | None], Times]
    whole: Segment | None = None
    _found: dict[Expression, Operand] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(next(iter(self.handles.values())))

    @cached_property
    def times(self) -> Times:
        return self.times_of(None)

    def _times_at(self, rows: Array) -> Times:
        return self.times.pick(rows) if "times" in self.__dict__ else self.times_of(rows)

    @property
    def turn_us(self) -> Array:
        return self.times.turn_us

    @property
    def newest_us(self) -> Array:
        return self.times.newest_us

    @property
    def dies_us(self) -> Array:
        return self.times.dies_us

    @property
    def newest_clock(self) -> Mapping[str, Array]:
        return self.times.newest_clock

    @property
    def dies_clock(self) -> Mapping[str, Array]:
        return self.times.dies_clock

    def find(self, expression: Expression) -> Operand | None:
        """The values of a leaf or column of a member; None for what has to be computed."""
        if expression not in self._found:
            operand = self._fetch(expression)
            if operand is None:
                return None
            self._found[expression] = operand
        return self._found[expression]

    def _fetch(self, expression: Expression) -> Operand | None:
        if isinstance(expression, Call) and expression.function == "result_ts":
            return Operand(Form.NUMBER, (self.newest_us,))
        if isinstance(expression, Call) and expression.function == "result_id":
            return Operand(Form.NUMBER, (self._ids(),))
        streams = streams_of(expression)
        if len(streams) != 1:
            return None
        name = self.holder(next(iter(streams)))
        if name is None:
            return None
        view = self.views[name]
        layout = view.segments[0].layout
        slot = layout.slot(expression)
        if slot is not None:
            return (
                self.whole.operands[slot]
                if self.whole is not None
                else view.operand(slot, expression, self.handles[name])
            )
        if isinstance(expression, Column) and expression in layout.columns:
            return from_arrow(self.column(expression), expression.type)
        if isinstance(expression, Call) and expression.function == EVENT_TIME and name in streams:
            return Operand(Form.NUMBER, (view.times(self.handles[name]),))
        return None

    def holder(self, stream: str) -> str | None:
        """The member that holds the rows of a stream: the stream itself, or a node above it; None before it has met."""
        if stream in self.handles:
            return stream
        return next((name for name in self.handles if stream in covered_by(self.views[name].stream)), None)

    def column(self, column: Column) -> pa.Array:
        """A delivered column, as stored."""
        name = self.holder(column.stream) or column.stream
        view = self.views[name]
        return view.column(view.segments[0].layout.columns.index(column), self.handles[name])

    def _ids(self) -> Array:
        parts = []
        for stream in (name for name, view in self.views.items() if not isinstance(view.stream, Stored)):
            name = self.holder(stream) or stream
            view, layout = self.views[name], self.views[name].segments[0].layout
            slot = next(k for k, leaf in enumerate(layout.operands) if _is_id(leaf, stream))
            parts.append(view.operand(slot, layout.operands[slot], self.handles[name]).values)
        return combine(parts)

    def pick(self, rows: Array) -> Partial:
        """Some of the rows."""
        handles = {name: handles[rows] for name, handles in self.handles.items()}
        return Partial(self.views, handles, lambda some: self._times_at(rows if some is None else rows[some]))

    def extend(
        self, view: View, probes: Array, handles: Array, times_us: Array, clocks: Mapping[str, Array]
    ) -> Partial:
        """The rows `probes`, each with one more member."""
        members = {member: held[probes] for member, held in self.handles.items()}
        members[view.stream.name] = handles

        def times_of(rows: Array | None) -> Times:
            if rows is None:
                return self.times.extend(probes, times_us, clocks, view.ends(handles, times_us, clocks))
            some_us, some = times_us[rows], {clock: held[rows] for clock, held in clocks.items()}
            return self.times.extend(probes[rows], some_us, some, view.ends(handles[rows], some_us, some))

        return Partial(self.views, members, times_of)


def is_event_time(leaf: Expression, stream: str) -> bool:
    """Whether a leaf is the event time of a stream's rows, as a node keeps it."""
    return isinstance(leaf, Call) and leaf.function == EVENT_TIME and streams_of(leaf) == {stream}


def _is_id(leaf: Expression, stream: str) -> bool:
    return isinstance(leaf, Call) and leaf.function == "row_id" and streams_of(leaf) == {stream}


def ends(stream: Stream, times_us: Array, clocks: Mapping[str, Array]) -> Ends:
    """When rows of a stream leave its window: by event time, and by each row clock."""
    dies_us = np.full(len(times_us), UNBOUNDED, np.int64)
    if stream.window.span_us is not None:
        dies_us = saturating_add(times_us, stream.window.span_us)
    dies_clock = {clock: np.full(len(times_us), UNBOUNDED, np.int64) for clock in clocks}
    if stream.window.rows is not None:
        dies_clock[stream.name] = saturating_add(clocks[stream.name], stream.window.rows - 1)
    return dies_us, dies_clock


def saturating_add(values: Array, amount: int) -> Array:
    """values + amount, kept within 64 bits (and away from the very last values, which stand for "never")."""
    limits = np.iinfo(np.int64)
    if len(values) and int(values.min()) + amount >= limits.min and int(values.max()) + amount <= limits.max:
        return values + amount
    if amount >= 0:
        return np.where(values > limits.max - amount, limits.max, np.minimum(values, limits.max - amount) + amount)
    return np.where(values < limits.min - amount, limits.min, np.maximum(values, limits.min - amount) + amount)


def first_partial(views: Mapping[str, View], name: str, segment: Segment) -> Partial:
    """The new rows of a driver, as partial results of one member."""
    handles = handles_of(len(views[name].stored), np.arange(len(segment)))
    times = _times_of_one(views[name], handles, segment.time_us, segment.clocks)
    return Partial(views, {name: handles}, known(times), whole=segment)


def stored_partial(views: Mapping[str, View], name: str, handles: Array) -> Partial:
    """Rows of a stream's store, as partial results of one member."""
    segments = views[name].segments
    time_us = gather([segment.time_us for segment in segments], handles)
    clocks = {clock: gather([segment.clocks[clock] for segment in segments], handles) for clock in segments[0].clocks}
    times = _times_of_one(views[name], handles, time_us, clocks)
    return Partial(views, {name: handles}, known(times))


def known(times: Times) -> Callable[[Array | None], Times]:
    """Times that are there already, as a partial result has them."""
    return lambda rows: times if rows is None else times.pick(rows)


def _times_of_one(view: View, handles: Array, time_us: Array, clocks: Mapping[str, Array]) -> Times:
    dies_us, dies_clock = view.ends(handles, time_us, clocks)
    return Times(time_us, time_us, dies_us, dict(clocks), dies_clock)
