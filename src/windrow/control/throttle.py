"""The throttle: which share z of the full work is done, so that the join keeps up with its input.

    Observations of an interval ── load_of ──▶ Load ── ThrottleRule.next ──▶ z of the next interval

Two rules. Where only rows are counted, it is GrubJoin's (section III): with beta = rows popped / rows pushed,

    z' = beta * z               if beta < 1
    z' = min(1, boost * z)      otherwise

Where the busy share is known, z goes straight to what fits. Rows of one second keep the processor busy for `demand`
seconds, of which a part does not depend on z. After the interval, `excess` seconds' worth of rows wait beyond those
that always wait for the next batch. In the next interval all this has to fit into the share `target` of the time:

    (fixed + growth * variable * z'/z) * (interval + excess) = target * interval,        and z' <= boost * z

So z falls at once, as far as it has to, and rises in steps that are known to fit: it does not hunt around its goal.
While windows fill, the same rows take more work from interval to interval, which is foreseen: `growth`.
Batches that take all that waits are judged by seconds of work for each second of arrivals, which says the same however
long a batch lasts. (Rows popped and pushed do not: the rows popped are those pushed one batch earlier, so that beta
sees an overload only while it grows.) What waits for the next batch is no backlog as long as there is idle time between
batches; where one follows the other at once, the join is still catching up.

In the paper: `throttle` z, `popped` alpha, `pushed` lambda', `boost` gamma, `interval_s` Delta.

>>> performance(popped=(50, 100), pushed=(100, 100))
0.75
>>> z = adjusted(1.0, beta=0.5, boost=1.2)
>>> z, adjusted(z, beta=1.0, boost=1.2)
(0.5, 0.6)
>>> rule = ThrottleRule()
>>> overload = Load(pushed={"a": 100}, popped={"a": 100}, busy_s=19.0, span_s=5.0, backlog_s=0.0, batches=5)
>>> round(rule.next(1.0, overload), 3)                 # 3.8 seconds of work a second; .95 would fit, and 2.8 s wait
0.16
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from windrow.control.observation import Observation
from windrow.errors import PlanError

BEHIND = 0.2
"""Of an interval, how much may wait while a join that follows its input without a pause is not taken to lag behind."""


def performance(popped: Collection[float], pushed: Collection[float]) -> float:
    """beta: of the rows pushed into all input buffers, the share that was popped; 1 when nothing was pushed."""
    total = sum(pushed)
    return sum(popped) / total if total > 0 else 1.0


def adjusted(throttle: float, beta: float, boost: float) -> float:
    """The paper's rule: down by beta when rows pile up, else up by `boost`, to at most 1."""
    return beta * throttle if beta < 1 else min(1.0, boost * throttle)


@dataclass(frozen=True, slots=True)
class Load:
    """One interval: rows pushed and popped, stream by stream, and the time they took.

    `busy_s` is what the rows popped kept the processor busy for, `span_s` the time in which they came, in so many
    `batches`; both None where only rows are known. `backlog_s` is what the rows waiting at the end will take at the
    present seconds a row, `fixed_s` the part of `busy_s` that does not change with the throttle. `last_s` is how long
    the last batch was busy, `idle_share` the share of the time without work before a batch; None: not known. Busy time
    has to include whatever a runtime needs for a batch, or batches that are said to fit do not.

    `inflow` is rows pushed a second for each row popped a second; where it is not said, both are rows of the same time.
    `growth` is how many times as much work the same rows will be in the next interval.
    """

    pushed: Mapping[str, float] = field(default_factory=dict)
    popped: Mapping[str, float] = field(default_factory=dict)
    busy_s: float | None = None
    span_s: float | None = None
    backlog_s: float = 0.0
    fixed_s: float = 0.0
    batches: int = 1
    inflow: float | None = None
    last_s: float | None = None
    idle_share: float | None = None
    growth: float = 1.0

    @property
    def beta(self) -> float:
        """Rows popped for each row pushed."""
        return performance(self.popped.values(), self.pushed.values())

    @property
    def demand(self) -> float | None:
        """Seconds of work that come in a second, at the throttle of the interval; None where that is not known.

        A runtime that takes only some of what waits pops fewer rows than are pushed, and more when it catches up:
        what counts is those pushed.
        """
        if self.busy_s is None or not self.span_s or self.span_s <= 0:
            return None
        inflow = self.inflow if self.inflow is not None else 1 / self.beta if self.beta > 0 else 1.0
        return self.busy_s / self.span_s * inflow


def load_of(
    observations: Sequence[Observation],
    *,
    before: Observation | None = None,
    fixed_s: float = 0.0,
    growth: float = 1.0,
) -> Load:
    """The load of the batches of an interval, all run at one throttle.

    `before` is the batch that came before: what waited then is not pushed in this interval. Without it the first batch
    only tells what waited after it, unless it is a query's first of all. `fixed_s` is the seconds of these batches that
    do not scale with the throttle (see `windrow.plan.work`).
    """
    if not observations:
        return Load(batches=0)
    if before is None and observations[0].batch > 0:
        pushed, popped, inflow = _flows(observations[0], observations[1:])
    else:
        pushed, popped, inflow = _flows(before, observations)
    timed = [batch for batch in observations if batch.span_s > 0]  # nothing is known of how long a first batch had
    rows, busy_s = sum(_popped(observations).values()), sum(batch.busy_s for batch in observations)
    return Load(
        pushed,
        popped,
        sum(batch.busy_s for batch in timed) if timed else None,
        sum(batch.span_s for batch in timed) if timed else None,
        sum(observations[-1].waiting.values()) * busy_s / rows if rows else 0.0,
        fixed_s * len(timed) / len(observations),
        len(timed) if timed else len(observations),
        inflow,
        observations[-1].busy_s,
        _idle_share(observations if before is None else (before, *observations)),
        growth,
    )


def _flows(
    before: Observation | None, batches: Sequence[Observation]
) -> tuple[dict[str, int], dict[str, int], float | None]:
    """Rows pushed and popped, and the ratio of their rates: rows are pushed from the end of the batch before to the
    end of the last one, and those popped came from its begin on to the begin of the last one. Rows that found no room
    were pushed, too: a full buffer would hide an overload otherwise.
    """
    popped, waited = _popped(batches), {} if before is None else before.waiting
    waiting = batches[-1].waiting if batches else waited
    names = dict.fromkeys((*popped, *waited, *waiting))
    dropped = {name: sum(batch.arrivals[name].dropped for batch in batches if name in batch.arrivals) for name in names}
    pushed = {
        name: max(0, popped.get(name, 0) + dropped[name] + waiting.get(name, 0) - waited.get(name, 0)) for name in names
    }
    span_s = sum(batch.span_s for batch in batches)
    if not any(popped.values()) or not span_s > 0:
        return pushed, popped, None
    told = any(waiting.values()) or any(waited.values())
    pushed_s = span_s + batches[-1].busy_s - (0.0 if before is None else before.busy_s) if told else span_s
    if not pushed_s > 0:
        return pushed, popped, 1.0
    return pushed, popped, sum(pushed.values()) / pushed_s * span_s / sum(popped.values())


def _idle_share(batches: Sequence[Observation]) -> float | None:
    """How much of the time between the begins of batches is not spent on the earlier of the two."""
    pairs = [(one.busy_s, other.span_s) for one, other in pairwise(batches) if other.span_s > 0]
    if not pairs:
        return None
    return sum(max(0.0, span_s - busy_s) for busy_s, span_s in pairs) / sum(span_s for _, span_s in pairs)


def _popped(observations: Sequence[Observation]) -> dict[str, int]:
    found: dict[str, int] = {}
    for batch in observations:
        for name, arrival in batch.arrivals.items():
            found[name] = found.get(name, 0) + arrival.rows
    return found


@dataclass(frozen=True, slots=True)
class ThrottleRule:
    """How the throttle follows the load: every `interval_s`, up by at most `boost`, never below `floor`, so that at
    most the share `target` of the time is busy.
    """

    interval_s: float = 5.0
    boost: float = 1.2
    floor: float = 0.005
    target: float = 0.95

    def __post_init__(self) -> None:
        if not (self.interval_s > 0 and self.boost > 1 and 0 < self.floor <= 1 and 0 < self.target <= 1):
            raise PlanError(
                f"the throttle cannot follow {self}",
                hint="give an interval above 0, a boost above 1, a floor and a target above 0 up to 1",
            )

    def next(self, throttle: float, load: Load, asked: float | None = None) -> float:
        """The throttle of the next interval; `throttle` is the one that the load was measured at, `asked` the one that
        was asked for, if that is another: the boost is counted from there.
        """
        return self.bounded(self.aim(throttle, load, asked))

    def aim(self, throttle: float, load: Load, asked: float | None = None) -> float:
        """The same before it is made to be a throttle: 0 or less where there is not even time for what is not shed."""
        most = self.boost * (throttle if asked is None else asked)
        demand = load.demand
        if demand is None:
            return min(most, adjusted(throttle, load.beta, self.boost))
        if demand <= 0:
            return most
        return min(most, throttle * self._fitting(demand, load))

    def bounded(self, throttle: float) -> float:
        """What comes of it: a share of the full work, never next to nothing."""
        return min(1.0, max(self.floor, throttle))

    def _fitting(self, demand: float, load: Load) -> float:
        """How many times the present throttle fits into the next interval; 0 or less when even none of it does."""
        busy_s = load.busy_s or 0.0
        fixed = demand * min(1.0, load.fixed_s / busy_s) if busy_s > 0 else 0.0
        variable = load.growth * (demand - fixed)
        if variable <= 0:
            return self.boost
        return (self.target * self.interval_s / (self.interval_s + self._excess_s(demand, load)) - fixed) / variable

    def _excess_s(self, demand: float, load: Load) -> float:
        """How many seconds' worth of arrivals wait that would not if the join kept up. While a batch runs the next
        one's rows come in, whether the runtime knows of them yet or not.
        """
        batches = max(1, load.batches)
        last_s = (load.busy_s or 0.0) / batches if load.last_s is None else load.last_s
        return max(0.0, max(load.backlog_s / demand, last_s) - self._usual_s((load.span_s or 0.0) / batches, load))

    def _usual_s(self, span_s: float, load: Load) -> float:
        """How many seconds' worth of arrivals a batch of a join that keeps up takes in."""
        if load.idle_share is not None and load.idle_share <= (1 - self.target) / 2:
            return min(span_s, BEHIND * self.interval_s)
        return min(span_s, self.interval_s)
