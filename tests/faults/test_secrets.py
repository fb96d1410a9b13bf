"""What is on disk: nothing of it is unpickled or run, folders and files are their user's alone, and events tell no
values of rows.
"""

from __future__ import annotations

import ast
import os
import pickle
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import windrow
from tests.conftest import REPOSITORY
from tests.run.spark.played import Played, Way
from tests.run.spark.test_worker import QUESTIONS, batches_of, joined
from windrow.run.spark.checkpoint import read_checkpoint
from windrow.run.spark.journal import Journal
from windrow.run.spark.segments import read_with_indexes
from windrow.store.cache import Cache
from windrow.store.storage import LocalStorage

SOURCES = REPOSITORY / "src" / "windrow"
UNPICKLING = ("pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "shelve")
BY_VALUE = {"run/spark/replayed.py"}
"""Names what Spark shall send to its tasks by value; it reads nothing."""
RUNNING = {
    "probe/compile.py": "kernels, out of a folder that is the user's alone",
    "query/user_functions.py": "the file that --udf names",
}
"""Who may run a file as a module."""
SECRET = "a very secret value"
NUMBER = 1234567.890625


@pytest.fixture
def open_to_all(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A user who lets everybody read and write."""
    monkeypatch.setenv("WINDROW_COMPILE", "0")
    before = os.umask(0)
    yield
    os.umask(before)


def named(tree: ast.AST) -> set[str]:
    """The modules a module imports and the functions it calls by their bare name."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            found |= {node.module or "", *(alias.name for alias in node.names)}
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found.add(f"{node.func.id}()")
        if isinstance(node, ast.Attribute):
            found.add(f".{node.attr}")
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            found.add("allow_pickle")
    return found


def test_no_module_unpickles_or_runs_text() -> None:
    seen = 0
    for path in sorted(SOURCES.rglob("*.py")):
        used, place = named(ast.parse(path.read_text())), path.relative_to(SOURCES).as_posix()
        seen += 1
        assert place in BY_VALUE or used.isdisjoint(UNPICKLING), place
        assert used.isdisjoint(("eval()", "exec()", "__import__()", "allow_pickle", ".loads_pickle", ".read_pickle")), (
            place
        )
        assert place in RUNNING or ".exec_module" not in used, place
    assert seen > 200


def written(folder: Path) -> Played:
    """A join with segments, indexes, rows that wait, plans, commits and events."""
    query = joined(QUESTIONS["rows"])
    played = Played(query, folder, Way(2, hops=True, fan_in=2))
    for batch, tables in enumerate(batches_of(query.sources)[:5]):
        played.run(batch, tables)
    return played


def test_a_checkpoint_is_read_without_unpickling(
    open_to_all: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = written(tmp_path / "checkpoint")

    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("something is unpickled")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, refused)
    storage, program = LocalStorage(tmp_path / "checkpoint"), played.runner.program
    commit = Journal(storage).last(5)
    assert commit is not None
    assert read_checkpoint(str(tmp_path / "checkpoint")).commit == commit
    read = [read_with_indexes(storage, file, program, name) for _, name, file in played.files]
    assert sum(map(len, read)) > 10
    assert any(Journal(storage).waiting(4, name) is not None for name in played.kept)
    assert Journal(storage).plan(4) is not None


def test_folders_and_files_are_their_users_alone(open_to_all: None, tmp_path: Path) -> None:
    written(tmp_path / "checkpoint")
    cache = Cache(1000, tmp_path)
    cache.fetch("x", lambda path: path.touch())
    seen = 0
    for root in (tmp_path / "checkpoint", cache.folder):
        for folder, _, _ in os.walk(root):
            seen += 1
            assert stat.S_IMODE(Path(folder).stat().st_mode) == 0o700, folder
    assert seen > 5
    cache.close()


def test_events_tell_no_values_of_rows(open_to_all: None, tmp_path: Path) -> None:
    times = pa.array([k * 1_000_000 for k in range(40)], pa.timestamp("us"))
    rows = pa.table({"ts": times, "s": [SECRET] * 40, "x": [NUMBER + k / 64 for k in range(40)]})
    text = "SELECT a.s AS s, b.x AS x FROM one AS a, two AS b WHERE a.s = b.s AND abs(a.x - b.x) < 5 WINDOW 9 SECONDS"
    query = windrow.sql(text, {"one": rows, "two": rows})
    with windrow.local(query, events=tmp_path / "told", throttle=0.5, memory="1MB") as join:
        for start in range(0, 40, 8):
            join.push("a", rows.slice(start, 8))
            join.push("b", rows.slice(start, 8))
            join.step(now_s=start)
    told = [path.read_text() for path in (tmp_path / "told").rglob("*.json")]
    assert len(told) == 5
    assert any("abs(a.x - b.x)" in text.lower() for text in told)
    for text in told:
        assert SECRET not in text
        assert str(int(NUMBER)) not in text
