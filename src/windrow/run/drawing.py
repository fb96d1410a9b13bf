"""A report as a figure: rows and results of each batch, how busy it was, what the windows held.

    results, rows       a batch
    busy share          of the time since the batch before, beside the throttle
    rows in windows     after the batch

Plotly is imported only here, when a figure is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from windrow.errors import UsageError
from windrow.run.history import Moment

COLOURS = ("#0072B2", "#D55E00", "#009E73")
"""Okabe and Ito's, told apart by those who see few colours."""
HEIGHT_PX = 600


def figure(moments: Sequence[Moment]) -> Any:
    """The batches as a Plotly figure of three charts above each other."""
    if not moments:
        raise UsageError("no batch has run yet, so there is nothing to draw", hint="call step first")
    from plotly.graph_objects import Scatter
    from plotly.subplots import make_subplots

    begun_s = moments[0].at_s
    at_s = [moment.at_s - begun_s for moment in moments]
    made = make_subplots(
        rows=3, cols=1, shared_xaxes=True, subplot_titles=("a batch", "share of the time, of the work", "in windows")
    )
    busy = [moment.busy_s / moment.span_s if moment.span_s > 0 else None for moment in moments]
    lines: tuple[tuple[int, str, list[Any]], ...] = (
        (1, "rows in", [moment.rows for moment in moments]),
        (1, "results", [moment.results for moment in moments]),
        (2, "busy", busy),
        (2, "throttle", [moment.throttle for moment in moments]),
        (3, "rows in windows", [moment.stored for moment in moments]),
    )
    for number, (row, name, values) in enumerate(lines):
        line = {"color": COLOURS[number % len(COLOURS)]}
        made.add_trace(Scatter(x=at_s, y=values, name=name, mode="lines+markers", line=line), row=row, col=1)
    made.update_xaxes(title_text="seconds since the first batch", row=3, col=1)
    made.update_layout(template="none", height=HEIGHT_PX, legend={"orientation": "h", "y": -0.15})
    return made
