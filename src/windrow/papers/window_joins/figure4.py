"""Figure 4: system time and model cost of one-way joins from A to B, over the rate of B (section 3.4).

T_b = 60 s, A brings 10 rows a second, 10 keys. The model says when the paper's machine is busy for all of sixty seconds
of input (at 120 rows a second with a hash table), and that the loop takes over at about 70.

Ours: both rates twice as high, batches of 6 s, processor time of the batches once the window is full, the shorter of
two rounds. This engine has no such crossing here: segments leave it whole, so no row is sought in its bucket when it
leaves, which is all that makes hash tables dear in the model.
"""

from __future__ import annotations

from windrow.papers.experiment import Chart, Claim, Experiment, Outcome, Series
from windrow.papers.tables import Table
from windrow.papers.window_joins.machine import A_HZ, COSTS, FULL_TIME, WINDOW_S, full_time_hz, streams
from windrow.papers.window_joins.played import Run, played
from windrow.plan.unit_time import crossing_hz, direction_cost

RATES_HZ, QUICK_RATES_HZ = (10.0, 40.0, 70.0, 100.0, 140.0, 200.0), (10.0, 70.0, 140.0)
SCALE = 2.0
METHODS = {"HJ": ("hashed", "NHJ"), "NLJ": ("loop", "NNJ")}
PRINTED_HZ, PRINTED_CROSSING_HZ = 120.0, 70.0
NEAR, NEAR_CROSSING = 0.02, 0.06


def run(quick: bool, seed: int) -> Outcome:
    """Model and measurement side by side."""
    pace = Run(batch_s=6, warm_batches=10, batches=3 if quick else 10, rounds=2, seed=seed)
    rows = []
    for b_hz in QUICK_RATES_HZ if quick else RATES_HZ:
        a, b = streams(b_hz)
        model = [direction_cost(method, a.rate_hz, b, COSTS).total / FULL_TIME for method, _ in METHODS.values()]
        one_way = streams(b_hz, a_s=0.0, scale=SCALE)
        spent = [1e3 * played(*one_way, join, pace).busy_s for _, join in METHODS.values()]
        rows.append((b_hz, *model, *spent, spent[1] / spent[0]))
    columns = ("b_hz", *(f"model_{name}" for name in METHODS), *(f"ours_{name}_ms" for name in METHODS), "loop_to_hash")
    table = Table.of(columns, rows)
    model_chart, ours_chart = (
        Chart("rate of B (rows/s)", title, tuple(Series.of(table, name, x="b_hz", y=column(name)) for name in METHODS))
        for title, column in (
            ("model: share of the time", "model_{}".format), ("ours: ms a second", "ours_{}_ms".format)
        )
    )  # fmt: skip
    return Outcome(table, _claims(table), (model_chart, ours_chart))


def _claims(table: Table) -> tuple[Claim, ...]:
    full_hz = full_time_hz(lambda a, b: direction_cost("hashed", a.rate_hz, b, COSTS).total)
    crossing = crossing_hz(A_HZ, keys=10, window_s=WINDOW_S, costs=COSTS)
    ratios, rates = table.numbers("loop_to_hash"), table.numbers("b_hz")
    ahead = next((rate for rate, ratio in zip(rates, ratios, strict=True) if ratio < 1), None)
    shown = "nowhere up to" if ahead is None else "at"
    return (
        Claim(
            "HJ needs the full time, in the model",
            f"at {PRINTED_HZ:g} rows/s",
            f"at {full_hz:.1f} rows/s",
            abs(full_hz / PRINTED_HZ - 1) <= NEAR,
        ),
        Claim(
            "the loop takes over, in the model",
            f"at about {PRINTED_CROSSING_HZ:g} rows/s",
            f"at {crossing:.1f} rows/s",
            abs(crossing / PRINTED_CROSSING_HZ - 1) <= NEAR_CROSSING,
        ),
        Claim(
            "the loop takes over, measured",
            "at close to 70 rows/s",
            f"{shown} {ahead or rates[-1]:g} rows/s; a loop takes {min(ratios):.2f} to {max(ratios):.2f} times as long",
            ahead is not None and ahead <= 2 * PRINTED_CROSSING_HZ,
        ),
    )


EXPERIMENT = Experiment("window_joins/figure4", "One-way joins: system time and model cost", run)
