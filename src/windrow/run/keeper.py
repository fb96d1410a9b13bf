"""Keeps the windows within a memory limit: after each batch, before the next one.

    stores ── measure ──▶ too much? ── stock ──▶ chosen kept spans ──▶ profiles ──▶ rows let go ──▶ measure again
              rows and               by age                            by place
              indexes                                                  on the clock

A limit that is never reached changes nothing. Where it is, what to keep is chosen by the controller
(`windrow.control.memory`) from what each store would hold by age if nothing had been let go; that is counted when rows
enter, in cells of their clock. Bytes are those of the segments themselves, so what was chosen may turn out a little too
large: then a little less is asked for, until it fits.

Age is measured from the same place as expiry (`windrow.run.admit`): from the smallest watermark of the other streams,
or from a row window's last row. A row of age w is the last that can be needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from windrow.control.controller import Controller, ControlSettings
from windrow.plan.holding import Stock
from windrow.plan.kept import KeptSpan
from windrow.plan.memory import limit_bytes
from windrow.query.spec import UNBOUNDED, QuerySpec, Window
from windrow.run.draw import HOLD, draw
from windrow.store.operand import Array
from windrow.store.profile import FIRST, LAST, Profile, Profiles
from windrow.store.segment import Segment, pick
from windrow.store.window import Store

CELLS = 160
MOST_CELLS = 400
ENDLESS_CELL = 60_000_000
ENDLESS = UNBOUNDED // 4
TRIES = 12
AMPLE = 2
NEVER = FIRST // 2
LONGEST_MEMORY_S = 86400.0

Choose = Callable[[Mapping[str, Stock], float], tuple[KeptSpan, ...]]
"""What to keep of some stocks, in so many bytes."""


@dataclass(eq=False)
class Held:
    """What is known of one store: its rows by cell of its clock as they came, what was left of them, its span."""

    window: Window
    arrived: dict[int, int] = field(default_factory=dict)
    profile: Profile = field(default_factory=Profile)
    span: KeptSpan | None = None
    newest: int = FIRST
    row_bytes: float = 0.0

    @property
    def ticks(self) -> int:
        """The greatest age of a row that is needed."""
        span = self.window.span_us if self.window.rows is None else self.window.rows - 1
        return UNBOUNDED if span is None else span

    @property
    def cell(self) -> int:
        """Ticks of a cell."""
        return ENDLESS_CELL if self.ticks > ENDLESS else max(1, self.ticks // CELLS)

    def came(self, clock: Array) -> None:
        """Take note of new rows."""
        self.counted(self.cells(clock), int(clock.max()))

    def cells(self, clock: Array) -> dict[int, int]:
        """How many rows at some places of the clock fall into each cell."""
        cells, counts = np.unique(clock // self.cell, return_counts=True)
        return dict(zip(cells.tolist(), counts.tolist(), strict=True))

    def counted(self, cells: Mapping[int, int], newest: int) -> None:
        """Take note of new rows that were counted by cell."""
        for cell, count in cells.items():
            self.arrived[cell] = self.arrived.get(cell, 0) + count
        self.newest = max(self.newest, newest)

    def forget(self, reference: int) -> int:
        """Forget the cells that are too old to be needed, the age of `reference` being 0; the oldest place needed."""
        oldest = reference - self.ticks if self.ticks <= ENDLESS else min(self.arrived, default=0) * self.cell
        for cell in [cell for cell in self.arrived if (cell + 1) * self.cell <= oldest]:
            del self.arrived[cell]
        return oldest

    def reference(self, end: tuple[int, int]) -> int:
        """The place on the clock that has age 0; `end` says from when on rows are needed."""
        cutoff_us, first_clock = end
        if self.window.rows is not None:
            return first_clock + self.window.rows - 1
        unknown = self.window.span_us is None or self.ticks > ENDLESS or cutoff_us <= NEVER
        return self.newest if unknown else cutoff_us + self.ticks

    def keep(self, span: KeptSpan, reference: int) -> list[tuple[int, int]]:
        """Let the profile fall to what a span keeps; the ranges where less is left."""
        self.span = span
        bounds, shares = [], [0.0]
        for age, share in reversed(span.steps):
            bounds.append(max(min(reference - age, LAST - 1), FIRST + 1))
            shares.append(share)
        if shares[-1] < 1:
            bounds.append(max(self.newest + 1, bounds[-1] + 1 if bounds else FIRST + 1))
            shares.append(1.0)
        changed = self.profile.lower(bounds, shares)
        if self.ticks <= ENDLESS:
            self.profile.forget(reference - 2 * self.ticks)
        return changed

    def stock(self, reference: int) -> Stock:
        """The rows by age, the age of `reference` being 0."""
        oldest = self.forget(reference)
        newest = max(self.newest, reference, oldest + 1)
        wide = self.cell * max(1, -(-(newest - oldest) // (self.cell * MOST_CELLS)))
        first, last = oldest // wide, newest // wide
        rows = np.zeros(last - first + 1)
        for cell, count in self.arrived.items():
            rows[min(max(cell * self.cell // wide - first, 0), len(rows) - 1)] += count
        begins = [oldest, *(number * wide for number in range(first + 1, last + 1)), newest + 1]
        edges = np.array([reference - begin for begin in reversed(begins)], np.int64)
        return Stock(edges, rows[::-1] * self.row_bytes)


class Keeper:
    """Keeps the stores of a join within `limit_bytes`, by what is chosen."""

    def __init__(self, spec: QuerySpec, limit_bytes: int, choose: Choose, seed: int) -> None:
        self.limit_bytes = limit_bytes
        self.largest_bytes = 0
        self.crowded = 0
        self.held = {stream.name: Held(stream.window) for stream in spec.streams}
        self.retained = Profiles({name: held.profile for name, held in self.held.items()})
        self._choose = choose
        self._seed = seed

    @staticmethod
    def of(spec: QuerySpec, settings: ControlSettings | None, controller: Controller | None) -> Keeper | None:
        """A keeper if there is a limit; the controller chooses what stays."""
        if settings is None or settings.memory_bytes is None or controller is None:
            return None
        return Keeper(spec, settings.memory_bytes, controller.keep, settings.seed)

    def compact(self, segment: Segment) -> Segment:
        """New rows in memory of their own: those pushed may be a small part of a large table, which would stay."""
        parts = [(column.get_total_buffer_size(), column.nbytes) for column in segment.columns]
        if len(segment) and any(whole > AMPLE * part for whole, part in parts):
            return pick(segment, np.arange(len(segment)))
        return segment

    def settle(
        self, stores: Mapping[str, Store], fresh: Mapping[str, Segment], ends: Mapping[str, tuple[int, int]]
    ) -> tuple[KeptSpan, ...]:
        """Bring the stores, which have taken in the `fresh` rows, within the limit; `ends` says of each from when on
        its rows are needed. Returns the kept spans that hold from now on.
        """
        references = {}
        for name, held in self.held.items():
            rows = fresh.get(name)
            if rows is not None and len(rows):
                clock = self._clock(name, rows)
                held.came(clock)
                if held.profile.least(int(clock[0]), int(clock[-1])) < 1:
                    stores[name].give_up(self._stays(name, [(int(clock[0]), int(clock[-1]) + 1)]))
            if len(stores[name]):
                held.row_bytes = stores[name].memory_bytes / len(stores[name])
            references[name] = held.reference(ends[name])
        self.crowded += sum(rows.nbytes for rows in fresh.values()) > self.limit_bytes
        self._fit(stores, references)
        self.largest_bytes = max(self.largest_bytes, _bytes(stores))
        return tuple(held.span for held in self.held.values() if held.span is not None)

    def _fit(self, stores: Mapping[str, Store], references: Mapping[str, int]) -> None:
        goal = float(self.limit_bytes)
        for attempt in range(TRIES + 1):
            total = _bytes(stores)
            if total <= self.limit_bytes:
                return
            if attempt:
                goal *= min(0.998, self.limit_bytes / total) ** attempt
            stocks = {name: held.stock(references[name]) for name, held in self.held.items()}
            spans = self._choose(stocks, 0.0 if attempt == TRIES else goal)
            for span in spans:
                self._apply(stores[span.stream], span, references[span.stream])

    def _apply(self, store: Store, span: KeptSpan, reference: int) -> None:
        """Let go of what a span does not keep."""
        changed = self.held[store.name].keep(span, reference)
        if changed:
            store.give_up(self._stays(store.name, changed))

    def _stays(self, name: str, changed: Sequence[tuple[int, int]]) -> Callable[[Segment], Array | None]:
        """Which rows of a segment stay, where it lies in ranges that changed."""
        profile = self.held[name].profile

        def stays(segment: Segment) -> Array | None:
            clock = self._clock(name, segment)
            first, last = int(clock[0]), int(clock[-1])
            if not any(low <= last and first < high for low, high in changed):
                return None
            return drawn(profile, clock, self._seed)

        return stays

    def _clock(self, name: str, segment: Segment) -> Array:
        return own_clock(self.held[name].window, name, segment)


def own_clock(window: Window, stream: str, segment: Segment) -> Array:
    """Where rows lie on the clock of their stream: event times, or row numbers in a row window."""
    return segment.time_us if window.rows is None else segment.clocks[stream]


def drawn(profile: Profile, clock: Array, seed: int) -> Array:
    """Which rows at some places of a clock stay."""
    shares = profile.at(clock)
    if shares.max(initial=0.0) <= 0:
        return np.zeros(len(clock), np.bool_)
    return np.asarray(draw(clock, seed, HOLD) < shares)


def _bytes(stores: Mapping[str, Store]) -> int:
    return sum(store.memory_bytes for store in stores.values())


def with_memory(settings: ControlSettings | None, memory: str | int | None, spec: QuerySpec) -> ControlSettings | None:
    """How to control a join whose windows may take so much memory. Without a throttle nothing else is left out; what is
    learned lasts for some windows, because matches may lie as far back as one.
    """
    if memory is None:
        return settings
    if settings is not None:
        return replace(settings, memory_bytes=limit_bytes(memory))
    spans = [stream.window.span_us for stream in spec.streams if stream.window.span_us is not None]
    longest_s = min(max(spans, default=0) / 1e6, LONGEST_MEMORY_S)
    usual = ControlSettings()
    memory_s = max(usual.memory_s, 3 * longest_s)
    return replace(usual, fixed=1.0, sample=0.0, memory_s=memory_s, memory_bytes=limit_bytes(memory))
