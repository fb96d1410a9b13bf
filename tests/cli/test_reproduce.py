"""`windrow reproduce`: what it prints, what it writes, how it ends."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from windrow import papers
from windrow.papers import EXPERIMENTS
from windrow.papers.experiment import Chart, Claim, Experiment, Outcome, Series
from windrow.papers.tables import Table


def run(quick: bool, seed: int) -> Outcome:
    """Two claims, one of which depends on what was asked for."""
    table = Table.of(("z", "quick", "seed"), [(0.5, quick, seed), (1.0, quick, seed)])
    claims = (Claim("[it] grows", "150 %", "160 %", True), Claim("it is quick", "yes", str(quick), quick))
    return Outcome(table, claims, (Chart("z", "seed", (Series.of(table, "all", x="z", y="seed"),)),))


def break_down(quick: bool, seed: int) -> Outcome:
    """Has no outcome."""
    raise ZeroDivisionError("division by zero")


GROWS, SHRINKS = Experiment("one/figure1", "It [grows]", run), Experiment("one/figure2", "It shrinks", run)
BROKEN = Experiment("two/table1", "It breaks", break_down)


@pytest.fixture(autouse=True)
def played(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(papers, "EXPERIMENTS", (GROWS, SHRINKS, BROKEN))


def cells(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines() if "│" in line]


def test_all_are_listed(windrow_command: Command, folder: Path) -> None:
    ended = windrow_command("reproduce", "list", "--json", "list.json")
    assert (ended.code, ended.err) == (0, "")
    assert cells(ended.out) == [
        ["one/figure1", "It [grows]"],
        ["one/figure2", "It shrinks"],
        ["two/table1", "It breaks"],
    ]
    assert json.loads((folder / "list.json").read_text(encoding="utf-8"))[1] == {
        "name": "one/figure2",
        "title": "It shrinks",
    }


def test_the_papers_figure_stands_beside_ours(windrow_command: Command) -> None:
    ended = windrow_command("reproduce", "one/figure1")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("one/figure1: It [grows]\n")
    assert cells(ended.out) == [["[it] grows", "150 %", "160 %", "yes"], ["it is quick", "yes", "False", "NO"]]
    assert ended.out.endswith("1 of 2 claims hold.\n  does not hold: one/figure1: it is quick\n")


def test_rows_and_pages_are_written(windrow_command: Command, folder: Path) -> None:
    for _ in range(2):
        ended = windrow_command("reproduce", "one", "--quick", "--seed", "7", "--plots", "plots", "--json", "all.json")
        assert (ended.code, ended.err) == (0, "")
    names = ["one-figure1.csv", "one-figure1.html", "one-figure2.csv", "one-figure2.html", "plotly.min.js"]
    assert sorted(path.name for path in (folder / "plots").iterdir()) == names
    for name in names[:4]:
        assert f"  plots/{name}\n" in ended.out
    rows = list(csv.reader((folder / "plots" / "one-figure2.csv").read_text(encoding="utf-8").splitlines()))
    assert rows == [["z", "quick", "seed"], ["0.5", "True", "7"], ["1.0", "True", "7"]]
    page = (folder / "plots" / "one-figure1.html").read_text(encoding="utf-8")
    assert "Plotly.newPlot" in page
    written = json.loads((folder / "all.json").read_text(encoding="utf-8"))
    assert (written["quick"], written["seed"]) == (True, 7)
    assert [one["name"] for one in written["experiments"]] == ["one/figure1", "one/figure2"]
    first = written["experiments"][0]
    assert first["claims"][0] == {"claim": "[it] grows", "paper": "150 %", "ours": "160 %", "holds": True}
    assert (first["holds"], first["columns"], first["rows"]) == (
        True,
        ["z", "quick", "seed"],
        [[0.5, True, 7], [1.0, True, 7]],
    )
    assert first["seconds"] >= 0


def test_names_are_run_once_and_in_order(windrow_command: Command) -> None:
    ended = windrow_command("reproduce", "one/figure2", "one", "one/figure2", "--quick")
    assert [line for line in ended.out.splitlines() if line.startswith("one/")] == [
        "one/figure2: It shrinks",
        "one/figure1: It [grows]",
    ]


def test_an_experiment_that_breaks_is_a_failure(windrow_command: Command, folder: Path) -> None:
    ended = windrow_command("reproduce", "--quick", "--json", "all.json")
    assert ended.code == 1
    assert ended.err.startswith("windrow: ZeroDivisionError: division by zero. Next: ")
    assert "two/table1: It breaks" in ended.out
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("one/figure3",), 2, "there is no experiment 'one/figure3'. Next: run 'windrow reproduce list' alone"),
        (("list", "one"), 2, "'list' runs nothing, so IDs, --quick and --plots mean nothing. Next: leave them out"),
        (("list", "--quick"), 2, "--quick and --plots mean nothing"),
        (("one", "--seed", "-1"), 2, "Invalid value for '--seed'"),
        (("one", "--plots", "file"), 2, "'file' is a file, not a folder"),
        (("one", "--plots", "none/plots"), 1, "there is no folder 'none'"),
        (("one", "--json", "none/all.json"), 1, "there is no folder 'none'"),
    ],
)
def test_wrong_use_runs_nothing(
    windrow_command: Command, folder: Path, arguments: tuple[str, ...], code: int, says: str
) -> None:
    (folder / "file").touch()
    ended = windrow_command("reproduce", *arguments)
    assert (ended.code, ended.out) == (code, "")
    assert ended.err.startswith("windrow: ")
    assert says in ended.err
    assert ended.err.count("\n") == 1


def test_colours_are_left_out_where_asked(windrow_command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in windrow_command("reproduce", "list").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in windrow_command("reproduce", "list").out


def test_the_real_ones_run(windrow_command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(papers, "EXPERIMENTS", EXPERIMENTS)
    ended = windrow_command("reproduce", "grubjoin/figure3", "grubjoin/figure5", "--quick", "--plots", "plots")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.endswith("6 of 6 claims hold.\n")
