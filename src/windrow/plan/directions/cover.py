"""GH-WMSCP: refresh every state as fast as asked, cheaply: a weighted multiple set cover, chosen greedily.

A path is a set of states; a row a second on it costs `cost` and refreshes each of its states by its `inflow`. Again and
again the route is taken that refreshes most for its cost, counting each state by the share of its refresh rate and only
as far as that is still missing, until it has refreshed one state fully or has no rows left:

    while a state lacks refreshing:   take the best of  sum over lacking states of inflow / refresh rate  per cost

As long as no route runs out of rows, this costs at most 1 + 1/2 + … + 1/m times the least for m states: what is still
lacking by u states costs the optimum at most all it spends, so some route has u shares or more for that.

From the paper (JAQPOT, section 4.2, Problem 2), after Yang and Leung, A generalization of the weighted set covering
problem, Naval Research Logistics 52 (2005). Fractions may be taken, as in GrePP; with whole numbers of uses the
problem is NP-hard. The paper's factor, ln m, would be 0 for one state: 1 + ln m is meant.

>>> from windrow.plan.directions.tree import Join, State, stream
>>> tree = Join(Join(stream("a", 500, 5000, 0.001), stream("b", 700, 500, 0.001), State(200, 0.005)),
...             stream("c", 300, 1000, 0.005))
>>> greedy_cover(Model.of(tree), np.array([40.0])).tolist()
[0.0, 8.0, 0.0]
"""

from __future__ import annotations

import numpy as np

from windrow.plan.directions.model import Floats, Model

ROUNDING = 1e-9


def greedy_cover(model: Model, refresh_hz: Floats) -> Floats | None:
    """Driver rows a second for each route; None if the streams have too few rows, whatever may be spent."""
    drivers_hz = np.zeros(len(model.cost))
    left_hz = model.rate_hz.copy()
    lacking = refresh_hz.copy()
    if not np.isfinite(refresh_hz).all():
        return None
    while (open_states := lacking > ROUNDING * refresh_hz).any():
        share = model.inflow[open_states] / refresh_hz[open_states, None]
        worth = np.where(left_hz[model.stream] > 0, share.sum(axis=0) / model.cost, 0.0)
        route = int(worth.argmax())
        if worth[route] <= 0:
            return None
        inflow = model.inflow[:, route]
        helped = open_states & (inflow > 0)
        taken_hz = min(float(left_hz[model.stream[route]]), float((lacking[helped] / inflow[helped]).min()))
        drivers_hz[route] += taken_hz
        left_hz[model.stream[route]] -= taken_hz
        lacking = np.maximum(lacking - taken_hz * inflow, 0.0)
    return drivers_hz
