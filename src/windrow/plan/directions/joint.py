"""`auto`: who probes, as one optimum of throughput and freshness together.

A cover for freshness first and the best paths from what is left may pay twice for what one path does for both. Here one
linear program decides. It is told either how fast states have to be refreshed, or, better, how old rows may get:

    age of I  =  window of I  +  sum over its own states of S_j / y_j  <=  freshness of I          y = inflow @ x

An age is convex in what enters the states, so that each of its tangents is below it. Solve with a few tangents; where
an age in the solution is above its freshness, add the tangent there; solve again, until all hold: two or three times.
So the slack of a freshness is shared over states as is cheapest for all, and what can be kept is not refused.

    most_output      for given refresh rates                         least_cover      the least that refreshing costs
    freshest_output  for given freshness                             least_resources  the least that freshness costs
                                                                     least_freshness  the least that a budget keeps

Ours; the paper (JAQPOT, section 4.3) covers first. Fractions as everywhere: over many batches rows can be had so.

>>> from windrow.plan.directions.tree import Join, State, stream
>>> tree = Join(Join(stream("a", 500, 5000, 0.001), stream("b", 700, 500, 0.001), State(200, 0.005)),
...             stream("c", 300, 1000, 0.005))
>>> model = Model.of(tree)
>>> wanted = model.per_stream({"a": 15.0, "b": 1.0})
>>> drivers_hz = freshest_output(model, 6000, wanted)
>>> [round(rows) for rows in drivers_hz], round(least_resources(model, wanted))
([500, 700, 300], 840)
>>> freshest_output(model, 600, wanted) is None
True
>>> drivers_hz, spans_s = least_freshness(model, 600, wanted)
>>> [round(span, 3) for span in spans_s.tolist()]              # b has to be allowed 1.114 s
[15.0, 1.114, inf]
"""

from __future__ import annotations

import numpy as np

from windrow.plan.directions import program
from windrow.plan.directions.freshness import TOLERANCE, ages_s, is_fresh, refresh_rates
from windrow.plan.directions.knapsack import grepp
from windrow.plan.directions.model import Floats, Model
from windrow.plan.directions.program import Demands

MOST_ROUNDS = 60
STARTS = (1.0, 0.3, 0.1, 0.03, 0.01)
EXACT = 1 - TOLERANCE / 2


def most_output(model: Model, budget: float, refresh_hz: Floats) -> Floats | None:
    """Driver rows a second on each route that yield most and refresh each state so fast; None if there are none."""
    return program.most_output(model, budget, _refreshing(model, refresh_hz)) if _finite(refresh_hz) else None


def least_cover(model: Model, refresh_hz: Floats) -> Floats | None:
    """Driver rows a second on each route that refresh each state so fast for least; None if there are too few."""
    return program.least_cost(model, _refreshing(model, refresh_hz)) if _finite(refresh_hz) else None


def freshest_output(model: Model, budget: float, freshness_s: Floats) -> Floats | None:
    """Driver rows a second on each route that yield most with every row as fresh as asked; None if there are none."""
    greedy_hz = grepp(model, budget)
    if is_fresh(model, model.inflow @ greedy_hz, freshness_s):
        return greedy_hz
    return _kept(model, budget, freshness_s, cheapest=False)


def least_resources(model: Model, freshness_s: Floats) -> float | None:
    """The least budget with which every row is as fresh as asked; None if no budget is enough."""
    drivers_hz = _kept(model, np.inf, freshness_s, cheapest=True)
    return None if drivers_hz is None else float(model.cost @ drivers_hz)


def least_freshness(model: Model, budget: float, freshness_s: Floats) -> tuple[Floats, Floats] | None:
    """Driver rows a second that come nearest to what is asked, and the freshness they keep; None if nothing is kept.

    Nearest: the factor by which a freshness falls short is as small as it can be for the worst of the streams.
    """
    streams = [number for number, span_s in enumerate(freshness_s) if np.isfinite(span_s)]
    most_hz = model.inflow @ np.minimum(model.route_rate_hz, budget / model.cost)
    if not all(most_hz[state] > 0 for number in streams for state in model.own_states[number]):
        return None
    demands = _no_demands(model)
    for start in STARTS:
        demands = demands.joined(_tangents(model, start * most_hz, freshness_s, streams, stretched=True))
    lowest_hz = STARTS[-1] * most_hz
    for _ in range(MOST_ROUNDS):
        found = program.least_stretch(model, budget, demands)
        if found is None:
            return None
        drivers_hz, stretch = found
        stored_hz = model.inflow @ drivers_hz
        lowest_hz = np.minimum(lowest_hz, np.maximum(stored_hz, lowest_hz / 10))
        with np.errstate(invalid="ignore"):
            short = ages_s(model, stored_hz) / freshness_s > stretch * (1 + TOLERANCE)
        if not short.any():
            break
        at_hz = np.maximum(stored_hz, lowest_hz)
        demands = demands.joined(_tangents(model, at_hz, freshness_s, np.flatnonzero(short).tolist(), stretched=True))
    kept_s = np.where(np.isfinite(freshness_s), np.maximum(freshness_s, ages_s(model, stored_hz)), np.inf)
    return drivers_hz, kept_s


def _kept(model: Model, budget: float, freshness_s: Floats, *, cheapest: bool) -> Floats | None:
    """The best driver rows with all ages kept."""
    slack_s = freshness_s - model.window_s
    refresh_hz = refresh_rates(model, freshness_s)
    if (slack_s < -TOLERANCE * model.window_s).any() or not _finite(refresh_hz):
        return None
    streams = [number for number, span_s in enumerate(slack_s) if np.isfinite(span_s) and model.own_states[number]]
    demands = _refreshing(model, _alone(model, slack_s))
    demands = demands.joined(_tangents(model, refresh_hz, freshness_s, streams, stretched=False))
    for _ in range(MOST_ROUNDS):
        found = program.least_cost(model, demands) if cheapest else program.most_output(model, budget, demands)
        if found is None:
            return None
        stored_hz = model.inflow @ found
        if is_fresh(model, stored_hz, freshness_s):
            return found
        late = np.flatnonzero(ages_s(model, stored_hz) > freshness_s).tolist()
        demands = demands.joined(_tangents(model, stored_hz, freshness_s, late, stretched=False))
    worst = float((_waits_s(model, stored_hz)[streams] / slack_s[streams]).max())
    return least_cover(model, stored_hz * worst) if cheapest else most_output(model, budget, stored_hz * worst)


def _tangents(model: Model, stored_hz: Floats, freshness_s: Floats, streams: list[int], *, stretched: bool) -> Demands:
    """What keeps the tangents to ages of streams, at given rates of storing, within what is asked.

    S / y >= S / y0 * (2 - y / y0), so the sum of S / y0**2 * y has to be at least the sum of 2 * S / y0 - slack. Asked
    a trifle more, so that what the solver lets pass is within the tolerance.
    """
    rows = np.zeros((len(streams), len(model.cost)))
    at_least, stretch = np.zeros(len(streams)), np.zeros(len(streams))
    for row, number in enumerate(streams):
        own = [state for state in model.own_states[number] if model.state_rows[state] > 0]
        kept_s = model.state_rows[own] / stored_hz[own]
        rows[row] = (kept_s / stored_hz[own]) @ model.inflow[own]
        if stretched:
            at_least[row], stretch[row] = 2 * kept_s.sum() + model.window_s[number], freshness_s[number]
        else:
            at_least[row] = 2 * kept_s.sum() - (freshness_s[number] - model.window_s[number]) * EXACT
    return Demands.of(rows, at_least, stretch)


def _alone(model: Model, slack_s: Floats) -> Floats:
    """How fast each state has to be refreshed if all others were so at once."""
    rates = np.zeros(len(model.states))
    for number, own in enumerate(model.own_states):
        for state in own:
            rates[state] = max(rates[state], model.state_rows[state] / slack_s[number])
    return rates


def _waits_s(model: Model, stored_hz: Floats) -> Floats:
    return np.asarray(ages_s(model, stored_hz) - model.window_s)


def _refreshing(model: Model, refresh_hz: Floats) -> Demands:
    return Demands.of(model.inflow, refresh_hz)


def _no_demands(model: Model) -> Demands:
    return Demands.of(model.inflow[:0], np.zeros(0))


def _finite(values: Floats) -> bool:
    return bool(np.isfinite(values).all())
