"""`windrow state`: what a query on Spark keeps between batches, read from its checkpoint."""

from __future__ import annotations

import json as json_format
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windrow.cli import options

if TYPE_CHECKING:
    from rich.console import Console

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SIZES = ("B", "kB", "MB", "GB", "TB")


def state(
    directory: Annotated[
        str,
        typer.Argument(
            metavar="DIR",
            help="The checkpoint of a query, running or not: a folder, or a URI such as s3://bucket/folder.",
        ),
    ],
    json: options.Json = False,
) -> None:
    """Show what a query on Spark keeps: windows, watermarks, and what holds expiry back.

    Needs neither Spark nor Java, and changes nothing.

    \b
    windrow state near.state
    windrow state s3://bucket/near.state --json
    """
    from rich.console import Console

    from windrow.run.spark.checkpoint import described, read_checkpoint

    found = described(read_checkpoint(directory))
    if json:
        typer.echo(json_format.dumps(found, indent=2))
    else:
        _print(found, Console(highlight=False))


def time_text(time_us: int | None) -> str:
    """A time for people.

    >>> time_text(1_700_000_000_250_000), time_text(None), time_text(2**62)
    ('2023-11-14 22:13:20.250', '-', '4611686018427387904 us')
    """
    if time_us is None:
        return "-"
    try:
        moment = _EPOCH + timedelta(microseconds=time_us)
    except OverflowError:
        return f"{time_us} us"
    return moment.replace(tzinfo=None).isoformat(" ", "milliseconds")


def size_text(size_bytes: int) -> str:
    """A size for people.

    >>> size_text(999), size_text(1_234_567), size_text(0)
    ('999 B', '1.2 MB', '0 B')
    """
    size, unit = float(size_bytes), 0
    while size >= 1000 and unit + 1 < len(_SIZES):
        size, unit = size / 1000, unit + 1
    return f"{size:.1f} {_SIZES[unit]}" if unit else f"{size_bytes} B"


def seconds_text(span_us: int | None) -> str:
    """A span for people.

    >>> seconds_text(1_500_000), seconds_text(0), seconds_text(None)
    ('1.5 s', '0 s', '-')
    """
    return "-" if span_us is None else f"{span_us / 1e6:,.3f}".rstrip("0").rstrip(".") + " s"


def _print(found: dict[str, Any], console: Console) -> None:
    from rich.table import Table

    def line(text: str) -> None:
        console.print(text, markup=False, soft_wrap=True)

    first, last = found["batches_on_disk"][0], found["batches_on_disk"][-1]
    line(f"last batch {found['batch']}, at {time_text(found['now_us'])}; {found['results']:,} results so far")
    line(f"{found['segments']:,} segments, {size_text(found['bytes'])}, in {found['slices']:,} slices")
    line(f"commits on disk: {first} to {last}; {found['dying']:,} files to be deleted with the next batches")
    windows = _columns(Table(box=None, pad_edge=False), "rows", "bytes", "segments", "levels", "from", "to")
    entrances = _columns(Table(box=None, pad_edge=False), "rows in", "late", "bad", "ahead", "watermark", "behind")
    for name, stream in found["streams"].items():
        levels = " ".join(f"{level}:{count}" for level, count in stream["levels"].items()) or "-"
        span = (time_text(stream["first_us"]), time_text(stream["last_us"]))
        windows.add_row(
            name, f"{stream['stored']:,}", size_text(stream["bytes"]), str(stream["segments"]), levels, *span
        )
        counts = (f"{stream[count]:,}" for count in ("rows", "late", "bad", "ahead"))
        entrances.add_row(name, *counts, time_text(stream["watermark_us"]), seconds_text(stream["behind_us"]))
    for title, table in (("windows", windows), ("entrances", entrances)):
        line(f"\n{title}")
        console.print(table)
    held = {name: stream["held_back_by"] for name, stream in found["streams"].items() if stream["held_back_by"]}
    line("")
    for name, holder in held.items():
        behind = seconds_text(found["streams"][holder]["behind_us"])
        line(f"rows of {name} stay for {holder}, whose watermark is {behind} behind the newest")
    if not held:
        line("all watermarks are in step: nothing holds expiry back")


def _columns(table: Any, *headings: str) -> Any:
    table.add_column("stream")
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table
