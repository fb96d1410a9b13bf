"""Functions read from a file: which are found, and how what is wrong with the file is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from windrow.errors import FunctionError, QueryError, SourceError, WindrowError
from windrow.query.spec import UserFunction
from windrow.query.types import BIGINT, BOOLEAN, DOUBLE, FLOAT, VARCHAR
from windrow.query.user_functions import accepts, function, load_functions, user_function

FILE = """
from math import sqrt
from windrow.query.user_functions import function

@function(returns="FLOAT", mode="vectorised")
def half(x):
    return x / 2

@function("renamed")
def other(x):
    return x

def distance(x: float, y: float) -> float:
    return sqrt(x * x + y * y)

def same(x: str, y: str) -> "bool":
    return x == y

def parts(x: "Unknown") -> int:
    return len(x.split())

def initial(x: str) -> str:
    return x[:1]

def undeclared(x):
    return x

def _private(x: float) -> float:
    return x

def nothing(x: float) -> None:
    return None
"""


def file_with(folder: Path, text: str) -> Path:
    path = folder / "mine.py"
    path.write_text(text)
    return path


def test_declared_and_annotated_functions_of_a_file_are_found(tmp_path: Path) -> None:
    found = {each.name: each for each in load_functions(file_with(tmp_path, FILE))}
    assert {name: each.result for name, each in found.items()} == {
        "half": FLOAT,
        "renamed": DOUBLE,
        "distance": DOUBLE,
        "same": BOOLEAN,
        "parts": BIGINT,
        "initial": VARCHAR,
    }
    assert found["half"].mode == "vectorised"
    assert found["distance"](3.0, 4.0) == 5.0


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("def f(x) -> float\n    return x", FunctionError, r"is not Python: expected ':' \(at: .*mine.py:1\)"),
        ("x = 1\n1 / 0\n", FunctionError, r"ZeroDivisionError: division by zero \(at: .*mine.py:2\)"),
        ("import no_such_module_here\n", FunctionError, "No module named 'no_such_module_here'"),
        ("raise SystemExit(3)", FunctionError, "SystemExit: 3"),
        ("x = 1\n", FunctionError, "declares no functions"),
        ("def abs(x: float) -> float: return x", QueryError, "there already is a function 'abs'"),
    ],
)
def test_a_wrong_file_is_told_with_its_place(tmp_path: Path, text: str, kind: type[WindrowError], message: str) -> None:
    with pytest.raises(kind, match=message) as caught:
        load_functions(file_with(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="there is no file"):
        load_functions(tmp_path / "absent.py")
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(SourceError, match="is not a Python file"):
        load_functions(tmp_path / "notes.txt")


def test_what_a_function_returns_is_a_type_or_its_name() -> None:
    assert user_function("f", len, int).result == BIGINT
    assert user_function("f", len, BOOLEAN).result == BOOLEAN
    assert user_function("f", len, " double ").result == DOUBLE
    declared = function("g", returns="INT", mode="pair")(len)
    assert user_function("f", declared) == UserFunction("f", len, declared.result, "pair")


def test_functions_that_cannot_be_inspected_are_believed() -> None:
    assert accepts(UserFunction("f", lambda x, y=1: x, DOUBLE), 2)
    assert not accepts(UserFunction("f", lambda x, y=1: x, DOUBLE), 3)
    assert accepts(UserFunction("f", max, DOUBLE), 7)
