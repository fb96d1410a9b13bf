"""What a step can probe and a path can be driven by: a stream, or an inner node of a tree of joins.

A node's rows are rows of several streams that belong together. Its newest member stands for a row's time, and a row
dies when its first member does; as each member is in its window when the newest comes, that is at most the longest
window later. So a node is searched like a stream with that window, and what had died by then is dropped from the pairs
found.

>>> from windrow.query.spec import Window
>>> pair = Stored("(a b)", (Stream("a", "s", (), "ts", Window(10)), Stream("b", "s", (), "ts", Window(rows=5))))
>>> pair.window, sorted(pair.covered)
(Window(span_us=10, rows=None), ['a', 'b'])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from windrow.plan.nodes import Node
from windrow.query.spec import UNBOUNDED, QuerySpec, Stream, Window


@dataclass(frozen=True, slots=True)
class Stored:
    """An inner node, with the streams beneath it."""

    name: str
    streams: tuple[Stream, ...]

    @property
    def window(self) -> Window:
        """The longest window beneath it; without end where no window is a span of time."""
        spans = (stream.window.span_us for stream in self.streams)
        return Window(max((span_us for span_us in spans if span_us is not None), default=UNBOUNDED))

    @property
    def covered(self) -> frozenset[str]:
        return frozenset(stream.name for stream in self.streams)


Source: TypeAlias = Stream | Stored


def stored_of(spec: QuerySpec, node: Node) -> Stored:
    """A plan's node, with its streams."""
    return Stored(node.name, tuple(spec.stream(name) for name in node.streams))


def covered_by(source: Source) -> frozenset[str]:
    """The streams whose rows a source's rows hold."""
    return source.covered if isinstance(source, Stored) else frozenset({source.name})


def row_windows(source: Source) -> dict[str, int]:
    """The windows of rows among the streams of a source, by name."""
    streams = source.streams if isinstance(source, Stored) else (source,)
    return {stream.name: stream.window.rows for stream in streams if stream.window.rows is not None}
