"""Kernels of one cache folder run from another, and are not compiled anew."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys
import pyarrow as pa
import windrow
from windrow.probe import ship

if sys.argv[1] == "take":
    data = open(sys.argv[2], "rb").read()
    ship.unpack(data)
rows = pa.table({"ts": pa.array([0, 1], pa.timestamp("us")), "x": [1.0, 2.0]})
query = windrow.sql("SELECT a.x AS ax FROM a, b WHERE a.x * 2 = b.x + 0.0 WINDOW 5 SECONDS", {"a": rows, "b": rows})
with windrow.local(query) as join:
    join.push("a", rows)
    join.push("b", rows)
    assert join.finish().to_pylist() == [{"ax": 1.0}]
names, data = ship.packed()
assert not ship.missing(names)
if sys.argv[1] == "give":
    open(sys.argv[2], "wb").write(data)
print(len(names))
"""


@pytest.mark.parametrize("compile_kernels", ["0"])
def test_kernels_travel(compile_kernels: str, tmp_path: Path) -> None:
    """Interpreted, since compiling takes long; the files are the same but for the machine code."""
    for step in ("give", "take"):
        folder = tmp_path / step
        folder.mkdir(mode=0o700)
        environment = {**os.environ, "WINDROW_CACHE_DIR": str(folder), "WINDROW_COMPILE": compile_kernels}
        command = [sys.executable, "-c", SCRIPT, step, str(tmp_path / "kernels.tar")]
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        assert int(ended.stdout) > 0
    kernels = {path.name: path.stat().st_mtime for path in (tmp_path / "give").glob("*.py")}
    assert {path.name: path.stat().st_mtime for path in (tmp_path / "take").glob("*.py")} == pytest.approx(kernels)
