"""What `docs/cluster.md` says of the package in an archive: it runs from one, machine code included."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

from tests.conftest import REPOSITORY

PROGRAM = """
import pyarrow as pa, windrow
rows = pa.table({"ts": pa.array([0, 1_000_000], pa.timestamp("us")), "x": [1.0, 2.0]})
text = "SELECT a.x AS ax, b.x AS bx FROM a, b WHERE a.x * b.x = 2 WINDOW 5 SECONDS"
query = windrow.sql(text, {"a": rows, "b": rows})
with windrow.local(query) as join:
    join.push("a", rows)
    join.push("b", rows)
    print(windrow.__file__.count(".zip"), len(join.step()))
"""


def test_the_package_runs_from_an_archive(tmp_path: Path) -> None:
    source = REPOSITORY / "src"
    with zipfile.ZipFile(tmp_path / "windrow.zip", "w") as archive:
        for file in sorted((source / "windrow").rglob("*.py")):
            archive.write(file, file.relative_to(source))
    environment = {
        **os.environ,
        "PYTHONPATH": str(tmp_path / "windrow.zip"),
        "WINDROW_CACHE_DIR": str(tmp_path / "kernels"),
    }
    program = [sys.executable, "-c", PROGRAM]
    ended = subprocess.run(program, cwd=tmp_path, env=environment, check=False, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, "1 2\n"), ended.stderr
    assert any((tmp_path / "kernels").iterdir())
