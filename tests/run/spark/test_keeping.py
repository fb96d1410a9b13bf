"""Windows under a memory limit on Spark, played: never above it after a commit, nothing found that the exact join does
not find, the same rows from every attempt; and with a limit that is never reached, the exact join.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import windrow
from tests.oracle.duck import rows_of
from tests.run.spark.played import Played, PlayedSpark, Rows, Way
from tests.run.test_keeper import BATCHES, QUERIES, ROWS, SPAN_S, stream
from windrow.plan.order import plan_query, with_alternatives
from windrow.query.builder import Join
from windrow.run.keeper import with_memory
from windrow.run.spark.keeping import bytes_of

pytestmark = pytest.mark.usefixtures("interpreted")

KINDS = [kind for kind in QUERIES if kind != "no index"]


def question(kind: str) -> Join:
    text, late_s = QUERIES[kind]
    names = "stu" if kind == "three streams" else "st"
    return windrow.sql(text, streams={name: stream(seed, late_s) for seed, name in enumerate(names)})


def batches_of(query: Join, batches: int = BATCHES) -> list[dict[str, pa.Table]]:
    size = ROWS // batches
    return [{name: table.slice(k * size, size) for name, table in query.sources.items()} for k in range(batches)]


def limited(query: Join, folder: Path, way: Way, limit: int | None, **setting: Any) -> Played:
    """A played join with a memory limit."""
    spec = query.spec()
    plan = plan_query(spec, policy=way.policy, slices=way.slices, slice_by=way.slice_by)
    control = with_memory(None, limit, spec)
    ticks = itertools.count(1)
    given = {"plan": with_alternatives(spec, plan), "control": control, "clock": lambda: SPAN_S / BATCHES * next(ticks)}
    spark = setting.pop("spark", None)
    return Played(query, folder, way, spark, **{**given, **setting})


def ran(played: Played, query: Join) -> tuple[list[Rows], list[int]]:
    """The rows of each batch, and the bytes of live segments after it."""
    found, sizes = [], []
    for batch, tables in enumerate(batches_of(query)):
        found.append(played.run(batch, tables))
        sizes.append(bytes_of(played.state.live))
    return found, sizes


def exact(query: Join) -> list[Rows]:
    with windrow.local(query) as join:
        found = []
        for batch, tables in enumerate(batches_of(query)):
            for name, table in tables.items():
                join.push(name, table)
            found.append(rows_of(join.step(now_s=(batch + 1) * SPAN_S / BATCHES)))
        return found


@pytest.mark.parametrize(
    "way", [Way(1), Way(2, hops=False), Way(3), Way(2, slice_by="hash")],
    ids=["one slice", "one task", "by slices of time", "by hash"],
)  # fmt: skip
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.2, 0.5])
def test_x(kind: str, share: float, way: Way, tmp_path: Path) -> None:
    query = question(kind)
    whole, sizes = ran(limited(query, tmp_path / "whole", way, 10**9), query)
    assert whole == exact(query)
    limit = int(share * max(sizes))
    played = limited(query, tmp_path / "limited", way, limit, spark=PlayedSpark(twice=True))
    found, held = ran(played, query)
    print(kind, share, way.slices, "limit", limit, "held", held, "let go", played.state.memory["streams"]["a"]["let_go"],
      "crowded", played.state.memory["crowded"], "lost", played.state.memory["lost_results"],
      "found", sum(map(Counter.total, found)), "of", sum(map(Counter.total, whole)), [len(played.files)])
    assert max(held) <= limit
    assert all(not one - other for one, other in zip(found, whole, strict=True))
