"""`windrow reproduce`: the papers' figures and tables, the paper's figure beside ours, and whether the trend holds.

    experiments ─▶ run in turn ─┬─▶ claims, as a table                          terminal
                                ├─▶ DIR/grubjoin-figure7.csv, .html             --plots DIR
                                └─▶ everything                                  --json FILE

A claim that does not hold is a finding, said at the end; the exit code is about whether the experiments ran.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windrow.cli.tables import cell
from windrow.errors import SourceError, UsageError

if TYPE_CHECKING:
    from windrow.papers.experiment import Experiment, Outcome

LIST = "list"


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[list|ID]...", help="Which experiments, or all of a paper; all without one."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Smaller sizes: all within three minutes.")] = False,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Another seed draws other random joins.")] = 1,
    json: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write rows and claims there, as JSON.")
    ] = None,
    plots: Annotated[
        str | None, typer.Option(metavar="DIR", help="Write each experiment's rows (CSV) and plot (HTML) there.")
    ] = None,
) -> None:
    """Repeat the experiments of the papers: what the paper says, what we see, and whether it holds.

    \b
    windrow reproduce list
    windrow reproduce --quick --plots plots
    windrow reproduce grubjoin/figure7 --json figure7.json
    """
    from contextlib import ExitStack
    from json import dumps

    from rich.console import Console

    from windrow.cli.output import Staged
    from windrow.papers import EXPERIMENTS

    console = Console(highlight=False)
    listed = LIST in (names or [])
    if listed and (names != [LIST] or quick or plots is not None):
        raise UsageError("'list' runs nothing, so IDs, --quick and --plots mean nothing", hint="leave them out")
    chosen = list(EXPERIMENTS) if listed else choose(EXPERIMENTS, names or [])
    with ExitStack() as staged:
        json_file = None if json is None else staged.enter_context(Staged(Path(json)))
        folder = None if plots is None else _folder(plots)
        if listed:
            _print_list(chosen, console)
            told: Any = [{"name": experiment.name, "title": experiment.title} for experiment in chosen]
        else:
            told = {"quick": quick, "seed": seed, "experiments": _run(chosen, quick, seed, folder, console)}
        if json_file is not None:
            json_file.write_text(dumps(told, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def choose(known: Sequence[Experiment], names: Sequence[str]) -> list[Experiment]:
    """The named experiments, each once, in the order of the names; a paper's name stands for all of its."""
    chosen: dict[str, Experiment] = {}
    for name in names or dict.fromkeys(experiment.paper for experiment in known):
        found = {experiment.name: experiment for experiment in known if name in (experiment.name, experiment.paper)}
        if not found:
            hint = f"run 'windrow reproduce list' alone; names are like {known[0].name} or {known[0].paper}"
            raise UsageError(f"there is no experiment '{name}'", hint=hint)
        chosen.update(found)
    return list(chosen.values())


def _run(
    chosen: Sequence[Experiment], quick: bool, seed: int, folder: Path | None, console: Any
) -> list[dict[str, Any]]:
    from time import perf_counter

    from rich.console import Console

    from windrow.cli.progress import at_work

    told = []
    failing = []
    for place, experiment in enumerate(chosen):
        console.print(f"{experiment.name}: {experiment.title}", style="bold", markup=False, soft_wrap=True)
        started = perf_counter()
        with at_work([each.name for each in chosen], place, Console(stderr=True)):
            outcome = experiment.run(quick, seed)
        seconds = perf_counter() - started
        _print_claims(outcome, console)
        if folder is not None:
            for path in write(experiment, outcome, folder):
                console.print(f"  {path}", markup=False, soft_wrap=True)
        failing += [f"{experiment.name}: {claim.text}" for claim in outcome.claims if not claim.holds]
        told.append(as_json(experiment, outcome, seconds))
    claims = sum(len(one["claims"]) for one in told)
    console.print(f"{claims - len(failing)} of {claims} claims hold.", style="bold")
    for line in failing:
        console.print(f"  does not hold: {line}", markup=False, soft_wrap=True)
    return told


def as_json(experiment: Experiment, outcome: Outcome, seconds: float) -> dict[str, Any]:
    """An experiment that was run, as `--json` writes it."""
    return {
        "name": experiment.name,
        "title": experiment.title,
        "seconds": round(seconds, 3),
        "holds": outcome.holds,
        "claims": [
            {"claim": claim.text, "paper": claim.papers_figure, "ours": claim.ours, "holds": claim.holds}
            for claim in outcome.claims
        ],
        "columns": list(outcome.table.columns),
        "rows": [list(row) for row in outcome.table.rows],
    }


def write(experiment: Experiment, outcome: Outcome, folder: Path) -> list[Path]:
    """Write an experiment's rows and, where it has charts, its page; existing files of these names are replaced."""
    from windrow.cli.output import Staged
    from windrow.papers.plots import LIBRARY_NAME, library, page

    stem = experiment.name.replace("/", "-")
    texts = {f"{stem}.csv": outcome.table.csv()}
    if outcome.charts:
        texts[f"{stem}.html"] = page(experiment, outcome)
        texts[LIBRARY_NAME] = library()
    for name, text in texts.items():
        with Staged(folder / name) as file:
            file.write_text(text, encoding="utf-8")
    return [folder / name for name in texts if name != LIBRARY_NAME]


def _folder(path: str) -> Path:
    """The folder for plots, made where it is absent."""
    from windrow.cli.output import writable

    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"'{path}' is a file, not a folder", hint="name a folder for the plots")
    if not folder.parent.is_dir():
        hint = f"make it: mkdir -p '{folder.parent}'"
        raise SourceError(f"there is no folder '{folder.parent}'", place=path, hint=hint)
    with writable(folder):
        folder.mkdir(exist_ok=True)
    return folder


def _print_list(experiments: Sequence[Experiment], console: Any) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(header_style="bold")
    table.add_column("ID", no_wrap=True)
    table.add_column("what it repeats")
    for experiment in experiments:
        table.add_row(Text(experiment.name), Text(experiment.title))
    console.print(table)


def _print_claims(outcome: Outcome, console: Any) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(header_style="bold")
    for column in ("claim", "paper", "ours", "holds"):
        table.add_column(column)
    for claim in outcome.claims:
        holds = Text(cell(claim.holds), "" if claim.holds else "bold")
        table.add_row(Text(claim.text), Text(claim.papers_figure), Text(claim.ours), holds)
    console.print(table)
