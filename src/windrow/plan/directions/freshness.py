"""Freshness as arithmetic: how old rows get in a tree, and how fast states must be refreshed so that they do not.

A state of S rows into which y rows a second enter keeps a row for S / y seconds. A row of stream I waits in its window,
then, as a part of what it was joined to, in each of its own states in turn:

    age of I  =  S_I / rate_I  +  sum over its own states of S_j / y_j          must be at most its freshness

The first part is the window's length; what the freshness allows beyond is the *slack*. A state is refreshed well enough
if it keeps rows no longer than the share of the slack that each stream beneath it grants. The paper (JAQPOT, section
4.2, Lemma 1, Definition 5) does not say how to share; equal shares are one reading:

    refresh rate of state j  =  max over the streams I beneath it of  S_j * own states of I / slack of I

It suffices, but asks for more than is needed: the shares that are cheapest for all are found in `.joint`.

>>> from windrow.plan.directions.tree import Join, State, stream
>>> tree = Join(Join(stream("a", 500, 5000, 0.001), stream("b", 700, 500, 0.001), State(200, 0.005)),
...             stream("c", 300, 1000, 0.005))
>>> model = Model.of(tree)
>>> wanted = model.per_stream({"a": 15.0})                           # a window of 10 s, and 5 s beyond
>>> refresh_rates(model, wanted).tolist()
[40.0]
>>> [round(age, 3) for age in ages_s(model, np.array([40.0])).tolist()]
[15.0, 5.714, 3.333]
"""

from __future__ import annotations

import numpy as np

from windrow.plan.directions.model import Floats, Model

TOLERANCE = 1e-6
"""Ages that differ by this share are the same: a linear program is solved to about that."""


def refresh_rates(model: Model, freshness_s: Floats) -> Floats:
    """Rows a second that must enter each state, with equal shares of the slack; infinite where there is no slack."""
    rates = np.zeros(len(model.states))
    slack_s = freshness_s - model.window_s
    for number, own in enumerate(model.own_states):
        for state in own:
            share_s = slack_s[number] / len(own)
            rates[state] = max(rates[state], model.state_rows[state] / share_s if share_s > 0 else np.inf)
    return rates


def ages_s(model: Model, stored_hz: Floats) -> Floats:
    """How old rows of each stream get, if that many rows a second enter the states."""
    with np.errstate(divide="ignore", invalid="ignore"):
        kept_s = np.where(model.state_rows > 0, model.state_rows / stored_hz, 0.0)
    waits = [float(kept_s[list(own)].sum()) for own in model.own_states]
    return np.asarray(model.window_s + np.array(waits))


def is_fresh(model: Model, stored_hz: Floats, freshness_s: Floats) -> bool:
    """Whether every freshness predicate holds."""
    return bool((ages_s(model, stored_hz) <= freshness_s * (1 + TOLERANCE)).all())
