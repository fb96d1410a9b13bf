"""What a join on Spark is made of, besides its streams: the query, its plan, and where state and results go."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from windrow.control.controller import ControlSettings
from windrow.plan.plan import Plan
from windrow.plan.work import REFERENCE, WorkCosts
from windrow.query.expression import Column
from windrow.query.spec import QuerySpec
from windrow.run.backlog import RepairSettings
from windrow.run.program import Keep, Program
from windrow.run.spark.aside import Aside
from windrow.run.spark.lanes import Feed
from windrow.run.spark.results import Output, Results
from windrow.store.storage import Storage

Sink = Callable[[Results, int], None]
MOST_ROWS = 2_000_000
"""What a part of a batch has at most."""


@dataclass(frozen=True)
class Setting:
    """What a query on Spark is made of, besides its streams. Batches are at least `trigger_s` apart; `repair` says how
    what is left out comes later, None that it does not; `stale` what becomes of results older than promised, `is_timed`
    whether work takes time of the batch clock; events go to `events`, or beside the state.
    """

    spec: QuerySpec
    plan: Plan
    arrow_types: Mapping[Column, pa.DataType]
    storage: Storage
    feed: Feed
    output: Output
    sink: Sink
    max_ahead_us: int | None
    aside: Aside | None = None
    events: Storage | None = None
    keep: Keep = "used"
    control: ControlSettings | None = None
    costs: WorkCosts = REFERENCE
    pace: float = 1.0
    most_rows: int = MOST_ROWS
    trigger_s: float = 0.0
    repair: RepairSettings | None = None
    clock: Callable[[], float] = time.time
    stale: str = "suppress"
    is_timed: bool = True

    @property
    def sheds(self) -> bool:
        """Whether rows are stored with what shedding draws by. Where not all columns are kept it could not be had
        later, and the throttle may change.
        """
        return self.control is not None or self.keep == "used" or self.repairs

    @property
    def repairs(self) -> bool:
        """Whether what is left out comes later, so that rows have to know their batch."""
        return self.repair is not None

    def program(self, plan: Plan) -> Program:
        """The query made ready under a plan."""
        return Program(self.spec, plan, dict(self.arrow_types), self.keep, self.sheds, self.repairs)
