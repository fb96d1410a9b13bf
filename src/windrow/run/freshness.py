"""Freshness of results: those with a row that is too old are not delivered, and what can be promised is said.

    before the start   window, lateness and trigger: is it impossible on any machine?       `infeasible`, or refused
    a batch begins     its oldest new row, a window back: may anything be too old?          `infeasible`, or refused
    a block of results now - ts of each member against what its stream was promised         delivered, or suppressed
    a batch is done    how long it took, how late its rows came                              what the next can promise

`now` is the batch clock, so a batch that is run again suppresses the same rows. The age at delivery is measured
besides: it is the batch's time more. Repaired results are exempt, they come late by definition.

With `stale="suppress"` the join does what it can and counts what it leaves out; with `stale="refuse"` a promise that
cannot be kept ends it: before the start, or before the batch that would break it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from windrow.control.promise import Promise
from windrow.errors import FreshnessError, QueryError, UsageError
from windrow.plan.directions.delivery import Terms
from windrow.query.spec import QuerySpec
from windrow.run.admit import NEVER_US
from windrow.run.partial import Partial, is_event_time
from windrow.store.operand import Array
from windrow.store.segment import Segment
from windrow.store.window import Store

Stale: TypeAlias = Literal["suppress", "refuse"]
"""What becomes of a promise that cannot be kept: stale results are left out and counted, or the join ends."""
_US = 1_000_000


@dataclass(frozen=True, slots=True)
class StreamFreshness:
    """What was promised of a stream: asked for, the least that could be, the workers it takes (None: no number is
    enough), and how old its rows were at most when results with them were delivered.
    """

    asked_s: float
    least_s: float | None
    holds: bool
    workers: float | None
    oldest_s: float | None


@dataclass(frozen=True, slots=True)
class FreshnessReport:
    """How promises were kept: results `suppressed` as stale, since which batch a promise was known not to hold, and
    what was said of it.
    """

    suppressed: int
    infeasible_since: int | None
    infeasible: tuple[str, ...]
    streams: dict[str, StreamFreshness]


@dataclass
class FreshResults:
    """Lets through what is fresh at `now_us`, and notes what it did: results `suppressed`, and of those delivered the
    oldest member of each stream.
    """

    limits_us: Mapping[str, int]
    now_us: int
    suppressed: int = 0
    oldest_us: dict[str, int] = field(default_factory=dict)

    def of(self, blocks: Iterable[Partial]) -> Iterator[Partial]:
        """Of complete results, those that are fresh."""
        for block in blocks:
            times = {name: _member_times(block, name) for name in self.limits_us}
            fresh = np.ones(len(block), np.bool_)
            for name, limit_us in self.limits_us.items():
                fresh &= times[name] >= self.now_us - limit_us
            stale = int(len(fresh) - np.count_nonzero(fresh))
            self.suppressed += stale
            if stale == len(fresh):
                continue
            for name, found in times.items():
                oldest = int((found[fresh] if stale else found).min())
                self.oldest_us[name] = min(self.oldest_us.get(name, oldest), oldest)
            yield block.pick(np.flatnonzero(fresh)) if stale else block

    def take_in(self, values: Mapping[str, Any]) -> None:
        """Add what another one did."""
        self.suppressed += values["suppressed"]
        for name, time_us in values["oldest_us"].items():
            self.oldest_us[name] = min(self.oldest_us.get(name, time_us), time_us)

    def to_values(self) -> dict[str, Any]:
        """What it did, as values that JSON knows."""
        return {"suppressed": self.suppressed, "oldest_us": dict(self.oldest_us)}


def _member_times(partial: Partial, name: str) -> Array:
    if name in partial.handles:
        return partial.views[name].times(partial.handles[name])
    view = partial.views[partial.holder(name) or name]
    leaf = next(leaf for leaf in view.segments[0].layout.operands if is_event_time(leaf, name))
    found = partial.find(leaf)
    return np.zeros(0, np.int64) if found is None else found.values


def limits_of(spec: QuerySpec) -> dict[str, int]:
    """How old the rows of each stream may be in results, where that was asked for."""
    return {stream.name: stream.freshness_us for stream in spec.streams if stream.freshness_us is not None}


class Freshness:
    """The promises of one running join; made by `of`. `suppressed` counts results over its life."""

    def __init__(self, spec: QuerySpec, stale: str, trigger_s: float) -> None:
        self.limits_us = limits_of(spec)
        self.refuses = stale == "refuse"
        self.row_windowed = tuple(stream.name for stream in spec.streams if stream.window.rows is not None)
        lateness_s = max(stream.lateness_us for stream in spec.streams) / _US
        terms = (
            Terms(name, (spec.stream(name).window.span_us or 0) / _US, limit_us / _US, lateness_s)
            for name, limit_us in self.limits_us.items()
        )
        self.lateness_s = lateness_s
        self.promise = Promise.of(tuple(terms), trigger_s)
        self.suppressed = 0
        self.oldest_s: dict[str, float] = {}
        self.infeasible_since: int | None = None
        self.said: tuple[str, ...] = ()
        self._now_s: float | None = None
        self._judge(0)
        self._refuse()

    @staticmethod
    def of(spec: QuerySpec, stale: str = "suppress", trigger_s: float = 0.0) -> Freshness | None:
        """The promises of a query; None where none were asked for."""
        if stale not in get_args(Stale):
            hint = f"choose of {', '.join(get_args(Stale))}"
            raise UsageError(f"stale results cannot be treated as '{stale}'", hint=hint)
        if not limits_of(spec):
            return None
        if spec.summary is not None:
            hint = "leave out FRESHNESS, or select the results themselves"
            raise QueryError("FRESHNESS is of results; aggregates leave when their span is over", hint=hint)
        return Freshness(spec, stale, trigger_s)

    def begin(
        self, batch: int, now_s: float, fresh: Mapping[str, Segment], stores: Mapping[str, Store]
    ) -> FreshResults:
        """A batch of new rows is about to be joined; returns what lets through its fresh results."""
        oldest_us = min((segment.first_us for segment in fresh.values() if len(segment)), default=None)
        firsts = {name: (segment.first_us for segment in stores[name].segments) for name in self.row_windowed}
        windows_s = {name: now_s - min(held, default=round(now_s * _US)) / _US for name, held in firsts.items()}
        return self.expect(batch, now_s, oldest_us, windows_s)

    def expect(
        self, batch: int, now_s: float, oldest_new_us: int | None, windows_s: Mapping[str, float]
    ) -> FreshResults:
        """The same where the new rows are not at hand: the oldest is of that time (None: as those before it), and
        windows of rows reach back so far.
        """
        results = FreshResults(self.limits_us, int(now_s * _US))
        self.promise = self.promise.observe(0.0, 0.0, 0.0, windows_s)
        self._refuse()
        oldest_new_s = self._expected_s(now_s) if oldest_new_us is None else oldest_new_us / _US
        if oldest_new_s is None:
            return results
        late = tuple(name for name in self.limits_us if self.promise.threatened(name, now_s, oldest_new_s))
        if late:
            span_s = now_s - oldest_new_s
            self._say(batch, tuple(
                f"a freshness of {self.limits_us[name] / _US:.6g} s is not kept for '{name}': new rows are up to "
                f"{span_s:.6g} s old, and meet rows older by the window" for name in late
            ))  # fmt: skip
            self._refuse()
        return results

    def observe(self, batch: int, now_s: float, busy_s: float, newest_us: int, done: FreshResults) -> None:
        """A batch is done: it began at `now_s` and took so long; the newest row so far is of `newest_us`."""
        span_s = 0.0 if self._now_s is None else now_s - self._now_s
        self._now_s = now_s
        behind_s = 0.0 if newest_us == NEVER_US else now_s - newest_us / _US - span_s - self.lateness_s
        self.promise = self.promise.observe(span_s, busy_s, behind_s)
        self.suppressed += done.suppressed
        for name, time_us in done.oldest_us.items():
            self.oldest_s[name] = max(self.oldest_s.get(name, 0.0), now_s + busy_s - time_us / _US)
        self._judge(batch)

    def report(self) -> FreshnessReport:
        """How promises were kept so far."""
        streams = {
            verdict.stream: StreamFreshness(
                verdict.asked_s,
                verdict.least_s if np.isfinite(verdict.least_s) else None,
                verdict.holds,
                verdict.workers,
                self.oldest_s.get(verdict.stream),
            )
            for verdict in self.promise.verdicts
        }
        return FreshnessReport(self.suppressed, self.infeasible_since, self.said, streams)

    def _expected_s(self, now_s: float) -> float | None:
        """From when the new rows of a batch are that begins now, if they came as those before."""
        if self._now_s is None:
            return None
        return min(self._now_s, now_s) - self.lateness_s - self.promise.behind_s

    def _judge(self, batch: int) -> None:
        if self.promise.infeasible:
            self._say(batch, tuple(map(str, self.promise.infeasible)))

    def _say(self, batch: int, said: tuple[str, ...]) -> None:
        self.said = said
        self.infeasible_since = batch if self.infeasible_since is None else self.infeasible_since

    def _refuse(self) -> None:
        if self.refuses and self.said:
            raise FreshnessError(self.said[0], hint='ask for more, or let stale="suppress" leave out what is stale')
