"""Progress bars, for replays here and on Spark and for lists of long tasks: on stderr, and only where that is a
terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from windrow.streams.replay import Replay, ReplayBatch

if TYPE_CHECKING:
    from windrow.run.spark.handle import RunningJoin

_LOOK_EVERY_S = 0.25


class RateColumn(ProgressColumn):
    """Rows a second, of late."""

    def render(self, task: Task) -> Text:
        return Text("" if task.speed is None else f"{task.speed:,.0f} rows/s")


def tracked(replay: Replay, console: Console) -> Iterator[ReplayBatch]:
    """The batches of a replay; how far it is, how fast it goes and how long it still takes are shown meanwhile."""
    if not console.is_terminal:
        yield from replay
        return
    columns = (
        BarColumn(),
        TextColumn("batch {task.fields[batch]:,} of {task.fields[batches]:,}"),
        RateColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, speed_estimate_period=10) as progress:
        task = progress.add_task("", total=replay.rows, batch=0, batches=len(replay))
        for number, batch in enumerate(replay, start=1):
            yield batch
            rows = sum(len(table) for table in batch.tables.values())
            progress.update(task, advance=rows, batch=number)


def await_end(running: RunningJoin, console: Console, raise_noted: Callable[[], None]) -> None:
    """Wait for the end of a replay on Spark; what made it fail is raised, and so is an interrupt that was noted."""
    from windrow.run.spark.replayed import given

    columns = (
        BarColumn(),
        TextColumn("batch {task.completed:,.0f} of {task.total:,.0f}"),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=1)
        while not running.await_termination(_LOOK_EVERY_S):
            raise_noted()
            done, batches = given(running)
            if batches:
                progress.update(task, completed=done, total=batches)


@contextmanager
def at_work(names: Sequence[str], place: int, console: Console) -> Iterator[None]:
    """Inside, the task at a place of a list runs: shown are which one, of how many, and for how long.

    The bar is gone before the task's result is printed, which may be on standard output.
    """
    columns = (
        SpinnerColumn(),
        BarColumn(),
        TextColumn(f"{place + 1} of {len(names)}: {{task.description}}"),
        TimeElapsedColumn(),
    )
    with Progress(
        *columns,
        console=console,
        transient=True,
        disable=not console.is_terminal,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as progress:
        progress.add_task(names[place], total=len(names), completed=place)
        yield
