"""The rows of all streams in the order in which they come: by event time, then by stream.

Rows of a stream are known by their number, and positions count the rows of all streams. `drivers` are the positions of
the rows that probe: all of them, or a sample, where a run is about what one row takes and states have to be whole.

>>> feed = Feed.of([[10, 30], [10, 20]])
>>> feed.streams.tolist(), feed.numbers.tolist(), feed.before(2)
([0, 1, 1, 0], [0, 0, 1, 1], (1, 1))
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from windrow.errors import UsageError
from windrow.streams.arrivals import SECOND_US, Arrivals

Whole = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Feed:
    """Event times by stream; and by position, each row's stream, its number there, and how many rows of each stream
    have come before.
    """

    times_us: tuple[list[int], ...]
    streams: Whole
    numbers: Whole
    counts: Whole

    @classmethod
    def of(cls, times_us: Sequence[ArrayLike]) -> Feed:
        """Sorted event times, stream by stream."""
        each = [np.asarray(times, np.int64) for times in times_us]
        if len(each) < 2 or any(np.any(np.diff(times) < 0) for times in each):
            raise UsageError(f"{len(each)} streams, or times that go back", hint="give sorted times of two or more")
        streams = np.repeat(np.arange(len(each)), [len(times) for times in each])
        order = np.lexsort((streams, np.concatenate(each)))
        streams = streams[order]
        counts = np.zeros((len(streams) + 1, len(each)), np.int64)
        for stream in range(len(each)):
            counts[1:, stream] = np.cumsum(streams == stream)
        numbers = counts[np.arange(len(streams)), streams]
        return cls(tuple(times.tolist() for times in each), streams, numbers, counts)

    @classmethod
    def drawn(cls, arrivals: Sequence[Arrivals], duration_s: float, seed: int) -> Feed:
        """Streams of these patterns of arrival, from time 0."""
        generators = np.random.default_rng(seed).spawn(len(arrivals))
        pairs = zip(arrivals, generators, strict=True)
        return cls.of([each.times_us(0, duration_s, generator) for each, generator in pairs])

    @property
    def rows(self) -> int:
        """How many rows there are, of all streams."""
        return len(self.streams)

    def before(self, position: int) -> tuple[int, ...]:
        """How many rows of each stream have come before a position."""
        return tuple(self.counts[position].tolist())

    def time_us(self, position: int) -> int:
        """The event time of a row."""
        return self.times_us[int(self.streams[position])][int(self.numbers[position])]

    def position_at(self, time_s: float) -> int:
        """The first position with this event time or a later one."""
        return self.position_at_us(int(time_s * SECOND_US))

    def position_at_us(self, time_us: int) -> int:
        """The same, in microseconds."""
        return sum(bisect_left(times, time_us) for times in self.times_us)

    def sample(self, from_s: float, to_s: float, rows: int) -> list[int]:
        """Positions of about `rows` rows, evenly spread over a span of event time.

        >>> Feed.of([range(0, 10_000_000, 1_000_000), [0]]).sample(2, 8, 3)
        [3, 5, 7]
        """
        first, last = self.position_at(from_s), self.position_at(to_s)
        return [*map(int, np.unique(np.linspace(first, last, rows, endpoint=False).astype(np.int64)))]
