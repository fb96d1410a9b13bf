"""Who may probe in a tree of joins, while it runs: what batches tell in, the allowances of the next ones out.

    monitor    rows that drive, probe, find, and the seconds that takes, path by path: averages that fade in an interval
    throttle   how many seconds of probing a second of input may take
    analyse    the tree as numbers, and the allowances that yield most (`windrow.plan.directions`)
    actuate    portions: a share of each stream's rows drives, the rest is stored and does not probe

It runs once an interval, and only if a rate, a selectivity or a cost is off by more than `ERROR` from what the
allowances in force were made for; they change only if others promise more by `BETTER`. A small share of each stream
always drives, or a path that is not worth it today could never show that it is tomorrow.

The sizes of inner states are not taken from their stores: a state that is fed little is small, and looks as if it were
worth little. They follow from what is let in and how long it lives (`windrow.plan.directions.timed`), so `auto` is
`settle` there. The others are what it is compared with: they take states as full as they would be with all rows.

The states of time windows are never too old for a FRESHNESS, only thin: what keeps results fresh is that batches are
not late, which is what the throttle is for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from windrow.control.controller import ControlSettings
from windrow.control.observation import Observation, PathTally
from windrow.errors import PlanError
from windrow.plan.directions.allocation import METHODS, allocate
from windrow.plan.directions.half_way import HEURISTICS
from windrow.plan.directions.shapes import Shape, plant
from windrow.plan.directions.timed import filled, settle, steady
from windrow.plan.directions.tree import Join, State, Stream
from windrow.plan.nodes import nodes_of
from windrow.plan.plan import Plan
from windrow.plan.shedding import ALL, Portion, Shedding
from windrow.plan.trees import shape_of
from windrow.query.spec import QuerySpec

ERROR = 0.1
BETTER = 0.02
LEAST_SHARE = 0.01
"""Of each stream's rows so many drive whatever they are worth, so that it is noticed when that changes."""
_TINY = 1e-9

Shares = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Flowed:
    """What went through one path, in sums that fade: seconds of the clock, rows that drove, probed, pairs in reach,
    rows found, seconds of probing.
    """

    span_s: float = 0.0
    drivers: float = 0.0
    probes: float = 0.0
    searched: float = 0.0
    matches: float = 0.0
    seconds: float = 0.0

    def after(self, tally: PathTally | None, span_s: float, keep: float) -> Flowed:
        """With one more batch; of what was before, `keep` is kept."""
        kept = Flowed(*(keep * getattr(self, name) for name in Flowed.__slots__))
        if tally is None:
            return replace(kept, span_s=kept.span_s + span_s)
        step = tally.steps[0]
        return Flowed(
            kept.span_s + span_s,
            kept.drivers + tally.drivers,
            kept.probes + step.probes,
            kept.searched + step.searched,
            kept.matches + step.matches,
            kept.seconds + step.seconds,
        )


@dataclass(frozen=True, slots=True)
class Known:
    """A tree as numbers: its streams, states and costs, and how long rows of its nodes live."""

    tree: Join
    life_s: Mapping[str, float]
    rates_hz: Mapping[str, float]

    @property
    def saturation(self) -> float:
        """Seconds of probing for a second of input, if all rows drive."""
        return steady(self.tree, self.life_s, self.rates_hz).spent

    @property
    def full(self) -> Join:
        """The tree with states as they are if all rows drive."""
        return filled(self.tree, steady(self.tree, self.life_s, self.rates_hz).rows)


@dataclass
class Allowances:
    """Allows streams of one tree to probe; `method` says how, of `ALLOWED`. `shares` are in force, `decisions` counts
    how often they were looked for.
    """

    spec: QuerySpec
    plan: Plan
    settings: ControlSettings = field(default_factory=ControlSettings)
    method: str = "auto"
    shares: Shares = field(default_factory=dict)
    decisions: int = 0
    changes: int = 0
    throttle: float = 1.0

    def __post_init__(self) -> None:
        if self.method not in ALLOWED:
            raise PlanError(f"there is no allocation '{self.method}'", hint=f"choose one of {', '.join(ALLOWED)}")
        shape = shape_of(self.plan)
        if shape is None:
            raise PlanError("there are no allowances without a tree of joins", hint="give a shape, as 'linear'")
        self.shape: Shape = shape
        self.nodes = nodes_of(self.plan.paths)
        self.flowed = {path.name: Flowed() for path in self.plan.firsts}
        self.throttle = 1.0 if self.settings.fixed is None else self.settings.fixed
        self._other_s = self._busy_s = self._span_s = 0.0
        self._made_for: dict[str, float] = {}
        self._decided_s: float | None = None
        self._last_s: float | None = None

    def observe(self, done: Observation) -> None:
        """Take in what a batch did."""
        self._decided_s = done.now_s - done.span_s if self._decided_s is None else self._decided_s
        self._last_s = done.now_s
        if done.span_s <= 0:
            return
        keep: float = 0.25 ** (done.span_s / self.settings.interval_s)
        tallies = done.joined.others
        for path in self.flowed:
            self.flowed[path] = self.flowed[path].after(tallies.get(path), done.span_s, keep)
        probing_s = sum(step.seconds for tally in tallies.values() for step in tally.steps)
        self._other_s = keep * self._other_s + max(0.0, done.busy_s - probing_s)
        self._busy_s = keep * self._busy_s + done.busy_s
        self._span_s = keep * self._span_s + done.span_s

    def decide(self, now_s: float) -> Shedding:
        """Who may probe in a batch that begins at `now_s`."""
        if self._decided_s is not None and now_s - self._decided_s >= self.settings.interval_s:
            self._decided_s = now_s
            known = self.known()
            if known is not None:
                self._adapt(known)
        return self.shedding

    def known(self) -> Known | None:
        """The tree as numbers; None before every store was probed."""
        if any(flow.probes <= 0 for flow in self.flowed.values()):
            return None
        flow = self.flowed
        states = {}
        rates_hz = {}
        for path in self.plan.firsts:
            into, through = flow[path.name], path.targets[0]
            cost = max(into.seconds / into.probes, _TINY)
            states[through] = State(into.searched / into.probes, into.matches / max(into.searched, _TINY), cost)
            if path.driver not in self.nodes:
                rates_hz[path.driver] = max(into.drivers / into.span_s, _TINY)
        streams = {name: Stream(name, hz, states[name]) for name, hz in rates_hz.items()}
        tree = plant(self.shape, streams, lambda name: states.get(name, State(0.0, 0.0)))
        return Known(tree, {name: self._life_s(name, states[name].rows) for name in self.nodes}, rates_hz)

    def _life_s(self, node: str, in_reach: float) -> float:
        """How far back a node's rows are looked for: the longest window beneath it; where there are windows of rows
        alone, as long as it takes to find as many as were in reach.
        """
        spans = (self.spec.stream(name).window.span_us for name in self.nodes[node].streams)
        longest_us = max((span_us for span_us in spans if span_us is not None), default=None)
        if longest_us is not None:
            return longest_us / 1e6
        into = [self.flowed[path.name] for path in self.plan.firsts if path.into == node]
        return in_reach / max(sum(flow.matches / flow.span_s for flow in into), _TINY)

    @property
    def shedding(self) -> Shedding:
        """The allowances in force, as portions of rows."""
        if all(share >= 1 for share in self.shares.values()):
            return ALL
        portions = tuple((name, _portions(share)) for name, share in self.shares.items() if share < 1)
        return Shedding(self.throttle, self.settings.seed, portions=portions)

    def _adapt(self, known: Known) -> None:
        budget = self._budget(known)
        facts = _facts(known, budget)
        if self._made_for and not _differ(self._made_for, facts):
            return
        self.decisions += 1
        wanted = ALLOWED[self.method](known, budget)
        if self.shares and not self._is_better(known, budget, wanted):
            return
        self.changes += wanted != self.shares
        self.shares, self._made_for = wanted, facts

    def _budget(self, known: Known) -> float:
        """Seconds of probing that a second of input may take."""
        saturation = known.saturation
        if self.settings.fixed is not None:
            return self.settings.fixed * saturation
        free_s = max(0.0, self.settings.target - self._other_s / max(self._span_s, _TINY))
        overrun = max(1.0, self._busy_s / max(self.settings.target * self._span_s, _TINY))
        self.throttle = min(1.0, free_s / overrun / max(saturation, _TINY))
        return self.throttle * saturation

    def _is_better(self, known: Known, budget: float, wanted: Shares) -> bool:
        """Whether other shares promise so much more that a change pays, or those in force do not fit any more."""
        now, then = (_steady(known, shares) for shares in (self.shares, wanted))
        return now[1] > budget * (1 + ERROR) or then[0] > now[0] * (1 + BETTER) or self.method != "auto"


def _portions(share: float) -> tuple[Portion, ...]:
    """A share of a driver's rows that probes all there is; the others do not probe."""
    return (Portion(share, (None,)), Portion(1.0 - share, ((),)))


def _steady(known: Known, shares: Shares) -> tuple[float, float]:
    """Output and resources in the long run under shares of streams."""
    found = steady(known.tree, known.life_s, {n: hz * shares.get(n, 1.0) for n, hz in known.rates_hz.items()})
    return found.output_hz, found.spent


def _facts(known: Known, budget: float) -> dict[str, float]:
    facts = {f"rate {name}": hz for name, hz in known.rates_hz.items()} | {"budget": budget}

    def note(node: Join | Stream) -> None:
        facts[f"selectivity {node}"], facts[f"cost {node}"] = node.state.selectivity, node.state.probe_cost
        if isinstance(node, Join):
            note(node.left)
            note(node.right)

    note(known.tree)
    return facts


def _differ(before: Mapping[str, float], now: Mapping[str, float]) -> bool:
    return any(abs(now[name] - held) > ERROR * max(abs(held), _TINY) for name, held in before.items())


def _settled(known: Known, budget: float) -> Shares:
    """Ours: `settle`, on what a small share of all streams leaves."""
    floor_hz = {name: LEAST_SHARE * hz for name, hz in known.rates_hz.items()}
    floor = steady(known.tree, known.life_s, floor_hz).spent
    best = settle(known.tree, known.life_s, max(0.0, budget - floor)).driver_hz
    return {n: min(1.0, LEAST_SHARE + best[n] / hz) if best[n] < hz else 1.0 for n, hz in known.rates_hz.items()}


def _allocated(method: str) -> Callable[[Known, float], Shares]:
    def shares(known: Known, budget: float) -> Shares:
        found = allocate(known.full, budget, method=method).driver_hz
        return {name: max(LEAST_SHARE, min(1.0, found[name] / hz)) for name, hz in known.rates_hz.items()}

    return shares


def _heuristic(number: int) -> Callable[[Known, float], Shares]:
    def shares(known: Known, budget: float) -> Shares:
        flow = HEURISTICS[number].flow(known.full, budget)
        offered = {**known.rates_hz, **flow.found_hz}
        names = flow.probing_hz
        return {n: max(LEAST_SHARE, min(1.0, names[n] / max(offered[n], _TINY))) for n in names}

    return shares


ALLOWED: Mapping[str, Callable[[Known, float], Shares]] = {
    "auto": _settled,
    **{method: _allocated(method) for method in METHODS if method != "auto"},
    **{heuristic.name: _heuristic(number) for number, heuristic in enumerate(HEURISTICS)},
}
"""How allowances are found: ours, the paper's, and the four that the paper compares with."""
