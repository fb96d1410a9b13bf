"""How fast streams are: rows a second, averaged over about an interval, and how much of a window is filled.

>>> from windrow.control.observation import Arrival, Joined
>>> batch = Observation(0, 10.0, 1.0, 0.1, {"a": Arrival(rows=50)}, Joined())
>>> Rates().after(batch, interval_s=5).hz
{'a': 50.0}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from windrow.control.observation import Observation
from windrow.plan.cost import StreamStatistics
from windrow.query.spec import Stream

LEAST_HZ = 1e-6


@dataclass(frozen=True, slots=True)
class Rates:
    """Rows a second of each stream, and the rows its window holds."""

    hz: Mapping[str, float] = field(default_factory=dict)
    stored: Mapping[str, int] = field(default_factory=dict)

    def after(self, batch: Observation, interval_s: float) -> Rates:
        """With what a batch brought; batches count by how long they are."""
        if batch.span_s <= 0:
            return self
        weight = 1.0 - 0.5 ** (2 * batch.span_s / interval_s)
        hz = dict(self.hz)
        for name, arrival in batch.arrivals.items():
            new = arrival.rows / batch.span_s
            hz[name] = new if name not in hz else hz[name] + weight * (new - hz[name])
        return Rates(hz, {name: arrival.stored for name, arrival in batch.arrivals.items()})

    def stream(self, stream: Stream) -> StreamStatistics:
        """What is known of a stream. A window fills up to what its rate gives, and is judged as if it had; when a rate
        fell it holds more than that for a while. A window of rows is as long as it takes to fill it.
        """
        hz = max(self.hz.get(stream.name, 0.0), LEAST_HZ)
        if stream.window.span_us is None:
            return StreamStatistics(hz, (stream.window.rows or 1) / hz)
        held_s = self.stored.get(stream.name, 0) / hz
        return StreamStatistics(hz, max(stream.window.span_us / 1e6, held_s, 1e-6))

    def to_values(self) -> dict[str, Any]:
        """As values that JSON knows."""
        return {"hz": dict(self.hz), "stored": dict(self.stored)}

    @staticmethod
    def from_values(values: Mapping[str, Any]) -> Rates:
        """What `to_values` gave."""
        return Rates(dict(values["hz"]), dict(values["stored"]))
