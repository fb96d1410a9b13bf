"""Driver policies on Datasets I to VI: running time and early results beside order of event time, in one run."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.measure import Row, in_child, main, smaller
from windrow.papers.driver_selection.played import BATCHES, POLICIES, Size, measured
from windrow.streams.shared_keys import DATASETS

DESCRIPTION = (
    "Driver policies: what a batch takes, and the share of its results that has left at half of timestamp's time"
)
AUTO = ("auto_total", "auto_early")
MOST_SLOWER = 1.05
HALFWAY = 0.5


@dataclass(frozen=True, slots=True)
class Sizes:
    """Which datasets, in which batches, how much of them."""

    datasets: tuple[str, ...]
    batches: tuple[str, ...]
    size: Size


QUICK = Sizes(("I", "V"), ("1M",), Size(scale=0.2, rounds=3))
FULL = Sizes(tuple(DATASETS), tuple(BATCHES), Size(scale=1.0, rounds=3))


def run(quick: bool) -> list[Row]:
    """The rows of this bench."""
    return in_child("benchmarks.bench_drivers", quick)


def measure(sizes: Sizes) -> list[Row]:
    """Measure in this process: processor time, the shortest of the rounds of each batch."""
    return [_row(dataset, batch, sizes.size) for dataset in sizes.datasets for batch in sizes.batches]


def _row(dataset: str, batch: str, size: Size) -> Row:
    runs = measured(dataset, batch, size, 1, (*POLICIES, *AUTO))
    norm, auto = runs["timestamp"], runs["auto_total"]
    told = (
        f"{policy} {run.seconds / norm.seconds:.2f} and {run.shares((HALFWAY,), norm)[0]:.2f}"
        for policy, run in runs.items()
    )
    return smaller(
        f"Dataset {dataset}, batches of {batch}: auto, least work",
        ours=1e3 * auto.seconds / len(auto.batches),
        peer=1e3 * norm.seconds / len(norm.batches),
        unit="ms",
        goal=MOST_SLOWER,
        note=f"time of timestamp order, and share of the results at half of it: {', '.join(told)}",
        peer_name="timestamp order",
    )


if __name__ == "__main__":
    main(DESCRIPTION, run)
