"""Which ages of each window lie on which node of a ring, from head to tail.

    stream a     |  0 ≤ age < 2 s  |  2 s ≤ age < 4 s  |  4 s ≤ age < 6 s  |
    stream b     |  0 ≤ age < 6 s  |  (empty)          |  (empty)          |

Slices may be uneven or empty, and differ between streams. With `limits` a slice that holds more rows than that passes
on its oldest ones before their time. Windows are open in PSP (an age of exactly W is out) and closed in Windrow (it is
in): times are whole microseconds, so a closed window is an open one that is a microsecond longer.

>>> layout = Layout.even((6_000_000, 6_000_000), nodes=3)
>>> layout.ends_us[0], layout.nodes
((2000000, 4000000, 6000000), 3)
>>> Layout.of_lengths((6, 6), (3, 1)).ends_us
((2, 4, 6), (6, 6, 6))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from windrow.errors import UsageError
from windrow.plan.ring.balance import row_limits
from windrow.plan.ring.relocation import even_ends

Limits = tuple[tuple[int | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """By stream and node, the age at which a row goes on to the next node, and the most rows that may wait for it."""

    ends_us: tuple[tuple[int, ...], ...]
    limits: Limits = ()

    def __post_init__(self) -> None:
        for ends in self.ends_us:
            if not ends or len(ends) != self.nodes or list(ends) != sorted(ends) or ends[0] < 0:
                raise UsageError(
                    f"slices cannot end at {ends}", hint="give ascending ages, one a node, for each stream"
                )
        for limits in self.limits:
            if len(limits) != self.nodes or limits[-1] is not None:
                raise UsageError(f"slices cannot be limited to {limits}", hint="give one a node, None for the tail")

    @classmethod
    def even(cls, windows_us: Sequence[int], nodes: int) -> Layout:
        """Slices of equal length."""
        return cls.of_lengths(windows_us, (nodes,) * len(windows_us))

    @classmethod
    def of_lengths(cls, windows_us: Sequence[int], lengths: Sequence[int]) -> Layout:
        """Equal slices over the first nodes, for each stream as many as its length."""
        nodes = max(lengths)
        return cls(
            tuple(
                (*(round(end) for end in even_ends(window, length)), *(window,) * (nodes - length))
                for window, length in zip(windows_us, lengths, strict=True)
            )
        )

    @classmethod
    def counted(cls, windows_us: Sequence[int], stored: Sequence[int], nodes: int) -> Layout:
        """Slices of equal count, for windows that hold `stored` rows (section 6, workload smoothing)."""
        limits = tuple(row_limits(rows, nodes) for rows in stored)
        return cls(tuple((window,) * nodes for window in windows_us), limits)

    @property
    def nodes(self) -> int:
        """N."""
        return len(self.ends_us[0])

    @property
    def windows_us(self) -> tuple[int, ...]:
        """The windows: where the last slices end."""
        return tuple(ends[-1] for ends in self.ends_us)

    def limit(self, stream: int, node: int) -> int | None:
        """The most rows of a stream on a node."""
        return self.limits[stream][node] if self.limits else None
