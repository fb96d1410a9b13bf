"""`windrow dashboard`: the live page of a run, or of one that has ended."""

from __future__ import annotations

import json as json_format
import time
from typing import Annotated

import typer

from windrow.cli import options
from windrow.errors import UsageError

PORT = 8765


def dashboard(
    directory: Annotated[
        str,
        typer.Argument(
            metavar="DIR", help="Where a run writes its events: the folder of --events, or the checkpoint of a query."
        ),
    ],
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Where the page is served; 0 takes any port that is free.")
    ] = PORT,
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="The address to bind. On any but 127.0.0.1 a token is needed to look: it is printed, or taken from "
            "the variable WINDROW_TOKEN.",
        ),
    ] = "127.0.0.1",
    name: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST", help="Another name this machine is reached by; may be given several times."),
    ] = None,
    browse: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    json: options.Json = False,
) -> None:
    """Show a run as a page in the browser, live.

    Reads the run's event files and nothing else, so it can be started and ended at any time. Ctrl-C ends it.

    \b
    windrow dashboard near.events
    windrow dashboard near.state --port 0 --open
    windrow dashboard near.state --json
    """
    try:
        from windrow.dashboard.history import Reader, title_of
        from windrow.dashboard.serve import bind, server_of
        from windrow.dashboard.server import as_text
        from windrow.dashboard.view import view_of
    except ModuleNotFoundError as error:
        hint = "pip install 'windrow[dashboard]'"
        raise UsageError(f"the page needs {error.name}, which is not installed", hint=hint) from error

    reader = Reader(directory)
    if json:
        reader.refresh()
        view = json_format.loads(as_text(view_of(reader.history, title_of(directory), time.time())))
        typer.echo(json_format.dumps(view, indent=2))
        return
    bound = bind(host, port, tuple(name or ()))
    typer.echo(f"The page of {title_of(directory)} is at {bound.url}   (Ctrl-C ends it)")
    if browse:
        typer.launch(bound.url)
    server_of(bound, reader).run([bound.listening])
