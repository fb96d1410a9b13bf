"""Work → seconds: what the parts of a batch take, in the one form that costs have everywhere.

    windrow calibrate ─▶ WorkCosts ◀─ REFERENCE (where nothing was measured)
                             │
            Work, in counts ─┴─▶ Spent, in seconds, part by part          and the first guess at what a step costs

    part        a unit of it
    ----------  ------------------------------------------------------------------------------------------------
    batch_s     a batch, whatever is in it
    row_s       a row let in: schema, filters, leaves, its place in a segment
    merge_row_s a row copied when segments merge
    index_row_s a row of a segment that an index is built over
    result_s    a result's columns gathered
    decision_s  one run of the optimiser of window harvesting
    steps       a probe, a candidate and a match of a step, method by method

A candidate is a pair that a method looks at: all pairs within reach in `loop`, `matrix` and `opaque`, those the index
proposes in `sorted` and `hashed`. Figures of one machine differ from another's by a factor, much the same one for all
parts. So `REFERENCE`, measured once, keeps simulations the same everywhere.

>>> work = Work(batches=1, rows=1000, results=10, steps=(StepWork("hashed", probes=1000, candidates=50, matches=10),))
>>> spent = REFERENCE.seconds_of(work)
>>> spent.total_s == spent.batch_s + spent.row_s + spent.result_s + spent.step_s
True
>>> WorkCosts.from_json(REFERENCE.to_json()) == REFERENCE
True
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, astuple, dataclass, fields, replace
from types import MappingProxyType
from typing import Any

from windrow.errors import PlanError
from windrow.plan.cost import StepCost
from windrow.plan.methods import METHODS

FORMAT_VERSION = 1
_UNREADABLE = "measure again with windrow calibrate"


@dataclass(frozen=True, slots=True)
class StepWork:
    """What one step, or several by the same method, did."""

    method: str
    probes: float
    candidates: float
    matches: float


@dataclass(frozen=True, slots=True)
class Work:
    """Counts of everything that takes time."""

    batches: float = 0
    rows: float = 0
    merged_rows: float = 0
    indexed_rows: float = 0
    results: float = 0
    decisions: float = 0
    steps: tuple[StepWork, ...] = ()


@dataclass(frozen=True, slots=True)
class Spent:
    """The seconds that some work takes, part by part. Only steps, and what they find, change with the throttle."""

    batch_s: float
    row_s: float
    merge_row_s: float
    index_row_s: float
    result_s: float
    decision_s: float
    step_s: float

    @property
    def total_s(self) -> float:
        """All of it."""
        return math.fsum(astuple(self))

    @property
    def fixed_s(self) -> float:
        """What is spent whatever the throttle."""
        return self.total_s - self.step_s - self.result_s


@dataclass(frozen=True, slots=True)
class WorkCosts:
    """Seconds a unit of each kind of work; `steps` by method."""

    batch_s: float
    row_s: float
    merge_row_s: float
    index_row_s: float
    result_s: float
    decision_s: float
    steps: Mapping[str, StepCost]

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", MappingProxyType(dict(self.steps)))
        for name, value in self._figures():
            if not 0 <= value < math.inf:
                raise PlanError(f"{name} cannot take {value} seconds", hint=_UNREADABLE)
        if missing := [method for method in METHODS if method not in self.steps]:
            raise PlanError(f"there is no cost of {', '.join(missing)}", hint=_UNREADABLE)

    def __reduce__(self) -> tuple[Any, ...]:  # a read-only view of a mapping cannot be pickled
        return WorkCosts, tuple(dict(v) if k == "steps" else v for k, v in self._parts())

    def step(self, method: str) -> StepCost:
        """The cost of steps by a method."""
        if method not in self.steps:
            raise PlanError(f"there is no cost of method '{method}'", hint=f"choose among {', '.join(self.steps)}")
        return self.steps[method]

    def scaled(self, factor: float) -> WorkCosts:
        """The same with conditions that take `factor` times as long to decide: the paper's cost multiplier."""
        steps = {name: replace(cost, per_candidate=factor * cost.per_candidate) for name, cost in self.steps.items()}
        return replace(self, steps=steps)

    def slowed(self, factor: float) -> WorkCosts:
        """The same on a machine that takes `factor` times as long for everything."""
        steps = {name: StepCost(*(factor * part for part in astuple(cost))) for name, cost in self.steps.items()}
        return WorkCosts(**{name: factor * value for name, value in self._parts() if name != "steps"}, steps=steps)

    def seconds_of(self, work: Work) -> Spent:
        """The seconds that some work takes."""
        return Spent(
            batch_s=self.batch_s * work.batches,
            row_s=self.row_s * work.rows,
            merge_row_s=self.merge_row_s * work.merged_rows,
            index_row_s=self.index_row_s * work.indexed_rows,
            result_s=self.result_s * work.results,
            decision_s=self.decision_s * work.decisions,
            step_s=math.fsum(
                self.step(step.method).seconds(step.probes, step.candidates, step.matches) for step in work.steps
            ),
        )

    def to_values(self) -> dict[str, Any]:
        """As values that JSON knows."""
        steps = {method: asdict(cost) for method, cost in self.steps.items()}
        return {"version": FORMAT_VERSION, **dict(self._parts()), "steps": steps}

    def to_json(self) -> str:
        """As text, with its format's version."""
        return json.dumps(self.to_values(), indent=2)

    @staticmethod
    def from_values(values: Mapping[str, Any]) -> WorkCosts:
        """What `to_values` gave; another version or shape is refused."""
        try:
            if values["version"] != FORMAT_VERSION:
                raise PlanError(
                    f"the costs have format version {values['version']}, this is {FORMAT_VERSION}", hint=_UNREADABLE
                )
            steps = {str(method): StepCost(**_floats(cost)) for method, cost in values["steps"].items()}
            parts = {each.name: values[each.name] for each in fields(WorkCosts) if each.name != "steps"}
            return WorkCosts(**_floats(parts), steps=steps)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, PlanError):
                raise
            raise PlanError(
                f"these are no costs: {type(error).__name__} {error}", place=str(values)[:60], hint=_UNREADABLE
            ) from error

    @staticmethod
    def from_json(text: str) -> WorkCosts:
        """The costs that `to_json` wrote; another version or shape is refused."""
        try:
            values = json.loads(text)
        except ValueError as error:
            raise PlanError(f"these are no costs: {error}", place=text[:60], hint=_UNREADABLE) from error
        return WorkCosts.from_values(values)

    def _parts(self) -> Iterable[tuple[str, Any]]:
        return ((each.name, getattr(self, each.name)) for each in fields(self))

    def _figures(self) -> Iterable[tuple[str, float]]:
        for name, value in self._parts():
            if name != "steps":
                yield name, value
        for method, cost in self.steps.items():
            yield from ((f"{method} {name}", value) for name, value in asdict(cost).items())


def _floats(values: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items()}


REFERENCE = WorkCosts(
    batch_s=3e-3,
    row_s=1e-8,
    merge_row_s=1e-8,
    index_row_s=1.4e-8,
    result_s=1e-8,
    decision_s=7e-5,
    steps={
        "loop": StepCost(per_probe=9e-9, per_candidate=1.8e-10, per_result=8.5e-8),
        "sorted": StepCost(per_probe=6e-8, per_candidate=9e-9, per_result=1.6e-8),
        "hashed": StepCost(per_probe=2.7e-8, per_candidate=4.4e-9, per_result=1.5e-8),
        "matrix": StepCost(per_probe=2.5e-8, per_candidate=3.4e-9, per_result=2.2e-8),
        "opaque": StepCost(per_probe=9e-9, per_candidate=1.6e-7, per_result=5e-9),
    },
)
"""One processor of a rented server (AMD EPYC): `windrow calibrate`, rounded. Vectors have 128 dimensions, the user's
function is called pair by pair; a probe of it is lost among the calls, and taken to be a loop's.
"""
