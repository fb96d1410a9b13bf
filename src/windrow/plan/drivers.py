"""Who drives: the order in which the new rows of a batch run, one function a policy.

    policy                 order of the streams' buffers                                       driver-selection, 3.2
    timestamp              none: rows run in order of event time, interleaved                  MJoin's own
    round_robin            in turn, one stream further each batch                              4.1, by buffers
    consumption_rate       ascending results per row of the stream, sigma_S = |Mjoin| / |S|    consumption rate
    initial_output_size    descending |buffer_j| * prod of stored rows of the others           eq. 1
    output_rate            descending prod of stored rows of the others                        output rate
    auto_total             the least predicted work                                            ours: `plan.turns`
    auto_early             the earliest predicted results                                      ours: `plan.turns`

The multiset of results does not depend on the policy, only when each appears: of the rows of a result one has the
largest position, and it alone produces the result. Ties go by the order of the FROM clause.

>>> waiting = {"a": Load(buffered=10, stored=100, seen=100), "b": Load(buffered=20, stored=200, seen=400)}
>>> order_of_drivers("output_rate", waiting, results=50, batch=0)
('a', 'b')
>>> order_of_drivers("consumption_rate", waiting, results=50, batch=0)
('b', 'a')
>>> order_of_drivers("timestamp", waiting, results=50, batch=0) is None
True
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from windrow.errors import PlanError
from windrow.plan.turns import Load, Order, Prospects, favoured, guessed
from windrow.plan.work import REFERENCE

__all__ = ["AUTO", "POLICIES", "Load", "Order", "Policy", "Waiting", "known_policy", "order_of_drivers", "policy_named"]

AUTO = {"early": "auto_early", "total": "auto_total"}
"""The policy that predicts, by what it favours."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a policy decides by: the streams' loads, the results so far, the batch's number, and what is expected of
    the steps, where that is known.
    """

    loads: Mapping[str, Load]
    results: int
    batch: int
    prospects: Prospects | None = None


Policy = Callable[[Waiting], Order | None]


def _timestamp(_waiting: Waiting) -> Order | None:
    return None


def _round_robin(waiting: Waiting) -> Order:
    names = tuple(waiting.loads)
    first = waiting.batch % len(names)
    return names[first:] + names[:first]


def _consumption_rate(waiting: Waiting) -> Order:
    loads = waiting.loads
    return tuple(sorted(loads, key=lambda name: waiting.results / max(1, loads[name].seen)))


def _initial_output_size(waiting: Waiting) -> Order:
    loads = waiting.loads
    return tuple(sorted(loads, key=lambda name: -loads[name].buffered * _others(loads, name)))


def _output_rate(waiting: Waiting) -> Order:
    return tuple(sorted(waiting.loads, key=lambda name: -_others(waiting.loads, name)))


def _auto_total(waiting: Waiting) -> Order | None:
    return _predicted("total", waiting)


def _auto_early(waiting: Waiting) -> Order | None:
    return _predicted("early", waiting)


def _predicted(favour: str, waiting: Waiting) -> Order | None:
    if waiting.results == 0:
        return _initial_output_size(waiting) if favour == "early" else None
    known = waiting.prospects or guessed(waiting.loads, waiting.results, REFERENCE.step("hashed"))
    simple = (_round_robin, _consumption_rate, _initial_output_size, _output_rate)
    return favoured(favour, waiting.loads, known, [policy(waiting) for policy in simple])


def _others(loads: Mapping[str, Load], name: str) -> int:
    return math.prod(load.stored for other, load in loads.items() if other != name)


POLICIES: dict[str, Policy] = {
    "timestamp": _timestamp,
    "round_robin": _round_robin,
    "consumption_rate": _consumption_rate,
    "initial_output_size": _initial_output_size,
    "output_rate": _output_rate,
    "auto_total": _auto_total,
    "auto_early": _auto_early,
}


def order_of_drivers(
    policy: str, loads: Mapping[str, Load], results: int, batch: int, prospects: Prospects | None = None
) -> Order | None:
    """The order of buffers for a batch; None: rows in order of event time."""
    return known_policy(policy)(Waiting(loads, results, batch, prospects))


def known_policy(policy: str) -> Policy:
    """The policy of that name."""
    if policy not in POLICIES:
        raise PlanError(f"there is no driver policy '{policy}'", hint=f"choose one of {', '.join(POLICIES)}")
    return POLICIES[policy]


def policy_named(policy: str, favour: str | None) -> str:
    """The policy a user asks for: `auto` is one of two, by what it favours.

    >>> policy_named("auto", None), policy_named("auto", "early"), policy_named("output_rate", None)
    ('auto_total', 'auto_early', 'output_rate')
    """
    if policy != "auto":
        if favour is not None:
            raise PlanError(f"'{policy}' favours nothing", hint="favour early or total with the policy auto")
        return policy
    if favour is not None and favour not in AUTO:
        raise PlanError(f"nothing is favoured by '{favour}'", hint=f"favour {' or '.join(AUTO)}")
    return AUTO[favour or "total"]
