"""The ledger: what each batch left out, in pieces that can be made up for later, and what became of them.

    batch k ── its written shedding ──▶ pieces (batch, driver, portion, step) ──▶ open ──▶ repaired
                                                                                  │  └──── forgotten, over the bound
                                               due(slack) takes what fits in time ┘

A piece is a plan: the driver's rows of its batch whose draw falls into its portion take their path as
`windrow.control.pieces` says, and see a stored row if that one's position is smaller. With what the batch found, all
its pieces are the exact result, and no two of them share a row of it.

    oldest       pieces of the oldest batch first: windows can let go soonest
    productive   most expected results a second first

A piece that is longer than the time there is runs in parts, by a further draw of its rows. What pieces take is
predicted, and corrected by what those before them took; while some take more, less of the time is used.
Of more than `most` pieces the oldest are forgotten, and counted.

>>> from windrow.plan.shedding import ALL
>>> old, new = Piece(1, "a", 0, 0, rows=100, cost_s=1.0, results=5), Piece(2, "a", 0, 1, 100, 1.0, 50)
>>> ledger = Ledger(off=0.0).enter(Written(1, ALL, None, {"a": Driven(0, 9)}), (old,))
>>> ledger = ledger.enter(Written(2, ALL, None, {"a": Driven(10, 19)}), (new,))
>>> due, left = ledger.due(1.5, "oldest")
>>> [(piece.batch, piece.share) for piece in due], [(piece.batch, piece.share) for piece in left.pieces]
([(1, 1.0), (2, 0.5)], [(2, 0.5)])
>>> ledger.due(1.0, "productive")[0] == (new,), left.oldest_us, Ledger.from_values(left.to_values()) == left
(True, 10, True)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from windrow.control.pieces import Units, price
from windrow.errors import StateError
from windrow.plan.cost import StepCost
from windrow.plan.plan import path_name
from windrow.plan.shedding import Shedding

FORMAT_VERSION = 2
MOST_PIECES = 10_000
LEAST_S = 1e-3
"""What a piece takes, however small: its rows are looked for, and each step is set up."""
_SUMS = ("predicted_s", "took_s", "off")
MEMORY = 0.8
"""How much of what was seen of costs stays with each repair that follows."""
UNSURE = 0.5
TRUSTED = 0.6
"""How far predictions are corrected downwards: that pieces of one kind took less says little of another kind."""


@dataclass(frozen=True, slots=True)
class Piece:
    """What a portion of a driver's rows left out in a batch at one step; of these rows the part drawn between two
    shares. `rows`, `cost_s` and `results` are expected, and so is `work`, of each row in each step.
    """

    batch: int
    driver: str
    portion: int
    step: int
    rows: float
    cost_s: float
    results: float
    work: tuple[Units, ...] = ()
    from_share: float = 0.0
    to_share: float = 1.0

    @property
    def share(self) -> float:
        """Which share of the portion's rows it is about."""
        return self.to_share - self.from_share

    @property
    def place(self) -> tuple[int, str, int, int, float]:
        """Where it begins: no other open piece begins there."""
        return self.batch, self.driver, self.portion, self.step, self.from_share

    def cut(self, share: float) -> tuple[Piece, Piece]:
        """A share of it, and the rest."""
        middle = self.from_share + share * self.share
        return self._part(share, self.from_share, middle), self._part(1 - share, middle, self.to_share)

    def after(self, share: float) -> Piece:
        """What is left of it when it is done up to a share."""
        return self._part((self.to_share - share) / self.share, share, self.to_share)

    def to_row(self) -> list[Any]:
        """As values that JSON knows, without names: there are many pieces."""
        work = [value for units in self.work for value in units]
        shares = [self.from_share, self.to_share]
        return [self.batch, self.driver, self.portion, self.step, self.rows, self.cost_s, self.results, *shares, work]

    @staticmethod
    def from_row(row: Sequence[Any]) -> Piece:
        """What `to_row` gave, after a way through JSON or not."""
        batch, driver, portion, step, rows, cost_s, results, from_share, to_share, flat = row
        work = tuple(Units(*flat[k : k + 3]) for k in range(0, len(flat), 3))
        return Piece(batch, driver, portion, step, rows, cost_s, results, work, from_share, to_share)

    def _part(self, share: float, from_share: float, to_share: float) -> Piece:
        rows, cost_s, results = share * self.rows, share * self.cost_s, share * self.results
        return replace(self, rows=rows, cost_s=cost_s, results=results, from_share=from_share, to_share=to_share)


Order = Callable[[Piece], tuple[float, ...]]
ORDERS: dict[str, Order] = {
    "oldest": lambda piece: (piece.batch, piece.from_share),
    "productive": lambda piece: (-piece.results / max(piece.cost_s, 1e-12), piece.batch, piece.from_share),
}
"""In which order pieces run: the least comes first."""


@dataclass(frozen=True, slots=True)
class Driven:
    """The rows of a driver in a batch: between which event times, and from where on each row clock."""

    first_us: int
    last_us: int
    clocks: Mapping[str, int] = field(default_factory=dict)

    def together(self, other: Driven) -> Driven:
        """These rows and others of the batch."""
        clocks = {name: min(count, other.clocks.get(name, count)) for name, count in self.clocks.items()}
        return Driven(min(self.first_us, other.first_us), max(self.last_us, other.last_us), {**other.clocks, **clocks})


@dataclass(frozen=True, slots=True)
class Written:
    """How a batch ran: what it left out, the order of its buffers (None: by time), the rows of each driver."""

    batch: int
    shedding: Shedding
    order: tuple[str, ...] | None
    drivers: Mapping[str, Driven]


@dataclass(frozen=True, slots=True)
class Tally:
    """Pieces, or parts of them, by number; driver rows, seconds and results are expected ones."""

    pieces: int = 0
    rows: float = 0.0
    cost_s: float = 0.0
    results: float = 0.0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.pieces + other.pieces,
            self.rows + other.rows,
            self.cost_s + other.cost_s,
            self.results + other.results,
        )

    @staticmethod
    def of(pieces: Iterable[Piece]) -> Tally:
        held = tuple(pieces)
        rows, cost_s, results = (sum(getattr(p, name) for p in held) for name in ("rows", "cost_s", "results"))
        return Tally(len(held), float(rows), float(cost_s), float(results))


@dataclass(frozen=True, slots=True)
class Ledger:
    """Open pieces and the batches they are of. `predicted_s` and `took_s` say how far off predictions were of late, in
    sums that fade; `off` how much more it was at times.
    """

    pieces: tuple[Piece, ...] = ()
    written: Mapping[int, Written] = field(default_factory=dict)
    most: int = MOST_PIECES
    forgotten: Tally = Tally()
    repaired: Tally = Tally()
    predicted_s: float = 1e-3
    took_s: float = 1e-3
    off: float = UNSURE

    @property
    def open(self) -> Tally:
        """What is open; its seconds are corrected."""
        found = Tally.of(self.pieces)
        return replace(found, cost_s=found.cost_s * self.took_s / self.predicted_s)

    @property
    def oldest_us(self) -> int | None:
        """The event time of the oldest row that an open piece drives; None without pieces."""
        return min((self._driven(piece).first_us for piece in self.pieces), default=None)

    @property
    def least_clocks(self) -> dict[str, int]:
        """On each row clock, the least that a row has counted that an open piece drives."""
        least: dict[str, int] = {}
        for driver in (self._driven(piece) for piece in self.pieces):
            for name, count in driver.clocks.items():
                least[name] = min(count, least.get(name, count))
        return least

    def enter(self, written: Written, pieces: Iterable[Piece]) -> Ledger:
        """With the pieces of a batch; the oldest are forgotten where there are too many."""
        held = sorted((*self.pieces, *pieces), key=ORDERS["oldest"])
        excess = max(0, len(held) - self.most)
        forgotten = self.forgotten + Tally.of(held[:excess])
        grown = replace(self, written={**self.written, written.batch: written}, forgotten=forgotten)
        return grown._holding(held[excess:])

    def due(self, slack_s: float, order: str) -> tuple[tuple[Piece, ...], Ledger]:
        """The pieces, or parts of pieces, to run in some time, and the ledger without them."""
        left_s = slack_s / max(TRUSTED, self.took_s / self.predicted_s) / (1 + 2 * self.off)
        chosen: list[Piece] = []
        kept: list[Piece] = []
        for piece in sorted(self.pieces, key=ORDERS[order]):
            if piece.cost_s <= left_s:
                chosen.append(piece)
                left_s -= piece.cost_s
            elif left_s > 0 and piece.rows * left_s >= piece.cost_s:
                now, later = piece.cut(left_s / piece.cost_s)
                chosen.append(now)
                kept.append(later)
                left_s = 0.0
            else:
                kept.append(piece)
        return tuple(chosen), self.without(chosen, kept)

    def without(self, chosen: Iterable[Piece], kept: Iterable[Piece] = ()) -> Ledger:
        """The ledger when some pieces have been repaired, and only others are left."""
        return replace(self, repaired=self.repaired + Tally.of(chosen))._holding(kept)

    def parted(self, chosen: Iterable[Piece]) -> tuple[tuple[Piece, ...], Ledger]:
        """Pieces, or first parts of pieces, that are to be repaired, as far as they are in the ledger; and it without
        them.
        """
        ends = {piece.place: piece.to_share for piece in chosen}
        found: list[Piece] = []
        kept: list[Piece] = []
        for piece in self.pieces:
            end = ends.get(piece.place, piece.from_share)
            if end <= piece.from_share:
                kept.append(piece)
            elif end >= piece.to_share:
                found.append(piece)
            else:
                now, _ = piece.cut((end - piece.from_share) / piece.share)
                found.append(replace(now, to_share=end))
                kept.append(piece.after(end))
        return tuple(found), self._holding(kept)

    def reopened(self, pieces: Iterable[Piece], written: Mapping[int, Written]) -> Ledger:
        """The ledger with pieces that were to be repaired, and were not."""
        held = sorted((*pieces, *self.pieces), key=ORDERS["oldest"])
        return replace(self, written={**written, **self.written})._holding(held)

    def repairing(self, pieces: Iterable[Piece]) -> Ledger:
        """The ledger when pieces that had been parted from it have been repaired."""
        return replace(self, repaired=self.repaired + Tally.of(pieces))

    def forgetting(self, pieces: Iterable[Piece]) -> Ledger:
        """The ledger when some pieces cannot be repaired any more."""
        gone = {piece.place: piece for piece in pieces}
        grown = replace(self, forgotten=self.forgotten + Tally.of(gone.values()))
        return grown._holding(piece for piece in self.pieces if piece.place not in gone)

    def priced(self, costs: Mapping[str, Sequence[StepCost]]) -> Ledger:
        """With what pieces are expected to take when these are what the steps of each path cost."""
        return replace(self, pieces=tuple(self._priced(piece, costs) for piece in self.pieces))

    def took(self, predicted_s: float, seconds: float) -> Ledger:
        """What is expected of others when work took so long."""
        if predicted_s <= 0 or seconds <= 0:
            return self
        error = seconds * self.predicted_s / (predicted_s * self.took_s) - 1
        return replace(
            self,
            predicted_s=MEMORY * self.predicted_s + predicted_s,
            took_s=MEMORY * self.took_s + seconds,
            off=MEMORY * self.off + (1 - MEMORY) * min(1.0, max(0.0, error)),
        )

    def to_values(self) -> dict[str, Any]:
        """As values that JSON knows; what several batches left out is said once."""
        sheddings = list(dict.fromkeys(held.shedding for held in self.written.values()))
        numbers = {shedding: number for number, shedding in enumerate(sheddings)}
        return {
            "version": FORMAT_VERSION,
            "sheddings": [shedding.to_values() for shedding in sheddings],
            "written": [_row(held, numbers[held.shedding]) for held in self.written.values()],
            "pieces": [piece.to_row() for piece in self.pieces],
            "forgotten": asdict(self.forgotten),
            "repaired": asdict(self.repaired),
            **{name: getattr(self, name) for name in ("most", *_SUMS)},
        }

    @staticmethod
    def from_values(values: Mapping[str, Any]) -> Ledger:
        """What `to_values` gave, after a way through JSON or not; another version is refused."""
        if values.get("version") != FORMAT_VERSION:
            message = f"the ledger has format version {values.get('version')}, this is {FORMAT_VERSION}"
            raise StateError(message, hint="repair with the version that wrote it, or start with a new checkpoint")
        sheddings = [Shedding.from_values(held) for held in values["sheddings"]]
        written = (_written(row, sheddings) for row in values["written"])
        return Ledger(
            tuple(map(Piece.from_row, values["pieces"])),
            {held.batch: held for held in written},
            int(values["most"]),
            Tally(**values["forgotten"]),
            Tally(**values["repaired"]),
            *(float(values[name]) for name in _SUMS),
        )

    def _priced(self, piece: Piece, costs: Mapping[str, Sequence[StepCost]]) -> Piece:
        portion = self.written[piece.batch].shedding.of(piece.driver)[piece.portion]
        seconds = price(piece.work, costs[path_name(piece.driver, portion.alternative)])
        return replace(piece, cost_s=LEAST_S + piece.rows * seconds)

    def _driven(self, piece: Piece) -> Driven:
        return self.written[piece.batch].drivers[piece.driver]

    def _holding(self, pieces: Iterable[Piece]) -> Ledger:
        held = tuple(pieces)
        needed = {piece.batch for piece in held}
        return replace(self, pieces=held, written={k: w for k, w in self.written.items() if k in needed})


def _row(held: Written, shedding: int) -> list[Any]:
    drivers = {name: [rows.first_us, rows.last_us, dict(rows.clocks)] for name, rows in held.drivers.items()}
    return [held.batch, shedding, None if held.order is None else list(held.order), drivers]


def _written(row: Sequence[Any], sheddings: Sequence[Shedding]) -> Written:
    batch, shedding, order, drivers = row
    held = {name: Driven(first_us, last_us, dict(clocks)) for name, (first_us, last_us, clocks) in drivers.items()}
    return Written(int(batch), sheddings[shedding], None if order is None else tuple(order), held)
