"""`windrow explain`: what a query means, how it would be run, and what that is predicted to take.

schemas of the files ─▶ plan, in words and as trees                     some of their rows ─▶ look ─▶ forecast
"""

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
    from windrow.control.forecast import Forecast
    from windrow.query.spec import Stream
    from windrow.run.local import LocalJoin
    from windrow.run.look import Look

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
    typer.Option(
        "--rate",
        metavar="NAME=ROWS",
        help="Rows a second of a stream, to predict with in place of its files'; once for each.",
    ),
]
_Look = Annotated[
    int,
    typer.Option(
        metavar="ROWS",
        min=0,
        help="How many rows to look at for predictions; 0 reads only the files' columns, and predicts nothing.",
    ),
]


def explain(  # noqa: PLR0913 - every option is an argument
    query: options.Query,
    stream: options.Streams,
    udf: options.Functions = None,
    policy: options.Policy = "timestamp",
    favour: options.Favour = None,
    method: options.Methods = None,
    shape: options.Shape = "mway",
    slices: _Slices = None,
    slice_by: _SliceBy = "time",
    rate: _Rates = None,
    look: _Look = 20_000,
    json: options.Json = False,
) -> None:
    """Show how a query would be run, why, and what it is predicted to take; nothing is written.

    For each stream: what enters its window, how long it stays, in which order and by which method its new rows search
    the windows of the others. Predicted from a look at some rows: work, the rate at which one processor saturates,
    memory, the recall to expect beyond it, and what travels on Spark.

    \b
    windrow explain near.sql --stream cam1=cam1.parquet --stream cam2=cam2.csv
    windrow explain near.sql --stream cam1=cam1.parquet --stream cam2=cam2.csv --rate cam1=5000 --rate cam2=800
    windrow explain near.sql --stream cam1=cam1.parquet --stream cam2=cam2.csv --look 0
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
    plan = plan_query(question.spec, policy=policy, methods=method, slices=count, slice_by=slice_by, shape=shape)
    join = windrow.local(question.join, plan=plan)
    # What is foretold is of the m-way form.
    seen, forecast, costs_from = _looked(question, 0 if plan.is_tree else look, method, rates_hz)
    if json:
        typer.echo(json_format.dumps(as_values(question, join, seen, forecast), indent=2))
    else:
        from windrow.cli.explained import Printer

        Printer(question, join, rates_hz).print(seen, forecast, costs_from)


def _looked(
    question: Question, most_rows: int, methods: list[str] | None, rates_hz: dict[str, float]
) -> tuple[Look | None, Forecast | None, str]:
    """What a look saw and foretells, and where its costs come from."""
    from rich.console import Console

    from windrow.control.forecast import forecast
    from windrow.plan.calibration import calibrated
    from windrow.plan.work import REFERENCE
    from windrow.run.look import look

    if most_rows == 0:
        return None, None, ""
    measured = calibrated()
    costs = REFERENCE if measured is None else measured
    with Console(stderr=True).status("looking at some rows"):
        rows = {name: table for name, (table, _, _) in question.read().items()}
        seen = look(question.join, rows, most_rows=most_rows, methods=methods, costs=costs)
    came = (
        "built in; windrow calibrate measures this machine's" if measured is None else "windrow calibrate measured here"
    )
    return seen, None if seen is None else forecast(seen.known.at(rates_hz)), came


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


def as_values(question: Question, join: LocalJoin, look: Look | None, forecast: Forecast | None) -> dict[str, Any]:
    """The explanation as plain values; `plan` is the plan's own JSON form, its conjuncts are places in `conjuncts`;
    `copies` is what is predicted to travel at each step of a driver's path; `predicted` is None where nothing was
    looked at.
    """
    predicted = None
    if look is not None and forecast is not None:
        looked = {
            "rows": look.rows,
            "span_s": look.span_s,
            "results": look.results,
            "longer_than_windows": look.is_long,
        }
        predicted = {"look": looked, **forecast.to_values()}
    from windrow.plan.shuffle import predicted_copies

    copies = {} if join.plan.is_tree else predicted_copies(join.spec, join.plan)
    return {
        "plan": json_format.loads(join.plan.to_json()),
        "conjuncts": [str(conjunct) for conjunct in join.spec.conjuncts],
        "copies": {driver: list(counts) for driver, counts in copies.items()},
        "streams": [_stream_values(question, join, stream) for stream in join.spec.streams],
        "predicted": predicted,
        "outputs": [{"name": output.name, "type": str(output.expression.type)} for output in join.spec.outputs],
    }


def _stream_values(question: Question, join: LocalJoin, stream: Stream) -> dict[str, Any]:
    from windrow.cli.explained import entrance_of

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
