"""Shapes of join trees: which streams meet first. A shape is a name, or a pair of shapes.

    linear   (((a b) c) d)      one stream more at each join
    bushy    ((a b) (c d))      neighbours meet, then pairs of pairs
    mixed    anything between, drawn at random

>>> written(linear("abcd")), written(bushy("abcde"))
('(((a b) c) d)', '(((a b) (c d)) e)')
>>> written(read("((a b)(cam1 d))"))
'((a b) (cam1 d))'
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from windrow.errors import PlanError
from windrow.plan.directions.tree import Join, Node, State, Stream

Shape = str | tuple["Shape", "Shape"]


def linear(names: Sequence[str]) -> Shape:
    """One stream more at each join, in the order of the names."""
    _two_or_more(names)
    shape: Shape = names[0]
    for name in names[1:]:
        shape = (shape, name)
    return shape


def bushy(names: Sequence[str]) -> Shape:
    """Neighbours meet, then pairs of neighbours; an odd one out waits for the next level."""
    _two_or_more(names)
    level: list[Shape] = list(names)
    while len(level) > 1:
        pairs: list[Shape] = [(level[n], level[n + 1]) for n in range(0, len(level) - 1, 2)]
        level = pairs + level[2 * len(pairs) :]
    return level[0]


def mixed(random: np.random.Generator, names: Sequence[str]) -> Shape:
    """Any two meet, drawn at random, until all have met."""
    _two_or_more(names)
    left: list[Shape] = list(names)
    while len(left) > 1:
        first, second = sorted(random.choice(len(left), 2, replace=False).tolist())
        pair = (left[first], left[second])
        left = [shape for place, shape in enumerate(left) if place not in (first, second)] + [pair]
    return left[0]


def written(shape: Shape) -> str:
    """A shape as text: names and brackets."""
    return shape if isinstance(shape, str) else f"({written(shape[0])} {written(shape[1])})"


def read(text: str) -> Shape:
    """The shape that a text of names and brackets describes."""
    words = re.findall(r"[()]|[^\s()]+", text)
    stack: list[list[Shape]] = [[]]
    for word in words:
        if word == "(":
            stack.append([])
        elif word != ")":
            stack[-1].append(word)
        elif len(stack) == 1 or len(stack[-1]) != 2:
            raise _unreadable(text)
        else:
            left, right = stack.pop()
            stack[-1].append((left, right))
    if len(stack) != 1 or len(stack[0]) != 1 or isinstance(stack[0][0], str):
        raise _unreadable(text)
    return stack[0][0]


def plant(shape: Shape, streams: dict[str, Stream], state: Callable[[str], State]) -> Join:
    """The tree of a shape; `state` gives the state of an inner node by its name, `(a b)`."""
    unknown = [name for name in names_of(shape) if name not in streams]
    if unknown:
        raise PlanError(f"the shape {written(shape)} has no stream '{unknown[0]}'", hint="name the query's streams")

    def node(part: Shape) -> Node:
        if isinstance(part, str):
            return streams[part]
        return Join(node(part[0]), node(part[1]), state(written(part)))

    if isinstance(shape, str):
        raise _unreadable(shape)
    return Join(node(shape[0]), node(shape[1]))


def names_of(shape: Shape) -> tuple[str, ...]:
    """The streams of a shape, from left to right."""
    return (shape,) if isinstance(shape, str) else (*names_of(shape[0]), *names_of(shape[1]))


def _two_or_more(names: Sequence[str]) -> None:
    if len(names) < 2:
        raise PlanError(f"{len(names)} streams make no join", hint="name two or more")


def _unreadable(text: str) -> PlanError:
    return PlanError(f"'{text}' is not the shape of a join tree", hint="write pairs in brackets, like ((a b) (c d))")
