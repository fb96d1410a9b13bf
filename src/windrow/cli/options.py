"""The options that several commands share, each declared once."""

from __future__ import annotations

from typing import Annotated

import typer

Query = Annotated[str, typer.Argument(metavar="QUERY.sql", help="A file with the query, or - for standard input.")]

Streams = Annotated[
    list[str],
    typer.Option(
        "--stream",
        metavar="NAME=PATH",
        help="What a name in FROM reads: a Parquet, CSV or Arrow file, a folder, or a pattern in quotes. PATH may "
        "end in ?time=COL, and &unit=s, ms, us or ns where that column holds numbers. Once for each name.",
    ),
]

Functions = Annotated[
    str | None, typer.Option("--udf", metavar="FILE.py", help="A Python file with functions the query calls.")
]

Policy = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Which stream's new rows run first: timestamp, round_robin, consumption_rate, initial_output_size, "
        "output_rate, or auto, which predicts what is best. The results are the same.",
    ),
]

Favour = Annotated[
    str | None,
    typer.Option(
        metavar="WHAT", help="What --policy auto goes for: early results, or the least total work (the default)."
    ),
]

Methods = Annotated[
    list[str] | None,
    typer.Option(
        "--method",
        metavar="NAME",
        help="Let the plan use only this method (sorted, hashed, matrix) beside loops; may be given several times. "
        "--method loop uses no index at all. The results are the same.",
    ),
]

Shape = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="mway: each new row visits all windows. linear, bushy, or brackets like '((a b) (c d))': a tree of joins, "
        "which stores what pairs find (--runtime local). The results are the same.",
    ),
]

Master = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Which Spark: local[N] for N cores of this machine, spark://HOST:PORT, yarn, k8s://ADDRESS. All cores of "
        "this machine if not given.",
    ),
]

Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output, and nothing else.")]
