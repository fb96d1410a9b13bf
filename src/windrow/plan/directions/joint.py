"""`auto`: who probes, as one optimum of throughput and freshness together.

A cover for freshness first and the best paths from what is left may pay twice for what one path does for both. Here one
linear program decides. It is told either how fast states have to be refreshed, or, better, how old rows may get:

    age of I  =  window of I  +  sum over its own states of S_j / y_j  <=  freshness of I          y = inflow @ x

How long rows wait in a state, S / y, is convex in what enters it, so that each of its tangents is below. Solve with a
few tangents; where ages in the solution are above what is asked, add the tangents there; solve again, until all hold:
two or three times. So the slack of a freshness is shared over states as is cheapest for all, and what can be kept is
not refused.

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

from windrow.plan.directions.cover import greedy_cover
from windrow.plan.directions.freshness import TOLERANCE, ages_s, is_fresh, refresh_rates
from windrow.plan.directions.knapsack import grepp
from windrow.plan.directions.model import Floats, Model
from windrow.plan.directions.program import Frame, Rows, solved

MOST_ROUNDS, PATIENT_ROUNDS = 40, 6
NEARLY = 1.001
"""After some rounds, what is so near is settled: states are refreshed by so much faster, and all ages hold."""
TANGENTS = (1.0, 1.3, 1.8, 3.0, 6.0, 15.0)
COARSE_TANGENTS = (1.0, 0.5, 0.25, 0.1, 0.03, 0.01)
NEAR_ENOUGH = 1.0001
"""How far above the least a freshness may be that is proposed instead of the one asked for."""
EXACT = 1 - TOLERANCE / 2
"""Asked of the solver is a trifle more than is needed, so that what it lets pass still holds."""


def most_output(model: Model, budget: float, refresh_hz: Floats) -> Floats | None:
    """Driver rows a second on each route that yield most and refresh each state so fast; None if there are none."""
    return _refreshed(model, budget, refresh_hz, -model.output)


def least_cover(model: Model, refresh_hz: Floats) -> Floats | None:
    """Driver rows a second on each route that refresh each state so fast for least; None if there are too few."""
    return _refreshed(model, _enough(model, refresh_hz), refresh_hz, model.cost)


def freshest_output(model: Model, budget: float, freshness_s: Floats) -> Floats | None:
    """Driver rows a second on each route that yield most with every row as fresh as asked; None if there are none."""
    greedy_hz = grepp(model, budget)
    if is_fresh(model, model.inflow @ greedy_hz, freshness_s):
        return greedy_hz
    return _kept(model, budget, freshness_s, -model.output)


def least_resources(model: Model, freshness_s: Floats) -> float | None:
    """The least budget with which every row is as fresh as asked; None if no budget is enough."""
    budget = _enough(model, refresh_rates(model, freshness_s))
    drivers_hz = _kept(model, budget, freshness_s, model.cost)
    return None if drivers_hz is None else float(model.cost @ drivers_hz)


def least_freshness(model: Model, budget: float, freshness_s: Floats) -> tuple[Floats, Floats] | None:
    """Driver rows a second that come nearest to what is asked, and the freshness they keep; None if nothing is kept.

    Nearest: the factor by which a freshness falls short is as small as it can be for the worst of the streams.
    """
    asked = np.isfinite(freshness_s)
    unit_hz = _most_hz(model, budget)
    most_hz = (model.inflow * unit_hz).max(axis=1, initial=0.0)
    if any(most_hz[state] <= 0 for number in np.flatnonzero(asked) for state in model.own_states[number]):
        return None
    wait_s = model.state_rows / np.where(most_hz > 0, most_hz, 1.0)
    frame = Frame(model, unit_hz, np.where(wait_s > 0, wait_s, 1.0), stretched=True)
    rows = [frame.limits(budget), frame.aging(freshness_s, 1.0)]
    rows += [frame.waiting(start * most_hz) for start in COARSE_TANGENTS]
    lowest_hz = COARSE_TANGENTS[-1] * most_hz
    for _ in range(MOST_ROUNDS):
        found = solved(frame, model.cost, rows)
        if found is None:
            return None
        drivers_hz, stretch = found
        stored_hz = model.inflow @ drivers_hz
        reached = (ages_s(model, stored_hz)[asked] / freshness_s[asked]).max(initial=0.0)
        if reached <= stretch * NEAR_ENOUGH:
            break
        lowest_hz = np.minimum(lowest_hz, np.maximum(stored_hz, lowest_hz / 10))
        rows.append(frame.waiting(np.maximum(stored_hz, lowest_hz)))
    kept_s = np.where(asked, np.maximum(freshness_s, ages_s(model, stored_hz)), np.inf)
    return drivers_hz, kept_s


def _refreshed(model: Model, budget: float, refresh_hz: Floats, objective: Floats) -> Floats | None:
    """The best driver rows that refresh each state so fast."""
    if not np.isfinite(refresh_hz).all():
        return None
    unit_hz = _most_hz(model, budget)
    frame = Frame(model, unit_hz, np.zeros(0))
    found = solved(frame, objective, (frame.limits(budget), frame.refreshing(refresh_hz)))
    return None if found is None else found[0]


def _kept(model: Model, budget: float, freshness_s: Floats, objective: Floats) -> Floats | None:
    """The best driver rows with all ages kept."""
    slack_s = freshness_s - model.window_s
    if (slack_s < -TOLERANCE * model.window_s).any() or not np.isfinite(refresh_rates(model, freshness_s)).all():
        return None
    least_slack_s = np.full(len(model.states), np.inf)
    for number, own in enumerate(model.own_states):
        least_slack_s[list(own)] = np.minimum(least_slack_s[list(own)], slack_s[number])
    alone_hz = model.state_rows / least_slack_s
    unit_hz = _most_hz(model, budget)
    frame = Frame(model, unit_hz, np.where(np.isfinite(least_slack_s), least_slack_s, 1.0))
    rows: list[Rows] = [frame.limits(budget), frame.refreshing(alone_hz), frame.aging(freshness_s, EXACT)]
    rows += [frame.waiting(start * alone_hz) for start in TANGENTS]
    for number in range(MOST_ROUNDS):
        found = solved(frame, objective, rows)
        if found is None:
            return None
        stored_hz = model.inflow @ found[0]
        if is_fresh(model, stored_hz, freshness_s):
            return found[0]
        if number >= PATIENT_ROUNDS:
            with np.errstate(invalid="ignore"):
                short = float(np.nanmax((ages_s(model, stored_hz) - model.window_s) / slack_s))
            settled_hz = _refreshed(model, budget, stored_hz * short, objective) if short < NEARLY else None
            if settled_hz is not None:
                return settled_hz
        rows.append(frame.waiting(np.where(np.isfinite(least_slack_s), np.maximum(stored_hz, alone_hz), 0.0)))
    return None


def _most_hz(model: Model, budget: float) -> Floats:
    """The most driver rows a route can have by its stream's rate and the budget."""
    return np.asarray(np.minimum(model.route_rate_hz, max(budget, 0.0) / model.cost))


def _enough(model: Model, refresh_hz: Floats) -> float:
    """A budget that is enough for these refresh rates, if any is: what a greedy cover spends.

    With it each route can be counted in about what it may have to do, and the solver sees small costs beside large.
    """
    covering_hz = greedy_cover(model, refresh_hz)
    return model.saturation if covering_hz is None else float(model.cost @ covering_hz) * (1 + TOLERANCE)
