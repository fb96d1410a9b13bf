"""A join that is only its load: rows come at a rate, a batch takes work, and a rule sets the throttle.

    work of a batch = fixed + z * variable * sum of rate^streams over the seconds its rows came in

`batches` takes all that waits, like a micro-batch: the next one begins at the trigger, or when the last one is done.
`queue` is the other kind: it takes rows off one by one, all the time, and stops when the interval ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from windrow.control.observation import Arrival, Joined, Observation
from windrow.control.throttle import Load, ThrottleRule, load_of

RateHz = Callable[[float], float]
TICK_S = 0.01


@dataclass(frozen=True)
class Join:
    """What its batches cost, and how often they come."""

    variable_s: float
    fixed_s: float = 0.0
    streams: int = 3
    trigger_s: float = 1.0
    knows_fixed: bool = True
    tells_waiting: bool = True

    def demand(self, rate_hz: float, throttle: float) -> float:
        """The busy share in the long run, when every batch has the trigger's time."""
        return self.fixed_s / self.trigger_s + throttle * self.variable_s * rate_hz**self.streams


@dataclass(frozen=True)
class Step:
    """A batch, and the throttle it ran at."""

    start_s: float
    span_s: float
    busy_s: float
    throttle: float
    rate_hz: float


def batches(join: Join, rule: ThrottleRule, rate_hz: RateHz, count: int) -> list[Step]:
    """Micro-batches under a rule that decides once `interval_s` have gone by since it last did."""
    steps: list[Step] = []
    held: list[Observation] = []
    before: Observation | None = None
    throttle, last_s, start_s, decided_s = 1.0, 0.0, join.trigger_s, 0.0
    for number in range(count):
        span_s = start_s - last_s
        work = join.variable_s * _integral(lambda t: rate_hz(t) ** join.streams, last_s, start_s)
        busy_s = join.fixed_s + throttle * work
        end_s = start_s + busy_s
        steps.append(Step(start_s, span_s, busy_s, throttle, rate_hz(start_s)))
        waiting = {"a": round(1000 * _integral(rate_hz, start_s, end_s))} if join.tells_waiting else {}
        rows = round(1000 * _integral(rate_hz, last_s, start_s))
        held.append(Observation(number, start_s, span_s, busy_s, {"a": Arrival(rows)}, Joined(), waiting))
        if end_s - decided_s >= rule.interval_s:
            fixed_s = join.fixed_s * len(held) if join.knows_fixed else 0.0
            throttle = rule.next(throttle, load_of(held, before=before, fixed_s=fixed_s))
            before, held, decided_s = held[-1], [], end_s
        last_s, start_s = start_s, max(start_s + join.trigger_s, end_s)
    return steps


def queue(
    seconds_a_row: float, rule: ThrottleRule, rate_hz: RateHz, intervals: int, *, knows_time: bool
) -> Iterator[tuple[float, float]]:
    """The throttle of each interval and the rows that wait at its end, where rows wait in a buffer without end."""
    throttle, waiting = 1.0, 0.0
    for number in range(intervals):
        start_s = number * rule.interval_s
        pushed = _integral(rate_hz, start_s, start_s + rule.interval_s)
        popped = min(waiting + pushed, rule.interval_s / (throttle * seconds_a_row))
        waiting += pushed - popped
        yield throttle, waiting
        busy_s = popped * throttle * seconds_a_row if knows_time else None
        backlog_s = waiting * throttle * seconds_a_row
        throttle = rule.next(
            throttle,
            Load({"a": pushed}, {"a": popped}, busy_s, rule.interval_s if knows_time else None, backlog_s, batches=100),
        )


def _integral(value: RateHz, from_s: float, to_s: float) -> float:
    ticks = max(1, round((to_s - from_s) / TICK_S))
    width_s = (to_s - from_s) / ticks
    return (
        width_s * sum(value(from_s + (k + 0.5) * width_s) for k in range(min(ticks, 2000))) * ticks / min(ticks, 2000)
    )
