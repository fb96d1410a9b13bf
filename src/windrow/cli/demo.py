"""`windrow demo`: three generated cameras along a road, joined by Spark as their rows come, with a rush in between.

    rows/s          ____________
     rush          |            |             four times the work there is time for: the least promising part of it
     calm  ________|            |_________    is left out, and made up for in the calm that follows
           first third  second     last       of the time

The cameras see the same things at different times (`windrow.streams.synthetic`): what cam3 sees, cam2 sees two seconds
and cam1 three seconds later. No index serves the condition, so work grows with the square of the rate. How many rows
this machine can join in time is measured first; the band is so narrow that there are few results to write.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windrow.cli import options
from windrow.cli.state import size_text

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from rich.console import Console

    from windrow.run.spark.handle import RunningJoin

LAGS_S = (0.0, 1.0, 3.0)
NOISE = (0.5, 0.5, 2.0)
WINDOW_S = 5
MATCHES_A_STEP = 0.5
"""How many rows of a stream a row meets, in the calm."""
CALM = 0.3
"""How much of the time the calm is busy."""
USABLE = 0.25
"""Of the processor's speed on a loop over pairs, what a batch on Spark comes to with all that is around it."""
LONGEST_THIRD_S, MOST_ROWS = 30, 900_000
FIRST_BATCH_S = 10
"""So long after the streams have begun the first batch is done, about."""
TRIGGER = "2 seconds"
MOST_A_BATCH_S = 4
"""Of event time: what came while Spark made ready is not one large batch."""
ADAPTED_EVERY_S = 3.0
LOOK_EVERY_S = 0.25
FEWEST_BATCHES = 3
"""Even where batches take long: the first one has hardly any rows."""
STOPPED_WITHIN_S = 5.0
SHOWN_RESULTS = 3
QUERY = """
SELECT a.id AS a_id, b.id AS b_id, c.id AS c_id, result_ts() AS seen
FROM cam1 AS a, cam2 AS b, cam3 AS c
WHERE ABS(a.x - b.x) / (1 + ABS(a.x + b.x)) <= {band} AND ABS(b.x - c.x) / (1 + ABS(b.x + c.x)) <= {band}
WINDOW 5 SECONDS
"""
NEXT_STEPS = """Next, on files of your own:
  windrow explain QUERY.sql --stream a=a.parquet --stream b=b.csv
  windrow run     QUERY.sql --stream a=a.parquet --stream b=b.csv --out results.parquet
To read: docs/tutorial.md, and docs/design/0003-doing-less-than-all.md on what was left out, and why that."""


def demo(
    seconds: Annotated[float, typer.Option(min=1, max=3600, help="How long it runs once Spark is up.")] = 90,
    rate: Annotated[
        float | None,
        typer.Option(
            min=1, max=20_000, metavar="HZ", help="Rows a second of each stream in the calm; measured if not given."
        ),
    ] = None,
    rush: Annotated[
        float,
        typer.Option(
            min=1, max=100, metavar="X", help="How many times the work there is time for comes in the second third."
        ),
    ] = 4,
    seed: Annotated[int, typer.Option(min=0, help="Which rows are generated.")] = 1,
    page: Annotated[bool, typer.Option(help="Serve the live page while it runs.")] = True,
    browse: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    master: options.Master = None,
) -> None:
    """Join three generated streams on Spark, with a rush, shown live.

    The rows come in real time, about two seconds of them a batch. A closing report says what was found, what the rush
    cost and what was made up for; Ctrl-C brings it early.

    \b
    windrow demo
    windrow demo --open
    windrow demo --seconds 20 --rate 500 --rush 1
    """
    from contextlib import ExitStack
    from tempfile import TemporaryDirectory

    from rich.console import Console

    from windrow.cli.interrupts import noted
    from windrow.run.spark.session import LOCAL, session

    console = Console(highlight=False)
    with console.status("compiling the join, and measuring it"):
        calm_hz = rate or calm_rate(measured_pairs_hz())
    load = Load(calm_hz, rush_rate(calm_hz, rush), seconds)
    text = QUERY.format(band=f"{band_for(calm_hz):.3g}").strip()
    console.print(text, style="bold", markup=False)
    with noted() as raise_noted, ExitStack() as opened:
        with console.status("starting Spark"):
            spark = opened.enter_context(session(master or LOCAL))
        checkpoint = opened.enter_context(TemporaryDirectory(prefix="windrow-demo-"))
        url = opened.enter_context(served(checkpoint)) if page else None
        console.print(load.text, markup=False, soft_wrap=True)
        if url is not None:
            console.print(f"Watch it at {url}", style="bold", markup=False, soft_wrap=True)
            if browse:
                typer.launch(url)
        sample = Sample()
        running = start(spark, text, load, seed, sample, checkpoint)
        try:
            seen = watch(running, seconds, console, raise_noted)
        finally:
            running.stop(STOPPED_WITHIN_S)
        _close(running, seen, sample, console)


@dataclass(frozen=True, slots=True)
class Load:
    """Rows a second of each stream in the calm and in the rush, which is the second third of the time; where that is
    long it comes again.
    """

    calm_hz: float
    rush_hz: float
    seconds: float

    @property
    def third_s(self) -> int:
        """A third of a cycle; the generator holds no more rows of one at a time."""
        return max(1, round(min(self.seconds / 3, LONGEST_THIRD_S, MOST_ROWS / (2 * self.calm_hz + self.rush_hz))))

    @property
    def steps(self) -> str:
        """As `windrow-synthetic` takes it."""
        third_s = self.third_s
        return f"{third_s + FIRST_BATCH_S}:{self.calm_hz:.0f},{third_s}:{self.rush_hz:.0f},{third_s}:{self.calm_hz:.0f}"

    @property
    def text(self) -> str:
        """In words."""
        third_s = self.third_s
        if self.rush_hz <= self.calm_hz:
            return f"Three streams of {self.calm_hz:,.0f} rows/s each."
        return (
            f"Three streams of {self.calm_hz:,.0f} rows/s each; after {third_s} s a rush of {self.rush_hz:,.0f} rows/s"
            f" for {third_s} s, then calm again."
        )


def band_for(rate_hz: float) -> float:
    """The width of a band, as a share of the values, in which a row meets about `MATCHES_A_STEP` rows of a stream.

    A camera's value climbs by its domain (1000) once a period (50 s), so a second of it holds 20 of 1000; the band's
    half width at a value x is the share of 2 x, on average of 1000.

    >>> band_for(rate_hz=500)
    1e-05
    """
    return MATCHES_A_STEP / 2 * (1000 / 50) / rate_hz / 1000


def calm_rate(pairs_hz: float, work: float = CALM) -> float:
    """The rows a second of each stream of which the work takes a share of the time, at so many pairs a second: each
    row of three streams goes through a window of another, and what it met through that of the third.

    >>> round(calm_rate(pairs_hz=4.5e8), 0)
    1225.0
    """
    pairs_a_row_hz = 3 * WINDOW_S * (1 + MATCHES_A_STEP)
    return float(min(20_000.0, max(20.0, (USABLE * work * pairs_hz / pairs_a_row_hz) ** 0.5)))


def rush_rate(calm_hz: float, rush: float) -> float:
    """The rate at which there is `rush` times as much work as there is time for; it grows with the rate's square.

    >>> round(rush_rate(1000, 1.2)), rush_rate(1000, 1)
    (2000, 1000)
    """
    return calm_hz if rush <= 1 else float(calm_hz * (rush / CALM) ** 0.5)


def measured_pairs_hz(rows: int = 20_000) -> float:
    """Pairs a second of the demo's loop, on one core; the join is compiled on the way."""
    import windrow
    from windrow.streams.synthetic import cameras, generate

    found = 0.0
    for count in (200, rows):
        rate_hz = count / WINDOW_S
        streams = generate(cameras(rate_hz, LAGS_S, NOISE), WINDOW_S, seed=0)
        text = QUERY.format(band=f"{band_for(rate_hz):.3g}")
        with windrow.local(windrow.sql(text, streams=streams)) as join:
            for stream in join.spec.streams:
                join.push(stream.name, streams[stream.source])
            join.step()
            done = join.observation
        steps = [step for tally in done.joined.others.values() for step in tally.steps] if done is not None else []
        found = sum(step.candidates for step in steps) / max(1e-6, sum(step.seconds for step in steps))
    return found


def served(checkpoint: str) -> AbstractContextManager[str | None]:
    """The page of a checkpoint, and where it is; nothing where the packages it needs are missing."""
    try:
        from windrow.dashboard.history import Reader
        from windrow.dashboard.serve import bind, started
    except ModuleNotFoundError:
        return nullcontext()
    return started(bind("127.0.0.1", 0), Reader(checkpoint))


def start(spark: Any, text: str, load: Load, seed: int, sink: Any, checkpoint: str) -> RunningJoin:
    """Start the join over streams that begin now."""
    import windrow
    from windrow.control.controller import ControlSettings
    from windrow.run.spark.sources import register

    register(spark)
    frames = {}
    for number, (lag_s, noise) in enumerate(zip(LAGS_S, NOISE, strict=True), start=1):
        chosen = {"name": f"cam{number}", "arrivals": "step", "steps": load.steps, "lag_s": lag_s, "noise": noise}
        paced = {"seed": seed, "start": "now", "span_s": MOST_A_BATCH_S}
        source = spark.readStream.format("windrow-synthetic").options(**chosen, **paced)
        frames[f"cam{number}"] = source.load()
    join: Any = windrow.sql(text, frames)
    control = ControlSettings(interval_s=ADAPTED_EVERY_S)
    running: RunningJoin = join.start(
        sink, checkpoint=checkpoint, trigger=TRIGGER, throttle="auto", shed="repair", control=control
    )
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
    """What was seen of a join while it ran; `rivals` are, for each batch that left work out, the recall of late and the
    one that random dropping would have had at best.
    """

    complete: bool = False
    seconds: float = 0.0
    batch_s: list[float] = field(default_factory=list)
    throttles: list[float] = field(default_factory=list)
    rivals: list[tuple[float, float]] = field(default_factory=list)
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
                seen.throttles.append(float(status["throttle"]))
                rival = running.random_drop()
                if rival is not None:
                    seen.rivals.append(rival)
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
    for text in (*told_of_rush(seen, status), *told_of_repair(status["repair"])):
        line(f"  {text}")
    line(f"  the windows lie in {status['segments']:,} segments, {size_text(status['bytes'])}")
    for row in sample.rows:
        line("  result: " + ", ".join(f"{name} {value}" for name, value in row.items()))
    for each in running.explain().splitlines():
        if " probes " in each:
            line(f"  {each}")
    line("")
    line(NEXT_STEPS)


def told_of_rush(seen: Seen, status: Mapping[str, Any]) -> list[str]:
    """What the rush cost, beside what random dropping would have."""
    least = min(seen.throttles, default=1.0)
    if least >= 1:
        return ["there was time for everything: nothing was left out"]
    recall = status["recall"]["recall"]
    at_once = "too few to tell how many results" if recall is None else f"about {recall:.0%} of all results"
    told = [f"in the rush as little as {least:.0%} of the full work was done; {at_once} came at once"]
    if seen.rivals:
        ours, theirs = (sum(each) / len(seen.rivals) for each in zip(*seen.rivals, strict=True))
        told.append(
            f"while work was left out {ours:.0%} of the results came at once, on average; dropping rows at random for "
            f"the same work would have kept {theirs:.0%} at best, as the cost model has it"
        )
    return told


def told_of_repair(repair: Mapping[str, Any] | None) -> list[str]:
    """What became of what was left out."""
    if repair is None or not (repair["repaired_pieces"] or repair["open_pieces"]):
        return []
    told = [f"repaired in the calm: {repair['results']:,} results, of {repair['repaired_pieces']:,} pieces of work"]
    if repair["open_pieces"]:
        told.append(
            f"still to be repaired: {repair['open_pieces']:,} pieces, about {repair['open_seconds']:.1f} s of work"
        )
    return told
