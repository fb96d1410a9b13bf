"""A ring that is sliced anew while it runs: when, how, and what moves (PSP, section 6).

Between two rows, when nothing is on its way round the ring, a `Reslicing` may ask for a `Change`:

    passive    nodes get other ends, and new ones stand empty behind the tail; rows follow as they age
    at once    rows move to where the new layout has them; the ring stands still as long as that takes

`filled` and `resliced` say which row numbers each node then holds; rows are in age order along the ring, so each node
has one range of every stream, and together they have the windows, once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from windrow.errors import UsageError
from windrow.plan.ring.relocation import Growth, relocated
from windrow.run.cluster.layout import Layout
from windrow.run.cluster.node import SlicedJoin

Spans = list[tuple[int, int]]
"""For each stream the row numbers that a node holds: first, beyond the last."""


@dataclass(frozen=True, slots=True)
class Change:
    """Another layout, at once or passively."""

    layout: Layout
    at_once: bool


class Reslicing(Protocol):
    """Decides while a ring runs."""

    def due(self, time_us: int) -> bool:
        """Whether to ask, before the row of this event time is read in; it then waits until all others are done."""
        ...

    def change(self, time_us: int, held: list[Spans]) -> Change | None:
        """What to change, given what each node holds."""
        ...


def spans_of(layout: Layout, times_us: Sequence[list[int]], now_us: int, reached: Sequence[int]) -> list[Spans]:
    """What each node holds of the rows below `reached` when a row of event time `now_us` has just passed.

    >>> spans_of(Layout(((5, 10), (10, 10))), ([0, 4, 8, 9], [3]), 10, (4, 1))
    [[(2, 4), (0, 1)], [(1, 2), (0, 0)]]
    """
    beyond = list(reached)
    spans: list[Spans] = []
    for place in range(layout.nodes):
        held: Spans = []
        for stream, ends_us in enumerate(layout.ends_us):
            first = bisect_right(times_us[stream], now_us - ends_us[place], 0, beyond[stream])
            limit = layout.limit(stream, place)
            if limit is not None:
                first = max(first, beyond[stream] - limit)
            held.append((first, beyond[stream]))
            beyond[stream] = first
        spans.append(held)
    return spans


def filled(
    nodes: Sequence[SlicedJoin], layout: Layout, times_us: Sequence[list[int]], now_us: int, reached: Sequence[int]
) -> None:
    """Give each node what it holds at an event time."""
    for node, spans in zip(nodes, spans_of(layout, times_us, now_us, reached), strict=True):
        node.fill(spans)


def resliced(
    nodes: Sequence[SlicedJoin], change: Change, times_us: Sequence[list[int]], now_us: int, reached: Sequence[int]
) -> tuple[list[SlicedJoin], int]:
    """The nodes after a change, and how many rows went from one to another."""
    layout, before = change.layout, [node.spans() for node in nodes]
    made = list(nodes[: layout.nodes])
    made += [SlicedJoin(place, layout, times_us, nodes[0].delays) for place in range(len(made), layout.nodes)]
    for place, node in enumerate(made):
        node.resize(layout, place)
    if change.at_once:
        filled(made, layout, times_us, now_us, reached)
        return made, _moved(before, [node.spans() for node in made])
    if any(first < beyond for spans in before[layout.nodes :] for first, beyond in spans):
        raise UsageError(
            "a node that still holds rows cannot go", hint="give it an empty slice and wait, or go at once"
        )
    for node in made[len(nodes) :]:
        node.fill([(first, first) for first, _ in before[-1]])
    return made, 0


def _moved(before: list[Spans], after: list[Spans]) -> int:
    """Rows that change nodes, where nodes come in or go at the places that the paper's relocation has for them."""
    old, new = _counts(before), _counts(after)
    if len(after) < len(before):
        old, new = new, old
    places = Growth.of(len(old[0]), len(new[0]) - len(old[0])).places()
    return sum(relocated(held, then, places) for held, then in zip(old, new, strict=True))


def _counts(spans: list[Spans]) -> list[list[int]]:
    """Rows by stream and node."""
    return [[beyond - first for first, beyond in each] for each in zip(*spans, strict=True)]
