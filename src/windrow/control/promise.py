"""A promise of freshness, kept up to date: what was asked, what running batches can keep, and when they no longer can.

    asked of streams ──▶ Promise ──verdicts──▶ holds, or the least freshness that would, and the workers it takes
    a batch is done ────observe──▶ its time, the span since the one before, how late its rows came

Before any batch has run, windows, lateness and the trigger alone are known: what they make impossible no machine can
keep. Afterwards the last batches are averaged (`windrow.plan.directions.delivery` has the arithmetic). A window of rows
lasts as long as its oldest row was seen to be old. A batch that begins is judged before it is joined: its oldest new
row, a window back, is the oldest that any of its results can have.

>>> promise = Promise.of((Terms("a", window_s=10, freshness_s=13),), trigger_s=1)
>>> promise.infeasible
()
>>> for _ in range(3):
...     promise = promise.observe(span_s=1, busy_s=1.5, behind_s=0)       # half as much again as there is time for
>>> [str(verdict) for verdict in promise.infeasible]
["a freshness of 13 s cannot be promised for 'a': the backlog grows, and it takes 1.5 workers"]
>>> promise.threatened("a", now_s=103.0, oldest_new_s=101.0), promise.threatened("a", now_s=103.0, oldest_new_s=99.0)
(False, True)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from windrow.plan.directions.delivery import Batches, Terms, Verdict, promises

AVERAGED = 10
"""The last so many batches are averaged."""
LEAST_TRIGGER_S = 1e-6


@dataclass(frozen=True, slots=True)
class Promise:
    """What was asked of streams, and what is known of the batches: spans between them and their time, the last of them
    last. `trigger_s` is the least span there can be, `behind_s` how much later than allowed for rows came.
    """

    terms: tuple[Terms, ...]
    trigger_s: float = 0.0
    spans_s: tuple[float, ...] = ()
    busy_s: tuple[float, ...] = ()
    behind_s: float = 0.0

    @staticmethod
    def of(terms: tuple[Terms, ...], trigger_s: float = 0.0) -> Promise:
        """Before anything has run."""
        return Promise(terms, trigger_s)

    def observe(
        self, span_s: float, busy_s: float, behind_s: float, windows_s: Mapping[str, float] | None = None
    ) -> Promise:
        """With one more batch, `span_s` after the one before; `windows_s` says how long windows of rows last."""
        lasts = {} if windows_s is None else windows_s
        terms = tuple(replace(each, window_s=lasts.get(each.stream, each.window_s)) for each in self.terms)
        if span_s <= 0:
            return replace(self, terms=terms)
        spans_s = (*self.spans_s, span_s)[-AVERAGED:]
        return Promise(terms, self.trigger_s, spans_s, (*self.busy_s, busy_s)[-AVERAGED:], max(0.0, behind_s))

    @property
    def batches(self) -> Batches:
        """How batches have run of late."""
        spent_s = sum(self.spans_s)
        mean_s = spent_s / len(self.spans_s) if self.spans_s else 0.0
        work_s = sum(self.busy_s) / spent_s if spent_s else 0.0
        return Batches(max(self.trigger_s, mean_s, LEAST_TRIGGER_S), 0.0, work_s, backlog_s=self.behind_s)

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """What can be promised to each stream."""
        return promises(self.terms, self.batches)

    @property
    def infeasible(self) -> tuple[Verdict, ...]:
        """The promises that cannot be kept."""
        return tuple(verdict for verdict in self.verdicts if not verdict.holds)

    def threatened(self, stream: str, now_s: float, oldest_new_s: float) -> bool:
        """Whether a batch that begins now may find a row of a stream too old, if its oldest new row is of that time."""
        asked = next(each for each in self.terms if each.stream == stream)
        return now_s - oldest_new_s + asked.window_s > asked.freshness_s
