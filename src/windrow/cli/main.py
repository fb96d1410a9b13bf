"""The command line's entry: `windrow COMMAND …`.

Each command is a function in a module of its own, which imports what it needs when it runs: help comes at once.
"""

from __future__ import annotations

from typing import Annotated

import typer

from windrow.cli.bench import bench
from windrow.cli.calibrate import calibrate
from windrow.cli.dashboard import dashboard
from windrow.cli.demo import demo
from windrow.cli.explain import explain
from windrow.cli.outcome import Commands
from windrow.cli.repair import repair
from windrow.cli.reproduce import reproduce
from windrow.cli.run import run
from windrow.cli.state import state

COMMANDS = (run, explain, demo, dashboard, state, repair, bench, calibrate, reproduce)

main = typer.Typer(
    name="windrow",
    cls=Commands,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        import windrow

        typer.echo(f"windrow {windrow.__version__}")
        raise typer.Exit


@main.callback(invoke_without_command=True)
def windrow_(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - its callback ends the run
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """Join two or more streams on any condition, inside sliding windows.

    \b
    windrow demo                                                       see it work
    windrow explain QUERY.sql --stream a=a.parquet --stream b=b.csv    see how it would be done
    windrow run     QUERY.sql --stream a=a.parquet --stream b=b.csv --out results.parquet

    Exit codes: 0 done, 1 failed, 2 wrong use.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


for command in COMMANDS:
    main.command()(command)
