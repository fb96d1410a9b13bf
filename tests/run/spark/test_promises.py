"""FRESHNESS on a played Spark: the same results are held back as in one process, whatever dies in between."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import windrow
from tests.oracle.duck import rows_of
from tests.run.spark.played import Played, PlayedSpark, Rows, Way
from tests.run.spark.test_query import BATCHES, IN_ORDER, PUSHED, TEXT, asked
from windrow.errors import FreshnessError
from windrow.run.report import Report

pytestmark = pytest.mark.usefixtures("interpreted")

FRESH = {"time": f"{TEXT} FRESHNESS a 6 SECONDS, c 5500 MILLISECONDS", "rows": f"{IN_ORDER} FRESHNESS b 4 SECONDS"}


def clock() -> Iterator[float]:
    """When each batch begins: up to three seconds after its newest row."""
    return iter([batch + 1.5 + (0.0, 2.9, 0.7, 1.9)[batch % 4] for batch in range(BATCHES)])


def in_process(text: str) -> tuple[list[Rows], Report]:
    query, found = asked(text), []
    with windrow.local(query) as join:
        now_s = 0.0
        for tables, at_s in zip(PUSHED, clock(), strict=True):
            for name in query.sources:
                join.push(name, tables[name])
            now_s = max(now_s, at_s)
            found.append(rows_of(join.step(now_s=now_s)))
        return found, join.report


@pytest.mark.parametrize("text", FRESH.values(), ids=FRESH)
@pytest.mark.parametrize("way", [Way(3, fan_in=2), Way(2, hops=False)], ids=["by slice", "one task"])
def test_the_same_is_held_back_as_in_one_process(text: str, way: Way, tmp_path: Path) -> None:
    times = clock()
    played = Played(asked(text), tmp_path, way, PlayedSpark(3, twice=True), clock=lambda: next(times))
    expected, report = in_process(text)
    found = []
    for batch, tables in enumerate(PUSHED):
        if batch:
            played.restart()
        found.append(played.run(batch, tables))
    assert found == expected
    kept = report.freshness
    assert kept is not None
    assert played.state.freshness["suppressed"] == kept.suppressed > 0 < sum(found, Counter()).total()
    assert played.state.freshness["infeasible_since"] is not None


def test_what_cannot_be_promised_is_refused_before_it_is_planned(tmp_path: Path) -> None:
    with pytest.raises(FreshnessError, match=r"cannot be promised for 'a': the least is 6\.5 s"):
        Played(asked(f"{TEXT} FRESHNESS a 6 SECONDS"), tmp_path, trigger_s=1.5, stale="refuse")
    times = iter([1.5, 2.5, 9.0])
    played = Played(asked(f"{TEXT} FRESHNESS a 8 SECONDS"), tmp_path, clock=lambda: next(times), stale="refuse")
    for batch in range(2):
        played.run(batch, PUSHED[batch])
    with pytest.raises(FreshnessError, match="a freshness of 8 s is not kept for 'a'"):
        played.run(2, PUSHED[2])
    assert played.state.batch == 1
    assert played.state.freshness["suppressed"] == 0
