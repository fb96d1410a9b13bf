"""The tutorial's Python is one program: it runs as it stands, and prints what the page says it prints. The README's
example on Spark runs behind it, in the same session.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.conftest import REPOSITORY

PAGE = REPOSITORY / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
MARK = "--- end of a block"
FEWEST_BLOCKS = 12
READER_WAITS, SHORTER = "await_termination(10)", "await_termination(2)"


def blocks(path: Path) -> Iterator[tuple[int, str, str | None]]:
    """Line, code and promised output of each block that is no doctest."""
    page = path.read_text(encoding="utf-8")
    for found in BLOCK.finditer(page):
        if not found[1].startswith(">>>"):
            yield page.count("\n", 0, found.start(1)), found[1], found[2]


def test_every_block_runs_and_prints_what_is_said(tmp_path: Path) -> None:
    found, readme = list(blocks(PAGE)), list(blocks(REPOSITORY / "README.md"))
    assert len(found) >= FEWEST_BLOCKS
    assert len(readme) == 1
    # Empty lines between the blocks make errors name the line of the page.
    program = ""
    for line, code, _ in found:
        program += "\n" * (line - program.count("\n")) + f"{code.rstrip()}\nprint({MARK!r}, flush=True)"
    example = readme[0][1].replace(READER_WAITS, SHORTER)
    assert example != readme[0][1]
    (tmp_path / "tutorial.py").write_text(f"{program}\n{example}", encoding="utf-8")
    places = os.pathsep.join(filter(None, (str(REPOSITORY / "src"), os.environ.get("PYTHONPATH"))))
    quiet = "--conf spark.ui.enabled=false --conf spark.driver.host=127.0.0.1 pyspark-shell"
    environment = {**os.environ, "PYTHONPATH": places, "PYSPARK_SUBMIT_ARGS": quiet, "SPARK_LOCAL_IP": "127.0.0.1"}
    ended = subprocess.run(
        [sys.executable, "tutorial.py"], cwd=tmp_path, env=environment, check=False, capture_output=True, text=True
    )
    said = [line for line in ended.stderr.splitlines() if not line.startswith("\tat ")]
    assert ended.returncode == 0, "\n".join(said[:60])
    *printed, after = ended.stdout.split(f"{MARK}\n")
    for (line, _, promised), shown in zip(found, printed, strict=True):
        if promised is not None:
            assert shown == promised, f"docs/tutorial.md:{line}"
    assert "a probes b: sorted" in after
