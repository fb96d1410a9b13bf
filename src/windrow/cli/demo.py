"""`windrow demo`: three generated cameras along a road, joined as their rows come, in real time.

The cameras see the same things at different times (`windrow.streams.synthetic`): what cam3 sees, cam2 sees two seconds
and cam1 three seconds later. The band shrinks as the rate grows, so that a row always meets about four rows of each
other stream.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import Console

    from windrow.query.builder import Join
    from windrow.run.local import LocalJoin
    from windrow.streams.replay import Replay

BATCH_S = 0.25
LAGS_S = (0.0, 1.0, 3.0)
NOISE = (0.5, 0.5, 2.0)
MATCHES_A_STEP = 4
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
    seconds: Annotated[float, typer.Option(min=1, max=3600, help="How long it runs.")] = 20,
    rate: Annotated[float, typer.Option(min=1, max=20_000, metavar="HZ", help="Rows a second of each stream.")] = 400,
    seed: Annotated[int, typer.Option(min=0, help="Which rows are generated.")] = 1,
) -> None:
    """Join three generated streams, shown live.

    The rows come in real time, a quarter of a second a batch. A closing report says what was found and how.

    \b
    windrow demo
    windrow demo --seconds 60 --rate 5000
    """
    from rich.console import Console

    import windrow
    from windrow.streams.replay import Replay
    from windrow.streams.synthetic import MIDNIGHT_US, cameras, generate

    console = Console(highlight=False)
    rows = generate(cameras(rate, LAGS_S, NOISE), seconds, seed)
    text = QUERY.format(band=f"{band_for(rate):.3g}").strip()
    console.print(text, style="bold", markup=False)
    query = windrow.sql(text, streams=rows)
    with console.status("compiling the join"):
        _compile(query, rows)
    replay = Replay({name: (table, "ts", None) for name, table in rows.items()}, batch_us=int(BATCH_S * 1_000_000))
    join = windrow.local(query)
    complete = play(join, replay, MIDNIGHT_US, seconds, console)
    _close(join, complete, console)


def band_for(rate_hz: float) -> float:
    """The half width of a band in which a row meets about `MATCHES_A_STEP` rows of a stream.

    A camera's value climbs by its domain (1000) once a period (50 s).

    >>> band_for(rate_hz=400)
    0.1
    """
    return MATCHES_A_STEP / 2 * (1000 / 50) / rate_hz


def play(
    join: LocalJoin,
    replay: Replay,
    start_us: int,
    seconds: float,
    console: Console,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Push each batch when its time has come; whether it went to its end, rather than to Ctrl-C."""
    from windrow.cli.live import LiveTable, Moment

    begun = clock()
    try:
        with LiveTable(console, seconds) as table:
            for batch in replay:
                due_s = (batch.end_us - start_us) / 1_000_000
                sleep(max(0.0, due_s - (clock() - begun)))
                for stream in join.spec.streams:
                    join.push(stream.name, batch.tables[stream.source])
                started = clock()
                join.step()
                now = clock()
                table.show(Moment(now - begun, join.report, now - started, max(0.0, now - begun - due_s - BATCH_S)))
    except KeyboardInterrupt:
        return False
    return True


def _compile(query: Join, rows: dict[str, pa.Table]) -> None:
    """Run a little of the join, so that the first batch does not wait for the compiler."""
    import windrow

    with windrow.local(query) as join:
        for start in (0, 100):
            for stream in join.spec.streams:
                join.push(stream.name, rows[stream.source].slice(start, 100))
            join.step()


def _close(join: LocalJoin, complete: bool, console: Console) -> None:
    def line(text: str, style: str = "") -> None:
        console.print(text, style=style, markup=False, soft_wrap=True)

    report = join.report
    line("")
    line("Report" if complete else "Report, stopped early", style="bold")
    line(f"  {report}")
    batch_ms, peak_mb = 1000 * report.seconds / max(1, report.batches), report.peak_memory_bytes / 1e6
    line(f"  the time is the join's own: {batch_ms:.1f} ms a batch; peak memory {peak_mb:,.0f} MB")
    for step in report.steps:
        found = f"{step.matched:,} of {step.proposed:,} proposed pairs matched"
        line(f"  {step.driver} probes {step.store}: {step.method}, {found} ({step.why})")
    line("")
    line(NEXT_STEPS)
