"""Where rows go: the slice of each new row, and the slices that each partial result has to visit for its next step.

    new rows ── homes ──▶ one slice each                          leaf value ─▶ word ─▶ hash or span ─▶ slice
    partial results ── visits ──▶ rows × slices, True where to    value or band looked for, computed from the members

Both sides use the machine words that the probes themselves search by: equal values have equal words, and a band is
widened by the same rounding margins. So a row that a step would match lies on a slice that its partial result visits.
"""

from __future__ import annotations

import numpy as np

from windrow.plan.bands import ranges_over, same_words
from windrow.plan.slices import Slicing, slicing_key, spans_in_turn, spans_visited
from windrow.probe.bounds import key_words, range_keys
from windrow.probe.hashed import combine
from windrow.probe.step import StepProbe
from windrow.query.expression import Expression
from windrow.query.predicate import Equality, Range, searches_of
from windrow.run.partial import Partial
from windrow.run.program import Program
from windrow.run.reach import Reach
from windrow.store.operand import Array, Operand
from windrow.store.segment import Segment


def homes(program: Program, slicing: Slicing, segment: Segment) -> Array:
    """The slice of each row of a new segment of the stream that `slicing` is for."""
    if slicing.kind == "time" or slicing.count == 1:
        return spans_in_turn(slicing, segment.time_us)
    key = slicing_key(program.conjuncts, slicing)
    operand = program.evaluator.evaluate(key, _Rows(segment))
    if slicing.kind == "hash":
        return _hashed(slicing, *key_words(operand, key.type))
    places = spans_in_turn(slicing, operand.values)
    return places if operand.valid is None else np.where(operand.valid, places, 0)


def visits(program: Program, slicing: Slicing, step: StepProbe, partial: Partial, reach: Reach) -> Array:
    """Which slices each partial result visits for a step whose target is sliced by `slicing`: rows × slices.

    `reach` is the time reach of the partial results: what reaches no event time visits nothing.
    """
    alive = reach.low <= reach.high
    if slicing.kind == "time":
        return spans_visited(slicing, reach.low, reach.high)
    key = slicing_key(program.conjuncts, slicing)
    searches = [search for conjunct in step.conjuncts for search in searches_of(conjunct, step.target)]
    if slicing.kind == "hash":
        for search in searches:
            if isinstance(search, Equality) and same_words(search.key) == same_words(key):
                return _hash_visits(program, slicing, search.value, partial, alive)
    elif ranges := ranges_over(key, [search for search in searches if isinstance(search, Range)]):
        return spans_visited(slicing, *range_keys(ranges, program.evaluator, partial)) & alive[:, None]
    return np.repeat(alive[:, None], slicing.count, axis=1)


def _hash_visits(program: Program, slicing: Slicing, sought: Expression, partial: Partial, alive: Array) -> Array:
    """The one slice of the value each partial result looks for; none where that is NULL."""
    words, valid = key_words(program.evaluator.evaluate(sought, partial), sought.type)
    rows = np.flatnonzero(alive if valid is None else alive & valid)
    visited = np.zeros((len(partial), slicing.count), np.bool_)
    visited[rows, _hashed(slicing, words, None)[rows]] = True
    return visited


def _hashed(slicing: Slicing, words: Array, valid: Array | None) -> Array:
    places = (combine([words]).view(np.uint64) % np.uint64(slicing.count)).astype(np.int64)
    return places if valid is None else np.where(valid, places, 0)


class _Rows:
    """The rows of a segment, as a frame."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment

    def __len__(self) -> int:
        return len(self.segment)

    def find(self, expression: Expression) -> Operand | None:
        slot = self.segment.layout.slot(expression)
        return None if slot is None else self.segment.operands[slot]
