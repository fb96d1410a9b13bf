"""What an experiment is, and what it says: rows, claims, charts.

    Experiment.run(quick, seed) ─▶ Outcome ─┬─ table    what was measured                         CSV, JSON
                                            ├─ claims   what the paper says, what we see, holds?  terminal, JSON
                                            └─ charts   series of the table, to look at           HTML

A claim is one sentence of the paper that can be checked against the rows. `papers_figure` is what the paper prints,
`ours` what this run measured, `holds` whether the trend is there: the direction and the order, not the exact figure,
unless the claim is about the figure. A claim that does not hold is a finding, not a failure.

`quick` asks for about ten seconds; without it an experiment takes the paper's sizes. Everything random comes from the
seed: two runs with the same one differ in nothing but measured times.

>>> def run(quick: bool, seed: int) -> Outcome:
...     table = Table.of(("z", "output"), [(0.5, 0.8), (1.0, 1.0)])
...     holds = list(table.numbers("output")) == sorted(table.numbers("output"))
...     claim = Claim("more work yields more", "grows", "0.8 to 1", holds)
...     return Outcome(table, (claim,), (Chart("z", "output", (Series.of(table, "all", x="z", y="output"),)),))
>>> experiment = Experiment("grubjoin/figure0", "Output and work", run)
>>> outcome = experiment.run(True, 1)
>>> experiment.paper, outcome.holds, outcome.charts[0].series[0].y
('grubjoin', True, (0.8, 1.0))
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass

from windrow.errors import UsageError
from windrow.papers.tables import Table, Value

NAME = re.compile(r"[a-z][a-z0-9_]*/[a-z][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the paper: what it prints, what we measured, whether it holds."""

    text: str
    papers_figure: str
    ours: str
    holds: bool


@dataclass(frozen=True, slots=True)
class Series:
    """One line, or one group of bars; a y of None is a gap."""

    name: str
    x: tuple[Value, ...]
    y: tuple[Value, ...]

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y):
            raise UsageError(f"series '{self.name}' has {len(self.x)} x for {len(self.y)} y", hint="give one each")

    @classmethod
    def of(cls, table: Table, name: str, *, x: str, y: str) -> Series:
        """Two columns of a table."""
        return cls(name, table.column(x), table.column(y))


@dataclass(frozen=True, slots=True)
class Chart:
    """Series over one axis, as lines with markers or as bars; those in `right` are lines with an axis of their own."""

    x_title: str
    y_title: str
    series: tuple[Series, ...]
    title: str = ""
    log_y: bool = False
    bars: bool = False
    right: tuple[Series, ...] = ()
    right_title: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one run of an experiment found."""

    table: Table
    claims: tuple[Claim, ...]
    charts: tuple[Chart, ...] = ()

    def __post_init__(self) -> None:
        if not self.table.rows or not self.claims:
            raise UsageError("an outcome without rows or claims says nothing", hint="give at least one of each")

    @property
    def holds(self) -> bool:
        """Whether all claims hold."""
        return all(claim.holds for claim in self.claims)


@dataclass(frozen=True, slots=True)
class Experiment:
    """A figure or table of a paper, `PAPER/FIGURE` by name, and what repeats it."""

    name: str
    title: str
    run: Callable[[bool, int], Outcome]

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise UsageError(f"an experiment cannot be named '{self.name}'", hint="name it like grubjoin/figure7")

    @property
    def paper(self) -> str:
        """The paper it is from."""
        return self.name.partition("/")[0]

    @property
    def about(self) -> str:
        """The docstring of its module: what the paper shows, and which settings are ours."""
        return inspect.getdoc(sys.modules[self.run.__module__]) or ""
