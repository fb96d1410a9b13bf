"""`windrow run`: a query over recorded files, replayed in step, its results in a file.

files ─ read ─ replay in event-time order ─ batch by batch ─▶ join, on Spark or here ─▶ result file, report
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from windrow.cli import options
from windrow.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from windrow.cli.question import Question
    from windrow.run.backlog import RepairSettings

RUNTIMES = ("spark", "local")
_OF_SPARK = ("--master", "--checkpoint")
_OF_LOCAL = ("--shape",)


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
        str,
        typer.Option(
            metavar="NAME",
            help="Where the join runs: spark, or local, which is this process. The results are the same.",
        ),
    ] = "spark",
    master: options.Master = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Where Spark keeps the windows between batches, and with them how far the run is: a run that was "
            "stopped or killed goes on when it is started again with the same DIR. A temporary folder beside the "
            "results if not given; on a cluster an address that all machines reach.",
        ),
    ] = None,
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
    favour: options.Favour = None,
    method: options.Methods = None,
    shape: options.Shape = "mway",
    set_aside: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Write rows that are late or without event time into this folder."),
    ] = None,
    pace: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            help="Replay in real time, X times as fast as event time passes, with batches of a second unless --batch "
            "says otherwise. What there is no time for is left out, unless --throttle is 1.",
        ),
    ] = None,
    throttle: Annotated[
        str | None,
        typer.Option(
            metavar="Z",
            help="The share of the full work to do, above 0 up to 1: the least promising rest is left out. auto, as "
            "much as there is time for, is what --pace does by itself.",
        ),
    ] = None,
    shed: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What becomes of what is left out: drop, or repair, which delivers it later, when there is time or at "
            "the end, and gives all results a last column repaired.",
        ),
    ] = "drop",
    repair_order: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What is repaired first: oldest, or productive, most results a second."),
    ] = None,
    repair_at_end: Annotated[
        bool, typer.Option("--repair-at-end", help="Repair nothing before the input has ended.")
    ] = False,
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="How much the windows may take after each batch, such as 500MB. Beyond it the rows that promise the "
            "fewest results are let go, and counted in the report.",
        ),
    ] = None,
    stale: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What becomes of results older than FRESHNESS allows: suppress leaves them out and counts them, "
            "refuse ends the run before the first.",
        ),
    ] = "suppress",
    events: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Write what each batch did into this folder, for windrow dashboard DIR; a checkpoint has it anyway.",
        ),
    ] = None,
    metrics: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            min=0,
            max=65535,
            help="Serve metrics for Prometheus at http://127.0.0.1:PORT/metrics while it runs.",
        ),
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
    windrow run near.sql --stream cam1=a.csv --stream cam2=b.csv --out near.csv --checkpoint near.state
    windrow run near.sql --stream cam1=a.csv --stream cam2=b.csv --out near.csv --pace 60
    windrow run near.sql --stream cam1=a.csv --stream cam2=b.csv --out near.csv --throttle 0.3
    windrow run near.sql --stream cam1=a.csv --stream cam2=b.csv --out near.csv --pace 60 --shed repair
    windrow run near.sql --stream cam1=a.csv --stream cam2=b.csv --out near.csv --events near.events --metrics 9464
    windrow run - --stream s=s.arrow --out pairs.parquet --runtime local --json < pairs.sql
    """
    from contextlib import ExitStack, redirect_stdout
    from time import perf_counter

    from rich.console import Console

    import windrow
    from windrow.cli.output import ResultFile, Staged, destination
    from windrow.cli.question import Asked, ask, check_choices
    from windrow.plan.memory import limit_bytes
    from windrow.query.clauses import span_us
    from windrow.streams.schedule import check_pace

    started = perf_counter()
    repair = _repair(shed, repair_order, repair_at_end)
    tree = {"--shape": None if shape == "mway" else shape}
    _check_runtime(runtime, {"--master": master, "--checkpoint": checkpoint, **tree})
    if memory is not None:
        limit_bytes(memory)
    policy = check_choices(policy, method, favour)
    batch_us = None if batch is None else span_us(batch)
    if batch_us == 0:
        raise UsageError(f"a batch cannot span '{batch}'", place="--batch", hint="give a span above zero")
    target = destination(out)
    share = _throttle(throttle, pace)
    if pace is not None and batch_us is None:
        batch_us = max(1, round(check_pace(pace) * 1_000_000))
    question = ask(query, stream, udf, lateness)
    _check_not_input(target, question)
    asked = Asked(question, batch_us, as_arrived, policy, method, pace, share, shed, repair, stale, shape)
    with Console(stderr=True).status("compiling the query"):
        schema = windrow.local(question.join, policy=policy, methods=method, shed=shed).schema
    # A function of the user's may print: with --json nothing but the report may come out.
    with redirect_stdout(sys.stderr if json else sys.stdout), ExitStack() as staged:
        report_file = None if report is None else staged.enter_context(Staged(_path(report)))
        results = staged.enter_context(ResultFile(target, schema, is_part=target.parent == _path(out)))
        if runtime == "local":
            from windrow.cli.run_local import run_here
            from windrow.cli.watching import Watching

            found = run_here(asked, results.write, set_aside, memory, Watching(events, metrics))
        else:
            from windrow.cli.run_spark import run_on_spark
            from windrow.cli.watching import Watching

            found = run_on_spark(asked, results, master, checkpoint, set_aside, memory, Watching(events, metrics))
        facts = {"out": str(target), "elapsed_seconds": round(perf_counter() - started, 3), "runtime": runtime, **found}
        if report_file is not None:
            report_file.write_text(_as_json(facts) + "\n", encoding="utf-8")
    typer.echo(_as_json(facts) if json else _summary(facts))


def _check_runtime(runtime: str, given: dict[str, str | None]) -> None:
    if runtime not in RUNTIMES:
        hint = f"the runtimes are {', '.join(RUNTIMES)}"
        raise UsageError(f"there is no runtime '{runtime}'", place="--runtime", hint=hint)
    for option in _OF_SPARK if runtime == "local" else _OF_LOCAL:
        if given[option] is not None:
            other = "spark" if runtime == "local" else "local"
            message = f"{option} means nothing to the {runtime} runtime"
            raise UsageError(message, place=option, hint=f"leave it out, or use --runtime {other}")
    master = given["--master"]
    if master is not None and not master.startswith("local") and given["--checkpoint"] is None:
        hint = "give --checkpoint an address that all machines reach, such as s3a://bucket/folder"
        raise UsageError(f"a run on '{master}' needs a checkpoint", place="--master", hint=hint)


def _throttle(text: str | None, pace: float | None) -> float | Literal["auto"] | None:
    """The throttle that was asked for; in real time it follows the load unless it is said."""
    if text is None:
        return None if pace is None else "auto"
    if text == "auto":
        if pace is None:
            raise UsageError("there is time for everything", place="--throttle auto", hint="say how fast with --pace X")
        return "auto"
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise UsageError(
            f"the throttle is '{text}'", place="--throttle", hint="give a share of the full work, above 0 up to 1"
        )
    return share


def _repair(shed: str, order: str | None, at_end: bool) -> RepairSettings | None:
    """How what is left out is repaired; None if it is dropped."""
    from windrow.run.backlog import RepairSettings
    from windrow.run.options import SHEDS

    if shed not in SHEDS:
        raise UsageError(
            f"what is left out cannot be treated as '{shed}'", place="--shed", hint=f"choose of {', '.join(SHEDS)}"
        )
    if shed == "repair":
        return RepairSettings(order or "oldest", at_end)
    for option, given in (("--repair-order", order is not None), ("--repair-at-end", at_end)):
        if given:
            raise UsageError("nothing is repaired", place=option, hint="say --shed repair as well, or leave it out")
    return None


def _as_json(facts: dict[str, Any]) -> str:
    from json import dumps

    return dumps(facts, indent=2)


def _summary(facts: dict[str, Any]) -> str:
    rows = f"{facts['rows']:,} rows in ({facts['late']:,} late, {facts['bad']:,} bad)"
    done = f"{rows}, {facts['batches']:,} batches, {facts['results']:,} results, {facts['seconds']:.1f} s"
    memory = f"; peak memory {facts['peak_memory_bytes'] / 1e6:,.0f} MB" if "peak_memory_bytes" in facts else ""
    faults = facts.get("faults")
    ill = f" {faults:,} values overflowed or were divided by zero and count as NULL." if faults else ""
    shed = (
        _left_out(facts.get("throttle"), facts.get("recall"), facts["unjoined"]["dropped"])
        + _repaired(facts.get("repair"))
        + _stale(facts.get("freshness"))
    )
    return f"{done}{memory}{shed}. Results are in {facts['out']}.{ill}{_let_go(facts.get('memory'))}"


def _left_out(throttle: float | None, recall: dict[str, Any] | None, dropped: int) -> str:
    """What a throttle cost; rows that were dropped before they were joined are beside it."""
    beside = f"; {dropped:,} rows were dropped before they were joined" if dropped else ""
    if throttle is None or recall is None:
        return beside
    from windrow.control.recall import Recall

    return f"; {throttle:.0%} of the full work was done at the end, recall {Recall(**recall)}{beside}"


def _repaired(repair: dict[str, Any] | None) -> str:
    """What became of what was left out."""
    if repair is None:
        return ""
    told = f"; {repair['results']:,} of the results were repaired"
    if repair["forgotten_pieces"]:
        told += f", about {repair['forgotten_results']:,.0f} more forgotten: too many pieces were open"
    if repair["dropped_rows"]:
        told += f"; {repair['dropped_rows']:,} rows found no room and cannot be repaired"
    return told


def _stale(freshness: dict[str, Any] | None) -> str:
    """What results were too old to be delivered."""
    if freshness is None or not freshness["suppressed"]:
        return ""
    return f"; {freshness['suppressed']:,} results were suppressed as stale: {'; '.join(freshness['infeasible'])}"


def _let_go(memory: dict[str, Any] | None) -> str:
    """What a memory limit cost."""
    if memory is None or not memory["let_go"]:
        return ""
    lost = f" {memory['let_go']:,} rows were let go for memory, about {memory['lost_results']:,.0f} results with them."
    if not memory["crowded"]:
        return lost
    hint = "give more --memory or a shorter --batch"
    return f"{lost} {memory['crowded']:,} batches were larger than the memory by themselves: {hint}."


def _check_not_input(target: Path, question: Question) -> None:
    if target.exists() and any(target.samefile(file) for file in question.files()):
        raise UsageError(f"'{target}' is one of the inputs", place="--out", hint="name another file for the results")


def _path(text: str) -> Path:
    from pathlib import Path

    return Path(text)
