"""An experiment as a page to look at: its charts, its claims, what it is about. No network is needed.

    DIR/grubjoin-figure7.html ──▶ DIR/plotly.min.js          the library lies once beside all pages

Colours are told apart by those who see few of them (Okabe and Ito's), and each series has a marker of its own.
"""

from __future__ import annotations

from html import escape
from typing import Any

from windrow.papers.experiment import Chart, Claim, Experiment, Outcome, Series

LIBRARY_NAME = "plotly.min.js"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#B0A800")
MARKERS = ("circle", "square", "diamond", "triangle-up", "x", "cross", "star", "triangle-down")

STYLE = """
body { font-family: sans-serif; margin: 2em auto; max-width: 60em; padding: 0 1em; color: #222 }
table { border-collapse: collapse } td, th { border: 1px solid #bbb; padding: .3em .6em; text-align: left }
pre { white-space: pre-wrap; background: #f6f6f6; padding: 1em } .no { font-weight: bold; color: #a00 }
"""


def library() -> str:
    """The text of the script that all pages share; write it beside them as `LIBRARY_NAME`."""
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


def page(experiment: Experiment, outcome: Outcome) -> str:
    """The HTML page of an experiment that was run."""
    charts = "\n".join(_drawn(number, chart) for number, chart in enumerate(outcome.charts))
    claims = "\n".join(map(_told, outcome.claims))
    title = f"{escape(experiment.name)}: {escape(experiment.title)}"
    return f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>{title}</title><style>{STYLE}</style>
<script src="{LIBRARY_NAME}"></script></head>
<body>
<h1>{title}</h1>
{charts}
<table><tr><th>claim</th><th>paper</th><th>ours</th><th>holds</th></tr>
{claims}
</table>
<pre>{escape(experiment.about)}</pre>
</body>
</html>
"""


def drawn(chart: Chart) -> dict[str, Any]:
    """A chart as Plotly's own description of a figure.

    >>> described = drawn(Chart("z", "share", (Series("ours", (0.1, 0.2), (0.9, None)),), log_y=True))
    >>> described["data"][0]["type"], described["data"][0]["y"], described["layout"]["yaxis"]["type"]
    ('scatter', [0.9, None], 'log')
    """
    left = [_trace(number, series, chart.bars) for number, series in enumerate(chart.series)]
    right = [_trace(number, series, bars=False) for number, series in enumerate(chart.right, start=len(left))]
    layout: dict[str, Any] = {
        "title": {"text": chart.title},
        "template": "none",
        "xaxis": {"title": {"text": chart.x_title}},
        "yaxis": {"title": {"text": chart.y_title}, "type": "log" if chart.log_y else "linear"},
        "legend": {"orientation": "h", "y": -0.2},
    }
    if right:
        layout["yaxis2"] = {"title": {"text": chart.right_title}, "overlaying": "y", "side": "right", "showgrid": False}
    return {"data": [*left, *({**trace, "yaxis": "y2"} for trace in right)], "layout": layout}


def _trace(number: int, series: Series, bars: bool) -> dict[str, Any]:
    colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
    common = {"name": series.name, "x": list(series.x), "y": list(series.y)}
    if bars:
        return {"type": "bar", "marker": {"color": colour}, **common}
    look = {"line": {"color": colour}, "marker": {"color": colour, "symbol": marker}}
    return {"type": "scatter", "mode": "lines+markers", **look, **common}


def _drawn(number: int, chart: Chart) -> str:
    from plotly.io import to_html

    return str(to_html(drawn(chart), full_html=False, include_plotlyjs=False, div_id=f"chart{number}"))


def _told(claim: Claim) -> str:
    holds = "yes" if claim.holds else '<span class="no">NO</span>'
    cells = (escape(claim.text), escape(claim.papers_figure), escape(claim.ours), holds)
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
