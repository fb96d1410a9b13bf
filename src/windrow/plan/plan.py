"""The plan: one frozen value that says how batches are run, with a JSON form.

Everything that decides ends in a plan, everything that runs takes one:

    policy    who drives: in which order the streams' new rows run                       (windrow.plan.drivers)
    paths     for each driver the steps to take, each with the method that searches it    (windrow.plan.order, .methods)
              and where what they find is stored, in a tree of joins                      (windrow.plan.trees, .nodes)
    slices    how each stream's rows are shared out over the cluster: one slice in process  (windrow.plan.slices)
    shedding  who probes, and what is probed: all rows, everything, unless it says otherwise  (windrow.plan.shedding)
    kept      what of each window stays in memory: everything, unless it says otherwise       (windrow.plan.kept)

A plan that sheds nothing and keeps everything is the exact join.

>>> step = Step("b", "hashed", conjuncts=(0,), leading=(0,), narrowing=(), why="a.k = b.k is an equality")
>>> plan = Plan("timestamp", (Path("a", (step,)),))
>>> Plan.from_json(plan.to_json()) == plan
True
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from windrow.errors import PlanError
from windrow.plan.kept import KeptSpan
from windrow.plan.shedding import ALL, Shedding
from windrow.plan.slices import ONE_SLICE, Slices

FORMAT_VERSION = 5


@dataclass(frozen=True, slots=True)
class Step:
    """A probe of the store of `stream`, or of an inner node. Conjuncts are named by their place in the query's list.

    `conjuncts` become checkable here; `leading` of them are what the method searches by; `narrowing` of them are
    conditions on the store's event time, which restrict the rows to look at whatever the method is.
    """

    stream: str
    method: str
    conjuncts: tuple[int, ...]
    leading: tuple[int, ...]
    narrowing: tuple[int, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Path:
    """How a new row of `driver`, a stream or an inner node, becomes results (R_i in the papers), or rows of the node
    `into` in a tree of joins.

    A driver may have several, which visit the same stores in other orders; `alternative` tells them apart. The first
    one is taken unless the shedding of a plan says otherwise.
    """

    driver: str
    steps: tuple[Step, ...]
    alternative: int = 0
    into: str | None = None

    @property
    def name(self) -> str:
        """What the path is called: as its driver, if it is the first."""
        return path_name(self.driver, self.alternative)

    @property
    def targets(self) -> tuple[str, ...]:
        """The streams whose stores it visits, in order."""
        return tuple(step.stream for step in self.steps)


def path_name(driver: str, alternative: int) -> str:
    """The name of a driver's path.

    >>> path_name("cam1", 0), path_name("cam1", 2)
    ('cam1', 'cam1/2')
    """
    return f"{driver}/{alternative}" if alternative else driver


def driver_of(path: str) -> str:
    """The driver of the path with a name.

    >>> driver_of("cam1/2"), driver_of("cam1")
    ('cam1', 'cam1')
    """
    return path.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Plan:
    """How batches are run. `epoch` counts changes of the tree of joins."""

    policy: str
    paths: tuple[Path, ...]
    slices: Slices = ONE_SLICE
    shedding: Shedding = ALL
    kept: tuple[KeptSpan, ...] = ()
    epoch: int = 0

    def path(self, driver: str) -> Path:
        """The first path of a driver."""
        for path in self.paths:
            if path.driver == driver:
                return path
        raise PlanError(f"the plan has no path for '{driver}'", hint="plan the query again")

    @property
    def firsts(self) -> tuple[Path, ...]:
        """The first path of each driver."""
        return tuple(path for path in self.paths if path.alternative == 0)

    @property
    def is_tree(self) -> bool:
        """Whether paths store intermediate rows."""
        return any(path.into is not None for path in self.paths)

    def _repr_html_(self) -> str:
        from windrow.query.markup import table, titled

        steps = [
            (path.name, number, step.stream, step.method, step.why)
            for path in self.firsts
            for number, step in enumerate(path.steps, start=1)
        ]
        shed = f"throttle {self.shedding.throttle:g}" if self.shedding.restricts else "nothing is left out"
        title = f"Plan, policy {self.policy}, {self.slices.count} slices, {shed}"
        return titled(title, table(("a new row of", "step", "probes", "by", "because"), steps))

    def to_json(self) -> str:
        """The plan as text, with its format's version."""
        return json.dumps({"version": FORMAT_VERSION, **asdict(self)}, indent=2)

    @staticmethod
    def from_json(text: str) -> Plan:
        """The plan that `to_json` wrote; another version or shape is refused."""
        try:
            value = json.loads(text)
            version = value["version"]
            if version != FORMAT_VERSION:
                raise PlanError(
                    f"the plan has format version {version}, this is {FORMAT_VERSION}", hint="plan the query again"
                )
            paths = tuple(_path(path) for path in value["paths"])
            slices, shedding = Slices.from_values(value["slices"]), Shedding.from_values(value["shedding"])
            kept = tuple(map(KeptSpan.from_values, value["kept"]))
            return Plan(str(value["policy"]), paths, slices, shedding, kept, int(value["epoch"]))
        except (ValueError, KeyError, TypeError) as error:
            if isinstance(error, PlanError):
                raise
            raise PlanError(
                f"this is not a plan: {type(error).__name__} {error}", place=text[:60], hint="plan the query again"
            ) from error


def _path(value: Mapping[str, Any]) -> Path:
    steps, into = tuple(_step(step) for step in value["steps"]), value["into"]
    return Path(str(value["driver"]), steps, int(value["alternative"]), None if into is None else str(into))


def _step(value: Mapping[str, Any]) -> Step:
    numbers = {field: tuple(int(number) for number in value[field]) for field in ("conjuncts", "leading", "narrowing")}
    return Step(str(value["stream"]), str(value["method"]), why=str(value["why"]), **numbers)
