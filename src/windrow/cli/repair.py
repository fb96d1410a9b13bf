"""`windrow repair`: what a stopped query on Spark left out, now."""

from __future__ import annotations

import json as json_format
from typing import TYPE_CHECKING, Annotated

import typer

from windrow.cli import options

if TYPE_CHECKING:
    from windrow.run.backlog import RepairReport


def repair(
    directory: Annotated[
        str,
        typer.Argument(metavar="DIR", help="The checkpoint of a query that was run with --shed repair and is stopped."),
    ],
    out: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="A folder for the repaired rows, as Parquet. Where the query's results go if not given.",
        ),
    ] = None,
    master: options.Master = None,
    repair_order: Annotated[
        str,
        typer.Option(metavar="NAME", help="What is repaired first: oldest, or productive, most results a second."),
    ] = "oldest",
    udf: options.Functions = None,
    json: options.Json = False,
) -> None:
    """Repair what a stopped query on Spark left out.

    Rows go where the query's results go, once each, also if the repair is stopped or killed and started again: as
    batches -1, -2, … of a folder. The query may go on afterwards, or first.

    \b
    windrow repair near.state
    windrow repair s3://bucket/near.state --repair-order productive --json
    """
    from dataclasses import asdict

    from rich.console import Console

    from windrow.query.user_functions import load_functions
    from windrow.run.spark.session import LOCAL, session
    from windrow.run.spark.stopped import repair as repair_stopped

    functions = load_functions(udf) if udf is not None else ()
    with Console(stderr=True).status("starting Spark") as status, session(master or LOCAL) as spark:

        def tell(report: RepairReport) -> None:
            status.update(f"{report.repaired_pieces:,} pieces repaired, {report.open_pieces:,} open")

        found = repair_stopped(spark, directory, out, order=repair_order, functions=functions, tell=tell)
    typer.echo(json_format.dumps(asdict(found), indent=2) if json else summary(found))


def summary(report: RepairReport) -> str:
    """What became of what was left out, in a line."""
    said = f"{report.repaired_pieces:,} pieces are repaired, with {report.results:,} results"
    if report.forgotten_pieces:
        said += f"; {report.forgotten_pieces:,} were forgotten, with about {report.forgotten_results:,.0f} results"
    if report.open_pieces:
        said += f"; {report.open_pieces:,} belong to a batch that has begun: they come when the query goes on"
    return f"{said}."
