"""How a figure is taken: ours and the peer's in one process, in turn, one thread each, and the ratio of the two.

    run(quick) ──▶ a child process with one thread for every library ──▶ measure(sizes) ──▶ rows

A ratio says more than a time: machines differ and are busy, but both sides then are. What is compared is said in
`note`. Where a goal is missed the row says so, and nothing else happens.

>>> faster("band", Timing(ours_s=0.01, peer_s=0.2, peer_name="DuckDB"), goal=5.0)["met"]
True
>>> smaller("memory", ours=250.0, peer=100.0, unit="MB", goal=3.0)["ratio"]
2.5
"""

from __future__ import annotations

import importlib
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from windrow.errors import WindrowError

Row = dict[str, object]
Value = TypeVar("Value")

ROOT = Path(__file__).resolve().parent.parent
THREADS = ("POLARS_MAX_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
ONE_THREAD = dict.fromkeys(THREADS, "1")
_MARK = "rows of the bench: "


class DisagreementError(WindrowError, AssertionError):
    """A peer found other results than we did, so that the two times cannot be compared."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of both sides for the same work."""

    ours_s: float
    peer_s: float
    peer_name: str


def faster(name: str, timing: Timing, goal: float | None, note: str = "") -> Row:
    """A row that says how many times as fast as the peer we are; the goal, if any, is a least ratio."""
    ratio = timing.peer_s / timing.ours_s
    row = {"ours": _rounded(timing.ours_s * 1e3), "peer": _rounded(timing.peer_s * 1e3), "unit": "ms"}
    return {
        "name": name,
        "peer_name": timing.peer_name,
        **row,
        "ratio": _rounded(ratio),
        "goal": "" if goal is None else f">= {goal:g}",
        "met": None if goal is None else ratio >= goal,
        "note": note,
    }


def smaller(
    name: str, *, ours: float, peer: float | None, unit: str, goal: float, note: str = "", peer_name: str = ""
) -> Row:
    """A row whose goal is a largest ratio of ours to the peer's; without a peer, a largest value of ours."""
    judged = ours if peer is None else ours / peer
    return {
        "name": name,
        "peer_name": peer_name,
        "ours": _rounded(ours),
        "peer": None if peer is None else _rounded(peer),
        "unit": unit,
        "ratio": None if peer is None else _rounded(judged),
        "goal": f"<= {goal:g}" if peer is not None else f"<= {goal:g} {unit}",
        "met": judged <= goal,
        "note": note,
    }


def larger(name: str, *, ours: float, peer: float, unit: str, goal: float, note: str = "", peer_name: str = "") -> Row:
    """A row whose goal is a least ratio of ours to the peer's."""
    ratio = ours / peer if peer > 0 else math.inf
    return {
        "name": name,
        "peer_name": peer_name,
        "ours": _rounded(ours),
        "peer": _rounded(peer),
        "unit": unit,
        "ratio": _rounded(ratio) if math.isfinite(ratio) else None,
        "goal": f">= {goal:g}",
        "met": ratio >= goal,
        "note": note,
    }


def timed(work: Callable[[], Value]) -> tuple[float, Value]:
    """The seconds some work took, and what it returned."""
    started = time.perf_counter()
    value = work()
    return time.perf_counter() - started, value


def in_child(module: str, quick: bool) -> list[Row]:
    """The rows of a bench module, measured in a process of its own where every library has one thread.

    Libraries read the number of their threads when they are imported, hence the process.
    """
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.measure", module, "quick" if quick else "full"],
        env=child_environment(),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    last = done.stdout.splitlines()[-1]
    rows: list[Row] = json.loads(last.removeprefix(_MARK))
    return rows


def child_environment(**more: str) -> dict[str, str]:
    """The environment of a child process that can import what this one can."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "src"), *(entry for entry in sys.path if entry)])
    return {**os.environ, **ONE_THREAD, "PYTHONPATH": path, **more}


def show(description: str, rows: Sequence[Row]) -> None:
    """Write rows as text, one a line."""
    lines = [description]
    for row in rows:
        peer = (
            ""
            if row["peer"] is None
            else f", {row['peer_name'] or 'peer'} {row['peer']} {row['unit']}, ratio {row['ratio']}"
        )
        verdict = f", goal {row['goal']}: {'met' if row['met'] else 'MISSED'}" if row["goal"] else ""
        note = f" ({row['note']})" if row["note"] else ""
        lines.append(f"  {row['name']}: {row['ours']} {row['unit']}{peer}{verdict}{note}")
    sys.stdout.write("\n".join(lines) + "\n")


def main(description: str, run: Callable[[bool], Sequence[Row]]) -> None:
    """Run one bench from the command line: `python -m benchmarks.bench_NAME [--quick]`."""
    show(description, run("--quick" in sys.argv[1:]))


def _rounded(value: float) -> float:
    return float(f"{value:.3g}") if abs(value) < 1000 else round(value)


def _measure_here(module_name: str, size: str) -> None:
    module = importlib.import_module(module_name)
    rows = module.measure(module.QUICK if size == "quick" else module.FULL)
    sys.stdout.write(f"{_MARK}{json.dumps(rows)}\n")


if __name__ == "__main__":
    _measure_here(*sys.argv[1:3])
