"""Figure 4: an optimal setting, and which direction is worth most (section IV-D).

Three streams of 300, 100 and 150 rows a second, windows of 10 s with b = 2 s, z = .5. S2 lags 4 s behind S1 and S3 5
s, so that the rows an S3 row matches are there already when it comes: "the third join direction is more valuable than
the others", and the optimum searches all of its windows.

Selectivities and the spread of the lags are only drawn in the paper, not printed. Ours: selectivities .0045 (S1, S2),
.006 (S1, S3) and .003 (S2, S3), which give the paper's join orders, times .5 to 5; normal lags with deviations of .5
to 3 s. Deviations of 1 and 1.5 s at the first selectivities are among those where the paper's optimum comes out.

The paper's formula for the output has one selectivity a pair of streams and scores that are shares of their own sum.
With it, how much of the output a direction can find at all is not expressed: direction 3 never yields most. Windrow
measures a selectivity for each direction, and then it always does.
"""

from __future__ import annotations

from itertools import product

from windrow.papers.experiment import Claim, Experiment, Outcome
from windrow.papers.grubjoin.lags import FIRST, Lag, Lagged
from windrow.papers.tables import Table
from windrow.plan.cost import CostModel
from windrow.plan.harvest import optimise
from windrow.plan.order import low_selectivity_first

THROTTLE = 0.5
RATES_HZ = (300.0, 100.0, 150.0)
LAGS_S = (4.0, 5.0)
PAIRS = {frozenset((0, 1)): 0.0045, frozenset((0, 2)): 0.006, frozenset((1, 2)): 0.003}
ORDERS = ((1, 2), (2, 0), (1, 0))
DEVIATIONS_S = ((0.5, 0.5), (1.0, 1.5), (1.0, 1.0), (2.0, 2.0), (1.5, 3.0), (3.0, 3.0))
FACTORS = (0.5, 1.0, 2.0, 5.0)
PRINTED, MEASURED = "one a pair", "one a direction"
COLUMNS = ("deviation_21_s", "deviation_31_s", "factor", "selectivity", "share_3", "z_31", "z_32", "recall")


def run(quick: bool, seed: int) -> Outcome:  # noqa: ARG001 - quick as it is, and nothing in it is random
    """All 24 sets of inputs, each with both readings of selectivity."""
    rows = [
        (*deviations, factor, reading, *_optimum(deviations, factor, per_direction=reading == MEASURED))
        for deviations, factor, reading in product(DEVIATIONS_S, FACTORS, (PRINTED, MEASURED))
    ]
    table = Table.of(COLUMNS, rows)
    printed, measured = table.where(selectivity=PRINTED), table.where(selectivity=MEASURED)
    ours = printed.where(deviation_21_s=1.0, deviation_31_s=1.5, factor=1.0)
    fractions = ours.numbers("z_31") + ours.numbers("z_32")
    searched_in_full = sum(
        low == high == 1 for low, high in zip(printed.column("z_31"), printed.column("z_32"), strict=True)
    )
    sets = len(printed.rows)
    return Outcome(
        table,
        (
            Claim("join orders by low selectivity first", _shown(ORDERS), _shown(orders()), orders() == ORDERS),
            Claim(
                "the optimum has z31 = z32 = 1",
                "1, 1",
                f"{fractions[0]:g}, {fractions[1]:g}; in {searched_in_full} of {sets} sets of inputs",
                fractions == (1.0, 1.0),
            ),
            Claim(
                "direction 3 yields most, by the formula as printed",
                "yes",
                f"in {_most(printed)} of {sets} sets",
                _most(printed) == sets,
            ),
            Claim(
                "direction 3 yields most, with a selectivity for each direction",
                "yes",
                f"in {_most(measured)} of {sets} sets",
                _most(measured) == sets,
            ),
        ),
    )


def orders() -> tuple[tuple[int, ...], ...]:
    """In which order each direction visits the others."""
    named = {frozenset(str(stream) for stream in pair): share for pair, share in PAIRS.items()}
    return tuple(tuple(map(int, low_selectivity_first(driver, "012", named))) for driver in "012")


def join(deviations: tuple[float, float], factor: float, *, per_direction: bool) -> CostModel:
    """The join of the figure with one set of inputs."""
    behind = (Lag(mean, deviation) for mean, deviation in zip(LAGS_S, deviations, strict=True))
    pairs = {pair: factor * share for pair, share in PAIRS.items()}
    lagged = Lagged(RATES_HZ, (FIRST, *behind), window_s=10.0, bins=5)
    return CostModel.of(lagged.statistics(ORDERS, pairs, per_direction=per_direction))


def _optimum(deviations: tuple[float, float], factor: float, *, per_direction: bool) -> tuple[float, ...]:
    """The share of direction 3 in the full output, its fractions in the optimum, and the optimum's recall."""
    model = join(deviations, factor, per_direction=per_direction)
    outputs = model.driver_hz * model.probes(model.bins)[:, -1]
    setting = optimise(model, THROTTLE, "exhaustive")
    fractions = [count / bins for count, bins in zip(setting.counts[2], model.bins[2].tolist(), strict=True)]
    return (float(outputs[2] / outputs.sum()), *fractions, setting.recall)


def _most(table: Table) -> int:
    """In how many sets direction 3 has more than half: what no other one can have then."""
    return sum(share > 0.5 for share in table.numbers("share_3"))


def _shown(orders: tuple[tuple[int, ...], ...]) -> str:
    return ", ".join(f"R{i} = {{{', '.join(str(other + 1) for other in order)}}}" for i, order in enumerate(orders, 1))


EXPERIMENT = Experiment("grubjoin/figure4", "An optimal setting, and the direction worth most", run)
