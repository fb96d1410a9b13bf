"""Results over time, batch by batch: what Figures 6 to 8 have in common.

The paper normalises time by what the timestamp policy takes for a batch, and draws the share of a batch's results that
have left by then, on average over batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from windrow.papers.driver_selection.played import BATCHES, FULL, POLICIES, QUICK, PolicyRun, measured
from windrow.papers.experiment import Chart, Series
from windrow.papers.tables import Table

UNITS = tuple(round(0.05 * k, 2) for k in range(1, 31))
COLUMNS = ("dataset", "batch", "policy", "unit", "share")
Part = Callable[[PolicyRun], PolicyRun]


def table_of(datasets: Sequence[str], quick: bool, seed: int, part: Part = lambda run: run) -> Table:
    """The curve of each policy on each dataset, of all batches that count or of a part."""
    rows = []
    for dataset in datasets:
        for batch in BATCHES:
            runs = measured(dataset, batch, QUICK if quick else FULL, seed)
            norm = part(runs["timestamp"])
            for policy, run in runs.items():
                if policy == "consumption_rate" and not has_rates(dataset):
                    continue
                shares = part(run).shares(UNITS, norm)
                rows += [(dataset, batch, policy, unit, share) for unit, share in zip(UNITS, shares, strict=True)]
    return Table.of(COLUMNS, rows)


def has_rates(dataset: str) -> bool:
    """Whether the streams' selectivities differ, so that the consumption rate says anything: in V and VI."""
    return dataset in ("V", "VI")


def charts(table: Table) -> tuple[Chart, ...]:
    """A chart a dataset and batch."""
    found = []
    for dataset, batch in dict.fromkeys(zip(table.column("dataset"), table.column("batch"), strict=True)):
        held = table.where(dataset=dataset, batch=batch)
        series = tuple(
            Series.of(held.where(policy=policy), name, x="unit", y="share")
            for policy, name in POLICIES.items()
            if held.where(policy=policy).rows
        )
        title = f"Dataset {dataset}, batches of {batch}"
        found.append(Chart("time, in units of timestamp order", "share of the results", series, title=title))
    return tuple(found)


def reached(table: Table, share: float, **where: str) -> float:
    """The first unit of time by which a share of the results has left, the latest where there are several curves."""
    curves: dict[tuple[object, ...], float] = {}
    held = table.where(**where)
    for dataset, batch, policy, unit, found in held.rows:
        curve = (dataset, batch, policy)
        if isinstance(found, float) and isinstance(unit, float) and found >= share:
            curves[curve] = min(unit, curves.get(curve, float("inf")))
        else:
            curves.setdefault(curve, float("inf"))
    return max(curves.values())


def share_at(table: Table, unit: float, **where: str) -> tuple[float, float]:
    """The least and the largest share that has left by some time, over the curves there are."""
    shares = table.where(unit=unit, **where).numbers("share")
    return min(shares), max(shares)


def until(units: float) -> str:
    """A time as text.

    >>> until(0.25), until(float("inf"))
    ('by 0.25', 'not by 1.5')
    """
    return f"by {units:g}" if units < float("inf") else f"not by {UNITS[-1]:g}"
