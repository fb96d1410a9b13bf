"""Who drives: the order in which the new rows of a batch run, one function a policy.

    policy                 order of the streams' buffers                                       driver-selection, 3.2
    timestamp              none: rows run in order of event time, interleaved                  MJoin's own
    round_robin            in turn, one stream further each batch                              4.1, by buffers
    consumption_rate       ascending results per row of the stream, sigma_S = |Mjoin| / |S|    consumption rate
    initial_output_size    descending |buffer_j| * prod of stored rows of the others           eq. 1
    output_rate            descending prod of stored rows of the others                        output rate

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


@dataclass(frozen=True, slots=True)
class Load:
    """What is known of a stream when a batch starts: rows in its buffer, rows in its window, rows seen so far."""

    buffered: int
    stored: int
    seen: int


Order = tuple[str, ...]
Policy = Callable[[Mapping[str, Load], int, int], Order | None]


def _timestamp(_loads: Mapping[str, Load], _results: int, _batch: int) -> Order | None:
    return None


def _round_robin(loads: Mapping[str, Load], _results: int, batch: int) -> Order:
    names = tuple(loads)
    first = batch % len(names)
    return names[first:] + names[:first]


def _consumption_rate(loads: Mapping[str, Load], results: int, _batch: int) -> Order:
    return tuple(sorted(loads, key=lambda name: results / max(1, loads[name].seen)))


def _initial_output_size(loads: Mapping[str, Load], _results: int, _batch: int) -> Order:
    return tuple(sorted(loads, key=lambda name: -loads[name].buffered * _others(loads, name)))


def _output_rate(loads: Mapping[str, Load], _results: int, _batch: int) -> Order:
    return tuple(sorted(loads, key=lambda name: -_others(loads, name)))


def _others(loads: Mapping[str, Load], name: str) -> int:
    return math.prod(load.stored for other, load in loads.items() if other != name)


POLICIES: dict[str, Policy] = {
    "timestamp": _timestamp,
    "round_robin": _round_robin,
    "consumption_rate": _consumption_rate,
    "initial_output_size": _initial_output_size,
    "output_rate": _output_rate,
}


def order_of_drivers(policy: str, loads: Mapping[str, Load], results: int, batch: int) -> Order | None:
    """The order of buffers for a batch; None: rows in order of event time."""
    return known_policy(policy)(loads, results, batch)


def known_policy(policy: str) -> Policy:
    """The policy of that name."""
    if policy not in POLICIES:
        raise PlanError(f"there is no driver policy '{policy}'", hint=f"choose one of {', '.join(POLICIES)}")
    return POLICIES[policy]
