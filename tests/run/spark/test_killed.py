"""The driver program is killed (SIGKILL) at points of a batch and at random moments; the results do not show it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import windrow
from tests.run.spark.killed import POINTS, QUERY
from tests.run.spark.test_join import BATCHES, TABLES, parts

ROOT = Path(__file__).resolve().parents[3]
DONE_S = 180


def lay_out(folder: Path) -> None:
    for name in TABLES:
        (folder / name).mkdir()
        for number, part in enumerate(parts(name)):
            file = folder / name / f"{number:03d}.parquet"
            pq.write_table(part, file)
            os.utime(file, (1_000_000_000 + number, 1_000_000_000 + number))


def begun(folder: Path, point: str, batch: int) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", "tests.run.spark.killed", str(folder), point, str(batch)]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, env=environment, cwd=ROOT, stdout=quiet, stderr=quiet, start_new_session=True)


def ended(process: subprocess.Popen[bytes]) -> int:
    """Wait for a process; what it started (the Java machine, workers) goes with it."""
    try:
        return process.wait(DONE_S)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def expected() -> Counter[tuple[int, ...]]:
    with windrow.local(windrow.sql(QUERY, TABLES)) as join:
        found: Counter[tuple[int, ...]] = Counter()
        for number in range(BATCHES):
            for name in TABLES:
                join.push(name, parts(name)[number])
            found.update(tuple(row.values()) for row in join.step().to_pylist())
    return found


def written(folder: Path) -> Counter[tuple[int, ...]]:
    table = pq.read_table(folder / "out", partitioning=None)
    return Counter(tuple(row[f"{name}_id"] for name in "abc") for row in table.to_pylist())


@pytest.mark.long
@pytest.mark.parametrize("point", POINTS)
def test_killed_at_a_point_of_a_batch(point: str, tmp_path: Path) -> None:
    lay_out(tmp_path)
    for batch in (0, 2, 5):
        assert ended(begun(tmp_path, point, batch)) == -signal.SIGKILL
    assert ended(begun(tmp_path, "never", 0)) == 0
    assert written(tmp_path) == expected()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_killed_at_random_moments(seed: int, tmp_path: Path) -> None:
    lay_out(tmp_path)
    generator = np.random.default_rng(seed)
    strikes = 0
    for _ in range(5):
        process = begun(tmp_path, "never", 0)
        time.sleep(float(generator.uniform(6, 16)))
        process.kill()
        strikes += ended(process) == -signal.SIGKILL
    assert strikes > 0
    assert ended(begun(tmp_path, "never", 0)) == 0
    assert written(tmp_path) == expected()
