"""`windrow demo`: three generated cameras along a road, joined by Spark as their rows come, in real time.

The cameras see the same things at different times (`windrow.streams.synthetic`): what cam3 sees, cam2 sees two seconds
and cam1 three seconds later. The band shrinks as the rate grows, so that a row always meets about four rows of each
other stream.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windrow.cli import options
from windrow.cli.state import size_text

if TYPE_CHECKING:
    from rich.console import Console

    from windrow.run.spark.handle import RunningJoin

LAGS_S = (0.0, 1.0, 3.0)
NOISE = (0.5, 0.5, 2.0)
MATCHES_A_STEP = 4
TRIGGER = "1 second"
LOOK_EVERY_S = 0.25
FEWEST_BATCHES = 3
"""Even where batches take long: the first one has hardly any rows."""
STOPPED_WITHIN_S = 5.0
SHOWN_RESULTS = 3
QUERY = """
SELECT a.id AS a_id, b.id AS b_id, c.id AS c_id, result_ts() AS seen
FROM cam1 AS a, cam2 AS b, cam3 AS c
WHERE ABS(a.x - b.x) <= {band} AND ABS(b.x - c.x) <= {band}
WINDOW 5 SECONDS
"""
NEXT_STEPS = """Next, on files of your own:
  windrow explain QUERY.sql --stream a=a.parquet --stream b=b.csv
  windrow run     QUERY.sql --stream a=a.parquet --stream b=b.csv --out results.parquet"""


def demo(
    seconds: Annotated[float, typer.Option(min=1, max=3600, help="How long it runs once Spark is up.")] = 45,
    rate: Annotated[float, typer.Option(min=1, max=20_000, metavar="HZ", help="Rows a second of each stream.")] = 400,
    seed: Annotated[int, typer.Option(min=0, help="Which rows are generated.")] = 1,
    master: options.Master = None,
) -> None:
    """Join three generated streams on Spark, shown live.

    The rows come in real time, about a second of them a batch. A closing report says what was found and how; Ctrl-C
    brings it early.

    \b
    windrow demo
    windrow demo --seconds 20 --rate 5000
    """
    from contextlib import ExitStack
    from tempfile import TemporaryDirectory

    from rich.console import Console

    from windrow.cli.interrupts import noted
    from windrow.run.spark.session import LOCAL, session

    console = Console(highlight=False)
    text = QUERY.format(band=f"{band_for(rate):.3g}").strip()
    console.print(text, style="bold", markup=False)
    with console.status("compiling the join"):
        _compile(text, rate)
    with noted() as raise_noted, ExitStack() as opened:
        with console.status("starting Spark"):
            spark = opened.enter_context(session(master or LOCAL))
        checkpoint = opened.enter_context(TemporaryDirectory(prefix="windrow-demo-"))
        sample = Sample()
        running = start(spark, text, rate, seed, sample, checkpoint)
        try:
            seen = watch(running, seconds, console, raise_noted)
        finally:
            running.stop(STOPPED_WITHIN_S)
        _close(running, seen, sample, console)


def band_for(rate_hz: float) -> float:
    """The half width of a band in which a row meets about `MATCHES_A_STEP` rows of a stream.

    A camera's value climbs by its domain (1000) once a period (50 s).

    >>> band_for(rate_hz=400)
    0.1
    """
    return MATCHES_A_STEP / 2 * (1000 / 50) / rate_hz


def start(spark: Any, text: str, rate_hz: float, seed: int, sink: Any, checkpoint: str) -> RunningJoin:
    """Start the join over streams that begin now."""
    import windrow
    from windrow.run.spark.sources import register

    register(spark)
    frames = {}
    for number, (lag_s, noise) in enumerate(zip(LAGS_S, NOISE, strict=True), start=1):
        chosen = {"name": f"cam{number}", "rate_hz": rate_hz, "lag_s": lag_s, "noise": noise, "seed": seed}
        frames[f"cam{number}"] = spark.readStream.format("windrow-synthetic").options(**chosen, start="now").load()
    join: Any = windrow.sql(text, frames)
    running: RunningJoin = join.start(sink, checkpoint=checkpoint, trigger=TRIGGER)
    return running


class Sample:
    """A sink that looks at a few results of the first batch that has any."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def __call__(self, frame: Any, batch: int) -> None:  # noqa: ARG002 - what a sink is called with
        if not self.rows:
            self.rows = [row.asDict() for row in frame.take(SHOWN_RESULTS)]


@dataclass
class Seen:
    """What was seen of a join while it ran."""

    complete: bool = False
    seconds: float = 0.0
    batch_s: list[float] = field(default_factory=list)
    status: dict[str, Any] = field(default_factory=dict)


def watch(
    running: RunningJoin,
    seconds: float,
    console: Console,
    raise_noted: Callable[[], None],
    clock: Callable[[], float] = time.monotonic,
) -> Seen:
    """Show each batch until so many seconds after the first, or until Ctrl-C; what makes the join fail is raised."""
    from windrow.cli.live import LiveTable, Moment

    seen = Seen()
    begun_s, last = None, -1
    try:
        with LiveTable(console, seconds) as table:
            while begun_s is None or clock() - begun_s < seconds or len(seen.batch_s) < FEWEST_BATCHES:
                if running.await_termination(LOOK_EVERY_S):
                    break
                raise_noted()
                status = running.status()
                if status["batch"] == last:
                    continue
                last, now_s = status["batch"], clock()
                begun_s = now_s if begun_s is None else begun_s
                seen.status, seen.seconds = status, now_s - begun_s
                seen.batch_s.append(batch_seconds(running))
                streams = status["streams"]
                rows = {name: stream["rows"] for name, stream in streams.items()}
                stored = {name: stream["stored"] for name, stream in streams.items()}
                table.show(Moment(seen.seconds, status["results"], rows, stored, seen.batch_s[-1]))
        seen.complete = True
    except KeyboardInterrupt:
        pass
    return seen


def batch_seconds(running: RunningJoin) -> float:
    """How long the last batch took, by Spark's clock."""
    progress = running.spark_query.lastProgress
    return 0.0 if progress is None else float(progress["batchDuration"]) / 1000


def _compile(text: str, rate_hz: float) -> None:
    """Run a little of the join here, so that the first batch on Spark finds its machine code in the cache."""
    import windrow
    from windrow.streams.synthetic import cameras, generate

    rows = generate(cameras(rate_hz, LAGS_S, NOISE), 200 / rate_hz, seed=0)
    with windrow.local(windrow.sql(text, streams=rows)) as join:
        for stream in join.spec.streams:
            join.push(stream.name, rows[stream.source])
        join.step()


def _close(running: RunningJoin, seen: Seen, sample: Sample, console: Console) -> None:
    def line(text: str, style: str = "") -> None:
        console.print(text, style=style, markup=False, soft_wrap=True)

    status = running.status()
    streams = status["streams"].values()
    rows, late = (sum(stream[count] for stream in streams) for count in ("rows", "late"))
    line("")
    line("Report" if seen.complete else "Report, stopped early", style="bold")
    line(f"  {rows:,} rows in ({late:,} late), {status['batch'] + 1:,} batches, {status['results']:,} results")
    if seen.batch_s:
        line(
            f"  a batch took {1000 * median(seen.batch_s):,.0f} ms (median), {1000 * max(seen.batch_s):,.0f} ms at most"
        )
    line(f"  the windows lie in {status['segments']:,} segments, {size_text(status['bytes'])}")
    for row in sample.rows:
        line("  result: " + ", ".join(f"{name} {value}" for name, value in row.items()))
    for each in running.explain().splitlines():
        if " probes " in each:
            line(f"  {each}")
    line("")
    line(NEXT_STEPS)
