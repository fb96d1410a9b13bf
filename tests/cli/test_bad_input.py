"""Wrong questions and broken files: one line that names the place and the next step, an exit code, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from tests.cli.conftest import Command
from tests.cli.recordings import NEAR, camera, cameras_and_query, write

FAILED, WRONG_USE = 1, 2
HERE = ("run", "--runtime", "local")

RAISING = """
from windrow import function

@function(returns="BOOLEAN")
def picky(x):
    if x > 19:
        raise ValueError("too far\\nto the right")
    return True
"""


def untouched(folder: Path) -> None:
    pass


def truncated(folder: Path) -> None:
    whole = (folder / "cam1.parquet").read_bytes()
    (folder / "cam1.parquet").write_bytes(whole[: len(whole) // 2])


def empty_file(folder: Path) -> None:
    (folder / "cam1.parquet").write_bytes(b"")


def changing(folder: Path) -> None:
    first, second = camera(1), camera(2)
    (folder / "cam1.parquet").unlink()
    write(first, folder / "cam1.parquet" / "first.parquet")
    place = second.column_names.index("x")
    write(second.set_column(place, "x", second["x"].cast(pa.string())), folder / "cam1.parquet" / "second.parquet")


def missing_file(folder: Path) -> None:
    (folder / "cam2.csv").unlink()


def missing_query(folder: Path) -> None:
    (folder / "near.sql").unlink()


def binary_query(folder: Path) -> None:
    (folder / "near.sql").write_bytes(b"\xff\xfe\x00")


def ragged_csv(folder: Path) -> None:
    with (folder / "cam2.csv").open("a", encoding="utf-8") as file:
        file.write("1,2\n")


def full_folder(folder: Path) -> None:
    (folder / "full").mkdir()
    (folder / "full" / "mine.txt").write_text("mine", encoding="utf-8")


@dataclass(frozen=True)
class Bad:
    """One mistake: the query, what is done to the files, further options, and what has to be said about it."""

    says: tuple[str, ...]
    code: int = WRONG_USE
    query: str = NEAR
    damage: Callable[[Path], None] = untouched
    options: tuple[str, ...] = ()


def where(condition: str) -> str:
    return NEAR.replace("a.kind = b.kind", condition)


CASES = {
    "unknown column": Bad(("'y'", "a.y", "id"), query=where("a.y = b.x")),
    "unknown stream in a column": Bad(("'c'", "c.x", "a, b"), query=where("a.x = c.x")),
    "unknown stream in FROM": Bad(("'cam9'", "cam1, cam2"), query=NEAR.replace("cam2", "cam9")),
    "ambiguous name": Bad(("'kind'", "a.kind or b.kind"), query=where("kind = 'car'")),
    "type mismatch": Bad(("a.kind + 1",), query=where("a.kind + 1 = b.x")),
    "types that cannot be compared": Bad(("a.ts = b.x",), query=where("a.ts = b.x")),
    "missing window": Bad(("'b'", "window"), query=NEAR.replace(", b 5 SECONDS", "")),
    "negative window": Bad(("-5", "negative"), query=NEAR.replace("b 5 SECONDS", "b -5 SECONDS")),
    "negative row window": Bad(("-5",), query=NEAR.replace("b 5 SECONDS", "b ROWS -5")),
    "window without a unit": Bad(("5", "SECONDS"), query=NEAR.replace("b 5 SECONDS", "b 5")),
    "unknown function": Bad(("frobnicate",), query=where("frobnicate(a.x) > 1")),
    "text that is not SQL": Bad(("line 1",), query="please join my cameras"),
    "SQL that is no query": Bad(("DROP",), query="DROP TABLE cam1"),
    "half a query": Bad((), query="SELECT a.id FROM cam1 AS a, cam2 AS b WHERE (a.x"),
    "empty query": Bad(("near.sql", "empty"), query=" \n"),
    "aggregates": Bad(("GROUP BY",), query=NEAR.replace("WINDOW", "GROUP BY a.id WINDOW")),
    "one stream alone": Bad(("two streams",), query="SELECT id FROM cam1 WINDOW 5 SECONDS"),
    "missing query": Bad(("near.sql", "No such file"), damage=missing_query),
    "query that is not text": Bad(("near.sql",), damage=binary_query),
    "missing file": Bad(("cam2.csv", "does not exist"), FAILED, damage=missing_file),
    "truncated Parquet": Bad(("cam1.parquet", "cannot be read"), FAILED, damage=truncated),
    "empty Parquet": Bad(("cam1.parquet", "cannot be read"), FAILED, damage=empty_file),
    "ragged CSV": Bad(("cam2.csv",), FAILED, damage=ragged_csv),
    "schema that changes": Bad(("'x'", "double", "string", "second.parquet"), FAILED, damage=changing),
    "stream the query does not read": Bad(("'cam3'",), options=("--stream", "cam3=cam1.parquet")),
    "stream given twice": Bad(("'cam1'", "twice"), options=("--stream", "cam1=cam2.csv")),
    "stream without a path": Bad(("'cam1.parquet'", "NAME=PATH"), options=("--stream", "cam1.parquet")),
    "unknown time column": Bad(("'when'", "ts timestamp"), options=("--stream", "s=cam2.csv?time=when")),
    "unit of a timestamp": Bad(("unit",), options=("--stream", "s=cam1.parquet?unit=ms")),
    "function that raises on some rows": Bad(
        ("picky", "ValueError", "too far to the right"),
        FAILED,
        query=where("picky(a.x + b.x)"),
        options=("--udf", "mine.py"),
    ),
    "missing file of functions": Bad(("nowhere.py",), FAILED, options=("--udf", "nowhere.py")),
    "option of Spark without Spark": Bad(("--checkpoint", "--runtime spark"), options=("--checkpoint", "here")),
    "cluster without a checkpoint": Bad(
        ("'spark://head:7077'", "--checkpoint"), options=("--runtime", "spark", "--master", "spark://head:7077")
    ),
    "unknown runtime": Bad(("'moon'", "local"), options=("--runtime", "moon")),
    "unknown policy": Bad(("'fair'", "timestamp"), options=("--policy", "fair")),
    "favour without auto": Bad(("'early'", "--policy auto"), options=("--favour", "early")),
    "unknown favour": Bad(("'late'", "early or total"), options=("--policy", "auto", "--favour", "late")),
    "unknown method": Bad(("'magic'", "sorted"), options=("--method", "magic")),
    "batch that is no span": Bad(("'soon'",), options=("--batch", "soon")),
    "batch of nothing": Bad(("0",), options=("--batch", "0 seconds")),
    "negative lateness": Bad(("-1 s",), options=("--lateness", "-1 s")),
    "unknown output format": Bad(("'.xlsx'", ".parquet"), options=("--out", "near.xlsx")),
    "output folder with files": Bad(("full", "not empty"), damage=full_folder, options=("--out", "full")),
    "output into no folder": Bad(("nowhere", "mkdir -p"), FAILED, options=("--out", "nowhere/near.parquet")),
    "report into no folder": Bad(("nowhere", "mkdir -p"), FAILED, options=("--report", "nowhere/report.json")),
    "set aside into a full folder": Bad(("full", "not empty"), damage=full_folder, options=("--set-aside", "full")),
    "output over an input": Bad(("cam1.parquet", "inputs"), options=("--out", "cam1.parquet")),
    "vector into CSV": Bad(
        ("'tags'", "near.csv"), query=NEAR.replace("a.x AS ax", "a.unread AS tags"), options=("--out", "near.csv")
    ),
    "unknown option": Bad(("--fast", "--help"), options=("--fast",)),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_one_line_and_nothing_left_behind(windrow_command: Command, folder: Path, case: Bad) -> None:
    arguments = cameras_and_query(folder, case.query)
    (folder / "mine.py").write_text(RAISING, encoding="utf-8")
    case.damage(folder)
    before = sorted(folder.rglob("*"))
    ended = windrow_command(*HERE, *arguments, "--out", "near", *case.options)
    assert (ended.code, ended.out) == (case.code, "")
    assert ended.err.startswith("windrow: ")
    assert ended.err.count("\n") == 1
    assert ". Next: " in ended.err
    assert [text for text in case.says if text not in ended.err] == [], ended.err
    assert [path for path in sorted(folder.rglob("*")) if "__pycache__" not in path.parts] == before


EXPLAINED = [name for name, case in CASES.items() if case.code == WRONG_USE and not case.options]


@pytest.mark.parametrize("name", EXPLAINED)
def test_explain_says_the_same(windrow_command: Command, folder: Path, name: str) -> None:
    case = CASES[name]
    arguments = cameras_and_query(folder, case.query)
    case.damage(folder)
    assert windrow_command("explain", *arguments) == windrow_command(*HERE, *arguments, "--out", "near.parquet")


def test_what_nobody_expected_is_one_line_too(
    windrow_command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr("windrow.run.local.run_batch", broken)
    arguments = (*HERE, *cameras_and_query(folder), "--out", "near.parquet")
    ended = windrow_command(*arguments)
    hint = "Next: set WINDROW_TRACEBACK=1 to see where, and report it"
    assert (ended.code, ended.out, ended.err) == (1, "", f"windrow: RuntimeError: two lines. {hint}\n")
    assert not (folder / "near.parquet").exists()
    monkeypatch.setenv("WINDROW_TRACEBACK", "1")
    assert "Traceback (most recent call last)" in windrow_command(*arguments).err
