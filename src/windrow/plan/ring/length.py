"""How many slices: for the lowest latency or for the highest output, never more than there are slots (PSP, 5.2).

    latency                                         output
      |\\                         _.-'                |                 _.--''
      | \\  work / N        _.-'  hops · N            |          _.-''
      |  `-._        _.-'                            |     _.-'
      |      `--...-'                                |  .-'
      '-----------^------------------ N              '----------------------- N
               shortest                               always longer: all slots

Latency is what equation 5 says at whole numbers of nodes: all of them are tried. The paper's closed forms are here to
be compared with it: N = min(N_1, N_2), where N_1 is where work and hops take equally long, and N_2 where the wait for
the last node equals the work. By calculus the latter would be sqrt(2 L_C / T_n).

>>> from windrow.plan.ring.model import RingCosts
>>> load = RingLoad.alike(streams=3, stored=500, selectivity=0.1, costs=RingCosts(1e-4, send_s=1e-4, hop_s=5e-3))
>>> ring_length(load, slots=20), ring_length(load, slots=8), ring_length(load, slots=20, favour="output")
(13, 8, 20)
>>> round(meeting_length(load), 6), round(waiting_length(load), 6), round(stationary_length(load), 6)
(13.209513, 32.441353, 31.937439)
"""

from __future__ import annotations

import math
from collections.abc import Callable

from windrow.errors import PlanError
from windrow.plan.ring.model import RingLoad


def shortest_latency(load: RingLoad, slots: int, rounds: int | None = None) -> int:
    """The number of nodes with the lowest latency; of equal ones the fewest."""
    return min(range(1, slots + 1), key=lambda nodes: load.latency_s(nodes, rounds))


def highest_output(load: RingLoad, slots: int) -> int:
    """The number of nodes with the highest output, which by equation 4 only grows."""
    return max(range(1, slots + 1), key=load.output_hz)


OBJECTIVES: dict[str, Callable[[RingLoad, int], int]] = {"latency": shortest_latency, "output": highest_output}
"""What a ring's length may favour."""


def ring_length(load: RingLoad, slots: int, favour: str = "latency") -> int:
    """How many nodes serve a load best, of at most `slots`."""
    if slots < 1:
        raise PlanError(f"a cluster of {slots} slots", hint="give one slot or more")
    if favour not in OBJECTIVES:
        raise PlanError(f"a ring cannot favour '{favour}'", hint=f"choose one of {', '.join(OBJECTIVES)}")
    return OBJECTIVES[favour](load, slots)


def meeting_length(load: RingLoad, rounds: int | None = None) -> float:
    """N_1: where a node's work takes as long as the hops: L_C / N + T_s · partials = M · N · T_n."""
    sending_s = load.costs.send_s * load.travelling
    round_s = (load.streams if rounds is None else rounds) * load.costs.hop_s
    if round_s == 0:
        return math.inf
    return (sending_s + math.sqrt(sending_s**2 + 4 * round_s * load.alone_s)) / (2 * round_s)


def waiting_length(load: RingLoad) -> float:
    """N_2 as the paper prints it: where (N - 1) / 2 · T_n = L_C / N."""
    return (1 + math.sqrt(1 + 8 * load.alone_s / load.costs.hop_s)) / 2 if load.costs.hop_s else math.inf


def stationary_length(load: RingLoad) -> float:
    """Where the derivative of (N - 1) / 2 · T_n + L_C / N is zero: about half a node before N_2."""
    return math.sqrt(2 * load.alone_s / load.costs.hop_s) if load.costs.hop_s else math.inf
