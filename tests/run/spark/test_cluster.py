"""A cluster, not one machine's threads: executors that share nothing but files, speculation, processes that die."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY
from tests.run.spark.clustered import LAGGING, STRUCK
from tests.run.spark.test_against_duckdb import EVERY

DONE_S = 1800
IN_HOPS = [name for name, given in EVERY.items() if given.hops is not False]
IN_SLICES = [name for name in IN_HOPS if EVERY[name].options["slices"] > 1]


def report(folder: Path, name: str, fault: str, how: str = "exact") -> dict[str, Any]:
    """What the program says; its results were DuckDB's, or those of the plans that were written."""
    places = f"{REPOSITORY / 'src'}{os.pathsep}{REPOSITORY}"
    known = {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": places, "SPARK_LOCAL_IP": "127.0.0.1"}
    kernels = {"WINDROW_CACHE_DIR": str(folder / "kernels")}
    command = [sys.executable, "-m", "tests.run.spark.clustered", str(folder), name, fault, how]
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(
            command,
            env={**os.environ, **known, **kernels},
            cwd=REPOSITORY,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
        try:
            code = process.wait(DONE_S)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert code == 0, (folder / "said").read_text(errors="replace")[-4000:]
    found: dict[str, Any] = json.loads((folder / "report.json").read_text())
    assert found["results"] > (10 if how == "throttled" else 50)
    return found


def test_a_join_on_a_local_cluster(tmp_path: Path) -> None:
    assert report(tmp_path, "three streams sliced by hash, in one task", "none")["befell"] == []


@pytest.mark.long
@pytest.mark.parametrize("name", IN_HOPS)
@pytest.mark.parametrize("fault", ["worker", "executor"])
def test_processes_of_a_local_cluster_are_killed(name: str, fault: str, tmp_path: Path) -> None:
    befell = report(tmp_path, name, fault)["befell"]
    assert len(befell) == len(STRUCK)


@pytest.mark.long
@pytest.mark.parametrize("fault", ["worker", "executor"])
def test_processes_are_killed_under_a_throttle(fault: str, tmp_path: Path) -> None:
    befell = report(tmp_path, IN_SLICES[0], fault, "throttled")["befell"]
    assert len(befell) == len(STRUCK)


@pytest.mark.long
@pytest.mark.parametrize("name", IN_SLICES)
def test_tasks_that_lag_run_twice(name: str, tmp_path: Path) -> None:
    befell = report(tmp_path, name, "laggard")["befell"]
    assert {f"laggard-{batch}-0" for batch in LAGGING} <= set(befell)
