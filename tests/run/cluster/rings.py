"""Random small rings with a join that can be checked by trying all combinations, and a record of what passed by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product

import numpy as np

from windrow.plan.ring.model import RingCosts
from windrow.run.cluster.feed import Feed
from windrow.run.cluster.layout import Layout
from windrow.run.cluster.matching import NO_ROW, Exact, Members
from windrow.run.cluster.node import SlicedJoin
from windrow.run.cluster.ring import Message, Partial, Probe, RingSetting

COSTS = RingCosts(compare_s=1e-3, insert_s=1e-5, purge_s=1e-5, send_s=1e-4, hop_s=5e-3)


@dataclass(frozen=True)
class Case:
    """Streams with keys, windows, and a condition over pairs of keys."""

    feed: Feed
    keys: tuple[list[int], ...]
    windows_us: tuple[int, ...]
    layout: Layout
    orders: tuple[tuple[int, ...], ...]

    def fits(self, partial: Members, stream: int, row: int) -> bool:
        key = self.keys[stream][row]
        return all(abs(self.keys[other][number] - key) <= 1 for other, number in enumerate(partial) if number != NO_ROW)

    def matching(self) -> Exact:
        return Exact(self.fits)

    def setting(self, **changes: object) -> RingSetting:
        return RingSetting(self.layout, self.orders, COSTS, **changes)  # type: ignore[arg-type] # by name

    def expected(self) -> Counter[Members]:
        """The regular multi-way sliding window join: all combinations, one by one."""
        found: Counter[Members] = Counter()
        for members in product(*(range(len(times)) for times in self.feed.times_us)):
            times = [self.feed.times_us[stream][row] for stream, row in enumerate(members)]
            in_windows = all(max(times) - time < window for time, window in zip(times, self.windows_us, strict=True))
            partial = [NO_ROW] * len(members)
            for stream, row in enumerate(members):
                if not in_windows or not self.fits(tuple(partial), stream, row):
                    break
                partial[stream] = row
            else:
                found[members] += 1
        return found


def random_case(seed: int, streams: int, nodes: int, *, closed: bool = False, rows: int = 14) -> Case:
    """Uneven slices, some of them empty; times with ties, keys of few values."""
    random = np.random.default_rng([seed, streams, nodes])
    times = [np.sort(random.integers(0, 60, random.integers(rows // 2, rows + 1))) for _ in range(streams)]
    windows = tuple(int(window) + closed for window in random.integers(8, 30, streams))
    ends = tuple((*sorted(random.integers(0, window + 1, nodes - 1).tolist()), window) for window in windows)
    orders = tuple(tuple(random.permutation([o for o in range(streams) if o != d]).tolist()) for d in range(streams))
    keys = tuple(random.integers(0, 4, len(each)).tolist() for each in times)
    return Case(Feed.of(times), keys, windows, Layout(ends), orders)


@dataclass
class Record:
    """Watches a run: all messages, and what each probing row found in the states."""

    layout: Layout
    feed: Feed
    seen: list[tuple[float, int, Message]] = field(default_factory=list)
    pending: list[tuple[SlicedJoin, int]] = field(default_factory=list)
    states: list[tuple[int, int, list[tuple[int, int]]]] = field(default_factory=list)

    def __call__(self, time_s: float, node: SlicedJoin, message: Message) -> None:
        for purged, driver in self.pending:
            self.states.append((driver, purged.place, purged.spans()))
        self.pending = [(node, message.driver)] if isinstance(message, Probe) else []
        self.seen.append((time_s, node.place, message))

    def ends(self, driver: int) -> list[tuple[float, int, Partial]]:
        """The END markers of a row, where they arrived."""
        return [
            (time_s, place, message)
            for time_s, place, message in self.seen
            if isinstance(message, Partial) and message.end and message.driver == driver
        ]


def is_partition(spans: Sequence[tuple[int, int]], first: int, beyond: int) -> bool:
    """Whether ranges, from the head (newest) to the tail (oldest), make up one range without gap or overlap."""
    joined = all(newer[0] == older[1] for newer, older in pairwise(spans))
    return joined and spans[0][1] == beyond and spans[-1][0] == first
