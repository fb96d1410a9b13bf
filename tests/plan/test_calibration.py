"""The file of calibrated costs: found again, private, and refused where it does not fit."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from windrow.errors import SourceError, StateError
from windrow.plan import calibration
from windrow.plan.calibration import calibrated, calibration_file, machine, store
from windrow.plan.work import REFERENCE

COSTS = REFERENCE.scaled(3)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WINDROW_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_without_a_measurement_there_are_none() -> None:
    assert calibrated() is None


def test_what_was_kept_is_found_again(cache: Path) -> None:
    store(REFERENCE)
    path = store(COSTS)
    assert calibrated() == COSTS
    assert list(cache.iterdir()) == [path]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    assert json.loads(path.read_text())["machine"] == machine()


def test_another_machine_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    path = store(COSTS)
    monkeypatch.setattr(calibration, "_processor", lambda: "another")
    assert calibration_file() != path
    assert calibrated() is None


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda text: text.replace('"version": 1', '"version": 99', 1), "format version 99, this is 1"),
        (lambda text: "99".join(text.rsplit('"version": 1', 1)), "damaged"),
        (lambda text: text[: len(text) // 2], "damaged"),
        (lambda text: "[]", "damaged"),
        (lambda text: text.replace('"row_s"', '"rows"'), "damaged: these are no costs"),
    ],
)
def test_what_does_not_fit_is_refused(damage: object, says: str) -> None:
    path = store(COSTS)
    assert callable(damage)
    path.write_text(damage(path.read_text()))
    with pytest.raises(StateError, match=says) as error:
        calibrated()
    assert str(path) in str(error.value)
    assert "windrow calibrate" in str(error.value)


def test_what_is_no_file_is_refused() -> None:
    calibration_file().mkdir(parents=True)
    with pytest.raises(StateError, match="cannot be read"):
        calibrated()
    with pytest.raises(SourceError, match="cannot be kept"):
        store(COSTS)
