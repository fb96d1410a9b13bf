"""`windrow bench`: the measurements in a checkout's `benchmarks/` folder, one table each.

A benchmark is a module `bench_NAME.py` with `DESCRIPTION`, a line of text, and `run(quick)`, which returns a list of
rows: dictionaries from column to value, such as name, ours, peer, ratio, goal and met. Their notes
stand below the table.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from windrow.cli.tables import cell
from windrow.errors import SourceError, UsageError

FOLDER = "benchmarks"
PREFIX = "bench_"
NOTE = "note"

Row = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One benchmark by its name, and the file that holds it."""

    name: str
    file: Path


def bench(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Which benchmarks; all without a name.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes: to see that it works, not to judge by.")] = False,
    json: Annotated[str | None, typer.Option("--json", metavar="FILE", help="Write all rows there, as JSON.")] = None,
) -> None:
    """Measure the joins against their peers, as ratios within one run. Needs a checkout and its bench packages.

    \b
    windrow bench
    windrow bench band equality --quick
    windrow bench --json bench.json
    """
    from contextlib import ExitStack
    from json import dumps

    from rich.console import Console

    from windrow.cli.output import Staged
    from windrow.cli.progress import at_work

    chosen = choose(discover(Path.cwd()), names or [])
    console = Console(highlight=False)
    measured: dict[str, Sequence[Row]] = {}
    with ExitStack() as staged:
        json_file = None if json is None else staged.enter_context(Staged(Path(json)))
        for place, benchmark in enumerate(chosen):
            module = load(benchmark)
            console.print(f"{benchmark.name}: {module.DESCRIPTION}", style="bold", markup=False, soft_wrap=True)
            with at_work([each.name for each in chosen], place, Console(stderr=True)):
                measured[benchmark.name] = module.run(quick)
            _print(measured[benchmark.name], console)
        if json_file is not None:
            json_file.write_text(dumps(measured, indent=2, default=str) + "\n", encoding="utf-8")


def discover(start: Path) -> dict[str, Benchmark]:
    """The benchmarks of the nearest `benchmarks/` folder, from a folder upwards."""
    for place in (start, *start.parents):
        files = sorted((place / FOLDER).glob(f"{PREFIX}*.py"))
        if files:
            found = [Benchmark(file.stem.removeprefix(PREFIX), file) for file in files]
            return {benchmark.name: benchmark for benchmark in found}
    hint = "run it inside a checkout of Windrow, where they are"
    raise UsageError(f"there is no folder '{FOLDER}' with {PREFIX}*.py here or above", place=str(start), hint=hint)


def choose(known: Mapping[str, Benchmark], names: Sequence[str]) -> list[Benchmark]:
    """The named benchmarks, or all."""
    for name in names:
        if name not in known:
            raise UsageError(f"there is no benchmark '{name}'", hint=f"the benchmarks are {', '.join(known)}")
    return [known[name] for name in dict.fromkeys(names)] if names else list(known.values())


def load(benchmark: Benchmark) -> Any:
    """The module of a benchmark. Its checkout goes on the path, so that benchmarks can share modules."""
    root = str(benchmark.file.parent.parent)
    if root not in sys.path:
        sys.path.insert(0, root)
    try:
        module = import_module(f"{FOLDER}.{benchmark.file.stem}")
    except ImportError as error:
        hint = "install what benchmarks need: pip install 'windrow[bench]'"
        raise SourceError(
            f"benchmark '{benchmark.name}' cannot be loaded: {error}", place=str(benchmark.file), hint=hint
        ) from error
    for wanted in ("DESCRIPTION", "run"):
        if not hasattr(module, wanted):
            hint = "a benchmark has DESCRIPTION and run(quick)"
            raise SourceError(f"benchmark '{benchmark.name}' has no {wanted}", place=str(benchmark.file), hint=hint)
    return module


def _print(rows: Sequence[Row], console: Any) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(header_style="bold")
    columns = list(dict.fromkeys(column for row in rows for column in row if column != NOTE))
    for column in columns:
        numbers = all(isinstance(row.get(column), (int, float, type(None))) for row in rows)
        table.add_column(column, justify="right" if numbers else "left")
    for row in rows:
        missed = row.get("met") is False
        table.add_row(
            *(Text(cell(row.get(column)), "bold" if missed and column == "met" else "") for column in columns)
        )
    console.print(table)
    for row in rows:
        if row.get(NOTE):
            console.print(f"  {row.get('name', '')}: {row[NOTE]}", markup=False, soft_wrap=True)
