"""`windrow explain`: what a query means and how it would be run, from the schemas of its files alone."""

from __future__ import annotations

import json as json_format
import math
import os
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windrow.cli import options

if TYPE_CHECKING:
    from windrow.cli.question import Question
    from windrow.query.spec import Stream, Window
    from windrow.run.local import LocalJoin

_UNITS_US = (
    ("DAYS", 86_400_000_000),
    ("HOURS", 3_600_000_000),
    ("MINUTES", 60_000_000),
    ("SECONDS", 1_000_000),
    ("MILLISECONDS", 1_000),
)
_DRIVING = {
    "timestamp": "new rows run in order of event time",
    "round_robin": "the streams' new rows run in turn, one stream further each batch",
    "consumption_rate": "the stream with the fewest results a row runs first",
    "initial_output_size": "the stream whose new rows can meet the most stored rows runs first",
    "output_rate": "the stream whose row can meet the most stored rows runs first",
    "auto_total": "in the order that is predicted to take the least work, batch by batch",
    "auto_early": "in the order whose results are predicted to come first, batch by batch",
}

_Slices = Annotated[
    int | None,
    typer.Option(
        "--slices", metavar="N", help="On how many slices windows are kept on Spark. Default: the processors here."
    ),
]
_SliceBy = Annotated[
    str,
    typer.Option(
        metavar="KIND",
        help="What the slice of a row depends on: time, hash (of an equality), range (of a band's value), or auto: "
        "what ships the fewest copies. The results are the same.",
    ),
]
_Rates = Annotated[
    list[str] | None,
    typer.Option("--rate", metavar="NAME=ROWS", help="Rows a second of a stream, to predict bytes; once for each."),
]


def explain(  # noqa: PLR0913 - every option is an argument
    query: options.Query,
    stream: options.Streams,
    udf: options.Functions = None,
    policy: options.Policy = "timestamp",
    favour: options.Favour = None,
    method: options.Methods = None,
    slices: _Slices = None,
    slice_by: _SliceBy = "time",
    rate: _Rates = None,
    json: options.Json = False,
) -> None:
    """Show how a query would be run, and why; nothing runs.

    For each stream: what enters its window, how long it stays, in which order and by which method its new rows search
    the windows of the others, on which slice a row is kept, and how many copies are predicted to travel.

    \b
    windrow explain near.sql --stream cam1=cam1.parquet --stream cam2=cam2.csv
    windrow explain near.sql --stream cam1=cam1.parquet --stream cam2=cam2.csv --slices 8 --slice-by time --json
    """
    import windrow
    from windrow.cli.question import ask, check_choices
    from windrow.plan.order import plan_query

    policy = check_choices(policy, method, favour)
    _check_slices(slices, slice_by)
    question = ask(query, stream, udf)
    rates_hz = parse_rates(rate or (), [each.name for each in question.spec.streams])
    count = slices if slices is not None else os.cpu_count() or 1
    plan = plan_query(question.spec, policy=policy, methods=method, slices=count, slice_by=slice_by)
    join = windrow.local(question.join, plan=plan)
    if json:
        typer.echo(json_format.dumps(as_values(question, join), indent=2))
    else:
        _print(question, join, rates_hz)


def _check_slices(slices: int | None, slice_by: str) -> None:
    from windrow.errors import UsageError
    from windrow.plan.shuffle import AUTO
    from windrow.plan.slices import KINDS

    if slices is not None and slices < 1:
        raise UsageError(f"a join needs at least one slice, not {slices}", place="--slices", hint="give 1 or more")
    if slice_by not in (AUTO, *KINDS):
        hint = f"choose one of {', '.join((AUTO, *KINDS))}"
        raise UsageError(f"there is no slicing '{slice_by}'", place="--slice-by", hint=hint)


def parse_rates(texts: Sequence[str], names: Collection[str]) -> dict[str, float]:
    """Rows a second of `NAME=ROWS` texts.

    >>> parse_rates(["a=1e3", "b=20"], ("a", "b"))
    {'a': 1000.0, 'b': 20.0}
    """
    from windrow.errors import UsageError

    found = {}
    for text in texts:
        name, _, amount = text.partition("=")
        if name not in names:
            raise UsageError(
                f"'{text}' names no stream", place="--rate", hint=f"write NAME=ROWS, of {', '.join(names)}"
            )
        try:
            found[name] = float(amount)
        except ValueError:
            found[name] = math.nan
        if not 0 <= found[name] < math.inf:
            raise UsageError(f"'{amount}' is no rate", place=f"--rate {text}", hint="write rows a second, as 1000")
    return found


def as_values(question: Question, join: LocalJoin) -> dict[str, Any]:
    """The explanation as plain values; `plan` is the plan's own JSON form, its conjuncts are places in `conjuncts`;
    `copies` is what is predicted to travel at each step of a driver's path.
    """
    from windrow.plan.shuffle import predicted_copies

    return {
        "plan": json_format.loads(join.plan.to_json()),
        "conjuncts": [str(conjunct) for conjunct in join.spec.conjuncts],
        "copies": {driver: list(counts) for driver, counts in predicted_copies(join.spec, join.plan).items()},
        "streams": [_stream_values(question, join, stream) for stream in join.spec.streams],
        "outputs": [{"name": output.name, "type": str(output.expression.type)} for output in join.spec.outputs],
    }


def _stream_values(question: Question, join: LocalJoin, stream: Stream) -> dict[str, Any]:
    return {
        "name": stream.name,
        "source": stream.source,
        "path": question.recorded[stream.source].source.path,
        "time": stream.time,
        "window_us": stream.window.span_us,
        "window_rows": stream.window.rows,
        "lateness_us": stream.lateness_us,
        "idle_us": stream.idle_us,
        "freshness_us": stream.freshness_us,
        "columns": [column.name for column in join.spec.used_columns(stream.name)],
        "entrance": entrance_of(join, stream.name),
    }


def entrance_of(join: LocalJoin, name: str) -> list[str]:
    """The conditions a row of a stream has to meet to enter its window."""
    entrance = join.program.entrances[name]
    return [*(str(condition) for condition in entrance.filters), *(f"{leaf} IS NOT NULL" for leaf in entrance.required)]


def window_text(window: Window) -> str:
    """A window as a query writes it."""
    return span_text(window.span_us) if window.span_us is not None else f"ROWS {window.rows}"


def span_text(span_us: int) -> str:
    """A span of time in the largest unit that gives a whole number.

    >>> span_text(90_000_000), span_text(1_500), span_text(0), span_text(2**63 - 1)
    ('90 SECONDS', '1500 MICROSECONDS', '0 SECONDS', 'without end')
    """
    if span_us == 2**63 - 1:
        return "without end"
    if span_us == 0:
        return "0 SECONDS"
    return next(
        (f"{span_us // unit_us} {unit}" for unit, unit_us in _UNITS_US if span_us % unit_us == 0),
        f"{span_us} MICROSECONDS",
    )


def _print(question: Question, join: LocalJoin, rates_hz: dict[str, float]) -> None:
    from rich.console import Console
    from rich.text import Text

    from windrow.plan.shuffle import slices_lines

    console = Console(highlight=False)

    def line(text: str, style: str = "") -> None:
        console.print(Text(text, style), soft_wrap=True)

    line("Streams", "bold")
    for stream in join.spec.streams:
        late = f", lateness {span_text(stream.lateness_us)}" if stream.lateness_us else ""
        late += f", freshness {span_text(stream.freshness_us)}" if stream.freshness_us is not None else ""
        reads = f"{stream.source} from {question.recorded[stream.source].source.path}, event time {stream.time}"
        line(f"  {stream.name}: {reads}, window {window_text(stream.window)}{late}")
        for condition in entrance_of(join, stream.name):
            line(f"    enters only if {condition}", "dim")
    line("")
    line(f"Plan, policy {join.plan.policy}: {_DRIVING[join.plan.policy]}", "bold")
    for route in join.plan.firsts:
        line(f"  a new row of {route.driver}")
        for number, step in enumerate(route.steps, start=1):
            line(f"    {number}. probes {step.stream}, {step.method}: {step.why}")
            rest = [str(join.spec.conjuncts[place]) for place in step.conjuncts if place not in step.leading]
            if rest and step.leading:
                line(f"       then checks {' AND '.join(rest)}", "dim")
    line("")
    line("On Spark", "bold")
    for text in slices_lines(join.spec, join.plan, rates_hz):
        line(f"  {text}")
    line("")
    line("Result columns", "bold")
    line("  " + ", ".join(f"{output.name} {output.expression.type}" for output in join.spec.outputs))
