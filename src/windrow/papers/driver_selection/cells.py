"""A measured table beside a printed one: what Tables 4 and 5 have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from windrow.papers.driver_selection.curves import has_rates
from windrow.papers.driver_selection.played import FULL, POLICIES, QUICK, PolicyRun, measured
from windrow.papers.driver_selection.printed import POLICY_CELLS, Cells, averages
from windrow.papers.experiment import Chart, Series
from windrow.papers.tables import Table

COLUMNS = ("dataset", "batch", "policy", "paper", "ours")
Figure = Callable[[PolicyRun, PolicyRun], float]
"""A number of a policy's run, given that of the timestamp policy."""


def measured_cells(datasets: Sequence[str], quick: bool, seed: int, figure: Figure) -> dict[str, Cells]:
    """The figure of each policy and batch, dataset by dataset."""
    size, found = QUICK if quick else FULL, {}
    for dataset in datasets:
        cells: list[float | None] = []
        for policy, batch in POLICY_CELLS:
            runs = measured(dataset, batch, size, seed)
            says = policy != "consumption_rate" or has_rates(dataset)
            cells.append(figure(runs[policy], runs["timestamp"]) if says else None)
        found[dataset] = tuple(cells)
    return found


def side_by_side(printed: Mapping[str, Cells], ours: Mapping[str, Cells]) -> Table:
    """Both tables as rows, and their averages."""
    both = {
        **{dataset: (printed[dataset], ours[dataset]) for dataset in printed},
        "average": (averages(printed), averages(ours)),
    }
    rows = [
        (dataset, batch, policy, said, found)
        for dataset, (paper, here) in both.items()
        for (policy, batch), said, found in zip(POLICY_CELLS, paper, here, strict=True)
    ]
    return Table.of(COLUMNS, rows)


def average_of(table: Table, policy: str, batch: str) -> tuple[float, float]:
    """The paper's average and ours."""
    held = table.where(dataset="average", policy=policy, batch=batch)
    return held.numbers("paper")[0], held.numbers("ours")[0]


def chart(table: Table, y_title: str, batch: str) -> Chart:
    """The averages as bars, the paper's beside ours."""
    held = table.where(dataset="average", batch=batch)
    names = tuple(POLICIES[str(policy)] for policy in held.column("policy"))
    series = tuple(Series(name, names, held.column(name)) for name in ("paper", "ours"))
    return Chart("policy", y_title, series, title=f"Averages, batches of {batch}", bars=True)
