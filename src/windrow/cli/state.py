"""`windrow state`: what a query on Spark keeps between batches, read from its checkpoint."""

from __future__ import annotations

import json as json_format
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

from windrow.cli import options

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

    with Console(stderr=True).status("reading the checkpoint"):
        found = described(read_checkpoint(directory))
    typer.echo(json_format.dumps(found, indent=2) if json else as_text(found))


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


def as_text(found: dict[str, Any]) -> str:
    """A checkpoint for people."""
    first, last = found["batches_on_disk"][0], found["batches_on_disk"][-1]
    windows = [("stream", "window", "rows", "bytes", "segments", "levels", "from", "to")]
    entrances = [("stream", "rows in", "late", "bad", "ahead", "watermark", "behind")]
    held = []
    for name, stream in found["streams"].items():
        levels = " ".join(f"{level}:{count}" for level, count in stream["levels"].items()) or "-"
        span = (time_text(stream["first_us"]), time_text(stream["last_us"]))
        stored = (f"{stream['stored']:,}", size_text(stream["bytes"]), f"{stream['segments']:,}")
        windows.append((name, stream["window"] or "-", *stored, levels, *span))
        rows, late, bad, ahead = (f"{stream[count]:,}" for count in ("rows", "late", "bad", "ahead"))
        watermark = time_text(stream["watermark_us"])
        entrances.append((name, rows, late, bad, ahead, watermark, seconds_text(stream["behind_us"])))
        if stream["held_back_by"] is not None:
            held.append(_held(name, stream["held_back_by"], found))
    return "\n".join(
        [
            f"last batch {found['batch']}, at {time_text(found['now_us'])}; {found['results']:,} results so far",
            f"{found['segments']:,} segments, {size_text(found['bytes'])}, in {found['slices']:,} slices",
            f"commits on disk: {first} to {last}; {found['dying']:,} files to be deleted with the next batches",
            *_repairs(found["repair"]),
            "",
            "windows",
            *_aligned(windows),
            "",
            "entrances",
            *_aligned(entrances),
            "",
            *(held or ["all watermarks are in step: nothing holds expiry back"]),
        ]
    )


def _repairs(repair: dict[str, Any] | None) -> list[str]:
    """What waits to be repaired, and what was."""
    if repair is None:
        return []
    forgotten = f"; {repair['forgotten_pieces']:,} forgotten" if repair["forgotten_pieces"] else ""
    done = f"{repair['repaired_pieces']:,} repaired, with {repair['results']:,} results"
    return [f"pieces left out: {repair['open_pieces']:,} open, {done}{forgotten}"]


def _held(name: str, holder: str, found: dict[str, Any]) -> str:
    behind_us = found["streams"][holder]["behind_us"]
    behind = f"whose watermark is {seconds_text(behind_us)} behind the newest"
    return f"rows of {name} stay for {holder}, {'which has brought no row yet' if behind_us is None else behind}"


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Rows as lines with columns below each other, the first to the left, the others to the right.

    >>> _aligned([("a", "10"), ("long", "9")])
    ['  a     10', '  long   9']
    """
    first, *others = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for name, *values in rows:
        cells = (value.rjust(width) for value, width in zip(values, others, strict=True))
        lines.append("  ".join(("", name.ljust(first), *cells)))
    return lines
