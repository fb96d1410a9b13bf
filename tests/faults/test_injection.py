"""What runs is made of the parsed query alone: names, texts, aliases and functions of others never become code."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import windrow
from windrow.errors import QueryError, WindrowError

HOSTILE = (
    "__import__('pathlib').Path('struck').touch()",
    "x\n__import__('pathlib').Path('struck').touch()\n",
    "'); __import__('pathlib').Path('struck').touch() #",
    '"""\n__import__("pathlib").Path("struck").touch()\n"""',
    "\\'); open('struck', 'w') #",
    "{open('struck', 'w')}",
    "inputs", "faults", "kernel", "compiled", "v1", "i", "j", "lambda", "None", "nan",
)  # fmt: skip
CALLS = ("open", "eval", "exec", "compile", "__import__", "getattr", "print", "near", "os", "system", "call_within")
MODULES = ("numpy", "math", "windrow.probe")
"""What kernels import from."""


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to run in, and one for what is generated; nothing may be left in the first."""
    monkeypatch.setenv("WINDROW_COMPILE", "0")
    monkeypatch.setenv("WINDROW_CACHE_DIR", str(tmp_path / "kernels"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    yield tmp_path / "kernels"
    assert list((tmp_path / "here").iterdir()) == []


def quoted(name: str, mark: str = '"') -> str:
    return f"{mark}{name.replace(mark, 2 * mark)}{mark}"


def found_with(name: str) -> list[dict[str, Any]]:
    """The results of a query that uses a hostile text as a name of a column, an alias and a value."""
    rows = pa.table({"ts": pa.array([1, 2], pa.timestamp("us")), name: [1.0, 2.0], "s": [name, "other"]})
    text = f"""SELECT a.{quoted(name)} + 1 AS {quoted(name + "!")}, b.s AS s FROM one AS a, two AS b
        WHERE abs(a.{quoted(name)} - b.{quoted(name)}) < 0.5 AND a.s = b.s AND (a.s = {quoted(name, "'")} OR
        lower(b.s) || '' LIKE {quoted(name, "'")}) WINDOW 1 SECONDS""".replace("|| ''", "")
    with windrow.local(windrow.sql(text, {"one": rows, "two": rows})) as join:
        join.push("a", rows)
        join.push("b", rows)
        return list(join.finish().to_pylist())


@pytest.mark.parametrize("name", HOSTILE)
def test_names_and_texts_are_no_code(name: str, kernels: Path) -> None:
    assert found_with(name) == [{f"{name}!": 2.0, "s": name}]
    texts = [file.read_text() for file in kernels.glob("kernel_*.py")]
    assert texts
    for text in texts:
        check_kernel(text)


def check_kernel(text: str) -> None:
    """A kernel imports from a few modules, calls what it imports or a few built-ins, and holds no text."""
    nodes = list(ast.walk(ast.parse(text)))
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    assert imports
    assert all((node.module or "").startswith(MODULES) for node in imports)
    assert not any(isinstance(node, ast.Import) for node in nodes)
    imported = {alias.asname or alias.name for node in imports for alias in node.names}
    for node in nodes:
        if isinstance(node, ast.Constant):
            assert isinstance(node.value, bool | int | float | None), node.value
        if isinstance(node, ast.Call):
            assert isinstance(node.func, ast.Name), ast.unparse(node)
            assert node.func.id in imported | {"abs", "len", "min", "max", "range", "bool", "int", "float"}
        assert not isinstance(node, ast.JoinedStr | ast.Lambda | ast.Global)
        if isinstance(node, ast.Attribute):
            assert node.attr in ("shape", "size"), ast.unparse(node)


def near(x: float, y: float) -> bool:
    raise AssertionError("nobody gave this function")


@pytest.mark.parametrize("called", CALLS)
def test_only_functions_that_are_given_can_be_called(
    called: str, kernels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builtins, "near", near, raising=False)
    rows = pa.table({"ts": pa.array([1], pa.timestamp("us")), "x": [1.0]})
    for call in (f"{called}(a.x, b.x)", f"{called}('struck', 'w')", f"udf:{called}(a.x)", f"a.{called}(b.x)"):
        text = f"SELECT a.x AS x FROM a, b WHERE {call} = 1 WINDOW 1 SECONDS"
        with pytest.raises(QueryError) as told:
            windrow.sql(text, {"a": rows, "b": rows})
        assert "\n" not in str(told.value)


@pytest.mark.parametrize("name", HOSTILE)
def test_names_of_functions_are_no_code(name: str, kernels: Path) -> None:
    rows = pa.table({"ts": pa.array([1], pa.timestamp("us")), "x": [1.0]})
    try:
        given = windrow.function(name, returns="BOOLEAN", mode="pair")(lambda x, y: x == y)
        text = f"SELECT a.x AS x FROM a, b WHERE {name}(a.x, b.x) WINDOW 1 SECONDS"
        query = windrow.sql(text, {"a": rows, "b": rows}, functions=(given,))
    except WindrowError:
        return
    with windrow.local(query) as join:
        join.push("a", rows)
        join.push("b", rows)
        assert join.finish().to_pylist() == [{"x": 1.0}]
