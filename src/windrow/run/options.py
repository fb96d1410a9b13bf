"""The options of a join in one process, and what a throttle asked for means for its control.

>>> LocalOptions.of({"throttle": 0.3}).throttle
0.3
>>> LocalOptions.of({"trottle": 0.3})
Traceback (most recent call last):
    ...
windrow.errors.UsageError: there is no option 'trottle'. Next: did you mean 'throttle'?
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from windrow.control.controller import ControlSettings
from windrow.control.observation import Observation
from windrow.errors import UsageError
from windrow.plan.plan import Plan
from windrow.plan.trees import MWAY
from windrow.plan.work import REFERENCE, WorkCosts
from windrow.query.spec import QuerySpec
from windrow.run.admit import SetAside
from windrow.run.backlog import RepairSettings

Charge = Callable[[Observation], Observation]
"""Says what a batch took where it is not to be measured."""
SHEDS = ("drop", "repair")
"""What becomes of results that are left out: they are forgotten, or come later."""


@dataclass(frozen=True, slots=True)
class LocalOptions:
    """How a join runs in this process.

    Who does what:
        policy      who drives, see `windrow.plan.drivers`; `auto` predicts what is best
        favour      what for: `early` results, or the least `total` work
        methods     which probe methods are allowed
        adaptive    whether steps change their methods as it pays; not said, only where it surely does
        plan        a plan to use as it is
        shape       `mway`: each new row visits all windows; or a tree of joins with stored intermediate rows: `linear`,
                    `bushy`, or in brackets, `((a b) (c d))`

    With less than all:
        allowance   in a tree of joins: how a throttle is shared out among paths, see `windrow.control.allowance`
        throttle    do that share of the work and leave out the least promising rest; `auto`: as much as there is time
                    for
        shed        what becomes of that rest: `drop`, or `repair`: it comes later, with a last column `repaired`
        repair      in which order, and when, see `windrow.run.backlog`
        control     how, in detail
        memory      how much the windows may take after each batch, such as `500MB`: beyond it the rows that promise
                    least are let go, and counted
        buffer_rows how many rows of a stream may wait for a step; the oldest go first
        batch_rows  how many rows of a stream a step takes at most; the others wait
        result_memory  how much the results of a step may take in memory; the rest lies in a temporary file, mapped
        stale       what becomes of results that are older than FRESHNESS allows: `suppress` leaves them out and counts
                    them, `refuse` ends the join before the first

    When, and what else:
        period      with inputs: collect them, and join once in this span, so that the processor is idle between
        trigger     about how far apart batches begin, where that is known: what FRESHNESS can be promised is checked
                    against it before the start
        max_ahead   rows further ahead of the clock than this span are bad; unlimited by default
        set_aside   called with stream, reason and rows that did not enter
        clock       seconds since 1970
        costs       a first guess at what work costs; it is fitted while running
        charge      says what a batch took, instead of measuring it
        events      a folder for what each batch did, see `windrow.run.events`
    """

    policy: str = "timestamp"
    favour: Literal["early", "total"] | None = None
    methods: Collection[str] | None = None
    adaptive: bool | None = None
    plan: Plan | None = None
    shape: str = MWAY
    allowance: str | None = None
    throttle: float | Literal["auto"] | None = None
    shed: str = "drop"
    repair: RepairSettings | None = None
    control: ControlSettings | None = None
    memory: str | int | None = None
    buffer_rows: int | None = None
    batch_rows: int | None = None
    result_memory: str | int = "1GB"
    stale: str = "suppress"
    period: str | None = None
    trigger: str | None = None
    max_ahead: str | None = None
    set_aside: SetAside | None = None
    clock: Callable[[], float] = time.time
    costs: WorkCosts = REFERENCE
    charge: Charge | None = None
    events: str | Path | None = None

    @staticmethod
    def of(options: Mapping[str, Any]) -> LocalOptions:
        """Options by their names."""
        known = [field.name for field in fields(LocalOptions)]
        for name in options:
            if name not in known:
                near = get_close_matches(name, known, n=1)
                hint = f"did you mean '{near[0]}'?" if near else f"the options are {', '.join(sorted(known))}"
                raise UsageError(f"there is no option '{name}'", hint=hint)
        return LocalOptions(**options)


def settings_of(
    throttle: float | Literal["auto"] | None,
    control: ControlSettings | None,
    spec: QuerySpec,
    policy: str,
    shed: str = "drop",
    sheds: Collection[str] = SHEDS[:1],
) -> ControlSettings | None:
    """How to control a join for which a throttle was asked: a number is kept to, `auto` follows the load, None is the
    exact join. `sheds` is what can become of what is left out.
    """
    if shed not in sheds:
        raise UsageError(f"what is left out cannot be treated as '{shed}'", hint=f"choose of {', '.join(sheds)}")
    if not (throttle is None or throttle == "auto" or isinstance(throttle, int | float)):
        raise UsageError(
            f"the throttle is {throttle!r}", hint='give a share of the full work, above 0 up to 1, or "auto"'
        )
    if throttle is None and control is None:
        return None
    settings = control or ControlSettings()
    if settings.policy == "auto" and (shed == "repair" or spec.summary is not None):
        settings = replace(settings, policy="harvest")  # of rows that are not let in nobody knows what they would find
    if isinstance(throttle, int | float):
        settings = replace(settings, fixed=float(throttle))
    behind = policy != "timestamp" or any(stream.lateness_us > 0 for stream in spec.streams)
    return replace(settings, behind=settings.behind or behind)
