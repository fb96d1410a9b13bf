"""Pages of experiments: everything in them is there without a network, and nothing in them is taken for markup."""

from __future__ import annotations

import re

from windrow.papers.experiment import Chart, Claim, Experiment, Outcome, Series
from windrow.papers.plots import COLOURS, LIBRARY_NAME, MARKERS, drawn, library, page
from windrow.papers.tables import Table

LINES = Chart("z", "time (ms)", (Series("a", (0.1, 0.2), (1.0, None)), Series("b", (0.1,), (3.0,))), log_y=True)
BARS = Chart("m", "output", (Series("a", ("3", "4"), (1.0, 2.0)),), title="Bars", bars=True)


def run(quick: bool, seed: int) -> Outcome:
    claim = Claim("z < 0.4 & more", "<1>", "2", holds=False)
    return Outcome(Table.of(("z",), [(1,)]), (claim,), (LINES, BARS))


def test_a_page_holds_charts_and_claims() -> None:
    text = page(Experiment("grubjoin/figure0", "Less < more", run), run(quick=True, seed=1))
    assert text.count("Plotly.newPlot") == 2
    assert "<td>z &lt; 0.4 &amp; more</td><td>&lt;1&gt;</td>" in text
    assert '<span class="no">NO</span>' in text
    assert "Less &lt; more" in text
    assert "nothing in them is taken for markup" in text
    assert re.findall(r'<script[^>]* src="([^"]+)"', text) == [LIBRARY_NAME]
    assert "https://" not in re.sub(r"https://plot\.ly", "", text)


def test_the_library_is_there() -> None:
    assert len(library()) > 1_000_000


def test_lines_and_bars() -> None:
    lines, bars = drawn(LINES), drawn(BARS)
    assert [trace["type"] for trace in lines["data"]] == ["scatter", "scatter"]
    assert lines["data"][0]["y"] == [1.0, None]
    assert lines["data"][0]["line"] != lines["data"][1]["line"]
    assert (lines["layout"]["yaxis"]["type"], bars["layout"]["yaxis"]["type"]) == ("log", "linear")
    assert (bars["data"][0]["type"], bars["data"][0]["x"], bars["layout"]["title"]["text"]) == (
        "bar",
        ["3", "4"],
        "Bars",
    )


def test_a_second_axis_stands_on_the_right() -> None:
    right = (Series("gain", ("3", "4"), (0.5, 0.9)),)
    chart = Chart("m", "output", BARS.series, bars=True, right=right, right_title="gain (%)")
    described = drawn(chart)
    assert [trace["type"] for trace in described["data"]] == ["bar", "scatter"]
    assert [trace.get("yaxis") for trace in described["data"]] == [None, "y2"]
    assert described["layout"]["yaxis2"]["title"]["text"] == "gain (%)"
    assert "yaxis2" not in drawn(BARS)["layout"]
    assert described["data"][0]["marker"]["color"] != described["data"][1]["marker"]["color"]
    outcome = Outcome(Table.of(("z",), [(1,)]), (Claim("a", "b", "c", holds=True),), (chart,))
    assert page(Experiment("grubjoin/figure0", "Gains", run), outcome).count("Plotly.newPlot") == 1


def test_series_are_told_apart() -> None:
    assert len(set(COLOURS)) == len(COLOURS) == len(set(MARKERS))
