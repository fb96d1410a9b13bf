"""The master test, on Spark: whatever the slices, the way batches run, the order and the cuts, the rows are DuckDB's.

Random queries run on a played Spark (`tests.run.spark.played`), where a batch takes milliseconds.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import windrow
from tests.oracle.arrivals import POLICIES, batches, in_time
from tests.oracle.duck import Answer, Question, answer, difference, type_names
from tests.oracle.naive import Watermarks, row_counts
from tests.oracle.queries import Case, Draw, cases
from tests.run.spark.played import Played, PlayedSpark, Rows, Way
from windrow.errors import PlanError
from windrow.plan.slices import KINDS
from windrow.query.builder import Join

LEAST_BATCHES = 20
SLICES = (1, 2, 5)
WAYS = ("hops", "one task")


@dataclass(frozen=True)
class Disorder:
    """How rows arrive: each up to `jitter` ticks after its time, under a lateness of `lateness` ticks."""

    jitter: int
    lateness: int
    seed: int


@st.composite
def ways(draw: Draw) -> Way:
    """How a query runs."""
    return Way(
        draw(st.sampled_from(SLICES)),
        draw(st.sampled_from((*KINDS, "auto"))),
        hops=draw(st.booleans()),
        policy=draw(st.sampled_from(POLICIES)),
        keep=draw(st.sampled_from(("used", "all"))),
        feed=draw(st.sampled_from(("lanes", "blobs"))),
        fan_in=draw(st.sampled_from((2, 3, None))),
        most_rows=draw(st.sampled_from((3, 1000))),
    )


disorders = st.builds(Disorder, st.sampled_from((0, 3, 15)), st.sampled_from((0, 2, 6, 30)), st.integers(0, 99))


def tick_us(tables: Mapping[str, pa.Table]) -> int:
    """The grid of event times that a case lies on."""
    chunks = [chunk for table in tables.values() for chunk in table["ts"].cast(pa.int64()).chunks]
    times = np.unique(np.asarray(pa.chunked_array(chunks, pa.int64()).drop_null()))
    return int(np.diff(times).min()) if len(times) > 1 else 1_000


def reference(asking: Question, tables: dict[str, pa.Table], query: Join) -> Answer:
    """DuckDB's answer; row windows are counted in Python."""
    windowed = [source.alias for source in asking.sources if source.rows is not None]
    if not windowed:
        return answer(asking, tables)
    by_alias = {source.alias: tables[source.reads] for source in asking.sources}
    used = {alias: [column.name for column in query.spec().used_columns(alias)] for alias in by_alias}
    return answer(asking, tables, counts=row_counts(by_alias, used, windowed))


def started(query: Join, folder: Path, way: Way, spark: PlayedSpark) -> Played:
    """A query, sliced as asked where that is possible, and by time where it is not."""
    try:
        return Played(query, folder, way, spark)
    except PlanError:
        return Played(query, folder, replace(way, slice_by="time"), spark)


class Seen:
    """What random queries have come by, so that a test that met nothing fails."""

    def __init__(self) -> None:
        self.totals: list[int] = []
        self.steps: list[int] = []
        self.late = 0
        self.ways: set[str] = set()

    def check(self, examples: int, every: bool) -> None:
        assert len(self.totals) >= examples
        assert sum(1 for total in self.totals if total) >= len(self.totals) // 8
        assert sum(1 for count in self.steps if count >= LEAST_BATCHES) >= len(self.steps) // 4
        assert self.late > 0
        assert self.ways >= {*WAYS, *((*KINDS, *POLICIES, *(f"{count} slices" for count in SLICES)) if every else ())}


def check_random_queries(streams: int, examples: int, *, row_windows: bool = False, every: bool = False) -> None:
    """As many random queries as asked for, each in at least twenty batches where it has the rows for them."""
    seen = Seen()

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(cases(streams=streams, row_windows=row_windows), ways(), disorders, st.integers(0, 99), st.booleans())
    def check(case: Case, way: Way, disorder: Disorder, seed: int, twice: bool) -> None:
        if row_windows:
            way = replace(way, feed="blobs")  # lanes have no end: what row windows hold back would stay
        query, tables, twin = prepared(case, disorder)
        arrivals = in_time(tables, jitter_us=disorder.jitter * tick_us(tables), seed=disorder.seed)
        pushed = list(batches(tables, arrivals, max(1, len(arrivals) // (LEAST_BATCHES + 2))))
        kept: dict[str, list[pa.Table]] = {name: [table.slice(0, 0)] for name, table in tables.items()}
        found: Rows = Counter()
        with tempfile.TemporaryDirectory() as folder:
            running = started(query, Path(folder), way, PlayedSpark(seed, twice=twice and seed % 4 == 0))
            for batch, part in enumerate(pushed):
                for name, table in twin.admit(part).items():
                    kept[name].append(table.cast(tables[name].schema))
                found += running.run(batch, part, last=batch == len(pushed) - 1)
        expected = reference(case.question, {name: pa.concat_tables(parts) for name, parts in kept.items()}, query)
        assert difference(found, expected.rows) == "", case.question.text
        assert type_names(running.runner.program.schema) == type_names(expected.schema), case.question.text
        seen.totals.append(expected.rows.total())
        seen.steps.append(len(pushed))
        seen.late += twin.late.total()
        seen.ways |= {WAYS[0] if way.hops else WAYS[1], running.way.slice_by, f"{way.slices} slices", way.policy}

    check()
    seen.check(examples, every)


def prepared(case: Case, disorder: Disorder) -> tuple[Join, dict[str, pa.Table], Watermarks]:
    """The query with a lateness, its tables as a feed delivers them, and who says which rows are input."""
    tables = {name: without_dictionaries(table) for name, table in case.tables.items()}
    lateness_us = disorder.lateness * tick_us(tables)
    text = re.sub(r"LATENESS \d+ DAYS", f"LATENESS {lateness_us // 1000} MILLISECONDS", case.question.text)
    query: Join = windrow.sql(text, streams=tables, time=dict.fromkeys(tables, "ts"))
    return query, tables, Watermarks(dict.fromkeys(tables, lateness_us))


def without_dictionaries(table: pa.Table) -> pa.Table:
    """Parts of one table share no dictionary once they have been files."""
    return table.set_column(table.schema.get_field_index("k"), "k", table["k"].cast(pa.string()))


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("streams", [2, 3, 4])
def test_random_queries_on_a_played_spark(streams: int) -> None:
    check_random_queries(streams, 12)


@pytest.mark.usefixtures("interpreted")
def test_random_queries_with_row_windows_on_a_played_spark() -> None:
    check_random_queries(2, 12, row_windows=True)


@pytest.mark.long
@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("row_windows", [False, True], ids=["time windows", "row windows"])
@pytest.mark.parametrize("streams", [2, 3, 4])
def test_many_random_queries_on_a_played_spark(streams: int, row_windows: bool) -> None:
    check_random_queries(streams, 150, row_windows=row_windows, every=True)
