"""`windrow state`: what the last commit says, read without Spark, whatever else is at the address."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from windrow.run.admit import NEVER_US
from windrow.run.spark.journal import Journal
from windrow.run.spark.question import Asked, Question
from windrow.run.spark.state import Commit, Gate, Live
from windrow.store.files import SegmentFile
from windrow.store.storage import LocalStorage

SECOND_US = 1_000_000
COUNTS = {"rows": 1000, "late": 7, "bad": 1, "ahead": 0, "filtered": 20}


def segment(name: str, rows: int, first_s: int, last_s: int, level: int = 0) -> SegmentFile:
    return SegmentFile(f"segments/{name}", rows, 100 * rows, first_s * SECOND_US, last_s * SECOND_US, level, {})


def gate(newest_s: int, watermark_s: int) -> Gate:
    return Gate(newest_s * SECOND_US, watermark_s * SECOND_US, newest_s * SECOND_US, 1000, COUNTS)


@pytest.fixture
def state(folder: Path) -> Path:
    """The state of a query after batches 40 to 42."""
    live: Live = {
        0: {"a": (segment("a0", 10, 50, 60), segment("a1", 300, 10, 50, level=1)), "b": (segment("b0", 5, 41, 42),)},
        1: {"a": (segment("a2", 20, 60, 62),)},
    }
    gates = {"a": gate(62, 60), "b": gate(42, 41), "c": Gate(NEVER_US, NEVER_US, None, 0, dict.fromkeys(COUNTS, 0))}
    question = Question({name: Asked(name, "ts", "20 seconds", {}) for name in "ab"}, ("a.x < b.x",), "used")
    journal = Journal(LocalStorage(folder / "checkpoint" / "windrow"))
    for batch in (40, 41, 42):
        dying = ("segments/old",)
        journal.write_commit(Commit(batch, question, "q", "r", batch * SECOND_US, batch * 10, gates, live, dying))
    return folder / "checkpoint"


def test_values_of_the_last_commit(windrow_command: Command, state: Path) -> None:
    ended = windrow_command("state", "checkpoint", "--json")
    assert (ended.code, ended.err) == (0, "")
    found = json.loads(ended.out)
    assert (found["batch"], found["results"], found["now_us"]) == (42, 420, 42 * SECOND_US)
    assert found["batches_on_disk"] == [40, 41, 42]
    assert (found["slices"], found["segments"], found["bytes"]) == (2, 4, 33_500)
    first = found["streams"]["a"]
    assert (first["stored"], first["segments"], first["levels"], first["slices"]) == (330, 3, {"0": 2, "1": 1}, 2)
    assert (first["first_us"], first["last_us"]) == (10 * SECOND_US, 62 * SECOND_US)
    assert (first["rows"], first["late"], first["watermark_us"], first["behind_us"]) == (1000, 7, 60 * SECOND_US, 0)
    assert found["streams"]["b"]["behind_us"] == 19 * SECOND_US
    assert found["streams"]["c"]["watermark_us"] is None
    assert (first["window"], found["streams"]["c"]["window"]) == ("20 seconds", None)
    assert found["conditions"] == ["a.x < b.x"]
    held = {name: stream["held_back_by"] for name, stream in found["streams"].items()}
    assert held == {"a": "c", "b": "c", "c": "b"}


def test_text_says_what_holds_expiry_back(windrow_command: Command, state: Path) -> None:
    ended = windrow_command("state", "checkpoint")
    assert (ended.code, ended.err) == (0, "")
    for text in (
        "last batch 42, at 1970-01-01 00:00:42.000; 420 results so far",
        "4 segments, 33.5 kB, in 2 slices",
        "0:2 1:1",
        "rows of a stay for c, which has brought no row yet",
        "rows of c stay for b, whose watermark is 19 s behind the newest",
    ):
        assert text in ended.out


def test_the_state_itself_or_a_uri_is_an_address_too(windrow_command: Command, state: Path) -> None:
    expected = windrow_command("state", "checkpoint", "--json").out
    for address in ("checkpoint/windrow", "checkpoint/", state.absolute().as_uri()):
        assert windrow_command("state", address, "--json").out == expected


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        ("nothing there", "there is no state in 'elsewhere'"),
        ("truncated", "damaged"),
        ("another version", "version 99"),
    ],
)
def test_what_cannot_be_read_is_one_line(windrow_command: Command, state: Path, damage: str, says: str) -> None:
    for file in (state / "windrow" / "commits").iterdir():
        whole = file.read_text(encoding="utf-8")
        if damage == "truncated":
            file.write_text(whole[: len(whole) // 2], encoding="utf-8")
        elif damage == "another version":
            file.write_text(json.dumps({**json.loads(whole), "version": 99}), encoding="utf-8")
    ended = windrow_command("state", "elsewhere" if damage == "nothing there" else "checkpoint")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("windrow: ")
    assert says in ended.err
    assert ended.err.count("\n") == 1
    assert ". Next: " in ended.err


def test_spark_is_not_needed(state: Path) -> None:
    program = "import sys; sys.modules['pyspark'] = None; from windrow.cli.main import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", program, "state", str(state)], check=False, capture_output=True, text=True
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "last batch 42" in ended.stdout
