"""Where it is probed: which slice of the cluster holds a stored row, and which slices a probe has to visit.

Every stored row has exactly one slice; a partial result visits the slices that can hold a match for it. How the rows
of a stream are sliced is part of the plan:

    kind     the slice of a stored row                        a partial result visits
    time     spans of event time, dealt out in turn           the spans in its time reach
    hash     the hash of one side of an equality              the slice of the value it looks for
    range    spans of one side of a band, dealt out in turn   the spans its band touches

    span        0    1    2    3    4    5   …
    slice       0    1    2    0    1    2   …           a probe that reaches spans 4 … 5 visits slices 1 and 2

Spans in turn lay every window on all slices, whatever its age. Ageing moves nothing: a row stays where it is until it
leaves its window. A step without the condition its store is sliced by visits all slices.

>>> by_time = Slicing("a", "time", count=3, span=10)
>>> spans_in_turn(by_time, np.array([0, 10, 25, 31, -1])).tolist()
[0, 1, 2, 0, 2]
>>> spans_visited(by_time, np.array([41, 0]), np.array([52, 100])).tolist()
[[False, True, True], [True, True, True]]
"""

from __future__ import annotations

import math
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from windrow.errors import PlanError
from windrow.query.expression import Expression
from windrow.query.predicate import Equality, Range, searches_of

Kind: TypeAlias = typing.Literal["time", "hash", "range"]
KINDS: tuple[Kind, ...] = ("time", "hash", "range")
SPANS_A_WINDOW = 4
OFF_THE_GRID = 0.618033988749895
"""Spans are this share of a round length: event times on a grid of whole seconds would all fall to a few slices."""
SHORTEST_SPAN_US = 1_000
FARTHEST_SPAN = 2.0**62
"""Spans beyond this count as one: numbers of spans stay within a word."""

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Slicing:
    """How the rows of `stream` are shared out over `count` slices.

    `conjunct` is the equality or the band (by its place in the query) whose side that reads the stream is the key;
    `span` is in microseconds of event time, or in units of the key's machine word. A NULL key lies on slice 0.
    """

    stream: str
    kind: Kind
    count: int
    conjunct: int | None = None
    span: int | float | None = None

    def __post_init__(self) -> None:
        needs = (self.kind != "time", self.kind != "hash")
        if self.kind not in KINDS or needs != (self.conjunct is not None, self.span is not None):
            raise PlanError(f"stream '{self.stream}' cannot be sliced like this: {self!r}", hint="plan the query again")
        if self.count < 1 or (self.span is not None and not 0 < self.span < math.inf):
            raise PlanError(f"slices need a number and a span above 0, not {self!r}", hint="plan the query again")


@dataclass(frozen=True, slots=True)
class Slices:
    """The slices of a plan: how many, and how each stream is sliced. One slice, which is the default, needs no more."""

    count: int = 1
    streams: tuple[Slicing, ...] = ()

    def __post_init__(self) -> None:
        if self.count < 1 or any(slicing.count != self.count for slicing in self.streams):
            raise PlanError(f"the plan has {self.count} slices, its streams have others", hint="plan the query again")

    def of(self, name: str) -> Slicing:
        """How the stream of that name is sliced."""
        for slicing in self.streams:
            if slicing.stream == name:
                return slicing
        if self.count == 1:
            return Slicing(name, "time", 1, span=SHORTEST_SPAN_US)
        raise PlanError(f"the plan does not say how '{name}' is sliced", hint="plan the query again")

    @staticmethod
    def from_values(value: Mapping[str, Any]) -> Slices:
        """The slices that plain values describe, as JSON has them."""
        return Slices(int(value["count"]), tuple(_slicing(each) for each in value["streams"]))


ONE_SLICE = Slices()


def _slicing(value: Mapping[str, Any]) -> Slicing:
    conjunct, span = value["conjunct"], value["span"]
    if not isinstance(span, (int, float, type(None))):
        raise TypeError(f"span {span!r}")
    conjunct = None if conjunct is None else int(conjunct)
    return Slicing(str(value["stream"]), value["kind"], int(value["count"]), conjunct, span)


def time_slicing(name: str, count: int, window_us: int | None) -> Slicing:
    """Slices by event time for a window of `window_us` (None: a row window), spread over all slices."""
    even_us = min(60_000_000 if window_us is None else window_us, 2**62) // (SPANS_A_WINDOW * count)
    return Slicing(name, "time", count, span=max(SHORTEST_SPAN_US, int(even_us * OFF_THE_GRID)))


def slicing_key(conjuncts: Sequence[Expression], slicing: Slicing) -> Expression:
    """What the rows of a stream are sliced by, besides time: the side of the conjunct that reads the stream."""
    wanted = Equality if slicing.kind == "hash" else Range
    if slicing.conjunct is not None and 0 <= slicing.conjunct < len(conjuncts):
        for search in searches_of(conjuncts[slicing.conjunct], slicing.stream):
            if isinstance(search, wanted):
                return search.key
    message = f"conjunct {slicing.conjunct} has no key of '{slicing.stream}' to slice by {slicing.kind}"
    raise PlanError(message, hint="plan the query again")


def spans_in_turn(slicing: Slicing, words: Array) -> Array:
    """The slice of each machine word."""
    return _spans(slicing, words) % slicing.count


def spans_visited(slicing: Slicing, low: Array, high: Array) -> Array:
    """Which slices hold words of each closed range: one row a range, one column a slice. A range with a NaN is
    empty.
    """
    visited = np.zeros((len(low), slicing.count), np.bool_)
    first, last = _spans(slicing, low), _spans(slicing, high)
    further = last.view(np.uint64) - first.view(np.uint64)  # exact, however far apart two words are
    reach = np.where(low <= high, np.minimum(further, slicing.count - 1).astype(np.int64) + 1, 0)
    for step in range(slicing.count):
        rows = np.flatnonzero(reach > step)
        visited[rows, (first[rows] % slicing.count + step) % slicing.count] = True
    return visited


def _spans(slicing: Slicing, words: Array) -> Array:
    """The number of the span of each word; never goes down as words go up, whatever is lost in rounding."""
    if slicing.kind == "time":
        return np.asarray(words, np.int64) // int(slicing.span or 1)
    with np.errstate(all="ignore"):
        numbers = np.floor(np.asarray(words, np.float64) / float(slicing.span or 1))
        numbers = np.clip(np.where(np.isnan(numbers), 0.0, numbers), -FARTHEST_SPAN, FARTHEST_SPAN)
    spans: Array = numbers.astype(np.int64)
    return spans
