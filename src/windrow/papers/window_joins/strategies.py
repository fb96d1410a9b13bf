"""Strategies as the paper compares them: rates and windows by name, what the model and the engine make of them.

    Strategy(rates, rows kept) ──▶ model: σ (A λ_b + B λ_a)                    ──▶ results a second, side by side
                               └─▶ engine: windows of A/λ_a and B/λ_b seconds

>>> table = compared((Strategy("half", 5.0, 5.0, a_rows=20.0, b_rows=20.0),), keys=10, seconds=60.0, seed=1)
>>> table.columns, table.column("model")
(('strategy', 'a_hz', 'b_hz', 'a_rows', 'b_rows', 'model', 'ours'), (20.0,))
>>> 17 < table.numbers("ours")[0] < 23
True
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from windrow.papers.experiment import Claim
from windrow.papers.tables import Table
from windrow.papers.window_joins.played import Run, played
from windrow.plan.regulation import output_hz
from windrow.plan.unit_time import Side

COLUMNS = ("strategy", "a_hz", "b_hz", "a_rows", "b_rows", "model", "ours")
BATCHES = 10


@dataclass(frozen=True, slots=True)
class Strategy:
    """Rates that the streams are let in at, and rows that their windows are allowed."""

    name: str
    a_hz: float
    b_hz: float
    a_rows: float
    b_rows: float

    @property
    def windows_s(self) -> tuple[float, float]:
        """How long rows stay."""
        return self.a_rows / self.a_hz, self.b_rows / self.b_hz

    def model_hz(self, sigma: float) -> float:
        """Results a second, in the model."""
        return output_hz(sigma, (self.a_hz, self.b_hz), self.windows_s)


def compared(strategies: Sequence[Strategy], *, keys: float, seconds: float, seed: int) -> Table:
    """A row a strategy: the model's output and the engine's, over so many seconds once windows are full."""
    rows = []
    for strategy in strategies:
        windows = strategy.windows_s
        a, b = (
            Side(rate, keys=keys, window_s=window)
            for rate, window in zip((strategy.a_hz, strategy.b_hz), windows, strict=True)
        )
        batch_s = seconds / BATCHES
        warm = round(-(-max(windows) // batch_s))
        ours = played(a, b, "HHJ", Run(batch_s=batch_s, warm_batches=warm, batches=BATCHES, seed=seed)).results_hz
        kept = (strategy.a_rows, strategy.b_rows)
        rows.append((strategy.name, strategy.a_hz, strategy.b_hz, *kept, strategy.model_hz(1 / keys), ours))
    return Table.of(COLUMNS, rows)


def ranking(table: Table, column: str) -> list[list[str]]:
    """The strategies from the best to the worst; those within a tenth of the group's first are one group."""
    found = sorted(zip(table.column("strategy"), table.numbers(column), strict=True), key=lambda pair: -pair[1])
    groups: list[tuple[float, list[str]]] = []
    for name, output in found:
        if groups and output >= 0.9 * groups[-1][0]:
            groups[-1][1].append(str(name))
        else:
            groups.append((output, [str(name)]))
    return [sorted(names) for _, names in groups]


def claims(table: Table, printed: Sequence[Sequence[str]]) -> tuple[Claim, ...]:
    """That the engine ranks the strategies as the paper does, and finds what the model says."""
    ours = ranking(table, "ours")
    pairs = zip(table.numbers("model"), table.numbers("ours"), strict=True)
    off = max(abs(found - said) for said, found in pairs) / max(table.numbers("model"))
    return (
        Claim("from the best to the worst", shown(printed), shown(ours), ours == [sorted(group) for group in printed]),
        Claim("the engine finds what the model says", "not shown", f"within {100 * off:.1f} % of the best", off <= 0.1),
    )


def shown(groups: Sequence[Sequence[str]]) -> str:
    """Groups as text, the best first."""
    return "; ".join(" = ".join(group) for group in groups)
