"""`windrow calibrate`: what work costs on this machine, measured, shown, and kept for plans to use."""

from __future__ import annotations

import json as json_format
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windrow.cli import options

if TYPE_CHECKING:
    from windrow.run.calibrate import Measured

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"), (1e-12, "ps"))
_PARTS = (
    ("batch_s", "a batch, whatever is in it"),
    ("row_s", "a row let in"),
    ("merge_row_s", "a row merged"),
    ("result_s", "a result"),
    ("decision_s", "a decision (3 streams, 10 bins a window)"),
)


def calibrate(
    quick: Annotated[
        bool, typer.Option("--quick", help="Smaller sizes and fewer rounds: seconds, and rougher.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Measure what work costs on this machine, and keep it in the cache folder for plans to use.

    Predictions and simulations use these figures; without them a built-in table holds. Times are seconds of one
    processor; the first run compiles for some time more. Measure again when the machine, or Windrow, has changed.

    \b
    windrow calibrate
    windrow calibrate --quick --json
    """
    from rich.console import Console

    from windrow.plan.calibration import machine, store
    from windrow.run import calibrate as measuring

    with Console(stderr=True).status("measuring") as status:
        measured = measuring.measure(
            measuring.QUICK if quick else measuring.FULL, lambda part: status.update(f"measuring {part}")
        )
    path = str(store(measured.costs))
    if json:
        typer.echo(json_format.dumps(as_values(measured, machine(), path), indent=2))
    else:
        typer.echo(as_text(measured, machine(), path))


def as_values(measured: Measured, machine: str, path: str) -> dict[str, Any]:
    """What was measured, in seconds, as plain values."""
    costs = measured.costs.to_values()
    return {"machine": machine, "file": path, "costs": costs, "index_row_s": dict(measured.index_rows_s)}


def as_text(measured: Measured, machine: str, path: str) -> str:
    """What was measured, for people."""
    costs = measured.costs
    parts = [(says, time_text(getattr(costs, name))) for name, says in _PARTS]
    parts[3:3] = [(f"a row indexed, {kind}", time_text(value)) for kind, value in measured.index_rows_s.items()]
    widest = max(len(says) for says, _ in parts)
    lines = [f"  {says.ljust(widest)}  {figure:>8}" for says, figure in parts]
    steps = [f"  {'a step by':<10}{'a probe':>12}{'a candidate':>14}{'a match':>12}"]
    for method, cost in costs.steps.items():
        probe, candidate, match = map(time_text, (cost.per_probe, cost.per_candidate, cost.per_result))
        steps.append(f"  {method:<10}{probe:>12}{candidate:>14}{match:>12}")
    return "\n".join([f"seconds of one processor: {machine}", "", *lines, "", *steps, "", f"kept in {path}"])


def time_text(seconds: float) -> str:
    """A time in the unit that suits it.

    >>> time_text(0.00312), time_text(7.5e-9), time_text(1.8e-10), time_text(0), time_text(2.0)
    ('3.12 ms', '7.5 ns', '180 ps', '0 ns', '2 s')
    """
    if seconds == 0:
        return "0 ns"
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= 0.9995 * size), _UNITS[-1])
    return f"{seconds / size:.3g} {unit}"
