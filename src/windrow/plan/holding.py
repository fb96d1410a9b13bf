"""What to hold in memory: the rows with the most expected results per byte, under a hard limit.

    results of a direction  =  rate * results a row  *  for each store: the share of its matches, by lag, that is held
    memory                  =  for each store: the bytes of its rows, by age, that are held

A row is of use at the lags where matches lie, and has to be held until it has that age. So what counts of a store is
the curve of results over bytes up to each age, and of that the upper hull: where the curve sags, because matches lie
far back, a share of the rows is held to the next corner of the hull rather than all of them half the way.

    results |            .--*----          * corners: hold all rows up to an age
            |        . /                   between two corners: all rows up to the first, a share of them to the second
            |     ./_                      (or all of them a little further, where that promises about as much)
            |_.-*____|______ bytes

For two streams the sum of both curves is what counts; the best is to follow their hulls by slope, and if all lags are
equal that is the paper's optimum: all memory for the slower stream. For more streams shares multiply; then splits of
the memory over the stores are tried on a grid, with curves weighted by what the other stores hold. With lags a harvest
does not search left out of the curves, section VII of GrubJoin comes out as well: nothing is held beyond the oldest
basic window that some direction searches.

A small part `explored` of the memory holds a thin share of all other rows, so that matches there are seen, and
counted by one over that share.

>>> stock = Stock(np.arange(0, 101, 10), np.full(10, 50.0))                       # 500 bytes, evenly over ages
>>> far = Direction(1.0, {"b": Curve((40, 50, 101), (1.0, 0.0))})                 # all matches 40 to 50 back
>>> held = hold({"a": stock, "b": stock}, (far,), budget=200, explored=0.0)
>>> [(age, round(share, 2)) for age, share in held["b"]]                          # most rows, for just long enough
[(50, 0.77)]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import log

import numpy as np
from numpy.typing import NDArray

from windrow.plan.memory import share_out

Floats = NDArray[np.float64]
Steps = tuple[tuple[int, float], ...]

ROUNDS = 3
GRID = {2: 192, 3: 48, 4: 24, 5: 16}
COARSEST_GRID = 10
FINENESS = 0.95
"""Thin shares are powers of this: a store is then copied when its share has fallen by so much, not after each batch."""
AS_GOOD = 0.99
"""Of splits that promise nearly the same the most even one is taken: what is learned is not exact."""
WORTH_THINNING = 1.6
"""How many times as much a share of the rows has to promise as all of them, a shorter time, to take their place."""


@dataclass(frozen=True, slots=True, eq=False)
class Stock:
    """The rows of a store by age, as if none had been let go: cell k has `bytes[k]` of ages above `edges[k]` and up to
    the next. Ages are negative where rows are ahead of the streams that will probe them.
    """

    edges: NDArray[np.int64]
    bytes: Floats

    @property
    def total(self) -> float:
        """Bytes of all of them."""
        return float(self.bytes.sum())

    def age_of(self, spent: float) -> int:
        """Up to which age rows can be held in so many bytes."""
        reached = np.concatenate(([0.0], np.cumsum(self.bytes)))
        if spent >= reached[-1]:
            return int(self.edges[-1])
        cell = int(np.searchsorted(reached, spent, side="right")) - 1
        part = (spent - reached[cell]) / self.bytes[cell]
        return int(self.edges[cell] + part * (self.edges[cell + 1] - self.edges[cell]))


@dataclass(frozen=True, slots=True)
class Curve:
    """Results by lag: `masses[k]` between `edges[k]` and the next."""

    edges: tuple[int, ...]
    masses: tuple[float, ...]

    def over(self, stock: Stock) -> Floats:
        """Results by the cells of a stock, in shares of all: by age, and in proportion to the rows there."""
        edges = np.maximum(np.array(self.edges, np.float64), 0.0)
        reached = np.concatenate(([0.0], np.cumsum(self.masses)))
        keep = np.concatenate((edges[1:] > edges[:-1], [True]))
        upto = np.interp(stock.edges, edges[keep], reached[keep], left=0.0)
        upto[0] = 0.0
        found = np.diff(upto)
        widths = np.diff(stock.edges).astype(np.float64)
        usual = stock.total / max(widths.sum(), 1.0)
        found = found * np.minimum(stock.bytes / np.maximum(widths * usual, 1e-300), 2.0)
        total = found.sum()
        return np.asarray(found / total if total > 0 else stock.bytes / max(stock.total, 1e-300))


@dataclass(frozen=True, slots=True)
class Direction:
    """Rows of one stream that probe: `results_hz` results a second with whole windows, by lag in each other store."""

    results_hz: float
    lags: Mapping[str, Curve]


@dataclass(frozen=True, slots=True, eq=False)
class _Hull:
    """The corners of a store's curve: cells and bytes up to each; and the curve itself."""

    stock: Stock
    cells: tuple[int, ...]
    size: Floats
    worth: Floats

    @staticmethod
    def of(stock: Stock, values: Floats) -> _Hull:
        size, worth = np.concatenate(([0.0], np.cumsum(stock.bytes))), np.concatenate(([0.0], np.cumsum(values)))
        slack = 1e-9 * worth[-1] * max(size[-1], 1.0)
        corners = [0]
        for cell in range(1, len(size)):
            if size[cell] <= size[cell - 1]:
                continue
            while len(corners) > 1:
                last, before = corners[-1], corners[-2]
                turn = (worth[last] - worth[before]) * (size[cell] - size[before])
                if turn + slack >= (worth[cell] - worth[before]) * (size[last] - size[before]):
                    break
                corners.pop()
            corners.append(cell)
        best = worth[-1] * (1 - 1e-9)
        end = next((place for place, cell in enumerate(corners) if worth[cell] >= best), len(corners) - 1)
        useful = corners[: end + 1] + ([corners[-1]] if corners[-1] > corners[end] else [])
        return _Hull(stock, tuple(useful), size, worth)

    def steps(self, budget: float) -> Steps:
        """What to hold in so many bytes."""
        edges = self.stock.edges
        place = int(np.searchsorted(self.size[list(self.cells)], budget, side="right")) - 1
        if place >= len(self.cells) - 1:
            return ((int(edges[-1]), 1.0),)
        near, far = self.cells[place], self.cells[place + 1]
        low, high = float(self.size[near]), float(self.size[far])
        first, last = int(edges[near]), int(edges[far])
        share = (budget - low) / (high - low)
        thinned = float(self.worth[near] + share * (self.worth[far] - self.worth[near]))
        if thinned < WORTH_THINNING * float(np.interp(budget, self.size, self.worth)):
            return _steps(int(edges[0]), (self.stock.age_of(budget), 1.0))
        if share > 0:
            share = FINENESS ** max(1, int(np.ceil(log(share) / log(FINENESS) - 1e-9)))
        whole_to = self.stock.age_of((budget - share * high) / (1 - share))
        return _steps(int(edges[0]), (max(first, whole_to), 1.0), (last, share))


def hold(
    stocks: Mapping[str, Stock],
    directions: Sequence[Direction],
    budget: float,
    explored: float,
    split: Mapping[str, float] | None = None,
) -> dict[str, Steps]:
    """What to hold of each store in `budget` bytes; a `split` of the memory (`best_split_of`) saves looking for it."""
    if sum(stock.total for stock in stocks.values()) <= budget:
        return {name: ((int(stock.edges[-1]), 1.0),) for name, stock in stocks.items()}
    shares = best_split_of(stocks, directions, budget * (1 - explored)) if split is None else split
    spent = share_freely(shares, budget * (1 - explored), {name: stock.total for name, stock in stocks.items()})
    hulls = _hulls(stocks, directions, spent)
    steps = {name: hull.steps(spent[name]) for name, hull in hulls.items()}
    return _with_thin(steps, stocks, budget, explored)


def hold_cautiously(
    stocks: Mapping[str, Stock], rates_hz: Mapping[str, float], budget: float, explored: float
) -> dict[str, Steps]:
    """What to hold when nothing is known: the youngest rows of each store, more of slow streams than of fast ones, and
    a share of all others.
    """
    if sum(stock.total for stock in stocks.values()) <= budget:
        return {name: ((int(stock.edges[-1]), 1.0),) for name, stock in stocks.items()}
    steps = hold_youngest(stocks, "inverse", rates_hz, budget * (1 - explored))
    return _with_thin(steps, stocks, budget, explored)


def hold_youngest(
    stocks: Mapping[str, Stock], strategy: str, rates_hz: Mapping[str, float], budget: float
) -> dict[str, Steps]:
    """One of the paper's strategies: each store's youngest rows, in its part of the memory."""
    full = [stock.total for stock in stocks.values()]
    parts = share_out(strategy, [rates_hz[name] for name in stocks], budget, full)
    return {
        name: _steps(int(stock.edges[0]), (stock.age_of(part), 1.0))
        for (name, stock), part in zip(stocks.items(), parts, strict=True)
    }


def share_freely(shares: Mapping[str, float], budget: float, full: Mapping[str, float]) -> dict[str, float]:
    """A split of the memory in bytes; what a store does not need goes to the others."""
    given = {name: min(share * budget, full[name]) for name, share in shares.items()}
    for name, need in full.items():
        given[name] += min(max(budget - sum(given.values()), 0.0), need - given[name])
    return given


def best_split_of(stocks: Mapping[str, Stock], directions: Sequence[Direction], budget: float) -> dict[str, float]:
    """The split of the memory over the stores, in shares of it, that promises the most results."""
    names = list(stocks)
    grid = GRID.get(len(names), COARSEST_GRID)
    splits = _splits(len(names), grid)
    evenness = -(splits**2).sum(axis=1).astype(np.float64)
    best, best_results = splits[int(evenness.argmax())], -1.0
    spent: dict[str, float] = {}
    for _ in range(1 if len(names) == 2 else ROUNDS):
        hulls = _hulls(stocks, directions, spent)
        tables = _tables(hulls, directions, budget, grid)
        results = np.zeros(len(splits))
        for number, direction in enumerate(directions):
            found = np.full(len(splits), direction.results_hz)
            for place, name in enumerate(names):
                if name in direction.lags:
                    found *= tables[number, name][splits[:, place]]
            results += found
        place = int(np.where(results >= results.max() * AS_GOOD, evenness, -np.inf).argmax())
        if results[place] <= best_results * (1 + 1e-6):
            break
        best, best_results = splits[place], float(results[place])
        spent = {name: float(share) / grid * budget for name, share in zip(names, best, strict=True)}
    return {name: float(share) / grid for name, share in zip(names, best, strict=True)}


def _hulls(
    stocks: Mapping[str, Stock], directions: Sequence[Direction], spent: Mapping[str, float]
) -> dict[str, _Hull]:
    """The hull of each store's curve, where directions count by what the other stores hold of their matches (in `spent`
    bytes; all, if not known).
    """
    lags = [{name: curve.over(stocks[name]) for name, curve in direction.lags.items()} for direction in directions]
    held: list[dict[str, float]] = [dict.fromkeys(found, 1.0) for found in lags]
    if spent and len(stocks) > 2:
        for name, hull in _hulls(stocks, directions, {}).items():
            shares = _cells_held(hull.stock, hull.steps(spent[name]))
            for number, found in enumerate(lags):
                if name in found:
                    held[number][name] = max(float(found[name] @ shares), 1e-3)
    hulls = {}
    for name, stock in stocks.items():
        values = np.zeros(len(stock.bytes))
        for number, direction in enumerate(directions):
            if name in lags[number]:
                others = np.prod([share for other, share in held[number].items() if other != name])
                values += direction.results_hz * float(others) * lags[number][name]
        hulls[name] = _Hull.of(stock, values)
    return hulls


def _tables(
    hulls: Mapping[str, _Hull], directions: Sequence[Direction], budget: float, grid: int
) -> dict[tuple[int, str], Floats]:
    """For each direction and store, the share of the matches that is held, by how many parts of the memory it has."""
    tables = {}
    for name, hull in hulls.items():
        shares = np.array([_cells_held(hull.stock, hull.steps(part / grid * budget)) for part in range(grid + 1)])
        for number, direction in enumerate(directions):
            if name in direction.lags:
                tables[number, name] = shares @ direction.lags[name].over(hull.stock)
    return tables


def _cells_held(stock: Stock, steps: Steps) -> Floats:
    """The share of each cell's rows that is held."""
    low, high = stock.edges[:-1], stock.edges[1:]
    held, before = np.zeros(len(stock.bytes)), int(low[0])
    for age, share in steps:
        held += share * np.clip((np.minimum(high, age) - np.maximum(low, before)) / np.maximum(high - low, 1), 0, 1)
        before = age
    return held


def _with_thin(
    steps: dict[str, Steps], stocks: Mapping[str, Stock], budget: float, explored: float
) -> dict[str, Steps]:
    """The steps, and beyond them the share of all other rows that can be had for the explored part of the memory."""
    if explored <= 0:
        return steps
    beyond = sum(stock.total - float(stock.bytes @ _cells_held(stock, steps[name])) for name, stock in stocks.items())
    thin = min(1.0, explored * budget / max(beyond, 1.0))
    thin = FINENESS ** max(0, int(np.ceil(log(thin) / log(FINENESS) - 1e-9))) if thin > 0 else 0.0
    found = {}
    for name, stock in stocks.items():
        held = [(age, max(share, thin)) for age, share in steps[name]]
        found[name] = _steps(int(stock.edges[0]), *held, (int(stock.edges[-1]), thin))
    return found


def _steps(youngest: int, *parts: tuple[int, float]) -> Steps:
    """Steps without those that hold nothing, or no age, or what the next one holds as well."""
    found: list[tuple[int, float]] = []
    for age, share in parts:
        if share <= 0 or age <= (found[-1][0] if found else youngest):
            continue
        if found and found[-1][1] == share:
            found.pop()
        found.append((age, share))
    return tuple(found)


@lru_cache(maxsize=16)
def _splits(stores: int, parts: int) -> NDArray[np.int64]:
    """All ways to share `parts` out over the stores."""
    bars = np.array(list(combinations(range(parts + stores - 1), stores - 1)), np.int64).reshape(-1, stores - 1)
    ends = np.concatenate((np.full((len(bars), 1), -1), bars, np.full((len(bars), 1), parts + stores - 1)), axis=1)
    return np.diff(ends, axis=1) - 1
