"""An input buffer: rows that were pushed and wait for the next batch; of too many, the oldest go.

A batch takes all of them, or no more than so many: the first that came.

>>> buffer = Buffer(most_rows=3)
>>> for first in (0, 2):
...     buffer.push(pa.table({"x": [first, first + 1]}))
>>> [table["x"].to_pylist() for table in buffer.take()], buffer.dropped
([[1], [2, 3]], 1)
>>> for first in (4, 6):
...     buffer.push(pa.table({"x": [first, first + 1]}))
>>> [table["x"].to_pylist() for table in buffer.take(2)], len(buffer)
([[5], [6]], 1)
"""

from __future__ import annotations

from collections import deque

import pyarrow as pa

from windrow.errors import UsageError


class Buffer:
    """Rows of one stream; `dropped` counts those that had to go."""

    def __init__(self, most_rows: int | None = None) -> None:
        if most_rows is not None and most_rows < 1:
            raise UsageError(f"a buffer cannot hold {most_rows} rows", hint="give 1 or more, or no limit")
        self.most_rows = most_rows
        self.dropped = 0
        self._held: deque[pa.Table] = deque()
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    def push(self, rows: pa.Table) -> None:
        """Let rows wait."""
        self._held.append(rows)
        self._rows += len(rows)
        while self.most_rows is not None and self._rows > self.most_rows:
            first = self._held.popleft()
            excess = min(len(first), self._rows - self.most_rows)
            self.dropped += excess
            self._rows -= excess
            if excess < len(first):
                self._held.appendleft(first.slice(excess))

    def take(self, most_rows: int | None = None) -> list[pa.Table]:
        """The rows that wait, the oldest of them where there are more than `most_rows`."""
        room = self._rows if most_rows is None else min(most_rows, self._rows)
        self._rows -= room
        taken = []
        while room:
            first = self._held.popleft()
            taken.append(first.slice(0, room))
            if len(first) > room:
                self._held.appendleft(first.slice(room))
            room -= len(taken[-1])
        return taken
