"""How an explanation is printed: what is asked, the plan in words and as trees, and what it is predicted to take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from windrow.cli.calibrate import time_text
from windrow.cli.state import size_text
from windrow.plan.shuffle import slices_lines
from windrow.plan.telling import method_lines, query_lines, span_text, tree_lines, window_text
from windrow.plan.trees import drawn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windrow.cli.question import Question
    from windrow.control.forecast import Forecast
    from windrow.run.local import LocalJoin
    from windrow.run.look import Look

_DRIVING = {
    "timestamp": "new rows run in order of event time",
    "round_robin": "the streams' new rows run in turn, one stream further each batch",
    "consumption_rate": "the stream with the fewest results a row runs first",
    "initial_output_size": "the stream whose new rows can meet the most stored rows runs first",
    "output_rate": "the stream whose row can meet the most stored rows runs first",
    "auto_total": "in the order that is predicted to take the least work, batch by batch",
    "auto_early": "in the order whose results are predicted to come first, batch by batch",
}
_PARTS = {"batches": "batches as such", "rows": "letting rows in", "probing": "searching", "results": "results"}
_NOTHING = (
    "nothing: that needs rows of every stream to look at, and windrow has looked at none",
    "(--look says how many; files without rows, or streams that do not overlap in time, give none)",
)
_MOST_LOAD = 1.0
_WORTH_IT = 1.5
"""Recall beyond so many times the share of the work is worth shedding for."""


class Printer:
    """Prints one explanation; `forecast` is None where nothing is predicted."""

    def __init__(self, question: Question, join: LocalJoin, rates_hz: dict[str, float]) -> None:
        self.question, self.join, self.rates_hz = question, join, rates_hz
        self._console = Console(highlight=False)

    def print(self, look: Look | None, forecast: Forecast | None, costs_from: str) -> None:
        """All of it."""
        self._streams()
        self._asked()
        self._plan(forecast)
        if not self.join.plan.is_tree:
            self._rest(look, forecast, costs_from)
        self._section("Result columns")
        self._line("  " + ", ".join(f"{output.name} {output.expression.type}" for output in self.join.spec.outputs))

    def _rest(self, look: Look | None, forecast: Forecast | None, costs_from: str) -> None:
        """What is foretold of the m-way form, and how it is spread."""
        self._section("Predicted")
        for text in _NOTHING if look is None or forecast is None else predicted_lines(look, forecast, costs_from):
            self._line(f"  {text}")
        self._section("On Spark")
        for text in slices_lines(self.join.spec, self.join.plan, self.rates_hz):
            self._line(f"  {text}")

    def _streams(self) -> None:
        self._line("Streams", "bold")
        for stream in self.join.spec.streams:
            late = f", lateness {span_text(stream.lateness_us)}" if stream.lateness_us else ""
            late += f", freshness {span_text(stream.freshness_us)}" if stream.freshness_us is not None else ""
            path = self.question.recorded[stream.source].source.path
            reads = f"{stream.source} from {path}, event time {stream.time}"
            self._line(f"  {stream.name}: {reads}, window {window_text(stream.window)}{late}")
            for condition in entrance_of(self.join, stream.name):
                self._line(f"    enters only if {condition}", "dim")

    def _asked(self) -> None:
        self._section("Asked")
        for text in query_lines(self.join.spec):
            self._line(f"  {text}")

    def _plan(self, forecast: Forecast | None) -> None:
        spec, plan = self.join.spec, self.join.plan
        conjuncts = [str(conjunct) for conjunct in spec.conjuncts]
        self._section(f"Plan, policy {plan.policy}: {_DRIVING[plan.policy]}")
        for route in plan.firsts:
            self._line(f"  a new row of {route.driver}{'' if route.into is None else f', for {route.into}'}")
            for number, step in enumerate(route.steps, start=1):
                self._line(f"    {number}. probes {step.stream}, {step.method}: {step.why}")
                rest = [conjuncts[place] for place in step.conjuncts if place not in step.leading]
                if rest and step.leading:
                    self._line(f"       then checks {' AND '.join(rest)}", "dim")
        for text in method_lines(plan):
            self._line(f"  {text}", "dim")
        if plan.is_tree:
            self._section("Tree of joins")
            for text in drawn(plan):
                self._line(f"  {text}")
            return
        self._section("The same as trees" + ("" if forecast is None else ", for each new row of the stream at the top"))
        for route in plan.firsts:
            for text in tree_lines(conjuncts, route, () if forecast is None else notes(forecast, route.driver)):
                self._line(f"  {text}")

    def _section(self, title: str) -> None:
        self._line("")
        self._line(title, "bold")

    def _line(self, text: str, style: str = "") -> None:
        self._console.print(Text(text, style), soft_wrap=True)


def entrance_of(join: LocalJoin, name: str) -> list[str]:
    """The conditions a row of a stream has to meet to enter its window."""
    entrance = join.program.entrances[name]
    return [*(str(condition) for condition in entrance.filters), *(f"{leaf} IS NOT NULL" for leaf in entrance.required)]


def notes(forecast: Forecast, driver: str) -> list[str]:
    """What each step of a driver's path is predicted to do."""
    return [
        f"of {number(step.reach)} rows in reach {number(step.candidates)} looked at, {number(step.matches)} match"
        for step in forecast.paths[driver]
    ]


def predicted_lines(look: Look, forecast: Forecast, costs_from: str) -> Iterator[str]:
    """What a plan is predicted to take and give."""
    yield f"from {look.rows:,} rows, {look.span_s:,.3g} s of event time, joined in full: {look.results:,} results"
    yield f"with the costs {costs_from}"
    for name, stream in forecast.streams.items():
        held = f"{number(stream.window_rows)} rows in its window, {size_text(round(stream.window_bytes))}"
        yield f"{name}: {number(stream.rate_hz)} rows/s, {held}"
    yield f"memory: {size_text(round(forecast.memory_bytes))} of windows and indexes when they are full"
    yield f"results: {number(forecast.results_hz)} a second"
    yield f"work: {time_text(forecast.load)} of one processor for each second of input ({_parts(forecast)})"
    if forecast.saturation is None:
        yield "the machine is saturated by batches alone: no rate is low enough"
        return
    times = forecast.saturation
    rates = ", ".join(f"{name} {number(times * stream.rate_hz)}" for name, stream in forecast.streams.items())
    yield f"saturates one processor at {number(times)} times these rates: {rates} rows/s"
    if not look.is_long:
        yield "what comes of more than that is not predicted: the look was shorter than the longest window"
        return
    if forecast.load > _MOST_LOAD:
        yield f"at these rates, throttle auto: recall {forecast.recall:.0%} to expect"
    else:
        yield "at these rates everything is done: recall 100 %"
    for overload in forecast.overloads:
        done = f"throttle auto does {overload.throttle:.1%} of the work, recall {overload.recall:.0%} to expect"
        yield f"at {number(overload.times)} times these rates {done}"
    if any(overload.recall < _WORTH_IT * overload.throttle for overload in forecast.overloads):
        yield "matches cost more than the search for them, so there is little to gain by searching less"


def number(value: float) -> str:
    """A count for people.

    >>> [number(value) for value in (0, 0.0123, 4.0, 12.34, 1234.5, 2e7)]
    ['0', '0.012', '4', '12', '1,234', '20,000,000']
    """
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.2g}"


def _parts(forecast: Forecast) -> str:
    load = max(forecast.load, 1e-300)
    return ", ".join(f"{_PARTS[name]} {part / load:.0%}" for name, part in forecast.parts.items())
