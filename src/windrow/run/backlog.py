"""What is still to be repaired, and when: in the time that batches leave over, or when the input ends.

    batch k:  its own work ──▶ what it left out into the ledger ──▶ slack = share of the trigger - what it took
                                                                       │ pieces that fit, as predicted
                                                                       ▼
              prompt rows, repaired = false, and these pieces' rows, repaired = true, leave together

The trigger is the shortest of the last times between two batches. Pieces are chosen before they run, by what they
are predicted to take, so a batch with repairs ends before the next is due. Predictions
are of work, at what steps are believed to cost by now; they are corrected by what pieces really took, and before there
were any, by what batches did. None of it reaches the controller.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.control.controller import Controller, ControlSettings
from windrow.control.ledger import MOST_PIECES, ORDERS, Ledger, Piece, Written
from windrow.control.observation import Joined, Observation, Repaired
from windrow.control.pieces import Outlook, guessed
from windrow.errors import UsageError
from windrow.plan.bins import MOST_BINS, lag_bins
from windrow.plan.cost import StepCost
from windrow.plan.drivers import Order
from windrow.plan.plan import Plan, path_name
from windrow.plan.shedding import Shedding
from windrow.plan.work import WorkCosts
from windrow.query.spec import QuerySpec
from windrow.run.program import Program
from windrow.run.repair import Repair, driven, left_out, needed_from, prompt_s, rows_of_portions
from windrow.run.results import result_table
from windrow.store.segment import Segment

COLUMN = "repaired"
USABLE = 0.6
TRIGGERS = 8


@dataclass(frozen=True, slots=True)
class RepairSettings:
    """Which pieces come first, whether all wait for the end of the input, how many may be open."""

    order: str = "oldest"
    at_end: bool = False
    most: int = MOST_PIECES

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise UsageError(f"nothing is repaired in the order '{self.order}'", hint=f"choose of {', '.join(ORDERS)}")
        if self.most < 1:
            raise UsageError(f"a ledger cannot hold {self.most} pieces", hint="give 1 or more")


@dataclass(frozen=True, slots=True)
class RepairReport:
    """Pieces by what became of them, parts of cut ones counted each. Results of forgotten pieces are as expected, and
    so are the seconds of open ones; `results` were repaired. `dropped_rows` never came to a window: they cannot be.
    """

    open_pieces: int
    open_seconds: float
    repaired_pieces: int
    results: int
    seconds: float
    forgotten_pieces: int
    forgotten_rows: float
    forgotten_results: float
    dropped_rows: int


def check_repairable(
    spec: QuerySpec, plan: Plan, control: ControlSettings | None, repairs: bool, settings: RepairSettings | None
) -> None:
    """Refuse to repair what cannot be, and to say how where nothing is."""
    if not repairs:
        if settings is not None:
            raise UsageError("nothing is repaired", hint='say shed="repair" as well')
        return
    if plan.shedding.keep or (control is not None and control.policy == "drop"):
        raise UsageError("rows dropped at random cannot be repaired", hint='leave out policy="drop", or shed="repair"')
    if spec.summary is not None:
        raise UsageError("COUNT, SUM and AVG cannot be repaired", hint='leave out shed="repair": they are estimated')
    if any(output.name == COLUMN for output in spec.outputs):
        raise UsageError(f"there is a result column '{COLUMN}' already", hint="give that one another name with AS")


def marked(results: pa.Table, repaired: bool) -> pa.Table:
    """Results with a last column that says whether they were repaired."""
    return results.append_column(pa.field(COLUMN, pa.bool_()), pa.array(np.full(len(results), repaired)))


def report_of(ledger: Ledger, results: int, seconds: float, dropped_rows: int = 0) -> RepairReport:
    """What became of what was left out."""
    opened, repaired, forgotten = ledger.open, ledger.repaired, ledger.forgotten
    return RepairReport(
        opened.pieces,
        opened.cost_s,
        repaired.pieces,
        results,
        seconds,
        forgotten.pieces,
        forgotten.rows,
        forgotten.results,
        dropped_rows,
    )


def marked_schema(schema: pa.Schema) -> pa.Schema:
    """The schema of results with a last column that says whether they were repaired."""
    return schema.append(pa.field(COLUMN, pa.bool_()))


class Backlog:
    """The ledger of a running join, and what is needed to work it off."""

    def __init__(
        self,
        program: Program,
        settings: RepairSettings,
        controller: Controller | None,
        costs: WorkCosts,
        charge: Callable[[Observation], Observation] | None,
    ) -> None:
        self.program = program
        self.settings = settings
        self.ledger = Ledger(most=settings.most)
        self.results, self.seconds = 0, 0.0
        self._prompt_s = 0.0
        self._controller = controller
        self._costs = costs
        self._charge = charge
        self._spans: deque[float] = deque(maxlen=TRIGGERS)
        paths = program.plan.paths
        self._bins = {path.name: lag_bins(program.spec, path.driver, path.targets, MOST_BINS, True) for path in paths}
        self._learned: tuple[int, dict[str, tuple[Outlook, ...]] | None] = (-1, None)

    def enter(
        self,
        batch: int,
        shedding: Shedding,
        order: Order | None,
        fresh: Mapping[str, Segment],
        stored: Mapping[str, int],
    ) -> None:
        """Write down what a batch left out."""
        self.begin()
        if not shedding.restricts:
            return
        came = {name: segment for name, segment in fresh.items() if len(segment)}
        rows = {name: rows_of_portions(self.program, name, segment, shedding) for name, segment in came.items()}
        written = Written(batch, shedding, order, {name: driven(segment) for name, segment in came.items()})
        self.write(written, rows, stored)

    def begin(self) -> None:
        """A batch begins, of which nothing is written down yet."""
        self._prompt_s = 0.0

    def write(self, written: Written, rows: Mapping[str, Mapping[int, int]], stored: Mapping[str, int]) -> None:
        """Write down what a batch, or a part of one, left out: with so many rows in each driver's portions."""
        outlook = self._outlook(stored)
        self._prompt_s += prompt_s(written, rows, outlook, self._costs_now())
        self.ledger = self.ledger.enter(written, left_out(written, rows, outlook))

    def needed_from(self, name: str, cutoff_us: int, first_clock: int) -> tuple[int, int]:
        """From when on rows of a window are needed, for open pieces too."""
        return needed_from(self.program.spec.stream(name), cutoff_us, first_clock, self.ledger)

    def work_off(
        self, done: Observation, stored: Mapping[str, Sequence[Segment]], last: bool
    ) -> tuple[pa.Table, Observation]:
        """The rows repaired after a batch's own work is done, of which the last one repairs all."""
        started = time.perf_counter()
        self.price()
        self.learn(done.joined)
        before = self.ledger
        pieces, after = (before.pieces, before.without(before.pieces)) if last else before.due(
            self._slack_s(done), self.settings.order
        )  # fmt: skip
        repair = Repair(self.program, before.written, stored)
        rows = result_table(self.program, repair.run(pieces))
        self.ledger = after
        if not pieces:
            return rows, done
        spent_s = time.perf_counter() - started
        work = Observation(done.batch, done.now_s, 0.0, spent_s, {}, repair.joined, results=len(rows))
        seconds = (work if self._charge is None else self._charge(work)).busy_s
        self.took(pieces, len(rows), seconds)
        return rows, replace(done, repaired=Repaired(len(pieces), len(rows), seconds))

    def took(self, pieces: Sequence[Piece], results: int, seconds: float) -> None:
        """Pieces have been repaired, with so many results, in so many seconds: their work, without what it always takes
        to have any done.
        """
        self.ledger = self.ledger.took(sum(piece.cost_s for piece in pieces), seconds)
        self.results += results
        self.seconds += seconds

    def report(self, dropped_rows: int) -> RepairReport:
        """What became of what was left out."""
        return report_of(self.ledger, self.results, self.seconds, dropped_rows)

    def to_values(self) -> dict[str, Any]:
        """As values that JSON knows."""
        return {"ledger": self.ledger.to_values(), "results": self.results, "seconds": self.seconds}

    def restore(self, values: Mapping[str, Any] | None) -> None:
        """Go on from what `to_values` gave. Pieces on paths that the plan has no more are forgotten."""
        self.ledger = Ledger(most=self.settings.most)
        self.results, self.seconds = 0, 0.0
        if values is None:
            return
        self.ledger = replace(Ledger.from_values(values["ledger"]), most=self.settings.most)
        self.results, self.seconds = int(values["results"]), float(values["seconds"])
        self.ledger = self.ledger.forgetting([piece for piece in self.ledger.pieces if not self._can_run(piece)])

    def _can_run(self, piece: Piece) -> bool:
        portion = self.ledger.written[piece.batch].shedding.of(piece.driver)[piece.portion]
        return path_name(piece.driver, portion.alternative) in self.program.steps

    def price(self) -> None:
        """Price pieces at what steps cost now."""
        self.ledger = self.ledger.priced(self._costs_now())

    def learn(self, joined: Joined) -> None:
        """Learn from a batch's own work how far off prices are, until there are repairs to learn from: what it left out
        is less well known, so how sure that makes one is not learned from it.
        """
        predicted_s, self._prompt_s = self._prompt_s, 0.0
        if not self.ledger.repaired.pieces:
            tallies = (*joined.sampled.values(), *joined.others.values())
            took_s = sum(step.seconds for tally in tallies for step in tally.steps)
            self.ledger = replace(self.ledger.took(predicted_s, took_s), off=self.ledger.off)

    def _costs_now(self) -> dict[str, list[StepCost]]:
        if self._controller is not None:
            return {path.name: self._controller.costs(path.name) for path in self.program.plan.paths}
        return {path.name: [self._costs.step(s.method) for s in path.steps] for path in self.program.plan.paths}

    def _slack_s(self, done: Observation) -> float:
        if done.span_s > 0:
            self._spans.append(done.span_s)
        if self.settings.at_end or not self._spans:
            return 0.0
        return max(0.0, USABLE * min(self._spans) - done.busy_s)

    def _outlook(self, stored: Mapping[str, int]) -> Mapping[str, Sequence[Outlook]]:
        """What is known of the steps of all paths, learned anew after each decision."""
        if self._controller is not None and self._controller.decisions != self._learned[0]:
            self._learned = self._controller.decisions, self._controller.outlook()
        return self._learned[1] or guessed(self.program.plan, self._bins, stored)
