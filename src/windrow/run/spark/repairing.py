"""What is still to be repaired on Spark: the ledger from commit to commit, and which pieces a batch runs.

    commit k-1 ── ledger ──▶ planned: trigger - what batches take = slack ──▶ pieces, in plan k
                                                                                │
    batch k:  its own work ──▶ a job for these pieces ──▶ all rows to the sink  │  a batch that is run again
                  │                                                             │  repairs the same pieces
                  └ what it left out ──▶ ledger ──▶ commit k  ◀─────────────────┘

The pieces of a plan are of earlier batches, so windows as they were before the batch have all that they need. If the
batch's own work takes so long that they would not fit any more, a second attempt at the plan is written, without them:
before that nothing has left. The last batch of a recorded input repairs all there is, its own pieces, too.

Times are those of the batch clock, as for the controller. What a repair takes besides its work (a job of Spark's) is
learned apart from it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from windrow.control.controller import Controller
from windrow.control.ledger import TRUSTED, Ledger, Piece, Written
from windrow.control.observation import Observation, Repaired
from windrow.plan.drivers import Order
from windrow.plan.shedding import Shedding
from windrow.run.admit import Entry
from windrow.run.backlog import Backlog, RepairReport, RepairSettings
from windrow.run.program import Program
from windrow.run.repair import needed_from
from windrow.run.spark.owed import FORMAT_VERSION, checked
from windrow.run.spark.setting import Setting
from windrow.run.spark.state import Live, each_file
from windrow.run.spark.told import Came, Told

USABLE = 0.85
"""The share of the time between two batches that is planned for."""
USUAL = 0.75
"""A batch is expected to take what this share of the last ones took at most, a repair to need it besides its work. A
batch that takes longer puts its repairs off.
"""
OVERDUE = 0.95
"""The share of it after which a repair is put off."""
REMEMBERED = 8
FADED = 0.9
"""How much of what a repair needed beyond that is left to be believed after each batch without one."""
FIRST_OVERHEADS_S = (0.3, 0.3, 0.3)
"""What repairs are taken to need besides their work before there was any; a single one that took long is no proof."""


class Repairing:
    """The backlog of one join in its driver program."""

    def __init__(
        self, program: Program, setting: Setting, settings: RepairSettings, controller: Controller | None
    ) -> None:
        self.settings = settings
        self.backlog = Backlog(program, settings, controller, setting.costs, None)
        self.chosen: tuple[Piece, ...] = ()
        self.written: Mapping[int, Written] = {}
        self._pace = setting.pace
        self._trigger_s = setting.trigger_s * setting.pace
        self._spans_s: deque[float] = deque(maxlen=REMEMBERED)
        self._batches: deque[tuple[int, float]] = deque(maxlen=REMEMBERED)
        self._overheads_s = deque((setting.pace * each for each in FIRST_OVERHEADS_S), REMEMBERED)
        self._committed = (self.backlog.ledger, 0, 0.0)
        self.rounds = 0

    @staticmethod
    def of(program: Program, setting: Setting, controller: Controller | None) -> Repairing | None:
        """What repairs, if what is left out is to come later."""
        return None if setting.repair is None else Repairing(program, setting, setting.repair, controller)

    @property
    def ledger(self) -> Ledger:
        return self.backlog.ledger

    def restore(self, values: Any) -> None:
        """Go on from what a commit says."""
        self.backlog.restore(checked(values))
        self.rounds = 0 if values is None else int(values["rounds"])
        self.committed()

    def committed(self) -> None:
        """A batch has been committed."""
        self._committed = (self.backlog.ledger, self.backlog.results, self.backlog.seconds)

    def to_values(self) -> dict[str, Any]:
        """What a commit keeps, as values that JSON knows."""
        return {"version": FORMAT_VERSION, "rounds": self.rounds, **self.backlog.to_values()}

    def planned(self, rows: int, last: bool) -> list[list[Any]]:
        """The pieces to run in a batch that brings so many rows, as a part of its plan."""
        self.back()
        if last or self.settings.at_end or not self.ledger.pieces:
            return []
        slack_s = self._slack_s(rows)
        if slack_s <= 0:
            return []
        self.backlog.price()
        due, _ = self.ledger.due(slack_s, self.settings.order)
        return [piece.to_row() for piece in due]

    def begin(self, plan: Mapping[str, Any]) -> None:
        """A batch begins, by a plan."""
        self.back()
        self.backlog.begin()
        self.take(pieces_of(plan))

    def back(self) -> None:
        """Go back to what was committed last."""
        self.backlog.ledger, self.backlog.results, self.backlog.seconds = self._committed

    def take(self, pieces: Sequence[Piece]) -> None:
        """Take pieces out of the ledger, to be run."""
        before = self.ledger
        found, self.backlog.ledger = before.parted(pieces)
        held = {piece.place for piece in found}
        self.chosen = tuple(piece for piece in pieces if piece.place in held)
        self.written = {piece.batch: before.written[piece.batch] for piece in self.chosen}

    def take_all(self) -> None:
        """Take all that is open."""
        self.backlog.price()
        self.take(self.ledger.pieces)

    def put_off(self) -> None:
        """Put back what was to be run."""
        self.backlog.ledger = self.ledger.reopened(self.chosen, self.written)
        self.chosen, self.written = (), {}

    def left_out(
        self, number: int, shedding: Shedding, order: Order | None, came: Mapping[str, Came], live: Live
    ) -> None:
        """Write down what a batch, or a part of one, left out; `live` is what was stored before it."""
        if not shedding.restricts:
            return
        written = Written(number, shedding, order, {name: held.driven for name, held in came.items()})
        stored = dict.fromkeys(self.backlog.program.layouts, 0)
        for _, name, file in each_file(live):
            stored[name] += file.rows
        self.backlog.write(written, {name: held.rows for name, held in came.items()}, stored)

    def needed_from(self, entry: Entry) -> Callable[[str], tuple[int, int]]:
        """From when on rows of a stream are needed, for open pieces too; chosen ones may still be put off."""
        ledger, spec = self.ledger.reopened(self.chosen, self.written), self.backlog.program.spec
        return lambda name: needed_from(spec.stream(name), *entry.expiry(name), ledger)

    def expected_s(self) -> float:
        """What the chosen pieces are expected to take, in seconds of the clock, without what any repair does."""
        return sum(piece.cost_s for piece in self.chosen) * max(TRUSTED, self.ledger.took_s / self.ledger.predicted_s)

    def is_overdue(self, passed_s: float) -> bool:
        """Whether the chosen pieces no longer fit, so many seconds after the batch began."""
        until_s = self._between_s()
        ends_s = passed_s * self._pace + _usual(self._overheads_s) + self.expected_s()
        return bool(self.chosen) and until_s is not None and ends_s > OVERDUE * until_s

    def took(self, late: Told, seconds: float) -> Repaired:
        """The chosen pieces have been repaired in so many seconds, of which tasks tell when they worked."""
        results, work_s = late.results, late.seconds / self.backlog.program.plan.slices.count
        self._overheads_s.append(max(0.0, seconds - work_s) * self._pace)
        self.backlog.ledger = self.ledger.repairing(self.chosen)
        self.backlog.took(self.chosen, results, work_s * self._pace)
        return Repaired(len(self.chosen), results, seconds * self._pace)

    def observe(self, rows: int, done: Observation) -> None:
        """Take in what a batch did that brought so many rows; its repairs are not in its time."""
        self.backlog.learn(done.joined)
        if not done.repaired.pieces:
            usual_s = FIRST_OVERHEADS_S[0] * self._pace
            faded = (max(min(each, usual_s), FADED * each) for each in self._overheads_s)
            self._overheads_s = deque(faded, REMEMBERED)
        self._batches.append((rows, done.busy_s))
        if done.span_s > 0:
            self._spans_s.append(done.span_s)

    def report(self) -> RepairReport:
        """What became of what was left out."""
        return self.backlog.report(0)

    def _slack_s(self, rows: int) -> float:
        between_s = self._between_s()
        if between_s is None or not self._batches:
            return 0.0
        most_rows = max(1, *(held for held, _ in self._batches))
        busy_s = _usual(took_s for _, took_s in self._batches) * max(1.0, rows / most_rows)
        return USABLE * between_s - busy_s - _usual(self._overheads_s)

    def _between_s(self) -> float | None:
        """How far batches are apart; None if nobody knows."""
        return self._trigger_s if self._trigger_s > 0 else min(self._spans_s, default=None)


def _usual(seconds: Iterable[float]) -> float:
    """What most of some times were at most."""
    found = sorted(seconds)
    return found[int(USUAL * (len(found) - 1))]


def pieces_of(plan: Mapping[str, Any] | None) -> tuple[Piece, ...]:
    """The pieces that the plan of a batch names."""
    return () if plan is None else tuple(map(Piece.from_row, plan.get("repair", ())))
