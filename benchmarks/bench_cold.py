"""A second process: its time from start to first result, with the machine code of the first at hand."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

from benchmarks.measure import Row, child_environment, main, smaller

DESCRIPTION = "Time from the start of a second process to its first result, nothing compiled again"
PROGRAM = """
import pyarrow as pa, windrow
rows = pa.table({"ts": pa.array([0, 1], pa.timestamp("us")), "k": [1, 2], "x": [0.5, 0.25]})
query = windrow.sql(QUERY, streams={"a": rows, "b": rows})
with windrow.local(query) as join:
    for name in ("a", "b"):
        join.push(name, rows)
    print(len(join.step()), flush=True)
"""
SELECT = "SELECT a.x AS ax, b.x + a.x AS total FROM a, b WHERE {condition} WINDOW 5 SECONDS"
CONDITIONS = {
    "band": ("ABS(a.x - b.x) <= 0.125 AND a.k + b.k < 9", 2),
    "equality": ("a.k = b.k AND a.x * b.x < 1", 2),
    "arbitrary": ("a.x * b.x + SQRT(ABS(a.x - b.x)) > 0.3", 2),
}


@dataclass(frozen=True, slots=True)
class Sizes:
    """Queries, by name, and second processes of each."""

    queries: tuple[str, ...]
    rounds: int


QUICK = Sizes(("band",), 5)
FULL = Sizes(tuple(CONDITIONS), 5)


def run(quick: bool) -> list[Row]:
    """The rows of this bench."""
    return measure(QUICK if quick else FULL)


def measure(sizes: Sizes) -> list[Row]:
    """Measure processes started here, each query with a cache of its own that only its first process fills."""
    rows = []
    for name in sizes.queries:
        with tempfile.TemporaryDirectory(prefix="windrow-bench-") as folder:
            first_s = first_result_s(name, folder)
            second_s = statistics.median(first_result_s(name, folder) for _ in range(sizes.rounds))
        note = f"the first process took {first_s:.2g} s, its own code still to compile"
        rows.append(
            smaller(
                f"first result of a second process, {name}", ours=second_s, peer=None, unit="s", goal=3.0, note=note
            )
        )
    return rows


def first_result_s(name: str, folder: str) -> float:
    """Seconds from starting a process to its first line of output."""
    condition, expected = CONDITIONS[name]
    program = PROGRAM.replace("QUERY", repr(SELECT.format(condition=condition)))
    environment = child_environment(WINDROW_CACHE_DIR=folder)
    started = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        line = "" if process.stdout is None else process.stdout.readline()
        spent = time.perf_counter() - started
    if line.strip() != str(expected):
        raise OSError(f"the process for '{name}' printed {line!r} instead of {expected}")
    return spent


if __name__ == "__main__":
    main(DESCRIPTION, run)
