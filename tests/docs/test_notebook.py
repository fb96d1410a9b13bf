"""The example notebook runs from its first cell to its last, and what a cell ends with shows itself."""

from __future__ import annotations

import ast
import json
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import pytest

from tests.conftest import REPOSITORY

NOTEBOOK = REPOSITORY / "examples" / "cameras.ipynb"


@pytest.fixture(scope="module")
def shown() -> list[tuple[Any, str]]:
    """What each cell ends with, and what it prints."""
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    names: dict[str, Any] = {"__name__": "__main__"}
    found = []
    for number, cell in enumerate(cells):
        if cell["cell_type"] == "code":
            found.append(run("".join(cell["source"]), names, f"cell {number}"))
    return found


def run(source: str, names: dict[str, Any], place: str) -> tuple[Any, str]:
    """Run a cell as a notebook does: the value of a last expression is what it shows."""
    tree = ast.parse(source, place)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    out = StringIO()
    with redirect_stdout(out):
        exec(compile(tree, place, "exec"), names)
        value = None
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), place, "eval"), names)
    return value, out.getvalue()


def test_the_notebook_is_kept_without_output() -> None:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert len(cells) > 10
    assert all(not cell.get("outputs") and cell.get("execution_count") is None for cell in cells)


def test_queries_and_reports_show_themselves(shown: list[tuple[Any, str]]) -> None:
    pages = [value._repr_html_() for value, _ in shown if type(value).__module__.startswith("windrow.")]
    assert len(pages) == 3
    assert "abs(a.x - b.x) &lt;= 1" in pages[0]
    assert all("<table>" in page for page in pages)


def test_the_last_batches_are_drawn(shown: list[tuple[Any, str]]) -> None:
    (figure,) = [value for value, _ in shown if type(value).__module__.startswith("plotly.")]
    assert [line.name for line in figure.data] == ["rows in", "results", "busy", "throttle", "rows in windows"]
    assert all(len(line.y) == 60 for line in figure.data)
    assert sum(figure.data[1].y) > 1000


def test_lags_and_recall_are_said(shown: list[tuple[Any, str]]) -> None:
    said = "".join(text for _, text in shown)
    assert "99 % of the results need a window of" in said
    assert "the join itself estimates" in said
