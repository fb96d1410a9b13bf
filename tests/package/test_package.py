"""What is built to be installed: a wheel and a source archive, and what a stranger's `pip install` gets.

checkout ─ build ─▶ windrow-0.1.0.tar.gz, windrow-0.1.0-py3-none-any.whl ─ pip install ─▶ windrow demo
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Sequence
from email import message_from_string
from pathlib import Path
from typing import Any

import pytest
import yaml

import windrow
from tests.conftest import REPOSITORY

SET_HERE = ("PYSPARK", "PYTHON", "SPARK", "WINDROW")
BUILD = """
import sys
from setuptools import build_meta
print(getattr(build_meta, sys.argv[1])(sys.argv[2]))
"""


def run(command: Sequence[str | Path], folder: Path, **environment: str) -> str:
    """Run a program to its end, as a stranger would who has set nothing; its output."""
    place = {name: value for name, value in os.environ.items() if not name.startswith(SET_HERE)} | environment
    ended = subprocess.run(command, cwd=folder, env=place, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-2000:]
    return ended.stdout


def copied(folder: Path) -> Path:
    """The repository as git has it, in a folder that building may write to."""
    listed = run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], REPOSITORY)
    for name in filter(None, listed.split("\0")):
        source = REPOSITORY / name
        if source.is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(source.read_bytes())
    return folder


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The archives, as the build backend makes them from a clean copy."""
    checkout, out = copied(tmp_path_factory.mktemp("checkout")), tmp_path_factory.mktemp("dist")
    for kind in ("build_wheel", "build_sdist"):
        run([sys.executable, "-c", BUILD, kind, str(out)], checkout)
    return {path.suffix: path for path in out.iterdir()}


def test_the_wheel_has_all_modules_and_the_type_marker(built: dict[str, Path]) -> None:
    with zipfile.ZipFile(built[".whl"]) as archive:
        names = set(archive.namelist())
        metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
        told = message_from_string(archive.read(metadata).decode())
    source = REPOSITORY / "src"
    files = {path.relative_to(source).as_posix() for path in (source / "windrow").rglob("*.py")}
    assert len(files) > 150
    assert files | {"windrow/py.typed"} <= names
    assert not any(name.startswith(("tests/", "benchmarks/")) for name in names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert (told["Name"], told["Version"]) == ("windrow", windrow.__version__)
    assert {"bench", "dashboard", "docs"} <= set(told.get_all("Provides-Extra") or ())
    assert "Typing :: Typed" in (told.get_all("Classifier") or ())


def test_other_files_of_the_package_are_in_the_wheel(built: dict[str, Path]) -> None:
    source = REPOSITORY / "src"
    listed = run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "src/windrow"], REPOSITORY)
    files = {Path(name).relative_to("src").as_posix() for name in filter(None, listed.split("\0"))}
    with zipfile.ZipFile(built[".whl"]) as archive:
        missing = {name for name in files if (source / name).is_file()} - set(archive.namelist())
    assert missing == set()


def test_the_source_archive_builds_again(built: dict[str, Path], tmp_path: Path) -> None:
    with tarfile.open(built[".gz"]) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    assert (unpacked / "LICENSE").is_file()
    run([sys.executable, "-c", BUILD, "build_wheel", str(tmp_path)], unpacked)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as again, zipfile.ZipFile(built[".whl"]) as first:
        assert sorted(again.namelist()) == sorted(first.namelist())


def test_the_workflow_runs_what_a_change_has_to_pass() -> None:
    workflow: Any = yaml.safe_load((REPOSITORY / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8"))
    steps = [step.get("run", "") for job in workflow["jobs"].values() for step in job["steps"]]
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][\w-]*):(?!=)", makefile, re.MULTILINE))
    called = {step.split()[1] for step in steps if step.startswith("make ")}
    assert called <= targets
    assert {"check", "test", "test-long", "docs"} <= called


@pytest.mark.long
def test_the_wheel_runs_the_demo_in_a_clean_environment(built: dict[str, Path], tmp_path: Path) -> None:
    venv.create(tmp_path / "clean", with_pip=True)
    python = tmp_path / "clean" / "bin" / "python"
    quiet = ("--quiet", "--disable-pip-version-check", "--constraint", str(REPOSITORY / "constraints.txt"))
    run([python, "-m", "pip", "install", *quiet, built[".whl"]], tmp_path)
    place = run([python, "-c", "import windrow; print(windrow.__file__)"], tmp_path)
    assert place.startswith(str(tmp_path))
    command = python.with_name("windrow")
    assert run([command, "--version"], tmp_path) == f"windrow {windrow.__version__}\n"
    said = run(
        [command, "demo", "--seconds", "5", "--rate", "100"], tmp_path, WINDROW_CACHE_DIR=str(tmp_path / "cache")
    )
    assert "\nReport" in said
    assert re.search(r"[1-9][\d,]* results", said)
