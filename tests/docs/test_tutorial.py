"""The tutorial's Python is one program: it runs as it stands, and prints what the page says it prints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.conftest import REPOSITORY

PAGE = REPOSITORY / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
FEWEST_BLOCKS = 12


def blocks() -> Iterator[tuple[int, str, str | None]]:
    """Line, code and promised output of each block."""
    page = PAGE.read_text(encoding="utf-8")
    for found in BLOCK.finditer(page):
        yield page.count("\n", 0, found.start(1)), found[1], found[2]


def test_every_block_runs_and_prints_what_is_said(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Spark's processes work in the folder they were started in, so the program is taken there.
    names: dict[str, Any] = {"__name__": "__main__"}
    monkeypatch.chdir(tmp_path)
    ran = 0
    for line, code, promised in blocks():
        # Errors and tracebacks name the line of the page.
        program = compile("\n" * line + code, str(PAGE), "exec")
        printed = StringIO()
        with redirect_stdout(printed):
            exec(program, names)  # noqa: S102 - it is our own page
        if promised is not None:
            assert printed.getvalue() == promised, f"docs/tutorial.md:{line}"
        ran += 1
    assert ran >= FEWEST_BLOCKS
    assert not spark.streams.active
