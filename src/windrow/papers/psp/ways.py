"""Section 8.2's sweep: joins of 3, 5, 7 and 9 streams, images of three sizes, 4 to 19 nodes.

The paper says it was done and shows three streams only. With its windows and selectivities a 9-way join would have at
least 25 ** 8 results a row, so that here a window has 400 rows and the selectivity is .005: each step doubles the
partial results. A hop takes 1 ms. Equation 5 with M - 1 rounds stands beside the simulation.

Work grows with the size of images and with the ways, hops only with the ways; so the best ring grows with both.
Equation 5 gives every node the mean work. With two partial results a probe, which lie on some node or other, some have
several and most none, and rows take longer than that.
"""

from __future__ import annotations

import statistics

from windrow.papers.experiment import Chart, Claim, Experiment, Outcome, Series
from windrow.papers.psp.scenario import IMAGES, MOST, NODES, SWEPT, WARM_UP_S, Scenario, lowest
from windrow.papers.tables import Table

WAYS, RATE_HZ, SELECTIVITY, HOP_S = (3, 5, 7, 9), 40.0, 0.005, 1e-3
QUICK_NODES = (4, 8, 13, 19)
RUN_S, ROWS, QUICK_ROWS = 60.0, 60, 20
NEAR = 2.0


def run(quick: bool, seed: int) -> Outcome:
    """All combinations."""
    rows = [
        (streams, image, *row)
        for streams in WAYS
        for image in IMAGES
        for row in _swept(Scenario(streams, RATE_HZ, selectivity=SELECTIVITY, image=image, hop_s=HOP_S), quick, seed)
    ]
    table = Table.of(("streams", "image", *SWEPT), rows)
    return Outcome(table, _claims(table), _charts(table))


def _swept(scenario: Scenario, quick: bool, seed: int) -> list[tuple[float, ...]]:
    feed = scenario.feed(RUN_S, seed)
    drivers = feed.sample(WARM_UP_S, RUN_S, QUICK_ROWS if quick else ROWS)
    rows: list[tuple[float, ...]] = []
    for nodes in QUICK_NODES if quick else NODES:
        done = scenario.simulate(feed, drivers, scenario.ring(nodes), seed)
        predicted = scenario.load.latency_s(nodes, scenario.rounds), scenario.load.latency_s(nodes)
        busy = sum(done.busy_s) / nodes / done.span_s
        rows.append((nodes, done.latency_s, done.finished_s, *predicted, done.stored_rows, done.service_hz, busy))
    return rows


def _claims(table: Table) -> tuple[Claim, ...]:
    of = {(streams, image): table.where(streams=streams, image=image) for streams in WAYS for image in IMAGES}
    latency = {key: statistics.fmean(each.numbers("finished_s")) for key, each in of.items()}
    by_image = all(
        [latency[streams, image] for image in IMAGES] == sorted(latency[streams, image] for image in IMAGES)
        for streams in WAYS
    )
    by_ways = all(
        [latency[streams, image] for streams in WAYS] == sorted(latency[streams, image] for streams in WAYS)
        for image in IMAGES
    )
    best = {key: lowest(each.numbers("nodes"), each.numbers("finished_s")) for key, each in of.items()}
    small, large = ([best[streams, image] for streams in WAYS] for image in ("small", "large"))
    predicted = [
        Scenario(streams, RATE_HZ, selectivity=SELECTIVITY, image="large", hop_s=HOP_S).best_length(MOST, streams - 1)
        for streams in WAYS
    ]
    pairs = zip(table.numbers("predicted_s"), table.numbers("finished_s"), strict=True)
    ratios = sorted(predicted_s / finished_s for predicted_s, finished_s in pairs)
    middle = statistics.median(ratios)
    ways = ", ".join(f"{latency[streams, 'middle'] * 1e3:.3g} ms" for streams in WAYS)
    images = ", ".join(f"{latency[3, image] * 1e3:.3g} ms" for image in IMAGES)
    held = Scenario(rate_hz=RATE_HZ).load.stored[0]
    stored = [
        rows / (streams * held) for streams in WAYS for rows in table.where(streams=streams).numbers("stored_rows")
    ]
    return (
        Claim(
            "larger images take longer, for any number of ways", "sensitive to join cost", f"{images} (3-way)", by_image
        ),
        Claim("more ways take longer, for any image", "sensitive to the ways", f"{ways} (middle)", by_ways),
        Claim(
            "the best ring is no shorter for large images than for small ones",
            "section 5.2",
            f"{small} against {large} nodes for 3, 5, 7, 9 ways; {predicted} by equation 5",
            all(few <= many for few, many in zip(small, large, strict=True)),
        ),
        Claim("states are as large as windows", "no duplicates", f"{min(stored):.2f} to {max(stored):.2f}", _even(of)),
        Claim(
            "equation 5 (with M - 1 rounds) says when nodes are done, within a factor of two",
            "not in the paper",
            f"{ratios[0]:.2f} to {ratios[-1]:.2f} of the simulated time, median {middle:.2f}",
            1 / NEAR <= middle <= NEAR,
        ),
    )


def _even(of: dict[tuple[int, str], Table]) -> bool:
    """Whether states do not depend on the nodes."""
    each = [table.numbers("stored_rows") for table in of.values()]
    return all(max(stored) <= 1.05 * min(stored) for stored in each)


def _charts(table: Table) -> tuple[Chart, ...]:
    charts = []
    for streams in WAYS:
        of = {image: table.where(streams=streams, image=image) for image in IMAGES}
        done = [Series.of(each, f"{image}, simulated", x="nodes", y="finished_s") for image, each in of.items()]
        told = [Series.of(each, f"{image}, predicted", x="nodes", y="predicted_s") for image, each in of.items()]
        charts.append(
            Chart("nodes", "a node is done with a row after (s)", (*done, *told), f"{streams} ways", log_y=True)
        )
    return tuple(charts)


EXPERIMENT = Experiment("psp/ways", "PSP with 3, 5, 7 and 9 streams and images of three sizes", run)
