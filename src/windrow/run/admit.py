"""The entrance: from pushed Arrow rows to the new segment of each stream.

    pushed ──▶ schema, event time ──▶ bad, late, too far ahead: set aside ──▶ watermark ──▶ order, row clocks ──▶
    dropped at random ──▶ filters, leaves ──▶ segment

Rules, per stream i, after each batch:

- watermark  W_i = max event time so far - lateness; it never goes back. A row of the next batch with ts < W_i is late.
- idle       a stream without rows for longer than its timeout takes the smallest watermark of those that are not idle.
- leaving    a stored row of l may go when ts + w_l < W_i for every i other than l.

With a row window in the query, rows are admitted in the order (event time, stream, content): those strictly before
the smallest watermark of all streams; the rest waits. (Strictly, because a row with exactly that time may still
arrive and sort before one that is here.) Each admitted row then carries, for every row-windowed stream, how many of
its rows came up to it, rows that filters drop included.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import InputError
from windrow.plan.shedding import ALL, Shedding
from windrow.probe.evaluate import Evaluator
from windrow.query import types
from windrow.query.expression import Call, Column, Expression
from windrow.query.spec import Stream
from windrow.query.types import Kind
from windrow.run.content import content_hash
from windrow.run.draw import KEEP, draw
from windrow.run.partial import saturating_add
from windrow.run.program import BATCH, ROW_ID, Program
from windrow.store.operand import Array, Form, Operand, from_arrow, time_us
from windrow.store.segment import Segment

NEVER_US = -(2**63)

Span = tuple[int | None, int | None]
"""Event times after the first, up to the second; rows without a time belong to a span without a beginning."""
WHOLE: Span = (None, None)

SetAside = Callable[[str, str, pa.Table], None]
"""Called with stream, reason (`late`, `bad time`, `too far ahead`) and the rows that did not enter."""


@dataclass
class Counts:
    """Rows of a stream by what became of them."""

    rows: int = 0
    late: int = 0
    bad: int = 0
    ahead: int = 0
    filtered: int = 0
    dropped: int = 0


@dataclass(eq=False)
class Gate:
    """The state of one stream's entrance; `columns` enter it, those in `used` are the content the query sees;
    `watermark_us` is W_i, `waiting` what row windows hold back.
    """

    stream: Stream
    columns: tuple[Column, ...]
    used: tuple[Column, ...]
    counts: Counts = field(default_factory=Counts)
    newest_us: int = NEVER_US
    watermark_us: int = NEVER_US
    heard_us: int | None = None
    waiting: list[pa.Table] = field(default_factory=list)
    counted: int = 0

    def advance(self) -> None:
        if self.newest_us > NEVER_US:
            self.watermark_us = max(self.watermark_us, NEVER_US, self.newest_us - self.stream.lateness_us)


class Entry:
    """The entrances of all streams of a program."""

    def __init__(self, program: Program, max_ahead_us: int | None, set_aside: SetAside | None) -> None:
        self.program = program
        self.evaluator: Evaluator = program.evaluator
        self.max_ahead_us = max_ahead_us
        self.set_aside = set_aside
        self.gates = {s.name: Gate(s, program.kept[s.name], program.used[s.name]) for s in program.spec.streams}
        self.batch = 0
        self.row_windowed = tuple(s.name for s in program.spec.streams if s.window.rows is not None)

    def admit(
        self,
        pushed: Mapping[str, Sequence[pa.Table]],
        now_us: int,
        last: bool = False,
        part: Span = WHOLE,
        shedding: Shedding = ALL,
        batch: int = 0,
    ) -> dict[str, Segment]:
        """The new segment of each stream for a batch at `now_us`; `last` admits what waits as well, `part` takes only
        the rows of a span of event time, `shedding` may let in only a share of them, `batch` is its number.
        """
        self.batch = batch
        rows = {name: self._sound(gate, pushed.get(name, ()), now_us, part) for name, gate in self.gates.items()}
        self._follow_idle(now_us)
        if not self.row_windowed:
            return {
                name: self._segment(self.gates[name], _in_order(table), {}, shedding) for name, table in rows.items()
            }
        for name, table in rows.items():
            if len(table):
                self.gates[name].waiting.append(table)
        before_us = None if last else min(gate.watermark_us for gate in self.gates.values())
        return self._admit_in_order(before_us, shedding)

    def made_up(self, name: str, table: pa.Table) -> Segment:
        """A segment of rows that nobody sent, whatever the filters say of them."""
        gate = self.gates[name]
        times = pa.concat_arrays([time_us(chunk) for chunk in table.column(gate.stream.time).chunks])
        clocks = {counted: np.arange(1, len(table) + 1, dtype=np.int64) for counted in self.row_windowed}
        frame = _Rows(gate.used, table.append_column(_TIME, times))
        self._passing(name, frame)
        return self._built(name, frame, clocks)

    def advance(self, now_us: int) -> None:
        """Move the watermarks on to what has been seen up to `now_us`."""
        for gate in self.gates.values():
            gate.advance()
        self._follow_idle(now_us)

    def expiry(self, name: str) -> tuple[int, int]:
        """From when on rows of a stream's window are needed: by event time, and by its row clock."""
        gate = self.gates[name]
        watermarks = [g.watermark_us for other, g in self.gates.items() if other != name or self.row_windowed]
        cutoff_us = NEVER_US
        if gate.stream.window.span_us is not None:
            cutoff_us = int(saturating_add(np.array([min(watermarks)]), -gate.stream.window.span_us)[0])
        rows = gate.stream.window.rows
        return cutoff_us, 0 if rows is None else gate.counted - rows + 1

    def _sound(self, gate: Gate, tables: Sequence[pa.Table], now_us: int, part: Span) -> pa.Table:
        """The rows that are input: with a time, not late, not too far ahead; a hidden last column holds the time."""
        table = pa.concat_tables([conform(gate, table) for table in tables]) if tables else _empty(gate)
        times = table.column(gate.stream.time)
        words = (
            pa.concat_arrays([time_us(chunk) for chunk in times.chunks])
            if times.num_chunks
            else pa.array([], pa.int64())
        )
        if part != WHOLE:
            chosen = _within(words, part)
            table, words = table.filter(chosen), words.filter(chosen)
        gate.counts.rows += len(table)
        event_us = np.asarray(words.fill_null(0))
        known = np.asarray(words.is_valid())
        late = known & (event_us < gate.watermark_us)
        ahead = np.zeros(len(table), np.bool_)
        if self.max_ahead_us is not None:
            ahead = known & (event_us > now_us + self.max_ahead_us)
        for reason, chosen, field_name in (
            ("bad time", ~known, "bad"),
            ("late", late, "late"),
            ("too far ahead", ahead, "ahead"),
        ):
            if chosen.any():
                setattr(gate.counts, field_name, getattr(gate.counts, field_name) + int(chosen.sum()))
                if self.set_aside is not None:
                    self.set_aside(gate.stream.name, reason, table.filter(pa.array(chosen)))
        sound = known & ~late & ~ahead
        table = table.append_column(_TIME, words)
        if not sound.all():
            table, event_us = table.filter(pa.array(sound)), event_us[sound]
        if len(event_us):
            gate.newest_us = max(gate.newest_us, int(event_us.max()))
            gate.heard_us = now_us
        gate.advance()
        return table

    def _follow_idle(self, now_us: int) -> None:
        """Give streams that have been silent for too long the smallest watermark of those that are not."""
        idle = [gate for gate in self.gates.values() if self._is_idle(gate, now_us)]
        heard = [gate.watermark_us for gate in self.gates.values() if gate not in idle]
        for gate in idle if heard else ():
            gate.watermark_us = max(gate.watermark_us, min(heard))

    @staticmethod
    def _is_idle(gate: Gate, now_us: int) -> bool:
        if gate.heard_us is None:
            gate.heard_us = now_us
        return gate.stream.idle_us is not None and now_us - gate.heard_us > gate.stream.idle_us

    def _admit_in_order(self, before_us: int | None, shedding: Shedding) -> dict[str, Segment]:
        admitted: dict[str, pa.Table] = {}
        for name, gate in self.gates.items():
            table = (
                pa.concat_tables(gate.waiting)
                if gate.waiting
                else _empty(gate).append_column(_TIME, pa.array([], pa.int64()))
            )
            if before_us is not None:
                chosen = pc.less(table.column(_TIME), pa.scalar(before_us, pa.int64()))
                gate.waiting = [table.filter(pc.invert(chosen))]
                table = table.filter(chosen)
            else:
                gate.waiting = []
            admitted[name] = _by_content(table, gate.used)
        times = {name: np.asarray(table.column(_TIME)) for name, table in admitted.items()}
        clocks: dict[str, dict[str, Array]] = {name: {} for name in admitted}
        names = list(admitted)
        for counted in self.row_windowed:
            for name in names:
                clocks[name][counted] = self.gates[counted].counted + _rows_up_to(times, counted, name, names)
            self.gates[counted].counted += len(times[counted])
        return {
            name: self._segment(self.gates[name], table, clocks[name], shedding) for name, table in admitted.items()
        }

    def _segment(self, gate: Gate, table: pa.Table, clocks: Mapping[str, Array], shedding: Shedding = ALL) -> Segment:
        """Drop what is to be dropped, apply filters, compute leaves, and keep what the layout asks for.

        Rows are dropped where filters drop them, after row clocks have counted them: what is left of a window of rows
        has to be part of it.
        """
        name = gate.stream.name
        share = dict(shedding.keep).get(name, 1.0)
        frame = _Rows(gate.used, table)
        if share < 1 and len(frame):
            let_in = draw(content_hash(frame.times_us, frame.used, frame.array).values, shedding.seed, KEEP) < share
            gate.counts.dropped += int(len(let_in) - let_in.sum())
            frame, clocks = frame.pick(let_in), _picked(clocks, let_in)
        keep = self._passing(name, frame)
        if not keep.all():
            gate.counts.filtered += int(len(keep) - keep.sum())
            frame, clocks = frame.pick(keep), _picked(clocks, keep)
        return self._built(name, frame, clocks)

    def _passing(self, name: str, frame: _Rows) -> Array:
        """Which rows filters let in, and required leaves are not NULL of."""
        entrance = self.program.entrances[name]
        keep = np.ones(len(frame), np.bool_)
        for condition in entrance.filters:
            keep &= self.evaluator.is_true(condition, frame)
        for leaf in entrance.required:
            operand = self.evaluator.evaluate(leaf, frame)
            if leaf.type.is_float:
                keep &= ~np.isnan(operand.values)
            elif operand.valid is not None:
                keep &= operand.valid
        return keep

    def _built(self, name: str, frame: _Rows, clocks: Mapping[str, Array]) -> Segment:
        layout = self.program.layouts[name]
        operands = tuple(self._leaf(leaf, frame) for leaf in layout.operands)
        columns = tuple(frame.array(column) for column in layout.columns)
        return Segment(layout, frame.times_us, clocks, columns, operands)

    def _leaf(self, leaf: Expression, frame: _Rows) -> Operand:
        if isinstance(leaf, Call) and leaf.function == ROW_ID:
            return content_hash(frame.times_us, frame.used, frame.array)
        if isinstance(leaf, Call) and leaf.function == BATCH:
            return Operand(Form.NUMBER, (np.full(len(frame), self.batch, np.int64),))
        return self.evaluator.evaluate(leaf, frame)


_TIME = "\0event time"


class _Rows:
    """Rows of one stream, as a frame; `used` are the columns that make up their content."""

    def __init__(self, used: Sequence[Column], table: pa.Table) -> None:
        self.used = used
        self.table = table
        self.times_us = np.ascontiguousarray(np.asarray(table.column(_TIME)))
        self._operands: dict[Expression, Operand] = {}

    def __len__(self) -> int:
        return len(self.times_us)

    def pick(self, keep: Array) -> _Rows:
        """Those of the rows that are kept."""
        return _Rows(self.used, self.table.filter(pa.array(keep)))

    def array(self, column: Column) -> pa.Array:
        chunked = self.table.column(column.name)
        return (
            chunked.chunk(0)
            if chunked.num_chunks == 1
            else pa.concat_arrays(chunked.chunks)
            if chunked.num_chunks
            else pa.array([], chunked.type)
        )

    def find(self, expression: Expression) -> Operand | None:
        if not isinstance(expression, Column):
            return None
        if expression not in self._operands:
            self._operands[expression] = from_arrow(self.array(expression), expression.type)
        return self._operands[expression]


def _picked(clocks: Mapping[str, Array], keep: Array) -> dict[str, Array]:
    return {counted: clock[keep] for counted, clock in clocks.items()}


def conform(gate: Gate, table: pa.Table) -> pa.Table:
    """The columns that enter, each in its delivery form; anything else than the declared types is refused."""
    arrays = []
    for column in gate.columns:
        if column.name not in table.schema.names:
            raise InputError(
                f"pushed rows have no column '{column.name}'",
                place=f"stream {gate.stream.name}",
                hint="push all columns the query uses, or keeps",
            )
        if table.schema.names.count(column.name) > 1:
            hint = "give each column its own name"
            raise InputError(f"column '{column.name}' appears twice", place=f"stream {gate.stream.name}", hint=hint)
        chunked = table.column(column.name)
        found = types.from_arrow(chunked.type)
        if found != column.type and found.kind is not Kind.NULL:
            raise InputError(
                f"column '{column.name}' is {chunked.type}, the query was bound to {column.type}",
                place=f"stream {gate.stream.name}",
                hint="push the schema the query was made for",
            )
        try:
            arrays.append(_delivered(chunked, column))
        except pa.ArrowInvalid as error:
            told = str(error).partition("\n")[0]
            message = f"column '{column.name}' holds what {column.type} cannot: {told}"
            raise InputError(message, place=f"stream {gate.stream.name}", hint="correct or cast the values") from error
    return pa.table(arrays, names=[column.name for column in gate.columns])


def _delivered(chunked: pa.ChunkedArray, column: Column) -> pa.ChunkedArray:
    if column.type.kind is Kind.OTHER:
        return chunked
    target = types.to_arrow(column.type)
    if chunked.type == target:
        return chunked
    if column.type.is_time:
        return pa.chunked_array([time_us(chunk).view(target) for chunk in chunked.chunks], target)
    return chunked.cast(target)


def _within(words: pa.Array, part: Span) -> pa.Array:
    from_us, to_us = part
    chosen = pa.array(np.ones(len(words), np.bool_))
    if from_us is not None:
        chosen = pc.and_(chosen, pc.greater(words, from_us))
    if to_us is not None:
        chosen = pc.and_(chosen, pc.less_equal(words, to_us))
    return pc.fill_null(chosen, from_us is None)


def _empty(gate: Gate) -> pa.Table:
    arrays = [pa.array([], pa.null() if c.type.kind is Kind.OTHER else types.to_arrow(c.type)) for c in gate.columns]
    return pa.table(arrays, names=[column.name for column in gate.columns])


def _in_order(table: pa.Table) -> pa.Table:
    times = np.asarray(table.column(_TIME))
    if len(times) > 1 and (times[1:] < times[:-1]).any():
        return table.take(pa.array(np.argsort(times, kind="stable")))
    return table


def _by_content(table: pa.Table, columns: Sequence[Column]) -> pa.Table:
    """Rows in order of event time, then of what the query reads of them."""
    keys: dict[str, pa.Array] = {_TIME: table.column(_TIME)}
    for column in columns:
        chunked = table.column(column.name)
        if column.type.kind is Kind.VECTOR and len(table):
            flat = pa.concat_arrays(chunked.chunks)
            elements = {f"{column.name}\0{k}": pc.list_element(flat, k) for k in range(column.type.length)}
            keys.update({name: _nan_as_null(element) for name, element in elements.items()})
        elif column.type.kind is not Kind.OTHER and column.type.kind is not Kind.VECTOR:
            keys[column.name] = _nan_as_null(chunked) if column.type.is_float else chunked
    order = pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in keys])
    return table.take(order)


def _nan_as_null(values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    return pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)


def _rows_up_to(times: Mapping[str, Array], counted: str, name: str, names: Sequence[str]) -> Array:
    """For each admitted row of `name`, the admitted rows of `counted` at or before it in the order (event time, stream,
    content).
    """
    if name == counted:
        return np.arange(1, len(times[name]) + 1, dtype=np.int64)
    earlier_place = names.index(counted) < names.index(name)
    found = np.searchsorted(times[counted], times[name], side="right" if earlier_place else "left")
    return np.asarray(found, np.int64)
