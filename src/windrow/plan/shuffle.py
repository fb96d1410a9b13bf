"""How rows of a query are shared out over slices, and what travels between them."""

from __future__ import annotations

from collections.abc import Sequence

from windrow.plan.plan import Path
from windrow.plan.slices import Slices, time_slicing
from windrow.query.spec import QuerySpec


def choose_slices(spec: QuerySpec, paths: Sequence[Path], count: int, by: str) -> Slices:
    """How each stream of a query is sliced."""
    return Slices(count, tuple(time_slicing(stream.name, count, stream.window.span_us) for stream in spec.streams))
