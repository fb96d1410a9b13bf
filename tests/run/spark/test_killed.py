"""The driver program is killed (SIGKILL) at points of a batch and at random moments; the results do not show it."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import windrow
from tests.run.spark.killed import MENDED, POINTS, QUERY, REPAIR_POINTS, STORES, storage
from tests.run.spark.test_join import ROWS, TABLES

ROOT = Path(__file__).resolve().parents[3]
BATCHES = {"points": 8, "moments": 24}
STRIKES_A_SEED = 5
SEEDS = range(4)
WITHIN_S = {"folder": 3.0, "objects": 8.0}
"""How long after the first batch of a life has begun it may end."""
DONE_S = 900


def lay_out(folder: Path, batches: int) -> None:
    for name, table in TABLES.items():
        (folder / name).mkdir()
        for number in range(batches):
            file = folder / name / f"{number:03d}.parquet"
            pq.write_table(table.slice(number * ROWS // batches, ROWS // batches), file)
            os.utime(file, (1_000_000_000 + number, 1_000_000_000 + number))


def begun(
    folder: Path, store: str, point: str = "never", batch: int = 0, how: str = "exact"
) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", "tests.run.spark.killed", str(folder), store, point, str(batch), how]
    quiet = subprocess.DEVNULL
    (folder / "begun").unlink(missing_ok=True)
    return subprocess.Popen(command, env=environment, cwd=ROOT, stdout=quiet, stderr=quiet, start_new_session=True)


def ended(process: subprocess.Popen[bytes]) -> int:
    """Wait for a process; what it started (the Java machine, workers) goes with it."""
    try:
        return process.wait(DONE_S)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def struck(folder: Path, store: str, generator: np.random.Generator, how: str = "exact") -> bool:
    """Let a program run for a moment, from its first batch on, and kill it; whether it was not through yet."""
    process = begun(folder, store, how=how)
    until_s = time.monotonic() + DONE_S
    while not (folder / "begun").exists() and process.poll() is None and time.monotonic() < until_s:
        time.sleep(0.02)
    time.sleep(float(generator.uniform(0, WITHIN_S[store])))
    process.kill()
    return ended(process) == -signal.SIGKILL


def expected() -> Counter[tuple[int, ...]]:
    with windrow.local(windrow.sql(QUERY, TABLES)) as join:
        for name, table in TABLES.items():
            join.push(name, table)
        found = join.finish().to_pylist()
    return Counter(tuple(row[f"{name}_id"] for name in "abc") for row in found)


def written(folder: Path, store: str) -> Counter[tuple[int, ...]]:
    """The published results."""
    out = storage(folder, store, "out")
    names = [name for name in out.list() if name.startswith("batch=")]
    rows = [row for name in names for row in pq.read_table(io.BytesIO(out.get(name))).to_pylist()]
    return Counter(tuple(row[f"{name}_id"] for name in "abc") for row in rows)


@pytest.mark.long
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("point", POINTS)
def test_killed_at_a_point_of_a_batch(point: str, store: str, tmp_path: Path) -> None:
    lay_out(tmp_path, BATCHES["points"])
    for batch in (0, 2, 5):
        assert ended(begun(tmp_path, store, point, batch)) == -signal.SIGKILL
    assert (tmp_path / "strikes").read_text().splitlines().count(point) >= 3
    assert ended(begun(tmp_path, store)) == 0
    found = written(tmp_path, store)
    assert found == expected()
    assert found.total() > 50


@pytest.mark.long
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("seed", SEEDS)
def test_killed_at_random_moments(seed: int, store: str, tmp_path: Path) -> None:
    generator = np.random.default_rng(seed)
    strikes = lives = 0
    while strikes < STRIKES_A_SEED:
        folder = tmp_path / str(lives := lives + 1)
        folder.mkdir()
        lay_out(folder, BATCHES["moments"])
        while strikes < STRIKES_A_SEED and struck(folder, store, generator):
            strikes += 1
        assert ended(begun(folder, store)) == 0
        assert written(folder, store) == expected()
    assert len(SEEDS) * strikes >= 20


def repaired(folder: Path, store: str) -> int:
    """How many of the published results came later."""
    out = storage(folder, store, "out")
    names = [name for name in out.list() if name.startswith("batch=")]
    return sum(int(pc.sum(pq.read_table(io.BytesIO(out.get(name)))["repaired"]).as_py() or 0) for name in names)


@pytest.mark.long
@pytest.mark.parametrize("point", REPAIR_POINTS)
def test_killed_while_it_repairs(point: str, tmp_path: Path) -> None:
    lay_out(tmp_path, BATCHES["points"])
    for number in (4, 6) if point == MENDED else (1, 2):
        assert ended(begun(tmp_path, "folder", point, number, "repairing")) == -signal.SIGKILL
    assert (tmp_path / "strikes").read_text().splitlines() == [point, point]
    assert ended(begun(tmp_path, "folder", how="repairing")) == 0
    assert written(tmp_path, "folder") == expected()
    assert repaired(tmp_path, "folder") > 0


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS)
def test_killed_at_random_moments_of_repairs(seed: int, tmp_path: Path) -> None:
    generator = np.random.default_rng(seed)
    lay_out(tmp_path, BATCHES["moments"])
    for _ in range(STRIKES_A_SEED):
        struck(tmp_path, "folder", generator, "repairing")
    assert ended(begun(tmp_path, "folder", how="repairing")) == 0
    assert written(tmp_path, "folder") == expected()
    assert repaired(tmp_path, "folder") > 0
