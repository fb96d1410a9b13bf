"""The master test, on Spark: whatever the slices, the way batches run, the order and the cuts, the rows are DuckDB's.

Random queries run on a played Spark (`tests.run.spark.played`), where a batch takes milliseconds; a few of every kind
on Spark itself.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import windrow
from tests.oracle.arrivals import POLICIES, Arrivals, batches, shuffled
from tests.oracle.duck import Question, answer, difference, type_names
from tests.oracle.naive import row_counts
from tests.oracle.queries import Case, cases
from tests.run.spark.played import Played, PlayedSpark, Rows
from windrow.errors import PlanError
from windrow.plan.slices import KINDS
from windrow.query.builder import Join

LEAST_BATCHES = 20
SLICES = (1, 2, 5)
KINDS_OF_SLICES = (*KINDS, "auto")


def delivered(table: pa.Table) -> pa.Table:
    """Rows as Spark delivers them: it has neither dictionaries nor numbers without a sign."""
    wider = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64()}
    for place, column in enumerate(table.schema):
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else wider.get(column.type, column.type)
        table = table.set_column(place, column.name, table[column.name].cast(kind))
    return table


def asked(case: Case, tables: dict[str, pa.Table]) -> Join:
    return windrow.sql(case.question.text, streams=tables, time=dict.fromkeys(tables, "ts"))


def reference(asking: Question, tables: dict[str, pa.Table], query: Join) -> Any:
    """DuckDB's answer; row windows are counted in Python."""
    windowed = [source.alias for source in asking.sources if source.rows is not None]
    if not windowed:
        return answer(asking, tables)
    by_alias = {source.alias: tables[source.reads] for source in asking.sources}
    used = {alias: [column.name for column in query.spec().used_columns(alias)] for alias in by_alias}
    return answer(asking, tables, counts=row_counts(by_alias, used, windowed))


def in_batches(tables: dict[str, pa.Table], arrivals: Arrivals) -> list[dict[str, pa.Table]]:
    """At least as many batches as a test needs, where there are rows for them."""
    return list(batches(tables, arrivals, max(1, len(arrivals) // (LEAST_BATCHES + 2))))


def played(query: Join, folder: Path, slice_by: str, **options: Any) -> tuple[Played, str]:
    """A query on a played Spark, sliced as asked where that is possible; and how it is."""
    try:
        return Played(query, folder, slice_by=slice_by, **options), slice_by
    except PlanError:
        return Played(query, folder, slice_by="time", **options), "time"


def flushed(running: Played, batch: int, query: Join) -> Rows:
    """What row windows still hold back: later rows of every stream, which match nothing, let it in."""
    ends = {name: source.schema.empty_table() for name, source in query.sources.items()}
    return running.run(batch, ends)


@st.composite
def ways(draw: Any) -> dict[str, Any]:
    """How a query runs."""
    return {
        "slices": draw(st.sampled_from(SLICES)),
        "slice_by": draw(st.sampled_from(KINDS_OF_SLICES)),
        "hops": draw(st.booleans()),
        "policy": draw(st.sampled_from(POLICIES)),
        "keep": draw(st.sampled_from(("used", "all"))),
        "fan_in": draw(st.sampled_from((2, 3, None))),
        "most_rows": draw(st.sampled_from((3, 1000))),
        "spark": PlayedSpark(draw(st.integers(0, 99)), twice=draw(st.integers(0, 5)) == 0),
    }


def check_random_queries(streams: int, examples: int, least_seen: set[str]) -> None:
    totals: list[int] = []
    steps: list[int] = []
    seen: set[str] = set()

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(cases(streams=streams), ways(), st.integers(0, 99))
    def check(case: Case, way: dict[str, Any], seed: int) -> None:
        tables = {name: delivered(table) for name, table in case.tables.items()}
        query = asked(case, tables)
        expected = answer(case.question, tables)
        with tempfile.TemporaryDirectory() as folder:
            running, slice_by = played(query, Path(folder), **way)
            found: Rows = Counter()
            pushed = in_batches(tables, shuffled(tables, seed))
            for batch, part in enumerate(pushed):
                found += running.run(batch, part)
        assert difference(found, expected.rows) == "", case.question.text
        assert type_names(running.runner.program.schema) == type_names(expected.schema), case.question.text
        totals.append(expected.rows.total())
        steps.append(len(pushed))
        seen.update((slice_by, f"{way['slices']} slices", "hops" if way["hops"] else "one task", way["policy"]))

    check()
    assert sum(1 for total in totals if total) >= len(totals) // 8
    assert sum(1 for count in steps if count >= LEAST_BATCHES) >= len(steps) // 4
    assert seen >= least_seen


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("streams", [2, 3, 4])
def test_random_queries_on_a_played_spark(streams: int) -> None:
    check_random_queries(streams, 10, {"hops", "one task"})


@pytest.mark.long
@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("streams", [2, 3, 4, 6])
def test_many_random_queries_on_a_played_spark(streams: int) -> None:
    every = {*(f"{count} slices" for count in SLICES), "hops", "one task", *KINDS, *POLICIES}
    check_random_queries(streams, 200, every)
