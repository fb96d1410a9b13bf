"""Datasets I to VI joined under each policy, batch by batch: how long batches take, and when their results leave.

    generate_dataset ──▶ batches of .1 or 1 s ──▶ a join under each policy, results read as they leave
                                                  └─▶ for each batch its seconds, and (seconds, results so far)

The first 20 % of the batches do not count, as in the paper, so that the stores hold something. Everything is put in
units of what the timestamp policy takes for the same batch. Streams are kept whole: nothing expires. Times are those of
the process, the shortest of some rounds. Each driver visits the others in the paper's order, most selective first.

Ours: of the batches of .1M only every fourth counts, or every eighth; what lies between comes as one batch that does
not. The round robin is by buffers, one stream further each batch; the paper's takes one row of each buffer in turn. And
under the timestamp policy drivers run one after the other as well, as positions decide who sees whom; so its results
leave in three pieces, too, not row by row.

In the paper a time unit is a nanosecond, a batch .1M or 1M of them; here it is a microsecond.

>>> runs = measured("VI", "1M", Size(scale=0.01, rounds=1), seed=1)
>>> list(runs) == list(POLICIES), len({run.results for run in runs.values()}), len(runs["timestamp"].batches)
(True, 1, 8)
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

import numpy as np
import pyarrow as pa

import windrow
from windrow.run.local import LocalJoin
from windrow.streams.arrivals import SECOND_US
from windrow.streams.shared_keys import DURATION_S, generate_dataset
from windrow.streams.synthetic import MIDNIGHT_US

POLICIES: Mapping[str, str] = MappingProxyType({
    "round_robin": "round-robin",
    "timestamp": "timestamp-based",
    "consumption_rate": "consumption rate",
    "initial_output_size": "initial output size",
    "output_rate": "output rate",
})  # fmt: skip
"""Our names of the policies, and the paper's, in the order of its tables."""

BATCHES: Mapping[str, int] = MappingProxyType({"0.1M": 100_000, "1M": 1_000_000})
"""The paper's batches, in microseconds."""

MOST_COUNTED, QUICK_COUNTED = 20, 10

IGNORED = 0.2
QUERY = """
SELECT S1.id AS id1, S2.id AS id2, S3.id AS id3 FROM S1, S2, S3
WHERE S1.key = S2.key AND S1.key = S3.key WINDOW 1 DAYS
"""


@dataclass(frozen=True, slots=True)
class Size:
    """How much of a dataset is joined, how often, and about how many batches of it count."""

    scale: float
    rounds: int
    counted: int = MOST_COUNTED


FULL, QUICK = Size(scale=1.0, rounds=2), Size(scale=0.05, rounds=2, counted=QUICK_COUNTED)


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch: its seconds, and when results left, as (seconds since its begin, results so far); for each driver in
    turn the probes of its path and its results, none where rows run in order of time.
    """

    seconds: float
    left: tuple[tuple[float, int], ...]
    drivers: tuple[tuple[int, int], ...] = ()

    @property
    def results(self) -> int:
        """All of them."""
        return self.left[-1][1] if self.left else 0

    def share_by(self, seconds: float) -> float:
        """The share of the results that had left by then.

        >>> Batch(1.0, ((0.2, 30), (0.9, 40))).share_by(0.5)
        0.75
        """
        return max((found for at, found in self.left if at <= seconds), default=0) / self.results

    def share_at(self, progress: float) -> float:
        """The share of the results found by a share of the probes, if rows ran one by one: a driver's alike.

        >>> Batch(1.0, ((0.2, 40),), drivers=((10, 30), (20, 10))).share_at(0.5)
        0.8125
        """
        if not self.drivers:
            return progress
        probes, results = np.cumsum(((0, 0), *self.drivers), axis=0).T
        return float(np.interp(progress * probes[-1], probes, results) / max(1, results[-1]))


@dataclass(frozen=True, slots=True)
class PolicyRun:
    """The batches that count under one policy."""

    batches: tuple[Batch, ...]

    @property
    def results(self) -> int:
        """All of them."""
        return sum(batch.results for batch in self.batches)

    @property
    def seconds(self) -> float:
        """All of them."""
        return sum(batch.seconds for batch in self.batches)

    def half(self, second: bool) -> PolicyRun:
        """The first or the second half of the batches."""
        middle = len(self.batches) // 2
        return PolicyRun(self.batches[middle:] if second else self.batches[:middle])

    def shares(self, units: Sequence[float], norm: PolicyRun) -> tuple[float, ...]:
        """The share of a batch's results that have left by each time, on average over the batches that have any; units
        are of the time that `norm` takes for the batch.
        """
        pairs = [pair for pair in zip(self.batches, norm.batches, strict=True) if pair[0].results]
        return tuple(
            float(np.mean([batch.share_by(unit * other.seconds) for batch, other in pairs])) if pairs else 0.0
            for unit in units
        )

    def share_at(self, progress: float) -> float:
        """The same by a share of the probes of a batch, on average."""
        return float(np.mean([batch.share_at(progress) for batch in self.batches if batch.results]))


Runs = Mapping[str, PolicyRun]


@lru_cache(maxsize=64)
def measured(dataset: str, batch: str, size: Size, seed: int, policies: tuple[str, ...] = tuple(POLICIES)) -> Runs:
    """A dataset joined under each policy, in batches by their name; policies take turns, round by round."""
    tables = generate_dataset(dataset, size.scale, seed)
    cuts = cuts_of(BATCHES[batch], size.counted)
    rounds = [{policy: _run(tables, cuts, policy) for policy in policies} for _ in range(size.rounds)]
    return MappingProxyType({
        policy: PolicyRun(tuple(map(_quickest, zip(*(found[policy] for found in rounds), strict=True))))
        for policy in policies
    })  # fmt: skip


def cuts_of(batch_us: int, counted: int) -> tuple[tuple[int, bool], ...]:
    """Where batches end, and whether they count: after the first fifth every k-th of them.

    >>> [cut for cut in cuts_of(1_000_000, 4)]
    [(2000000, False), (3000000, True), (4000000, False), (5000000, True), (6000000, False), (7000000, True), \
(8000000, False), (9000000, True), (10000000, False)]
    """
    batches = round(DURATION_S * SECOND_US / batch_us)
    first = round(IGNORED * batches)
    every = max(1, round((batches - first) / counted))
    cuts = {number * batch_us: False for number in (first, batches)}
    for number in range(first, batches, every):
        cuts.setdefault(number * batch_us, False)
        cuts[(number + 1) * batch_us] = True
    return tuple(sorted(cuts.items()))


def _quickest(rounds: tuple[Batch, ...]) -> Batch:
    return min(rounds, key=lambda batch: batch.seconds)


def _run(tables: Mapping[str, pa.Table], cuts: Sequence[tuple[int, bool]], policy: str) -> list[Batch]:
    join = windrow.local(windrow.sql(QUERY, streams=tables), policy=policy)
    times = {name: table["ts"].cast(pa.int64()).to_numpy() for name, table in tables.items()}
    begins, batches = dict.fromkeys(tables, 0), []
    for end_us, counts in cuts:
        for name, table in tables.items():
            end = int(np.searchsorted(times[name], MIDNIGHT_US + end_us))
            join.push(name, table.slice(begins[name], end - begins[name]))
            begins[name] = end
        batch = _step(join, (MIDNIGHT_US + end_us) / SECOND_US)
        if counts:
            batches.append(batch)
    return batches


def _step(join: LocalJoin, now_s: float) -> Batch:
    started, found, left = time.process_time(), 0, []
    for results in join.stream_step(now_s=now_s):
        found += len(results)
        left.append((time.process_time() - started, found))
    seconds = time.process_time() - started
    paths = {} if join.observation is None else join.observation.joined.others
    drove = [paths[name] for name in join.order or () if name in paths]
    done = ((sum(step.probes for step in path.steps), path.results) for path in drove)
    return Batch(seconds, tuple(left), tuple(done))
