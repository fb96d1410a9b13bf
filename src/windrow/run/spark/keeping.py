"""Keeps the live segments on disk within a limit: what the driver program decides before a batch and checks after it.

    commit k-1 ── rows counted ──▶ planned: profiles, what dies, what is rewritten ──▶ plan k ──▶ tasks thin merges
                                                                                         │
    commit k   ◀── what does not fit all the same ── settle ◀── segments told ◀──────────┘

The limit is on the bytes of live segments with their indexes after each commit. What to keep is chosen as in process
(`windrow.run.keeper`), only earlier: segments are rewritten while a batch runs, so room for its rows is made before it.
How much they take is a guess, from their number and the bytes a row took so far. Where more came, whole segments go
with the commit, those first of which the least was to be kept.

New rows at places that were thinned meet the rows of their batch, and are thinned with the next one. `due` says which
share of the rows at their places such a segment holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from windrow.control.controller import Controller, ControlSettings
from windrow.plan.kept import KeptSpan
from windrow.query.spec import QuerySpec, Window
from windrow.run.admit import Entry
from windrow.run.keeper import TRIES, Choose, Held
from windrow.run.report import MemoryReport
from windrow.run.spark.segments import INDEXED_ROWS
from windrow.run.spark.state import Commit, Live, each_file
from windrow.run.spark.thinning import Ends, Thinning, range_of
from windrow.run.spark.told import Told
from windrow.run.spark.upkeep import LIMITED_SHARE, Kept, Merges, merges_of
from windrow.run.unjoined import Unjoined
from windrow.store.files import SegmentFile
from windrow.store.operand import Array
from windrow.store.profile import Floats, Profile, Profiles

POINTS = 32
"""At so many places of a segment it is looked up which share is left."""
HEADROOM = 1.1
"""Room for new rows, over what rows took so far."""
INDEX_ROW_BYTES = 16
"""About what a row takes in an index file."""
NOTHING = 1e-9


@dataclass(eq=False)
class Stored:
    """What is known of a stream's segments: its rows by cell and what is left of them, what a file takes without rows,
    how many files new rows make, which share of the rows that come gets in; and the rows let go.
    """

    held: Held
    end: tuple[int, int]
    bare: int = 0
    files: int = 1
    enters: float = 1.0
    let_go: int = 0

    @property
    def reference(self) -> int:
        """The place on the clock that has age 0."""
        return self.held.reference(self.end)

    def measure(self, files: Iterable[SegmentFile]) -> None:
        """How much a row takes, by what is stored."""
        found = list(files)
        rows = sum(file.rows for file in found)
        if rows:
            self.held.row_bytes = max(1.0, (sum(file.bytes for file in found) - len(found) * self.bare) / rows)

    def expected(self, rows: int) -> float:
        """About what a batch of so many rows will take."""
        return HEADROOM * self.enters * rows * self.held.row_bytes + self.bare * self.files if rows else 0.0

    def to_values(self) -> dict[str, Any]:
        """As values that JSON knows."""
        held = self.held
        return {
            "arrived": sorted(held.arrived.items()),
            "profile": held.profile.to_values(),
            "span": None if held.span is None else held.span.to_values(),
            "newest": held.newest,
            "row_bytes": held.row_bytes,
            "end": list(self.end),
            "bare": self.bare,
            "files": self.files,
            "enters": self.enters,
            "let_go": self.let_go,
        }

    @staticmethod
    def from_values(window: Window, values: Mapping[str, Any]) -> Stored:
        """What `to_values` gave, after a way through JSON or not."""
        held = Held(
            window,
            {int(cell): int(count) for cell, count in values["arrived"]},
            Profile.from_values(values["profile"]),
            None if values["span"] is None else KeptSpan.from_values(values["span"]),
            int(values["newest"]),
            float(values["row_bytes"]),
        )
        end = (int(values["end"][0]), int(values["end"][1]))
        return Stored(held, end, values["bare"], values["files"], values["enters"], values["let_go"])


class _Files:
    """The live segments of a stream, by what is left of them under a profile."""

    def __init__(self, stream: str, stored: Stored, live: Live, grouped: frozenset[str], due: Mapping[str, float]):
        self.stored = stored
        self.places = [place for place, name, _ in each_file(live) if name == stream]
        self.files = [file for _, name, file in each_file(live) if name == stream]
        held = stored.held
        ranges = np.array([range_of(held.window, stream, file) for file in self.files], np.int64).reshape(-1, 2)
        steps = np.linspace(0.0, 1.0, POINTS)
        self.points: Array = ranges[:, :1] + (steps * (ranges[:, 1:] - ranges[:, :1])).astype(np.int64)
        counts = [held.arrived.get(cell, 0) for cell in (self.points // held.cell).ravel().tolist()]
        self.weights = np.array(counts, np.float64).reshape(self.points.shape) + NOTHING
        self.ranges = ranges
        self.rows = np.array([file.rows for file in self.files], np.float64)
        self.whole = np.array([file.total_bytes for file in self.files], np.float64)
        self.indexed = np.array([file.level > 0 or file.name in grouped for file in self.files], np.bool_)
        self.grouped = np.array([file.name in grouped for file in self.files], np.bool_)
        now = self.share(held.profile)
        self.written = np.array([due.get(file.name, now[k]) for k, file in enumerate(self.files)], np.float64)

    def share(self, profile: Profile) -> Floats:
        """Which share of the rows that came a profile leaves, segment by segment."""
        found = profile.at(self.points.ravel()).reshape(self.points.shape)
        return np.asarray((found * self.weights).sum(axis=1) / self.weights.sum(axis=1))

    def left(self, profile: Profile) -> Floats:
        """About how many rows a profile leaves of those that are there."""
        return self.rows * np.minimum(1.0, self.share(profile) / np.maximum(self.written, NOTHING))

    def rewritten(self, left: Floats) -> Array:
        """Which segments are written anew."""
        return np.asarray(self.grouped | (left < self.rows * (1 - NOTHING)))

    def bytes(self, profile: Profile, keys: int) -> float:
        """About what the segments will take."""
        left = self.left(profile)
        index_bytes = np.where(self.indexed & (self._merged(left) >= INDEXED_ROWS), INDEX_ROW_BYTES * keys, 0)
        anew = np.where(left > 0, self.stored.bare + left * (self.stored.held.row_bytes + index_bytes), 0.0)
        return float(np.where(self.rewritten(left), anew, self.whole).sum())

    def _merged(self, left: Floats) -> Floats:
        """At most how many rows a segment will be written with."""
        return np.where(self.grouped, left[self.grouped].sum(), left)

    def gone(self, profile: Profile) -> Array:
        """Of which segments nothing is left."""
        return np.array([profile.most(*found) <= 0 for found in self.ranges.tolist()], np.bool_)


class Keeping:
    """Keeps the live segments of a join within `limit_bytes`, by what is chosen; `keys` counts indexes."""

    def __init__(
        self, spec: QuerySpec, limit_bytes: int, choose: Choose, seed: int = 0, keys: Mapping[str, int] | None = None
    ) -> None:
        self.limit_bytes = limit_bytes
        self._windows = {stream.name: stream.window for stream in spec.streams}
        self._choose = choose
        self._seed = seed
        self._keys = keys or {}
        self.restore(None)

    @staticmethod
    def of(
        spec: QuerySpec,
        settings: ControlSettings | None,
        controller: Controller | None,
        indexes: Mapping[str, Sequence[object]],
    ) -> Keeping | None:
        """What keeps a limit if there is one; the controller chooses what stays."""
        if settings is None or settings.memory_bytes is None or controller is None:
            return None
        keys = {name: len(found) for name, found in indexes.items()}
        return Keeping(spec, settings.memory_bytes, controller.keep, settings.seed, keys)

    def restore(self, values: Mapping[str, Any] | None) -> None:
        """Go on from what a commit says."""
        self.largest_bytes = 0 if values is None else int(values["largest_bytes"])
        self.crowded = 0 if values is None else int(values["crowded"])
        self.lost = 0.0 if values is None else float(values["lost_results"])
        self.due: dict[str, float] = {} if values is None else dict(values["due"])
        known = {} if values is None else values["streams"]
        self.stored = {
            name: Stored.from_values(window, known[name])
            if name in known
            else Stored(Held(window), (np.iinfo(np.int64).min, 0))
            for name, window in self._windows.items()
        }
        self.let_go_before = self.let_go

    def to_values(self) -> dict[str, Any]:
        """What a commit keeps, as values that JSON knows."""
        return {
            "limit_bytes": self.limit_bytes,
            "largest_bytes": self.largest_bytes,
            "crowded": self.crowded,
            "lost_results": self.lost,
            "due": dict(self.due),
            "streams": {name: stored.to_values() for name, stored in self.stored.items()},
        }

    @property
    def let_go(self) -> int:
        """Rows let go so far."""
        return sum(stored.let_go for stored in self.stored.values())

    @property
    def beside(self) -> dict[str, Any]:
        """What an event tells of it beside recall, by the fields of `windrow.run.events.Scene`."""
        return {"let_go": {name: stored.let_go for name, stored in self.stored.items()}, "lost_results": self.lost}

    @property
    def spans(self) -> tuple[KeptSpan, ...]:
        """What is kept now."""
        return tuple(stored.held.span for stored in self.stored.values() if stored.held.span is not None)

    def planned(self, live: Live, merges: Merges, rows: Mapping[str, int]) -> tuple[Thinning, Merges]:
        """What the next batch lets go so that its `rows` find room, and all its merges."""
        grouped = frozenset(
            member for streams in merges.values() for gs in streams.values() for g in gs for member in g
        )
        files = {name: _Files(name, stored, live, grouped, self.due) for name, stored in self.stored.items()}
        before = self._profiles()
        chosen = self._fitting(files, max(0.0, self.limit_bytes - self._expected(rows)))
        dying: set[str] = set()
        due: dict[str, float] = {}
        more: Merges = {place: dict(streams) for place, streams in merges.items()}
        for name, held in chosen.items():
            own = files[name]
            left, gone = own.left(held.profile), own.gone(held.profile)
            rewritten = own.rewritten(left)
            for k, file in enumerate(own.files):
                if gone[k] and not own.grouped[k]:
                    dying.add(file.name)
                    continue
                if rewritten[k] or file.name in self.due:  # until it is gone: a batch without rows has no tasks
                    due[file.name] = float(own.written[k])
                if rewritten[k] and not own.grouped[k]:
                    groups = more.setdefault(own.places[k], {})
                    groups[name] = [*groups.get(name, ()), [file.name]]
        ends = {name: stored.end for name, stored in self.stored.items()}
        spans = tuple(held.span for held in chosen.values() if held.span is not None)
        after = Profiles({name: held.profile for name, held in chosen.items()})
        return Thinning(self._seed, ends, before, after, spans, frozenset(dying), due), more

    def settle(
        self, live: Live, before: Live, told: Told, thinning: Thinning, ends: Ends, rows: Mapping[str, int]
    ) -> Live:
        """Take in what a batch left behind, which came with so many `rows`: the live segments that fit. The objects of
        those that do not are noted as dying.
        """
        held = told.kept
        self.lost += told.lost
        for name, stored in self.stored.items():
            stored.end = ends[name]
            stored.held.profile = thinning.profiles.by_stream[name]
            stored.held.span = next((span for span in thinning.spans if span.stream == name), None)
            stored.let_go += sum(each.facts.get("let_go", 0) for each in held if each.stream == name)
            self._came(name, [each for each in held if each.stream == name and not each.replaces], rows.get(name, 0))
            stored.held.forget(stored.reference)
            stored.measure(file for _, stream, file in each_file(live) if stream == name)
        for _, name, file in each_file(before):
            if file.name in thinning.dying:
                self.stored[name].let_go += self._needed(name, file)
        self.due = dict(thinning.due)
        for each in held:
            window = self._windows[each.stream]
            if not each.replaces and each.file.rows:
                places = range_of(window, each.stream, each.file)
                if self.stored[each.stream].held.profile.least(*places) < 1:
                    self.due[each.file.name] = 1.0
        self.crowded += sum(each.file.total_bytes for each in held if not each.replaces) > self.limit_bytes
        over = self._dropped(live)
        after = {
            place: {name: left for name, files in streams.items() if (left := tuple(_without(files, over)))}
            for place, streams in live.items()
        }
        after = {place: streams for place, streams in after.items() if streams}
        names = {file.name for _, _, file in each_file(after)}
        self.due = {name: share for name, share in self.due.items() if name in names}
        self.largest_bytes = max(self.largest_bytes, bytes_of(after))
        told.dying.update(each for _, _, file in each_file(live) if file.name in over for each in file.names)
        return after

    def _came(self, name: str, fresh: list[Kept], rows: int) -> None:
        """Take note of the new rows of a stream."""
        stored = self.stored[name]
        for each in fresh:
            stored.held.counted({int(cell): int(count) for cell, count in each.facts["cells"]}, each.facts["newest"])
        if fresh:
            stored.bare = max(int(each.facts["bare"]) for each in fresh)
            stored.files = max(len(fresh), stored.files - 1)
        if rows:
            entered = sum(each.file.rows for each in fresh) / rows
            stored.enters = max(entered, (entered + stored.enters) / 2)

    def _fitting(self, files: Mapping[str, _Files], budget: float) -> dict[str, Held]:
        """What is left of each stream so that all fits."""
        chosen = {
            name: replace(stored.held, profile=stored.held.profile.copy()) for name, stored in self.stored.items()
        }
        for name, held in chosen.items():
            rows = files[name].rows.sum()
            held.row_bytes = float(files[name].whole.sum() / rows) if rows else held.row_bytes
        goal = budget
        for attempt in range(TRIES + 1):
            total = sum(own.bytes(chosen[name].profile, self._keys.get(name, 0)) for name, own in files.items())
            if total <= budget:
                break
            if attempt:
                goal *= min(0.998, budget / total) ** attempt
            stocks = {name: held.stock(self.stored[name].reference) for name, held in chosen.items()}
            for span in self._choose(stocks, 0.0 if attempt == TRIES else goal):
                chosen[span.stream].keep(span, self.stored[span.stream].reference)
        return chosen

    def _dropped(self, live: Live) -> frozenset[str]:
        """The segments that find no room: of which the least was to be kept, and the oldest, go first."""
        total = bytes_of(live)
        if total <= self.limit_bytes:
            return frozenset()
        ranked = []
        for name, stored in self.stored.items():
            own = _Files(name, stored, live, frozenset(), self.due)
            ages = (stored.reference - own.ranges[:, 1]) / max(1, stored.held.ticks)
            shares = own.share(stored.held.profile)
            ranked += [(shares[k], -ages[k], name, file) for k, file in enumerate(own.files)]
        ranked.sort(key=lambda one: one[:2])
        dropped: set[str] = set()
        for _, _, name, file in ranked:
            if total <= self.limit_bytes:
                break
            first, last = range_of(self._windows[name], name, file)
            self.stored[name].held.profile.lower([first, last + 1], [1.0, 0.0, 1.0])
            self.stored[name].let_go += self._needed(name, file)
            total -= file.total_bytes
            dropped.add(file.name)
        for share, _, name, file in ranked:  # what shares the time of a dropped segment is thinned with the next batch
            first, last = range_of(self._windows[name], name, file)
            if self.stored[name].held.profile.least(first, last) < share:
                self.due.setdefault(file.name, float(share))
        return frozenset(dropped)

    def _expected(self, rows: Mapping[str, int]) -> float:
        return sum(stored.expected(rows.get(name, 0)) for name, stored in self.stored.items())

    def _profiles(self) -> Profiles:
        return Profiles({name: stored.held.profile for name, stored in self.stored.items()})

    def _needed(self, name: str, file: SegmentFile) -> int:
        """About how many rows of a segment are still needed."""
        window, (cutoff_us, first_clock) = self._windows[name], self.stored[name].end
        first, last = range_of(window, name, file)
        needed = cutoff_us if window.rows is None else first_clock
        return round(file.rows * min(1.0, max(0.0, (last - needed + 1) / (last - first + 1))))


def upkeep_of(keeping: Keeping | None, live: Live, spec: QuerySpec, rows: Mapping[str, int]) -> dict[str, Any]:
    """What becomes of live segments in a batch that brings so many rows, as a part of its plan."""
    if keeping is None:
        return {"merges": merges_of(live, spec)}
    thinning, merges = keeping.planned(live, merges_of(live, spec, LIMITED_SHARE), rows)
    return {"merges": merges, "memory": thinning.to_values()}


def within(
    keeping: Keeping | None,
    plan: Mapping[str, Any],
    rows: Mapping[str, int],
    told: Told,
    entry: Entry,
    before: Live,
    live: Live,
) -> Live:
    """The live segments after a batch that was planned so, within the limit if there is one."""
    thinning = Thinning.from_values(plan.get("memory"))
    if keeping is None or thinning is None:
        return live
    ends = {name: entry.expiry(name) for name in entry.gates}
    return keeping.settle(live, before, told, thinning, ends, rows)


def memory_of(commit: Commit) -> dict[str, Any] | None:
    """How a memory limit was kept, with the names of `windrow.run.report`; None without a limit."""
    memory = commit.memory
    if memory is None:
        return None
    return asdict(
        MemoryReport(
            memory["limit_bytes"],
            bytes_of(commit.live),
            memory["largest_bytes"],
            sum(stored["let_go"] for stored in memory["streams"].values()),
            round(memory["lost_results"], 1),
            memory["crowded"],
        )
    )


def let_go_of(commit: Commit | None, stream: str) -> int:
    """Rows of a stream that were let go for memory."""
    return 0 if commit is None or commit.memory is None else int(commit.memory["streams"][stream]["let_go"])


def unjoined_of(commit: Commit | None) -> Unjoined:
    """The rows so far that recall does not count."""
    if commit is None:
        return Unjoined()
    memory = memory_of(commit) or {"let_go": 0, "lost_results": 0.0}
    counts = (gate.counts for gate in commit.gates.values())
    return Unjoined.of(counts, let_go=memory["let_go"], lost_results=memory["lost_results"])


def bytes_of(live: Live) -> int:
    """What live segments take, with their indexes."""
    return sum(file.total_bytes for _, _, file in each_file(live))


def _without(files: Iterable[SegmentFile], names: frozenset[str]) -> Iterator[SegmentFile]:
    return (file for file in files if file.name not in names)
