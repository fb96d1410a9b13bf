"""What a window join costs a second: the unit-time model, direction by direction (window-joins, section 3).

    rows of A probe B's window      λ_a · probe(b)  +  λ_b · (insert(b) + invalidate(b))                          eq. 1

    method   a probe looks at    an insertion    an invalidation, active    lazy: at each probe instead
    loop     B                   1               1                          ⌊log2⌈λ_b/λ_a⌉ + 1⌋                  eq. 2
    hashed   B/|B|               1               B/|B|                      λ_b/λ_a                              eq. 3
    sorted   log2 B + B/|B|      log2 B + 1      log2 B + 1                 λ_b/λ_a                              ours

The model counts tuples that are looked at, each at its method's price: C_n in a loop, C_h in a hash table. B are the
rows of the window, |B| its distinct keys, one a bucket. A time window holds T·λ rows, a row window as many as it says;
nothing else tells them apart, since in both each new row makes one leave. Lazily, rows that have left are found while a
probe looks around: between two probes of a bucket λ_b/λ_a of its rows leave (the paper gives this for the loop only).

A join is two directions whose costs add up, so each can have the method that is best for it. `windrow.plan.work` has
the seconds of this engine's parts: `access_costs` reads C_n and C_h off it, and `segment_work` says the same traffic as
work on segments and indexes, which is what the engine really does.

In the paper: `rate_hz` λ, `window_s` T, `rows` B, `keys` |B| = NKey(B) = 1/σ_b, the costs C_n and C_h.

>>> paper = {"loop": 0.5, "hashed": 0.65}
>>> slow, fast = Side(rate_hz=10, keys=10, window_s=60), Side(rate_hz=100, keys=10, window_s=60)
>>> round(join_cost("HNJ", slow, fast, paper)), round(join_cost("HHJ", slow, fast, paper))
(34396, 47262)
>>> round(crossing_hz(10, keys=10, window_s=60, costs=paper), 2)      # from here on a loop is the better one
67.01
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from windrow.errors import PlanError
from windrow.plan.work import StepWork, Work, WorkCosts
from windrow.store.tiers import FAN_IN

AccessCosts = Mapping[str, float]
"""What looking at one tuple costs, by method."""


@dataclass(frozen=True, slots=True)
class Side:
    """A stream with its window: of `window_s` seconds or of `window_rows` rows, with so many distinct keys in it."""

    rate_hz: float
    keys: float
    window_s: float | None = None
    window_rows: float | None = None

    def __post_init__(self) -> None:
        if (self.window_s is None) == (self.window_rows is None):
            raise PlanError("a window is a time or a number of rows", hint="give window_s or window_rows, not both")
        size = self.window_s if self.window_rows is None else self.window_rows
        if size is None or not (0 <= self.rate_hz < math.inf and 0 <= size < math.inf and 0 < self.keys < math.inf):
            raise PlanError(f"a stream cannot have {self}", hint="rates and windows are 0 or more, keys more than 0")

    @property
    def rows(self) -> float:
        """Rows in the window."""
        return self.rate_hz * self.window_s if self.window_s is not None else self.window_rows or 0.0

    @property
    def rows_a_key(self) -> float:
        """Rows in the window with one key: a bucket."""
        return self.rows / self.keys


@dataclass(frozen=True, slots=True)
class Parts:
    """What the parts of a direction come to in a second, in tuples looked at or at their price."""

    probe: float
    insert: float
    invalidate: float

    @property
    def total(self) -> float:
        """All of it."""
        return self.probe + self.insert + self.invalidate


def _loop(probing_hz: float, window: Side, lazy: bool) -> Parts:
    expired = probing_hz * _halvings(window.rate_hz, probing_hz) if lazy else window.rate_hz
    return Parts(probing_hz * window.rows, window.rate_hz, expired)


def _hashed(probing_hz: float, window: Side, lazy: bool) -> Parts:
    expired = window.rate_hz * (1.0 if lazy else window.rows_a_key)
    return Parts(probing_hz * window.rows_a_key, window.rate_hz, expired)


def _sorted(probing_hz: float, window: Side, lazy: bool) -> Parts:
    down = math.log2(max(1.0, window.rows))
    expired = window.rate_hz * (1.0 if lazy else down + 1)
    return Parts(probing_hz * (down + window.rows_a_key), window.rate_hz * (down + 1), expired)


MODELS: Mapping[str, Callable[[float, Side, bool], Parts]] = MappingProxyType(
    {"loop": _loop, "hashed": _hashed, "sorted": _sorted}
)
"""The methods the model knows."""

JOINS: Mapping[str, tuple[str, str]] = MappingProxyType({
    "HHJ": ("hashed", "hashed"), "HNJ": ("hashed", "loop"), "NHJ": ("loop", "hashed"), "NNJ": ("loop", "loop"),
})  # fmt: skip
"""The paper's joins: by which method the window of A is searched, and that of B."""


def accesses(method: str, probing_hz: float, window: Side, *, lazy: bool = False) -> Parts:
    """The tuples that one direction looks at in a second: rows come at `probing_hz` and probe the window.

    >>> accesses("hashed", 10, Side(rate_hz=100, keys=10, window_s=60))
    Parts(probe=6000.0, insert=100, invalidate=60000.0)
    """
    if method not in MODELS:
        raise PlanError(f"the unit-time model has no method '{method}'", hint=f"choose among {', '.join(MODELS)}")
    if not 0 <= probing_hz < math.inf:
        raise PlanError(f"rows cannot come {probing_hz} times a second", hint="give 0 or more")
    return MODELS[method](probing_hz, window, lazy)


def direction_cost(method: str, probing_hz: float, window: Side, costs: AccessCosts, *, lazy: bool = False) -> Parts:
    """What one direction costs a second, part by part (equations 2 and 3)."""
    if method not in costs:
        raise PlanError(f"there is no cost of method '{method}'", hint=f"choose among {', '.join(costs)}")
    counts, price = accesses(method, probing_hz, window, lazy=lazy), costs[method]
    return Parts(counts.probe * price, counts.insert * price, counts.invalidate * price)


def join_cost(join: str, a: Side, b: Side, costs: AccessCosts, *, lazy: bool = False) -> float:
    """What a join of two streams costs a second, named as in the paper: the sum of its directions (eq. 4 to 6)."""
    if join not in JOINS:
        raise PlanError(f"there is no join '{join}'", hint=f"choose among {', '.join(JOINS)}")
    in_a, in_b = JOINS[join]
    to_b = direction_cost(in_b, a.rate_hz, b, costs, lazy=lazy)
    return to_b.total + direction_cost(in_a, b.rate_hz, a, costs, lazy=lazy).total


def crossing_hz(probing_hz: float, *, keys: float, window_s: float, costs: AccessCosts) -> float:
    """The rate of a window's stream from which on a loop over it costs less than its hash table (eq. 7, exactly)."""
    probed = probing_hz * window_s
    looped = (probed + 2) * costs["loop"] / costs["hashed"]
    return (looped - 1 - probed / keys) * keys / window_s


def determinant(keys: float, ratio: float) -> float:
    """The same as a ratio of rates, roughly: beyond it a loop wins (eq. 8); `ratio` is C_h / C_n.

    >>> round(determinant(10, 1.3), 2)
    6.69
    """
    return (keys - ratio) / ratio


def ratio_of(keys: float, crossing: float) -> float:
    """C_h / C_n from a measured crossing of two rates: equation 7 the other way round.

    >>> round(ratio_of(10, 6.7), 3)
    1.299
    """
    return keys / (crossing + 1)


def cheapest(probing_hz: float, window: Side, costs: AccessCosts, methods: Collection[str] = ("loop", "hashed")) -> str:
    """The method with the least cost for one direction; ties go to the first.

    >>> paper = {"loop": 0.5, "hashed": 0.65}
    >>> [cheapest(10, Side(rate_hz=hz, keys=10, window_s=60), paper) for hz in (60, 100)]
    ['hashed', 'loop']
    """
    return min(methods, key=lambda method: direction_cost(method, probing_hz, window, costs).total)


def kept_lazily(method: str, probing_hz: float, window: Side) -> float:
    """Rows that have left a window and still lie in it when a probe comes, if they are invalidated lazily: what the
    time saved costs in memory.

    >>> [kept_lazily(method, 10, Side(rate_hz=100, keys=20, window_s=60)) for method in ("loop", "hashed")]
    [10.0, 200.0]
    """
    buckets = 1.0 if method == "loop" else window.keys
    return buckets * window.rate_hz / probing_hz if probing_hz else math.inf


def access_costs(costs: WorkCosts) -> dict[str, float]:
    """C_n, C_h and what a sorted index takes, of the machine that was measured: seconds a candidate."""
    return {method: costs.step(method).per_candidate for method in MODELS}


def segment_work(method: str, probing_hz: float, window: Side, batch_hz: float) -> Work:
    """The work of a second that one direction makes in this engine, in batches that come `batch_hz` times a second.

    A row is let in, indexed where the method has an index, and copied and indexed again at each merge of sixteen
    segments into one, which may span a quarter of the window; segments leave whole, so that nothing is done a row then.
    """
    if method not in MODELS:
        raise PlanError(f"the unit-time model has no method '{method}'", hint=f"choose among {', '.join(MODELS)}")
    seconds = window.rows / window.rate_hz if window.rate_hz else 0.0
    tiers = max(0, math.floor(math.log(max(1.0, seconds * batch_hz / 4), FAN_IN)))
    candidates = window.rows if method == "loop" else window.rows_a_key
    indexed = 0.0 if method == "loop" else window.rate_hz * (1 + tiers)
    step = StepWork(method, probing_hz, probing_hz * candidates, probing_hz * window.rows_a_key)
    return Work(rows=window.rate_hz, merged_rows=window.rate_hz * tiers, indexed_rows=indexed, steps=(step,))


def _halvings(rate_hz: float, probing_hz: float) -> float:
    """Looks of a binary search among the rows that left since the last probe."""
    if rate_hz == 0 or probing_hz == 0:
        return 0.0
    return math.floor(math.log2(math.ceil(rate_hz / probing_hz)) + 1)
