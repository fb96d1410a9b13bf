"""One step of a path: partial results on one side, the segments of a store on the other, matching pairs out.

    partial rows ──┐  search values (once a batch)
                   ├─ propose ──▶ pairs ──▶ compiled conjuncts ──▶ conjuncts with array functions ──▶ matches
    a segment ─────┘  index (once a segment)

The method proposes, the conjuncts decide: `loop` decides while it proposes, `hashed` on machine words needs no
further decision on its own equality, `matrix` is sure of what lies outside its error margin; everything else is
filtered.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TypeVar

import numpy as np
import pyarrow as pa

from windrow.probe import hashed, matrix
from windrow.probe import sorted as ordered
from windrow.probe.bounds import joint_key, range_keys
from windrow.probe.compile import Kernel, Source, compile_filter, compile_loop
from windrow.probe.evaluate import Evaluator, Frame
from windrow.probe.indexes import IndexKey, hashed_index, sorted_index
from windrow.probe.pairs import CAPACITY, Pairs, Rows
from windrow.probe.rules import is_compiled_whole
from windrow.query.expression import Expression, Literal, streams_of
from windrow.query.predicate import Equality, Range, Search, Similarity, leaves_of
from windrow.store.operand import Array, Form, Operand, from_arrow, tokens_operand
from windrow.store.segment import Segment

Index = TypeVar("Index")
Proposer = Callable[[Segment, Rows | None, Rows | None], Iterator[Pairs]]


@dataclass
class Work:
    """What probing did, in counts: pairs looked at, pairs proposed by an index, pairs that matched; and for how many
    seconds indexes were built or loaded.
    """

    compared: int = 0
    proposed: int = 0
    matched: int = 0
    index_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Leaves:
    """The form of each leaf expression, and whether rows with a NULL there can be in a window."""

    forms: dict[Expression, Form]
    nullable: frozenset[Expression]

    def sources(self, conjuncts: Sequence[Expression], stored: frozenset[str]) -> dict[Expression, Source]:
        found: dict[Expression, Source] = {}
        for conjunct in conjuncts:
            for leaf in leaves_of(conjunct):
                side = "stored" if streams_of(leaf) <= stored else "probe"
                found[leaf] = Source(side, self.forms[leaf], leaf in self.nullable)
        return found


@dataclass
class StepProbe:
    """A step made ready: which searches lead, and which conjuncts are left to decide.

    `conjuncts` are all that become checkable here; `leading` are the searches the method uses (none for a loop);
    `covered` the streams whose rows the store holds: the target, or in a tree of joins those beneath it.
    """

    target: str
    method: str
    conjuncts: tuple[Expression, ...]
    leading: tuple[tuple[Expression, Search], ...]
    narrowing: tuple[Range, ...]
    leaves: Leaves
    evaluator: Evaluator
    work: Work = field(default_factory=Work)
    covered: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.covered = self.covered or frozenset({self.target})
        self.deciding = tuple(c for c in self.conjuncts if is_compiled_whole(c))
        self.arrayed = tuple(c for c in self.conjuncts if c not in self.deciding)
        if (
            self.method == "hashed"
            and len(self.leading) == 1
            and isinstance(self.leading[0][1], Equality)
            and self.leading[0][1].exact
        ):
            self.deciding = tuple(c for c in self.deciding if c != self.leading[0][0])
        self.only_leading = len(self.leading) == 1 and self.deciding == (self.leading[0][0],)

    @cached_property
    def filtering(self) -> Kernel:
        """The kernel that decides on proposed pairs."""
        return compile_filter(self.deciding, self.leaves.sources(self.deciding, self.covered))

    @cached_property
    def looping(self) -> Kernel:
        """The kernel that decides while it goes through all pairs."""
        return compile_loop(self.deciding, self.leaves.sources(self.deciding, self.covered))

    @property
    def index_key(self) -> IndexKey | None:
        """The index of stored rows that this step searches."""
        if self.method == "hashed":
            return "hashed", tuple(search.key for _, search in self.leading if isinstance(search, Equality))
        if self.method == "sorted":
            return "sorted", (next(search.key for _, search in self.leading if isinstance(search, Range)),)
        return None

    def begin(self, frame: Frame) -> Probing:
        """Compute what the partial rows look for; the result probes one segment after the other."""
        searches = [search for _, search in self.leading]
        proposer: Proposer
        if self.method == "hashed":
            proposer = self._hashed([s for s in searches if isinstance(s, Equality)], frame)
        elif self.method == "sorted":
            proposer = self._sorted([s for s in searches if isinstance(s, Range)], frame)
        elif self.method == "matrix":
            return Probing(
                self, frame, None, self._similar(next(s for s in searches if isinstance(s, Similarity)), frame)
            )
        else:
            return Probing(self, frame, self._looped(frame), None)
        return Probing(self, frame, proposer, None)

    def narrow(self, frame: Frame) -> tuple[Array, Array] | None:
        """The range of event time (microseconds) that conditions on the time column itself leave."""
        return range_keys(self.narrowing, self.evaluator, frame) if self.narrowing else None

    def _hashed(self, searches: list[Equality], frame: Frame) -> Proposer:
        keys = tuple(search.key for search in searches)
        values = [search.value for search in searches]
        words, valid = joint_key(values, [self.evaluator.evaluate(value, frame) for value in values])
        prepared = hashed.prepare(words, valid)

        def propose(segment: Segment, row_low: Rows | None, row_high: Rows | None) -> Iterator[Pairs]:
            return hashed.propose(self._timed(lambda: hashed_index(segment, keys)), prepared, row_low, row_high)

        return propose

    def _sorted(self, searches: list[Range], frame: Frame) -> Proposer:
        key = searches[0].key
        prepared = ordered.prepare(*range_keys(searches, self.evaluator, frame))

        def propose(segment: Segment, row_low: Rows | None, row_high: Rows | None) -> Iterator[Pairs]:
            operand = _stored(segment, key)
            index = self._timed(lambda: sorted_index(segment, key))
            by_row = operand.values if operand.values.dtype == index.keys.dtype and operand.valid is None else None
            return ordered.propose(index, prepared, row_low, row_high, keys_by_row=by_row)

        return propose

    def _timed(self, index: Callable[[], Index]) -> Index:
        """An index, and a note of how long it took to have it: that is no part of what a probe takes."""
        started = time.perf_counter()
        found = index()
        self.work.index_s += time.perf_counter() - started
        return found

    def _looped(self, frame: Frame) -> Proposer:
        kernel = self.looping
        count = len(frame)

        def propose(segment: Segment, row_low: Rows | None, row_high: Rows | None) -> Iterator[Pairs]:
            low = np.zeros(count, np.int32) if row_low is None else row_low
            high = np.full(count, len(segment), np.int32) if row_high is None else row_high
            self.work.compared += int((high.astype(np.int64) - low).clip(0).sum())
            inputs = kernel.inputs(partial(_find, frame, segment, self.evaluator))
            state = np.zeros(2, np.int64)
            while True:
                probes, rows = np.empty(CAPACITY, np.int32), np.empty(CAPACITY, np.int32)
                found = kernel(inputs, low, high, state, probes, rows, self.evaluator.faults)
                yield Pairs(probes[:found], rows[:found])
                if state[0] >= count:
                    return

        return propose

    def _similar(
        self, search: Similarity, frame: Frame
    ) -> Callable[[Segment, Rows | None, Rows | None], Iterator[tuple[Pairs, Array]]]:
        sought = self.evaluator.evaluate(search.value, frame)
        mixed = search.key.type.width != search.value.type.width
        probe = _vectors(sought, mixed)
        threshold = np.asarray(self.evaluator.evaluate(search.threshold, frame).values, np.float64)

        def propose(segment: Segment, row_low: Rows | None, row_high: Rows | None) -> Iterator[tuple[Pairs, Array]]:
            operand = _stored(segment, search.key)
            stored = segment.index(("vectors", search.key, mixed), lambda: _vectors(operand, mixed))
            return matrix.propose(search.function, stored, probe, threshold, search.at_least, row_low, row_high)

        return propose


@dataclass
class Probing:
    """A step in use on one set of partial rows."""

    step: StepProbe
    frame: Frame
    proposer: Proposer | None
    similar: Callable[[Segment, Rows | None, Rows | None], Iterator[tuple[Pairs, Array]]] | None

    def matches(self, segment: Segment, row_low: Rows | None, row_high: Rows | None) -> Iterator[Pairs]:
        """The matching pairs of a segment, each probe row restricted to its row range (None: all rows for all)."""
        step = self.step
        for proposed in self._proposed(segment, row_low, row_high):
            decided = proposed
            for conjunct in step.arrayed:
                if len(decided.probe) == 0:
                    break
                chosen = step.evaluator.is_true(conjunct, PairFrame(self.frame, segment, decided, step.target))
                decided = Pairs(decided.probe[chosen], decided.row[chosen])
            if len(decided.probe):
                step.work.matched += len(decided.probe)
                yield decided

    def warm(self, segment: Segment) -> None:
        """Have all that `matches` calls compiled; the first rows of both sides are looked at, match or not."""
        for _ in self.matches(segment, None, None):
            pass
        if self.step.deciding and self.step.method not in ("loop", "opaque"):
            first = np.zeros(1, np.int32)
            self._filter(self.step.filtering, segment, Pairs(first, first))

    def _proposed(self, segment: Segment, row_low: Rows | None, row_high: Rows | None) -> Iterator[Pairs]:
        step = self.step
        if self.similar is not None:
            yield from self._from_matrix(segment, row_low, row_high)
        elif self.proposer is not None and step.method in ("loop", "opaque"):
            yield from self.proposer(segment, row_low, row_high)
        elif self.proposer is not None:
            filtering = step.filtering if step.deciding else None
            for pairs in self.proposer(segment, row_low, row_high):
                step.work.proposed += len(pairs.probe)
                yield pairs if filtering is None else self._filter(filtering, segment, pairs)

    def _from_matrix(self, segment: Segment, row_low: Rows | None, row_high: Rows | None) -> Iterator[Pairs]:
        step = self.step
        filtering = step.filtering
        if self.similar is None:
            return
        for pairs, certain in self.similar(segment, row_low, row_high):
            step.work.proposed += len(pairs.probe)
            if not step.only_leading:
                yield self._filter(filtering, segment, pairs)
                continue
            yield Pairs(pairs.probe[certain], pairs.row[certain])
            unsure = ~certain
            if unsure.any():
                yield self._filter(filtering, segment, Pairs(pairs.probe[unsure], pairs.row[unsure]))

    def _filter(self, filtering: Kernel, segment: Segment, pairs: Pairs) -> Pairs:
        if len(pairs.probe) == 0:
            return pairs
        inputs = filtering.inputs(partial(_find, self.frame, segment, self.step.evaluator))
        probes, rows = np.array(pairs.probe), np.array(pairs.row)
        kept = filtering(inputs, probes, rows, len(probes), self.step.evaluator.faults)
        return Pairs(probes[:kept], rows[:kept])


@dataclass(frozen=True, slots=True)
class PairFrame:
    """Candidate pairs as rows, for conjuncts that are evaluated over arrays."""

    frame: Frame
    segment: Segment
    pairs: Pairs
    target: str

    def __len__(self) -> int:
        return len(self.pairs.probe)

    def find(self, expression: Expression) -> Operand | None:
        if isinstance(expression, Literal):
            return None
        slot = self.segment.layout.slot(expression)
        if slot is not None:
            return take(self.segment.operands[slot], expression, self.pairs.row)
        found = self.frame.find(expression)
        return None if found is None else take(found, expression, self.pairs.probe)


def take(operand: Operand, expression: Expression, rows: Array) -> Operand:
    """Some rows of an operand."""
    valid = None if operand.valid is None else operand.valid[rows]
    if operand.arrow is not None and operand.form is Form.TEXT:
        return from_arrow(operand.arrow.take(pa.array(rows)), expression.type)
    if operand.arrow is not None and operand.form is Form.TOKENS:
        return tokens_operand(operand.arrow.take(pa.array(rows)), valid)
    return Operand(operand.form, (operand.values[rows],), valid)


def _vectors(operand: Operand, mixed: bool) -> matrix.Vectors:
    """Vectors ready for products; those of 32 and of 64 bits meet in 64."""
    return matrix.vectors(operand.values.astype(np.float64) if mixed else operand.values, operand.valid)


def _stored(segment: Segment, key: Expression) -> Operand:
    slot = segment.layout.slot(key)
    if slot is None:
        raise KeyError(str(key))
    return segment.operands[slot]


def _find(frame: Frame, segment: Segment, evaluator: Evaluator, side: str, expression: Expression) -> Operand:
    return _stored(segment, expression) if side == "stored" else evaluator.evaluate(expression, frame)
