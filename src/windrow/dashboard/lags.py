"""Where matches lie: for each direction and window a histogram of lags, with what is searched of it, and advice.

    results a row  ▁▂▅█▅▂▁▁▁▁▁▁      of driver d in the window of l, by how much older than d's row l's row is
                    ▔▔▔▔▔            the ranges that are searched under overload

What a controller has learned is an estimate of everything, searched or not; in a join where nothing is left out results
are counted as they are. A window may be as much shorter as the results of its last bins are few. Each result has a lag
in every window but that of the stream whose row came last, so what one window loses is a share of all results, and
windows that lose a share each lose no more than the sum of these together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from windrow.dashboard.batches import Asked, Batch, LearnedNow, Planned, PortionNow
from windrow.dashboard.wording import share_text, window_text

SHARES = (0.95, 0.99)
FEWEST_RESULTS = 100
"""Below so many results nothing is said about windows."""
CROWDED = 2.0
"""The last tenth of a window holds so many times its part of the matches: more of them lie beyond."""


@dataclass(frozen=True)
class Histogram:
    """Results of a driver by the lag of their member in `store`: `results[k]` between `edges[k]` and `edges[k + 1]`."""

    driver: str
    store: str
    edges: tuple[int, ...]
    results: tuple[float, ...]
    rows: float

    @property
    def total(self) -> float:
        return sum(self.results)


def histograms(batch: Batch, query: Asked, plan: Planned) -> list[Histogram]:
    """All of them, as the newest batch tells them."""
    found = []
    for path in plan.firsts:
        for number, step in enumerate(path.steps):
            if path.driver not in query.streams or step.stream not in query.streams:
                continue
            learned = (batch.learned or {}).get(path.driver, {}).get(step.stream)
            held = _estimated(path.driver, step.stream, learned) if learned else None
            held = held or _counted(batch, query, path.driver, step.stream, number)
            if held is not None:
                found.append(held)
    return found


def searched(portions: Sequence[PortionNow], plan: Planned, driver: str, store: str) -> list[dict[str, Any]]:
    """The ranges of lag that a driver's rows look at in a store, each with the share of rows that look there; empty
    where all look everywhere.
    """
    found: list[dict[str, Any]] = []
    for portion in portions:
        path = plan.path(driver, portion.alternative)
        targets = [] if path is None else [step.stream for step in path.steps]
        if portion.sampled or store not in targets or len(portion.lags) != len(targets):
            continue
        ranges = portion.lags[targets.index(store)]
        if ranges is not None:
            found.append({"share": portion.share, "ranges": [[low, high] for low, high in ranges]})
    return found


def lags_view(batch: Batch, query: Asked, plan: Planned) -> list[dict[str, Any]]:
    """What the page shows of each direction and window; lags in seconds, or in rows of a row window."""
    portions = dict(batch.shedding.portions)
    shown = []
    for held in histograms(batch, query, plan):
        asked = query.streams[held.store]
        scale = 1.0 if asked.window_rows is not None else 1e-6
        edges = _drawn(held.edges)
        looked_at = [
            {**part, "ranges": [_within(low, high, edges, scale) for low, high in part["ranges"]]}
            for part in searched(portions.get(held.driver, ()), plan, held.driver, held.store)
        ]
        rows = max(held.rows, 1e-9)
        shown.append({
            "driver": held.driver,
            "store": held.store,
            "unit": "rows" if asked.window_rows is not None else "s",
            "edges": [edge * scale for edge in edges],
            "results_a_row": [results / rows for results in held.results],
            "searched": looked_at,
        })  # fmt: skip
    return shown


def advice(batch: Batch, query: Asked, plan: Planned) -> dict[str, Any]:
    """For each window the least that keeps shares of the results: shortened alone, or all windows at once."""
    held = histograms(batch, query, plan)
    total = sum(found[0].total for found in _by_driver(held).values())
    if total < FEWEST_RESULTS:
        return {"results": round(total), "enough": False, "windows": [], "notes": []}
    windows, notes = [], []
    for name, asked in query.streams.items():
        mine = [each for each in held if each.store == name]
        now = asked.window_rows if asked.window_rows is not None else asked.window_us
        if not mine or now is None:
            continue
        row: dict[str, Any] = {"stream": name, "window": window_text(asked.window_us, asked.window_rows)}
        for share in SHARES:
            for kind, lost in (("alone", 1 - share), ("together", (1 - share) / len(query.streams))):
                least = min(shortest(mine, lost * total), now)
                in_rows = asked.window_rows is not None
                row[f"{kind}_{100 * share:.0f}"] = {
                    "text": window_text(None if in_rows else least, least if in_rows else None),
                    "share": least / now if now else 1.0,
                }
        windows.append(row)
        crowd = crowding(mine)
        if crowd is not None:
            notes.append(
                f"{share_text(crowd)} of the matches in {name} lie in the last tenth of its window: a longer one would "
                "find more"
            )
    return {"results": round(total), "enough": True, "windows": windows, "notes": notes}


def shortest(held: Sequence[Histogram], may_lose: float) -> int:
    """The shortest window, at an edge of bins, beyond which at most so many results lie.

    >>> lags = Histogram("a", "b", (0, 25, 50, 75, 101), (80.0, 15.0, 4.0, 1.0), 100.0)
    >>> shortest([lags], 0.0), shortest([lags], 5.0), shortest([lags], 1.0)
    (100, 50, 75)
    """
    beyond: dict[int, float] = {}
    for each in held:
        for edge, results in zip(each.edges[1:], each.results, strict=True):
            beyond[edge] = beyond.get(edge, 0.0) + results
    edges = sorted(beyond, reverse=True)
    lost, least = 0.0, edges[0] - 1  # the last bin holds the window's own length, too
    for number, edge in enumerate(edges):
        lost += beyond[edge]
        if lost > may_lose + 1e-9:
            break
        least = edges[number + 1] if number + 1 < len(edges) else 0
    return max(0, least)


def crowding(held: Sequence[Histogram]) -> float | None:
    """The share of matches in the last tenth of a window, where that is more than its part and the ones before do not
    say that it is thinning out; else None.
    """
    last = before = total = 0.0
    for each in held:
        count = max(1, len(each.results) // 10)
        last += sum(each.results[-count:])
        before += sum(each.results[-2 * count : -count])
        total += each.total
    if total < FEWEST_RESULTS or last < CROWDED * 0.1 * total or last < 0.5 * before:
        return None
    return last / total


def _by_driver(held: Sequence[Histogram]) -> Mapping[str, list[Histogram]]:
    found: dict[str, list[Histogram]] = {}
    for each in held:
        found.setdefault(each.driver, []).append(each)
    return found


def _estimated(driver: str, store: str, learned: LearnedNow) -> Histogram | None:
    """What a controller has learned, in results; None before it knows any rows."""
    if learned.rows <= 0 or len(learned.edges) != len(learned.results_a_row) + 1:
        return None
    results = tuple(each * learned.rows for each in learned.results_a_row)
    return Histogram(driver, store, learned.edges, results, learned.rows)


def _counted(batch: Batch, query: Asked, driver: str, store: str, number: int) -> Histogram | None:
    """What was found so far; None where lags were not counted."""
    path, edges = batch.totals.paths.get(driver), query.edges.get(driver, ())
    if path is None or number >= len(edges) or number >= len(path.targets) or path.targets[number] != store:
        return None
    lags = path.steps[number].lags or (0.0,) * (len(edges[number]) - 1)
    if len(lags) != len(edges[number]) - 1:
        return None
    return Histogram(driver, store, edges[number], lags, float(path.drivers))


def _drawn(edges: Sequence[int]) -> list[int]:
    """Edges to draw between: a bin that reaches back without end is as wide as its neighbour."""
    found = list(edges)
    if len(found) > 2 and found[0] < 0:
        found[0] = max(found[0], found[1] - 2 * (found[2] - found[1]))
    return found


def _within(low: int, high: int, edges: Sequence[int], scale: float) -> list[float]:
    return [max(low, edges[0]) * scale, min(high, edges[-1]) * scale]
