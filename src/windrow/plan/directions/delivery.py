"""What a running join can promise: freshness as the time from a row's event to the delivery of a result it is in.

    event ── lateness ──▶ last row of the result is here ── backlog, trigger ──▶ batch begins ── batch ──▶ delivered
    └── window ──┘

A row may be a window older than the newest row of a result; that one may come late, waits for the batches ahead of it
and for the next batch to begin, and the batch takes its time:

    least freshness  =  window + lateness + trigger + backlog + batch

A batch takes `fixed_s`, and for each second of input `work_s` seconds of one worker, shared by all workers. If a batch
takes longer than the trigger, the backlog grows, and no freshness can be promised at all.

>>> asked = (Terms("a", window_s=600, freshness_s=602.0), Terms("b", window_s=60, lateness_s=2, freshness_s=62.0))
>>> verdicts = promises(asked, Batches(trigger_s=1, fixed_s=0.2, work_s=1.2, workers=2))
>>> [(verdict.stream, verdict.holds, verdict.least_s) for verdict in verdicts], round(verdicts[0].workers or 0, 6)
([('a', True, 601.8), ('b', False, 63.8)], 1.5)
>>> print(verdicts[1])
a freshness of 62 s cannot be promised for 'b': the least is 63.8 s, and with any number of workers more than 63.2 s
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from windrow.errors import PlanError

ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Terms:
    """What is asked of a stream."""

    stream: str
    window_s: float
    freshness_s: float
    lateness_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Batches:
    """How batches run: one each `trigger_s`, with `work_s` seconds of a worker for each second of input."""

    trigger_s: float
    fixed_s: float
    work_s: float
    workers: float = 1.0
    backlog_s: float = 0.0

    def __post_init__(self) -> None:
        if not (self.trigger_s > 0 and self.workers > 0 and min(self.fixed_s, self.work_s, self.backlog_s) >= 0):
            raise PlanError(f"batches cannot run like this: {self}", hint="give spans from 0 on, and a trigger above 0")

    @property
    def batch_s(self) -> float:
        """How long a batch takes."""
        return self.fixed_s + self.trigger_s * self.work_s / self.workers

    @property
    def keeps_up(self) -> bool:
        """Whether a batch is done when the next one is due."""
        return self.batch_s <= self.trigger_s * (1 + ROUNDING)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a freshness can be promised, the least that can, and the workers it takes.

    `least_s` is infinite where the batches do not keep up. `floor_s` is what no number of workers gets below; `workers`
    is None where that is too much.
    """

    stream: str
    asked_s: float
    least_s: float
    floor_s: float
    workers: float | None

    @property
    def holds(self) -> bool:
        """Whether it can be promised."""
        return self.least_s <= self.asked_s * (1 + ROUNDING)

    def __str__(self) -> str:
        if self.holds:
            return f"a freshness of {self.asked_s:.6g} s holds for '{self.stream}': the least is {self.least_s:.6g} s"
        least = "the backlog grows" if math.isinf(self.least_s) else f"the least is {self.least_s:.6g} s"
        start = f"a freshness of {self.asked_s:.6g} s cannot be promised for '{self.stream}': {least}, and"
        if self.workers is None:
            return f"{start} with any number of workers more than {self.floor_s:.6g} s"
        return f"{start} it takes {self.workers:.3g} workers"


def promises(asked: Iterable[Terms], batches: Batches) -> tuple[Verdict, ...]:
    """What can be promised to each stream."""
    return tuple(_verdict(terms, batches) for terms in asked)


def _verdict(terms: Terms, batches: Batches) -> Verdict:
    before_s = terms.window_s + terms.lateness_s + batches.trigger_s + batches.backlog_s
    least_s = before_s + batches.batch_s if batches.keeps_up else math.inf
    room_s = min(terms.freshness_s - before_s, batches.trigger_s) - batches.fixed_s
    workers = batches.trigger_s * batches.work_s / room_s if room_s > 0 else None
    return Verdict(terms.stream, terms.freshness_s, least_s, before_s + batches.fixed_s, workers)
