"""A few of a step's pairs, looked at conjunct by conjunct (`windrow.control.sift`).

    segment, row ranges ── see ──▶ one segment, drawn by its pairs ── end ──▶ PAIRS of its pairs ──▶ each conjunct

Drawing the segment first, and then all pairs in it, is fair to pairs and asks for one gather. The conjuncts run as
plain Python, which for so few pairs is faster than having machine code made; values that overflow are not counted
again. Conjuncts that call the user's functions are left alone: these may be slow, or do something.
"""

from __future__ import annotations

import time
from functools import cached_property

import numpy as np

from windrow.control.sift import Sift
from windrow.probe.evaluate import Evaluator
from windrow.probe.pairs import Pairs
from windrow.probe.step import PairFrame, StepProbe
from windrow.query.expression import Call, Expression, walk
from windrow.query.functions import USER_PREFIX
from windrow.run.partial import Partial
from windrow.run.program import Program
from windrow.store.operand import Array
from windrow.store.segment import Segment

PAIRS = 32
"""How many pairs of a step are looked at in a batch, for each block of partial rows."""
BLOCKS = 4
"""In how many blocks of a batch, at most."""


class Sifters:
    """Makes the sifters of a batch; they share their randomness."""

    def __init__(self, program: Program, seed: int) -> None:
        self._program = program
        self._seed = seed

    @cached_property
    def random(self) -> np.random.Generator:
        return np.random.default_rng(self._seed)

    @cached_property
    def evaluator(self) -> Evaluator:
        return Evaluator(self._program.spec.functions, interpreted=True)

    def of(self, path: str, step: int) -> Sifter:
        """The sifter of one step."""
        return Sifter(self._program.steps[path][step], self)


class Sifter:
    """Sifts the pairs of one step; `seconds` is what that took."""

    def __init__(self, probe: StepProbe, sifters: Sifters) -> None:
        self.seconds = 0.0
        self.sift = Sift()
        self._probe = probe
        self._sifters = sifters
        self._blocks = 0
        self._pairs = 0
        self._met: Array | None = None
        self._chosen: tuple[Segment, Array | None, Array | None] | None = None

    @cached_property
    def conjuncts(self) -> tuple[Expression, ...]:
        """The conjuncts in the order in which they are told; none where a function of the user's would be called."""
        leading = tuple(dict.fromkeys(conjunct for conjunct, _ in self._probe.leading))
        ordered = (*leading, *(c for c in self._probe.conjuncts if c not in leading))
        return () if any(map(calls_user_function, ordered)) else ordered

    def see(self, partial: Partial, segment: Segment, low: Array | None, high: Array | None, pairs: int) -> None:
        """A segment where partial rows have so many pairs within reach, in these ranges of its rows (None: all)."""
        if not pairs:
            return
        started = time.perf_counter()
        if self._met is None:
            self._met = np.zeros(len(partial), np.bool_)
        if low is None or high is None:
            self._met[:] = True
        else:
            self._met |= high > low
        self._pairs += pairs
        if self._sifters.random.random() * self._pairs < pairs:
            self._chosen = (segment, low, high)
        self.seconds += time.perf_counter() - started

    def end(self, partial: Partial) -> None:
        """All segments have been seen."""
        started = time.perf_counter()
        met = 0 if self._met is None else int(self._met.sum())
        found = Sift(met)
        if self._chosen is not None and self._blocks < BLOCKS and self.conjuncts:
            self._blocks += 1
            found = self._looked_at(partial, *self._chosen, met)
        self.sift += found
        self._met, self._chosen, self._pairs = None, None, 0
        self.seconds += time.perf_counter() - started

    def _looked_at(self, partial: Partial, segment: Segment, low: Array | None, high: Array | None, met: int) -> Sift:
        drawn = drawn_pairs(self._sifters.random, len(partial), len(segment), low, high)
        frame = PairFrame(partial, segment, drawn, self._probe.target)
        holds = np.array([self._sifters.evaluator.is_true(conjunct, frame) for conjunct in self.conjuncts])
        failed = (~holds).sum(axis=0)
        return Sift(
            met,
            len(drawn.probe),
            tuple(holds.sum(axis=1).tolist()),
            tuple(np.logical_and.accumulate(holds).sum(axis=1).tolist()),
            tuple((~holds & (failed == 1)).sum(axis=1).tolist()),
        )


def drawn_pairs(
    random: np.random.Generator, probes: int, rows: int, low: Array | None, high: Array | None, count: int = PAIRS
) -> Pairs:
    """Pairs drawn from those within row ranges, each as likely as any other.

    >>> low, high = np.array([0, 5, 7]), np.array([2, 5, 8])
    >>> drawn = drawn_pairs(np.random.default_rng(1), 3, 9, low, high, count=200)
    >>> sorted(set(zip(drawn.probe.tolist(), drawn.row.tolist())))
    [(0, 0), (0, 1), (2, 7)]
    """
    if low is None or high is None:
        return Pairs(random.integers(0, probes, count, np.int32), random.integers(0, rows, count, np.int32))
    widths = np.maximum(high.astype(np.int64) - low, 0)
    ends = np.cumsum(widths)
    places = random.integers(0, ends[-1], count)
    probe = np.searchsorted(ends, places, side="right")
    row = low[probe] + places - (ends[probe] - widths[probe])
    return Pairs(probe.astype(np.int32), row.astype(np.int32))


def calls_user_function(conjunct: Expression) -> bool:
    """Whether a conjunct calls a function of the user's."""
    return any(isinstance(node, Call) and node.function.startswith(USER_PREFIX) for node in walk(conjunct))
