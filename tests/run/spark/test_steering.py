"""What steers a join on Spark where nothing is left out: drivers that are chosen by what steps found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import windrow
from tests.run.spark.played import Played, Way

pytestmark = pytest.mark.usefixtures("interpreted")

TEXT = "SELECT a.id AS i, b.id AS j FROM a, b WHERE a.k = b.k WINDOW a 20 SECONDS, b 2 SECONDS"


def table(batch: int, seed: int, rows: int) -> pa.Table:
    random = np.random.default_rng([batch, seed])
    times_us = np.sort(random.integers(batch * 1_000_000, (batch + 1) * 1_000_000, rows))
    return pa.table({
        "ts": pa.array(times_us, pa.timestamp("us")), "id": np.arange(rows), "k": random.integers(0, 4, rows),
    })  # fmt: skip


@pytest.mark.parametrize("policy", ["auto_early", "auto_total", "timestamp"])
def test_what_steps_found_is_known_of_the_next_batch(policy: str, tmp_path: Any) -> None:
    pushed = [{"a": table(batch, 0, 40), "b": table(batch, 1, 10)} for batch in range(5)]
    played = Played(windrow.sql(TEXT, pushed[0]), tmp_path, Way(2, policy=policy), clock=iter(range(100)).__next__)
    known = []
    for batch, rows in enumerate(pushed):
        known.append(played.runner.steering.prospects)
        played.run(batch, rows)
    assert (played.runner.steering.clocked.busy_share or 0) > 0
    if policy == "timestamp":
        assert known == [None] * 5
        return
    assert known[0] is None
    prospects = known[-1]
    assert prospects is not None
    assert {driver: [step.target for step in steps] for driver, steps in prospects.items()} == {"a": ["b"], "b": ["a"]}
    assert 0.15 < prospects["a"][0].found < 0.35
    played.restart()
    assert played.runner.steering.prospects is None
