"""`windrow calibrate`: what it prints, and that plans find what it keeps."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.run.test_calibrate import TOY
from windrow.plan.calibration import calibrated
from windrow.plan.methods import METHODS
from windrow.plan.work import WorkCosts
from windrow.run import calibrate


@pytest.fixture(autouse=True)
def toy_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate, "FULL", TOY)
    monkeypatch.setattr(calibrate, "QUICK", TOY)


def test_values_are_those_that_plans_find(windrow_command: Command) -> None:
    assert calibrated() is None
    ended = windrow_command("calibrate", "--quick", "--json")
    assert (ended.code, ended.err) == (0, "")
    found = json.loads(ended.out)
    assert calibrated() == WorkCosts.from_values(found["costs"])
    assert set(found["index_row_s"]) == {"sorted", "hashed"}
    assert Path(found["file"]).parent == Path(os.environ["WINDROW_CACHE_DIR"])


def test_text_has_every_part_with_its_unit(windrow_command: Command) -> None:
    ended = windrow_command("calibrate")
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    for part in ("a batch, whatever is in it", "a row let in", "a row merged", "a row indexed, sorted", "a result"):
        (line,) = [line for line in lines if line.strip().startswith(part)]
        assert line.split()[-1] in ("s", "ms", "us", "ns", "ps")
    for method in METHODS:
        (line,) = [line for line in lines if line.startswith(f"  {method} ")]
        assert len(line.split()) == 7
    assert lines[-1].startswith("kept in ")


def test_a_folder_that_cannot_be_used_is_one_line(
    windrow_command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "file").write_text("")
    monkeypatch.setenv("WINDROW_CACHE_DIR", str(folder / "file"))
    ended = windrow_command("calibrate", "--quick")
    assert (ended.code, ended.out) == (1, "")
    assert "set WINDROW_CACHE_DIR" in ended.err
    assert ended.err.count("\n") == 1
