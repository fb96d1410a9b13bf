"""The repository keeps its own promises, and the guards that say so can see."""

from __future__ import annotations

import os
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts import check_repository
from scripts.check_repository import GUARDS, Found, Guard, Repository, problems_of

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.look.__name__)
def test_guard_finds_nothing_here(guard: Guard) -> None:
    assert problems_of(guard, Repository.at(ROOT)) == []


def repository_with(root: Path, files: dict[str, str]) -> Repository:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    return Repository.at(root)


PINS = {
    "pyproject.toml": '[build-system]\nrequires = ["alpha>=1"]\n[project]\ndependencies = ["beta>=2,<3"]\n',
    "constraints.txt": "alpha==1.0\nbeta==2.1\n",
}
COMMANDS = {"Makefile": "test:\n\ttrue\n", "src/windrow/cli/explain.py": ""}

PLANTED: list[tuple[Callable[[Repository], Found], dict[str, str], str | None]] = [
    (check_repository.no_machine_paths, {"a.py": 'DATA = "' + "/" + 'home/someone/data"'}, "a.py:1"),
    (check_repository.no_machine_paths, {"a.md": "from file:" + "//" + "/tmp" + "/x"}, "a.md:1"),
    (check_repository.no_machine_paths, {"a.md": "src/home/page and ./tmp/x and https://host.example/home/x"}, None),
    (check_repository.no_registry_hosts, {"a.txt": "ok\n--index" + "-url=x"}, "a.txt:2"),
    (check_repository.no_registry_hosts, {"a.txt": "https://PyPI" + ".org/simple"}, "a.txt:1"),
    (check_repository.no_unfinished_work, {"src/a.py": "raise NotImplemented" + "Error"}, "src/a.py:1"),
    (
        check_repository.no_unfinished_work,
        {"tests/test_a.py": "@pytest.mark." + "skip(reason='')"},
        "tests/test_a.py:1",
    ),
    (check_repository.no_unfinished_work, {"src/a.py": "return NotImplemented"}, None),
    (check_repository.modules_are_short, {"src/a.py": "x = 1\n" * 451}, "src/a.py: 451 lines"),
    (check_repository.modules_are_short, {"src/a.py": "x = 1\n" * 450}, None),
    (check_repository.no_recorded_data, {"tests/a.parquet": "PAR1"}, "tests/a.parquet"),
    (check_repository.no_recorded_data, {"a.txt": "x" * 500_001}, "a.txt: 500001 bytes"),
    (check_repository.documented_paths_exist, {"README.md": "see `src/none.py`"}, "there is no `src/none.py`"),
    (check_repository.documented_paths_exist, {"docs/a.md": "see [that](none.md#x)"}, "there is no `none.md`"),
    (
        check_repository.documented_paths_exist,
        {".gitignore": "made/", "made/a.txt": "", "README.md": "see `made/a.txt`"},
        "there is no `made/a.txt`",
    ),
    (
        check_repository.documented_paths_exist,
        {
            "README.md": "`src/windrow/a.py`, `a.py`, [a](docs/b.md)",
            "src/windrow/a.py": "",
            "docs/b.md": "[up](../README.md)",
        },
        None,
    ),
    (check_repository.documented_commands_exist, COMMANDS | {"a.md": "`make tset`"}, "`make tset`"),
    (
        check_repository.documented_commands_exist,
        COMMANDS | {"a.md": "```\nwindrow expalin q\n```\n"},
        "`windrow expalin`",
    ),
    (check_repository.documented_commands_exist, COMMANDS | {"a.md": "`make test`, `windrow explain Q`"}, None),
    (check_repository.dependencies_are_pinned, PINS | {"constraints.txt": "alpha==1.0\n"}, "beta is not pinned"),
    (check_repository.dependencies_are_pinned, PINS | {"constraints.txt": "alpha==1.0\nbeta==3.0\n"}, "outside"),
    (check_repository.dependencies_are_pinned, PINS | {"constraints.txt": "alpha>=1.0\nbeta==2.1\n"}, "`alpha>=1.0`"),
    (check_repository.dependencies_are_pinned, PINS, None),
]


@pytest.mark.parametrize(("look", "files", "problem"), PLANTED)
def test_guard_sees_what_is_planted(
    tmp_path: Path, look: Callable[[Repository], Found], files: dict[str, str], problem: str | None
) -> None:
    found = look(repository_with(tmp_path, files))
    assert found.seen > 0
    if problem is None:
        assert found.problems == []
    else:
        assert any(problem in line for line in found.problems), found.problems


def test_every_guard_has_a_planted_problem() -> None:
    assert {guard.look for guard in GUARDS} == {look for look, _, problem in PLANTED if problem is not None}


def test_a_guard_that_saw_too_little_fails(tmp_path: Path) -> None:
    guard = Guard(check_repository.no_machine_paths, at_least=2)
    assert "looked at 1 things" in problems_of(guard, repository_with(tmp_path, {"a.md": "text"}))[0]


def test_ignored_files_do_not_count(tmp_path: Path) -> None:
    repository = repository_with(tmp_path, {".gitignore": ".venv/\n", ".venv/a.parquet": "", "b.txt": ""})
    assert [repository.name(path) for path in repository.files] == [".gitignore", "b.txt"]


def test_make_lists_every_target() -> None:
    listed = subprocess.run(
        ["make", "-C", str(ROOT), "--no-print-directory"], check=True, capture_output=True, text=True
    )
    targets = [line.split()[1] for line in listed.stdout.splitlines()]
    assert targets == ["help", "setup", "test", "test-long", "test-faults", "check", "demo", "bench", "docs", "clean"]


def test_scripts_can_be_run() -> None:
    for name in (".ci/run", "scripts/setup"):
        path = ROOT / name
        assert os.access(path, os.X_OK), name
        subprocess.run(["bash", "-n", str(path)], check=True)


def test_setup_says_what_is_wrong_with_a_chosen_python() -> None:
    environment = os.environ | {"PYTHON": "no-such-python"}
    command = [str(ROOT / "scripts" / "setup"), "never-made"]
    done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "setup: PYTHON=no-such-python is not a Python 3.11 or newer with venv and ensurepip\n"
    assert not (ROOT / "never-made").exists()


def test_warnings_are_errors_and_format_is_on() -> None:
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    assert tool["pytest"]["ini_options"]["filterwarnings"][0] == "error"
    assert tool["mypy"]["strict"] is True
    assert "exclude" not in tool["ruff"]
    assert "exclude" not in tool["mypy"]
