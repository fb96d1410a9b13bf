"""Throttled trees of joins in the simulator: what each way of sharing out resources finds, by how much there is.

Equality joins of four streams, linear and bushy; rates, windows and selectivities are drawn by seed. A level is the
share of the seconds that probing takes if all rows probe. All ways are given the same; what counts is the results that
the join found, a second of its own clock, once allowances are in force and states have filled by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import windrow
from benchmarks.measure import Row, in_child, larger, main
from windrow.control.allowance import ALLOWED
from windrow.control.controller import ControlSettings
from windrow.query.builder import Join
from windrow.run.simulate import simulate

DESCRIPTION = "Trees of joins with less than all: results of auto beside JAQPOT's and four heuristics, level by level"
NAMES = "abcd"
SHAPES = ("linear", "bushy")
OTHERS = tuple(name for name in ALLOWED if name != "auto")
WINDOW_S = 5
HALF_WAY = 0.6


@dataclass(frozen=True, slots=True)
class Sizes:
    """Levels of resources, seeds, how long a run is, and how much of that does not count."""

    levels: tuple[float, ...]
    seeds: int
    duration_s: int
    warm_s: int


QUICK = Sizes(levels=(0.2, 0.6), seeds=1, duration_s=50, warm_s=30)
FULL = Sizes(levels=tuple(level / 10 for level in range(1, 11)), seeds=5, duration_s=60, warm_s=30)


def run(quick: bool) -> list[Row]:
    """The rows of this bench."""
    return in_child("benchmarks.bench_trees", quick)


def measure(sizes: Sizes) -> list[Row]:
    """Results of `auto` beside the best of the others, summed over seeds, level by level."""
    rows: list[Row] = []
    drawn = [streams(seed, sizes.duration_s) for seed in range(sizes.seeds)]
    for shape in SHAPES:
        full = sum(found(each, shape, sizes, 1.0, "auto") for each in drawn)
        for level in sizes.levels:
            ours = [found(each, shape, sizes, level, "auto") for each in drawn]
            others = {name: [found(each, shape, sizes, level, name) for each in drawn] for name in OTHERS}
            best = max(others, key=lambda name: sum(others[name]))
            least = min(
                mine / max(1, theirs) for held in others.values() for mine, theirs in zip(ours, held, strict=True)
            )
            told = ", ".join(f"{name} {sum(ours) / max(1, sum(held)):.3g}" for name, held in others.items())
            name = f"{shape}, {level:.0%} of saturation"
            note = f"results; auto beside {told}; least of any seed {least:.3g}"
            rows.append(
                larger(name, ours=sum(ours), peer=sum(others[best]), unit="", goal=1.0, note=note, peer_name=best)
            )
            if level == HALF_WAY:
                name = f"{shape}, {level:.0%} of saturation, beside all of it"
                rows.append(larger(name, ours=sum(ours), peer=full, unit="", goal=0.8, note="results", peer_name="all"))
    return rows


def streams(seed: int, duration_s: int) -> dict[str, pa.Table]:
    """Four streams with three keys each, of other rates and numbers of values by seed."""
    draw = np.random.default_rng(seed)
    values = draw.integers(60, 400, 3)
    made = {}
    for name in NAMES:
        count = int(draw.integers(40, 160)) * duration_s
        times = np.sort(draw.integers(0, duration_s * 1_000_000, count))
        keys = {key: pa.array(draw.integers(0, values[k], count)) for k, key in enumerate("pqr")}
        made[name] = pa.table({"ts": pa.array(times, pa.timestamp("us")), "id": pa.array(np.arange(count)), **keys})
    return made


def asked(rows: Mapping[str, pa.Table]) -> Join:
    """The chain of equality joins over them."""
    text = f"""SELECT a.id AS i, b.id AS j, c.id AS k, d.id AS l FROM a, b, c, d
        WHERE a.p = b.p AND b.q = c.q AND c.r = d.r WINDOW {WINDOW_S} SECONDS"""
    return windrow.sql(text, streams=rows)


def found(rows: Mapping[str, pa.Table], shape: str, sizes: Sizes, level: float, allowance: str) -> int:
    """The results of a run after its beginning."""
    control = ControlSettings(interval_s=5.0, fixed=level)
    done = simulate(
        asked(rows), rows, shape=shape, control=control, allowance=allowance, duration_s=float(sizes.duration_s)
    )
    return done.found(sizes.warm_s, sizes.duration_s)


if __name__ == "__main__":
    main(DESCRIPTION, run)
