"""`windrow run`: a query over recorded files, replayed in step, its results in a file.

files ─ read ─ replay in event-time order ─ batch by batch ─▶ join ─▶ result file, report
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windrow.cli import options
from windrow.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from windrow.cli.question import Question
    from windrow.run.local import LocalJoin
    from windrow.streams.replay import Replay

RUNTIMES = ("local",)


def run(  # noqa: PLR0913 - every option is an argument
    query: options.Query,
    stream: options.Streams,
    out: Annotated[
        str,
        typer.Option(
            metavar="PATH",
            help="Where results go: a file (.parquet, .csv, .csv.gz, .arrow), or a folder that is absent or empty.",
        ),
    ],
    runtime: Annotated[
        str, typer.Option(metavar="NAME", help="Where the join runs: local, in this process.")
    ] = "local",
    batch: Annotated[
        str | None,
        typer.Option(
            metavar="SPAN",
            help="Event time a batch covers, such as '10 seconds'. Chosen if not given: about 100,000 rows a batch, "
            "at least 20 batches.",
        ),
    ] = None,
    as_arrived: Annotated[
        bool, typer.Option("--as-arrived", help="Keep the files' own order instead of ordering by event time.")
    ] = False,
    lateness: Annotated[
        str | None,
        typer.Option(
            metavar="SPAN",
            help="How far out of order rows may come, for streams without LATENESS in the query. Later ones are "
            "counted and left out; it matters with --as-arrived.",
        ),
    ] = None,
    udf: options.Functions = None,
    policy: options.Policy = "timestamp",
    method: options.Methods = None,
    set_aside: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Write rows that are late or without event time into this folder."),
    ] = None,
    report: Annotated[str | None, typer.Option(metavar="FILE", help="Write the report there, as JSON.")] = None,
    json: options.Json = False,
) -> None:
    """Run a query over recorded files.

    All streams are replayed together, in order of event time, so nothing is late and windows expire as they would live.

    \b
    windrow run near.sql --stream cam1=cam1.parquet --stream cam2=cam2.csv --out near.parquet
    windrow run near.sql --stream 'cam1=logs/*.parquet?time=seen' --stream 'cam2=cam2/?time=at&unit=ms' --out near/
    windrow run near.sql --stream cam1=a.csv --stream cam2=b.csv --out near.csv --as-arrived --lateness '2 seconds'
    windrow run - --stream s=s.arrow --out pairs.parquet --json < pairs.sql
    """
    from contextlib import ExitStack, redirect_stdout
    from time import perf_counter

    import windrow
    from windrow.cli.output import ResultFile, SetAsideFiles, Staged, destination
    from windrow.cli.question import ask, check_choices
    from windrow.query.clauses import span_us
    from windrow.streams.replay import Replay

    if runtime not in RUNTIMES:
        raise UsageError(
            f"there is no runtime '{runtime}'", place="--runtime", hint=f"the runtimes are {', '.join(RUNTIMES)}"
        )
    started = perf_counter()
    check_choices(policy, method)
    batch_us = None if batch is None else span_us(batch)
    target = destination(out)
    question = ask(query, stream, udf, lateness)
    _check_not_input(target, question)
    # A function of the user's may print: with --json nothing but the report may come out.
    with redirect_stdout(sys.stderr if json else sys.stdout), ExitStack() as staged:
        aside = None if set_aside is None else SetAsideFiles(_path(set_aside))
        join = windrow.local(question.join, policy=policy, methods=method, set_aside=aside)
        report_file = None if report is None else staged.enter_context(Staged(_path(report)))
        results = staged.enter_context(ResultFile(target, join.schema, is_part=target.parent == _path(out)))
        if aside is not None:
            staged.enter_context(aside)
        replay = Replay(question.read(), batch_us=batch_us, as_arrived=as_arrived)
        _join_all(join, replay, results.write)
        facts = {"out": str(target), "elapsed_seconds": round(perf_counter() - started, 3)}
        facts |= {**_totals(join), **join.report.to_dict()}
        if report_file is not None:
            report_file.write_text(_as_json(facts) + "\n", encoding="utf-8")
    typer.echo(_as_json(facts) if json else _summary(join, target))


def _join_all(join: LocalJoin, replay: Replay, deliver: Any) -> None:
    from rich.console import Console

    from windrow.cli.progress import tracked

    for batch in tracked(replay, Console(stderr=True)):
        for stream in join.spec.streams:
            join.push(stream.name, batch.tables[stream.source])
        deliver(join.step(now_s=batch.end_us / 1_000_000))
    deliver(join.finish())


def _totals(join: LocalJoin) -> dict[str, int]:
    streams = join.report.streams.values()
    return {
        "rows": sum(stream.rows for stream in streams),
        "late": sum(stream.late for stream in streams),
        "bad": sum(stream.bad + stream.too_far_ahead for stream in streams),
    }


def _as_json(facts: dict[str, Any]) -> str:
    from json import dumps

    return dumps(facts, indent=2)


def _summary(join: LocalJoin, target: Path) -> str:
    report = join.report
    faults = f" {report.faults:,} values overflowed or were divided by zero and count as NULL." if report.faults else ""
    return f"{report}; peak memory {report.peak_memory_bytes / 1e6:,.0f} MB. Results are in {target}.{faults}"


def _check_not_input(target: Path, question: Question) -> None:
    if target.exists() and any(target.samefile(file) for file in question.files()):
        raise UsageError(f"'{target}' is one of the inputs", place="--out", hint="name another file for the results")


def _path(text: str) -> Path:
    from pathlib import Path

    return Path(text)
