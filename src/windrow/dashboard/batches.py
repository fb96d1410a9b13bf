"""Events as the page reads them: what of `windrow.run.events` it shows, typed.

An event whose parts do not fit together (steps without tallies, streams nobody asked for) is refused like a torn one,
so that whatever is computed from batches need not check again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from windrow.dashboard.decode import DamagedError, decoded
from windrow.plan.plan import path_name
from windrow.run.events import FORMAT_VERSION


@dataclass(frozen=True)
class StreamNow:
    """One stream: rows so far by what became of them, and its window now."""

    rows: int
    late: int
    bad: int
    ahead: int
    filtered: int
    dropped: int
    stored: int
    stored_bytes: int
    newest_us: int | None
    watermark_us: int | None
    rows_per_s: float | None

    @property
    def entered(self) -> int:
        """Rows that came to a window."""
        return max(0, self.rows - self.late - self.bad - self.ahead - self.filtered - self.dropped)


@dataclass(frozen=True)
class StepWork:
    """What one step did."""

    probes: int
    searched: int
    candidates: int
    matches: int


@dataclass(frozen=True)
class PathWork:
    """What some rows did on a path."""

    drivers: int
    results: int
    steps: tuple[StepWork, ...]
    lags: tuple[tuple[float, ...], ...]
    lost: float = 0.0


@dataclass(frozen=True)
class SiftWork:
    """What a few pairs of a step say of its conjuncts."""

    met: int
    pairs: int
    passed: tuple[int, ...]
    through: tuple[int, ...]
    alone: tuple[int, ...]


@dataclass(frozen=True)
class Work:
    """What probing did, path by path."""

    sampled: dict[str, PathWork]
    others: dict[str, PathWork]
    sifts: dict[str, tuple[SiftWork, ...]]


@dataclass(frozen=True)
class StepTotal:
    """What one step did in all."""

    probes: int
    searched: int
    candidates: int
    matches: int
    met: int
    pairs: int
    lags: tuple[float, ...]
    passed: tuple[int, ...]
    through: tuple[int, ...]
    alone: tuple[int, ...]


@dataclass(frozen=True)
class PathTotal:
    """What a path did in all."""

    targets: tuple[str, ...]
    drivers: int
    results: int
    steps: tuple[StepTotal, ...]


@dataclass(frozen=True)
class Totals:
    """All batches so far."""

    since: int
    batches: int
    results: int
    repaired: int
    busy_s: float
    lost: float
    first_us: dict[str, int]
    paths: dict[str, PathTotal]


@dataclass(frozen=True)
class Band:
    """A recall with its interval; None where there is too little to tell."""

    emitted: int
    matches: int
    recall: float | None
    low: float | None
    high: float | None
    missing: float | None


@dataclass(frozen=True)
class RecallNow:
    """Of the whole run, and of its last batches."""

    whole: Band
    recent: Band


@dataclass(frozen=True)
class RepairedNow:
    """What a batch made up for."""

    pieces: int
    results: int
    seconds: float


@dataclass(frozen=True)
class Pieces:
    """Pieces of left-out work."""

    pieces: int
    rows: float
    cost_s: float
    results: float


@dataclass(frozen=True)
class LedgerNow:
    """What waits to be made up for, and what became of the rest."""

    open: Pieces
    done: Pieces
    forgotten: Pieces
    oldest_us: int | None


@dataclass(frozen=True)
class StreamFresh:
    """What was promised of a stream: asked for, the least that could be, whether it holds, and how old its rows were at
    most when results with them were delivered.
    """

    asked_s: float
    least_s: float | None
    holds: bool
    oldest_s: float | None


@dataclass(frozen=True)
class FreshNow:
    """How promises of freshness were kept so far."""

    suppressed: int
    infeasible: tuple[str, ...]
    streams: dict[str, StreamFresh]


@dataclass(frozen=True)
class PortionNow:
    """A share of a driver's rows and the lags each step looks at; None: all of them."""

    share: float
    lags: tuple[tuple[tuple[int, int], ...] | None, ...]
    sampled: bool
    alternative: int


@dataclass(frozen=True)
class SheddingNow:
    """What was left out."""

    throttle: float
    portions: tuple[tuple[str, tuple[PortionNow, ...]], ...]


@dataclass(frozen=True)
class LearnedNow:
    """Where results of a driver lie in a store: results a row by lag bin, known for so many rows."""

    edges: tuple[int, ...]
    results_a_row: tuple[float, ...]
    rows: float


@dataclass(frozen=True)
class StreamAsked:
    """A stream of the query."""

    source: str
    time: str
    window_us: int | None
    window_rows: int | None
    lateness_us: int
    idle_us: int | None
    freshness_us: int | None


@dataclass(frozen=True)
class Conjunct:
    """A condition of the query."""

    text: str
    streams: tuple[str, ...]


@dataclass(frozen=True)
class Asked:
    """The query."""

    streams: dict[str, StreamAsked]
    conjuncts: tuple[Conjunct, ...]
    outputs: tuple[str, ...]
    edges: dict[str, tuple[tuple[int, ...], ...]]


@dataclass(frozen=True)
class StepPlan:
    """A step of a path."""

    stream: str
    method: str
    conjuncts: tuple[int, ...]
    leading: tuple[int, ...]
    why: str

    @property
    def order(self) -> tuple[int, ...]:
        """Its conjuncts as they are told: those it searches by first."""
        return (*self.leading, *(number for number in self.conjuncts if number not in self.leading))


@dataclass(frozen=True)
class PathPlan:
    """How a driver's rows become results, or rows of the inner node `into` in a tree of joins."""

    driver: str
    steps: tuple[StepPlan, ...]
    alternative: int
    into: str | None = None

    @property
    def name(self) -> str:
        return path_name(self.driver, self.alternative)


@dataclass(frozen=True)
class Planned:
    """The plan."""

    policy: str
    paths: tuple[PathPlan, ...]

    def path(self, driver: str, alternative: int = 0) -> PathPlan | None:
        """A driver's path."""
        return next((p for p in self.paths if (p.driver, p.alternative) == (driver, alternative)), None)

    @property
    def firsts(self) -> tuple[PathPlan, ...]:
        """The first path of each driver."""
        return tuple(path for path in self.paths if path.alternative == 0)


@dataclass(frozen=True)
class Batch:
    """One event."""

    version: int
    batch: int
    now_s: float
    span_s: float
    busy_s: float
    written_s: float
    last: bool
    durations_s: dict[str, float]
    streams: dict[str, StreamNow]
    results: int
    repaired: RepairedNow
    recall: RecallNow
    throttle: float
    shedding: SheddingNow
    work: Work
    totals: Totals
    ledger: LedgerNow | None = None
    freshness: FreshNow | None = None
    learned: dict[str, dict[str, LearnedNow]] | None = None
    slices: dict[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    query: Asked | None = None
    plan: Planned | None = None

    @property
    def rows_per_s(self) -> float | None:
        """Rows of all streams a second; None where the batch has no span."""
        rates = [stream.rows_per_s for stream in self.streams.values()]
        return None if None in rates or not rates else sum(rate or 0.0 for rate in rates)


def read(data: bytes) -> Batch:
    """The batch of an event's bytes; `DamagedError` if it is not a whole event of this version."""
    try:
        values = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"not JSON: {type(error).__name__}") from error
    if isinstance(values, dict) and values.get("version") != FORMAT_VERSION:
        raise DamagedError(f"format version {str(values.get('version'))[:20]}, this is {FORMAT_VERSION}")
    found = decoded(Batch, values)
    if not -1e11 < found.now_s < 1e11:
        raise DamagedError("the clock is out of range")
    if found.plan is not None and found.query is not None:
        _fitting(found.plan, found.query)
    return found


def _fitting(plan: Planned, query: Asked) -> None:
    """Refuse a plan of another query."""
    nodes = {path.into for path in plan.paths if path.into is not None}
    for path in plan.paths:
        for step in path.steps:
            known = len(query.conjuncts)
            if not all(0 <= number < known for number in (*step.conjuncts, *step.leading)):
                raise DamagedError("the plan names conditions that are not there")
        if not {path.driver, *(step.stream for step in path.steps)} <= query.streams.keys() | nodes:
            raise DamagedError("the plan names streams that are not there")
