"""Tables 4 and 5 as printed: a row a dataset, a cell a policy and batch, None for N/A.

The policies are in the order of `played.POLICIES`, each with batches of .1M and of 1M. Averages are the paper's own.

>>> TIMES["V"][POLICY_CELLS.index(("initial_output_size", "1M"))]
0.5
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from windrow.papers.driver_selection.played import BATCHES, POLICIES

Cells = tuple[float | None, ...]
POLICY_CELLS = tuple((policy, batch) for policy in POLICIES for batch in BATCHES)

TIMES: Mapping[str, Cells] = MappingProxyType({
    "I": (0.985, 1.012, 1, 1, None, None, 0.854, 0.791, 0.903, 0.769),
    "II": (1.002, 1.002, 1, 1, None, None, 0.859, 0.773, 0.840, 0.777),
    "III": (1.003, 1.014, 1, 1, None, None, 0.871, 0.811, 0.884, 0.815),
    "IV": (0.966, 0.997, 1, 1, None, None, 0.744, 0.801, 0.755, 0.789),
    "V": (0.948, 0.927, 1, 1, 0.863, 0.808, 0.882, 0.5, 0.906, 0.851),
    "VI": (1.128, 0.926, 1, 1, 0.785, 0.728, 0.785, 0.611, 0.956, 0.819),
})  # fmt: skip
"""Table 4: running time, that of the timestamp policy being 1."""

SHARES: Mapping[str, Cells] = MappingProxyType({
    "I": (0.5, 0.4, 0.45, 0.45, None, None, 0.85, 0.85, 0.85, 0.85),
    "II": (0.45, 0.4, 0.5, 0.45, None, None, 0.85, 0.85, 0.85, 0.85),
    "III": (0.5, 0.45, 0.5, 0.45, None, None, 0.8, 0.8, 0.8, 0.8),
    "IV": (0.55, 0.5, 0.5, 0.45, None, None, 0.65, 0.6, 0.6, 0.6),
    "V": (0.85, 0.9, 0.5, 0.45, 0.1, 0.05, 0.95, 1, 0.9, 0.95),
    "VI": (0.65, 0.55, 0.5, 0.45, 0.4, 0.35, 0.8, 0.95, 0.7, 0.7),
})  # fmt: skip
"""Table 5: the share of results at half of the timestamp policy's time."""


def averages(cells: Mapping[str, Sequence[float | None]]) -> tuple[float, ...]:
    """The mean of each column, without what is missing."""
    columns = zip(*cells.values(), strict=True)
    kept = ([cell for cell in column if cell is not None] for column in columns)
    return tuple(sum(column) / len(column) for column in kept)
