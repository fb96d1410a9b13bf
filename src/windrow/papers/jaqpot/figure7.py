"""Figure 7: output over resources, both as shares of saturation, for linear and bushy trees (section 5.1).

Four streams, parameters drawn from Table 3; means over the draws. The paper says neither which freshness was asked nor
how many runs were averaged. Ours: three times the window for every stream; draws for which that cannot be kept with the
least resources are drawn again, and their share is a column. Model, not measurement: outputs are what rates and
selectivities say. `auto` is ours, the joint optimum.

In this range every step finds many rows, so that a path spends nearly everything on its last step and yields what that
finds: in a linear tree all paths but one end with the same step, and output is near the straight line, 60 % for 60 %.
With a tenth of the selectivities it still is. Ratios to the best heuristic are of means, as in the figure's text.
"""

from __future__ import annotations

import statistics

import numpy as np

from windrow.papers.experiment import Chart, Claim, Experiment, Outcome, Series
from windrow.papers.tables import Table
from windrow.plan.directions import HEURISTICS, Model, allocate, freshest_output
from windrow.plan.directions.instances import random_model, times_window

PLANS = ("linear", "bushy")
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
STREAMS, FRESHNESS = 4, 3.0
RUNS, QUICK_RUNS = 200, 30
OURS, JAQPOT = "auto", "jaqpot"
NAMES = (OURS, JAQPOT, *(heuristic.name for heuristic in HEURISTICS))
ROUNDING = 1e-4


def run(quick: bool, seed: int) -> Outcome:
    """All shares of saturation, for both plans."""
    random = np.random.default_rng(seed)
    rows: list[tuple[object, ...]] = []
    for plan in PLANS:
        models, refused = _drawn(random, plan, QUICK_RUNS if quick else RUNS)
        for share in SHARES:
            outputs = [_outputs(model, share) for model in models]
            means = [statistics.fmean(column) for column in zip(*outputs, strict=True)]
            least = min(found[1] / max(found[2:]) for found in outputs)
            rows.append((plan, share, len(models), refused, *means, least))
    table = Table.of(("plan", "resources", "runs", "refused", *NAMES, "least_lead"), rows)
    charts = tuple(
        Chart(
            "resources, share of saturation",
            "output, share of saturation",
            tuple(Series.of(table.where(plan=plan), name, x="resources", y=name) for name in NAMES),
            title=plan,
        )
        for plan in PLANS
    )
    return Outcome(table, _claims(table), charts)


def _drawn(random: np.random.Generator, plan: str, runs: int) -> tuple[list[Model], float]:
    """Trees whose freshness can be kept with the least resources, and the share of those drawn for which it cannot."""
    models: list[Model] = []
    drawn = 0
    while len(models) < runs:
        model = random_model(random, STREAMS, plan)
        drawn += 1
        wanted = model.per_stream(times_window(model, FRESHNESS))
        if freshest_output(model, SHARES[0] * model.saturation, wanted) is not None:
            models.append(model)
    return models, 1 - runs / drawn


def _outputs(model: Model, share: float) -> list[float]:
    budget, wanted = share * model.saturation, times_window(model, FRESHNESS)
    found = [allocate(model, budget, wanted, method).output_hz for method in (OURS, JAQPOT)]
    found += [heuristic.flow(model.tree, budget).output_hz for heuristic in HEURISTICS]
    return [output / model.full_output for output in found]


def _claims(table: Table) -> tuple[Claim, ...]:
    leads = {plan: _leads(table.where(plan=plan)) for plan in PLANS}
    at_60 = table.where(plan="linear", resources=0.6).numbers(JAQPOT)[0]
    mean = {plan: statistics.fmean(lead) for plan, lead in leads.items()}
    most = max(leads["linear"])
    where = SHARES[leads["linear"].index(most)]
    never_below = min(table.numbers("least_lead"))
    kept = min(ours - theirs for ours, theirs in zip(table.numbers(OURS), table.numbers(JAQPOT), strict=True))
    worse = (
        statistics.fmean(table.where(plan="linear").numbers(JAQPOT)),
        statistics.fmean(table.where(plan="bushy").numbers(JAQPOT)),
    )
    return (
        Claim("linear: more than 80 % of the output with 60 % of the resources", "80 %", f"{at_60:.1%}", at_60 > 0.8),
        Claim("JAQPOT is above every heuristic, in every run", "yes", f"{never_below:.2f} x or more", never_below >= 1),
        Claim("linear: on average over the best heuristic", "2.5 x", f"{mean['linear']:.2f} x", mean["linear"] >= 2),
        Claim(
            "linear: at most over the best heuristic",
            "6.5 x at 40 %",
            f"{most:.2f} x at {where:.0%}",
            most >= 4 and where == 0.4,
        ),
        Claim("bushy: on average over the best heuristic", "2 x", f"{mean['bushy']:.2f} x", mean["bushy"] >= 1.6),
        Claim(
            "better on linear than on bushy trees",
            "yes",
            f"{worse[0]:.1%}, {worse[1]:.1%} on average",
            worse[0] > worse[1],
        ),
        Claim("Windrow's joint optimum, less JAQPOT", "not in the paper", f"{kept:.2g} or more", kept >= -ROUNDING),
    )


def _leads(table: Table) -> list[float]:
    """JAQPOT over the best heuristic, at each share."""
    best = zip(*(table.numbers(heuristic.name) for heuristic in HEURISTICS), strict=True)
    return [ours / max(theirs) for ours, theirs in zip(table.numbers(JAQPOT), best, strict=True)]


EXPERIMENT = Experiment("jaqpot/figure7", "Output over resources, linear and bushy", run)
