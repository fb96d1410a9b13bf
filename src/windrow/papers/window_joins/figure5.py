"""Figure 5: from which ratio of rates on a loop beats a hash table, over the number of keys (section 3.4).

λ_b/λ_a ≈ (|B| - r) / r with r = C_h/C_n = 1.3, which the paper took from a crossing it had measured (6.7 at 10 keys).
The exact crossing of the two costs, with the paper's T = 60 s and 10 rows of A a second, lies close to it.

Ours: the same with this engine's ratio, from its table of costs. Looking at a row in a compiled loop takes it so much
less than following a bucket that loops are worth their while up to twenty keys; below r keys no index ever pays.
"""

from __future__ import annotations

from windrow.papers.experiment import Chart, Claim, Experiment, Outcome, Series
from windrow.papers.tables import Table
from windrow.papers.window_joins.machine import A_HZ, COSTS, RATIO, WINDOW_S
from windrow.plan.unit_time import access_costs, crossing_hz, determinant, ratio_of
from windrow.plan.work import REFERENCE

KEYS = (5, 10, 15, 20, 25, 30, 40, 50)
PRINTED_RATIO, PRINTED_CROSSING = 1.3, 6.7
NEAR = 0.12


def run(quick: bool, seed: int) -> Outcome:  # noqa: ARG001 - quick as it is, and nothing in it is random
    """The crossings, by the formula, exactly, and with our costs."""
    ours = access_costs(REFERENCE)
    our_ratio = ours["hashed"] / ours["loop"]
    rows = [
        (
            keys,
            determinant(keys, RATIO),
            crossing_hz(A_HZ, keys=keys, window_s=WINDOW_S, costs=COSTS) / A_HZ,
            max(0.0, determinant(keys, our_ratio)),
        )
        for keys in KEYS
    ]
    table = Table.of(("keys", "formula", "exact", "formula_with_our_costs"), rows)
    formula, exact = table.numbers("formula"), table.numbers("exact")
    off = max(abs(one / other - 1) for one, other in zip(formula, exact, strict=True))
    back = ratio_of(10, PRINTED_CROSSING)
    at_ten = determinant(10, RATIO)
    series = tuple(Series.of(table, name, x="keys", y=name) for name in table.columns[1:])
    return Outcome(
        table,
        (
            Claim("the crossing at 10 keys", f"{PRINTED_CROSSING}", f"{at_ten:.2f}", abs(at_ten - 6.7) <= 0.05),
            Claim("C_h/C_n from that crossing", f"{PRINTED_RATIO}", f"{back:.3f}", abs(back - PRINTED_RATIO) <= 0.005),
            Claim("the formula lies close to the exact crossing", "yes", f"within {100 * off:.1f} %", off <= NEAR),
            Claim(
                "a row in a bucket is dearer than one in a loop, times",
                f"{PRINTED_RATIO}",
                f"{our_ratio:.0f} in this engine",
                our_ratio > 1,
            ),
        ),
        (Chart("distinct keys |B|", "ratio of rates at the crossing", series),),
    )


EXPERIMENT = Experiment("window_joins/figure5", "Where a loop starts to beat a hash table", run)
