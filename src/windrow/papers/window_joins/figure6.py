"""Figure 6: CPU time of the four full joins over the rate of B (section 4.1).

T = 60 s, A brings 10 rows a second, selectivities .1. HHJ is the cheapest until about 70 rows a second, then HNJ; NHJ
and NNJ never. Sixty seconds of input take HHJ sixty seconds between 110 and 120 rows a second, HNJ between 160 and 170.

Ours: the model's times beside those of this engine, which really runs all four (as Figure 4). It has neither crossing,
because nothing is done for a row that leaves; the order of the others is as in the paper.
"""

from __future__ import annotations

from windrow.papers.experiment import Chart, Claim, Experiment, Outcome, Series
from windrow.papers.tables import Table
from windrow.papers.window_joins.machine import COSTS, FULL_TIME, ORDER, costs_at, full_time_hz, streams
from windrow.papers.window_joins.played import Run, played
from windrow.plan.unit_time import join_cost

RATES_HZ, QUICK_RATES_HZ = (10.0, 40.0, 70.0, 100.0, 140.0, 200.0), (10.0, 70.0, 140.0)
SCALE = 2.0
HHJ_HZ, HNJ_HZ, NEAR_HNJ = (110.0, 120.0), (160.0, 170.0), 0.1


def run(quick: bool, seed: int) -> Outcome:
    """Model and measurement of all four."""
    pace = Run(batch_s=6, warm_batches=10, batches=3 if quick else 10, rounds=2, seed=seed)
    rows = []
    for b_hz in QUICK_RATES_HZ if quick else RATES_HZ:
        model = [cost / FULL_TIME for cost in costs_at(b_hz).values()]
        spent = {name: 1e3 * played(*streams(b_hz, scale=SCALE), name, pace).busy_s for name in ORDER}
        rows.append((b_hz, *model, *spent.values(), min(spent, key=lambda name: spent[name])))
    columns = ("b_hz", *(f"model_{name}" for name in ORDER), *(f"ours_{name}_ms" for name in ORDER), "our_cheapest")
    table = Table.of(columns, rows)
    charts = tuple(
        Chart("rate of B (rows/s)", title, tuple(Series.of(table, name, x="b_hz", y=column(name)) for name in ORDER))
        for title, column in (
            ("model: share of the time", "model_{}".format), ("ours: ms a second", "ours_{}_ms".format)
        )
    )  # fmt: skip
    return Outcome(table, _claims(table), charts)


def _claims(table: Table) -> tuple[Claim, ...]:
    hhj, hnj = (full_time_hz(lambda a, b, name=name: join_cost(name, a, b, COSTS)) for name in ("HHJ", "HNJ"))  # type: ignore[misc]
    ours = table.column("our_cheapest")
    last = {name: table.numbers(f"ours_{name}_ms")[-1] for name in ORDER}
    shown = ", ".join(f"{name} {last[name] / last['HHJ']:.2f}" for name in ORDER)
    return (
        Claim("HHJ has no time left, in the model", "110 to 120", f"{hhj:.1f}", HHJ_HZ[0] <= hhj <= HHJ_HZ[1]),
        Claim(
            "HNJ has no time left, in the model",
            "160 to 170 (output falls from 190 on)",
            f"{hnj:.1f}",
            abs(hnj / sum(HNJ_HZ) * 2 - 1) <= NEAR_HNJ,
        ),
        Claim("HNJ is the cheapest at the highest rate, measured", "yes", f"{ours[-1]}; {shown}", ours[-1] == "HNJ"),
        Claim("NNJ is never the cheapest, measured", "yes", ", ".join(map(str, ours)), "NNJ" not in ours),
    )


EXPERIMENT = Experiment("window_joins/figure6", "CPU time of four full joins", run)
