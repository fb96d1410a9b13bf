"""`windrow bench`: finding benchmarks, running them, showing their rows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Command

BAND = """
from benchmarks.sizes import ROWS

DESCRIPTION = "A band join"


def run(quick):
    ours = 1.5 if quick else 3.0
    return [
        {"name": "band", "ours": ours, "peer": ROWS, "ratio": ROWS / ours, "goal": ">= 5", "met": True},
        {"name": "wide", "ours": ours, "peer": None, "ratio": 0.5, "goal": ">= 5", "met": False, "note": "[missed]"},
    ]
"""


@pytest.fixture
def checkout(folder: Path) -> Path:
    benchmarks = folder / "benchmarks"
    benchmarks.mkdir()
    (benchmarks / "bench_band.py").write_text(BAND, encoding="utf-8")
    (benchmarks / "bench_loop.py").write_text("DESCRIPTION = 'A loop'\nrun = lambda quick: []\n", encoding="utf-8")
    (benchmarks / "bench_broken.py").write_text("import a_package_nobody_has\n", encoding="utf-8")
    (benchmarks / "sizes.py").write_text("ROWS = 12\n", encoding="utf-8")
    (folder / "deeper" / "still").mkdir(parents=True)
    return folder


def bench(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own: a benchmark is imported, and stays so."""
    command = [sys.executable, "-c", "from windrow.cli.main import main; main()", "bench", *arguments]
    environment = {**os.environ, "COLUMNS": "100", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)


def test_tables_and_json_from_a_folder_below(checkout: Path) -> None:
    ended = bench(checkout / "deeper" / "still", "band", "loop", "--quick", "--json", "rows.json")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "band: A band join" in ended.stdout
    assert "loop: A loop" in ended.stdout
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in ended.stdout.splitlines() if "│" in line]
    assert cells == [["band", "1.5", "12", "8", ">= 5", "yes"], ["wide", "1.5", "", "0.5", ">= 5", "NO"]]
    assert "  wide: [missed]" in ended.stdout.splitlines()
    written = json.loads((checkout / "deeper" / "still" / "rows.json").read_text(encoding="utf-8"))
    assert [row["met"] for row in written["band"]] == [True, False]
    assert written["loop"] == []


def test_a_benchmark_that_cannot_be_imported_fails(checkout: Path) -> None:
    ended = bench(checkout, "broken", "--json", "rows.json")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith(
        "windrow: benchmark 'broken' cannot be loaded: No module named 'a_package_nobody_has'"
    )
    assert ended.stderr.count("\n") == 1
    assert not (checkout / "rows.json").exists()


def test_no_folder_of_benchmarks(windrow_command: Command) -> None:
    ended = windrow_command("bench")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("windrow: there is no folder 'benchmarks'")


def test_an_unknown_benchmark(windrow_command: Command, checkout: Path) -> None:
    ended = windrow_command("bench", "sort")
    assert ended.code == 2
    assert ended.err == "windrow: there is no benchmark 'sort'. Next: the benchmarks are band, broken, loop\n"
