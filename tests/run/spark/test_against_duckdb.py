"""The master test, on Spark: whatever the slices, the way batches run, the order and the cuts, the rows are DuckDB's.

Random queries run on a played Spark (`tests.run.spark.played`), where a batch takes milliseconds; a few of every
kind run on Spark itself.
"""

from __future__ import annotations

import itertools
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import windrow
from tests.oracle.arrivals import POLICIES, batches, in_time
from tests.oracle.duck import Answer, Question, answer, difference, question, type_names
from tests.oracle.naive import Watermarks, row_counts
from tests.oracle.queries import Case, Draw, cases
from tests.oracle.tables import table_of
from tests.run.spark import batched
from tests.run.spark.batched import Collected
from tests.run.spark.played import Played, PlayedSpark, Rows, Way
from windrow.errors import PlanError
from windrow.plan.order import plan_query
from windrow.plan.slices import KINDS
from windrow.query.builder import Join
from windrow.run.spark import query as spark_query

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


HOW_MUCH = ((15, 2), (0, 0), (3, 0), (15, 30), (15, 6), (3, 2))
"""Jitter and lateness: in most, some rows are late."""

disorders = st.builds(
    lambda much, seed: Disorder(much[0], much[1], seed), st.sampled_from(HOW_MUCH), st.integers(0, 99)
)


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
        self.filled: list[int] = []
        self.late = 0
        self.ways: set[str] = set()

    def check(self, examples: int, every: bool) -> None:
        assert len(self.totals) >= examples
        assert sum(1 for total in self.totals if total) >= len(self.totals) // 8
        assert min(self.steps) >= LEAST_BATCHES
        assert sum(1 for count in self.filled if count >= LEAST_BATCHES) >= len(self.filled) // 4
        assert self.late > 0
        assert self.ways >= {*WAYS, *((*KINDS, *POLICIES, *(f"{count} slices" for count in SLICES)) if every else ())}


def check_random_queries(streams: int, examples: int, *, row_windows: bool = False, every: bool = False) -> None:
    """As many random queries as asked for, each in at least twenty batches; where rows are few, some have none."""
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
            seen.filled.append(len(pushed))
            pushed = spread(pushed)
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


def spread(parts: list[dict[str, pa.Table]]) -> list[dict[str, pa.Table]]:
    """At least twenty batches: where there are fewer, each is followed by batches without rows."""
    gaps = -(-LEAST_BATCHES // max(len(parts), 1)) - 1
    return [each for part in parts or [{}] for each in (part, *[{}] * gaps)]


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


@dataclass(frozen=True)
class OnSpark:
    """A query and how Spark runs it; `hops` as in `Way`, None: now this way, now that."""

    text: str
    options: Mapping[str, Any]
    hops: bool | None


EVERY = {
    "a band sliced by its value, by slice": OnSpark(
        """SELECT a.id AS i, b.id AS j, a.f64 - b.f32 AS gap, result_ts() AS newest FROM s AS a, t AS b
        WHERE ABS(a.f64 - b.f64) <= 0.3 AND a.i32 <= b.i64 WINDOW a 9 SECONDS, b 4 SECONDS LATENESS 4 SECONDS""",
        {"slices": 2, "slice_by": "range"},
        hops=True,
    ),
    "three streams sliced by hash, in one task": OnSpark(
        """SELECT a.id AS i, b.id AS j, c.id AS k, a.s AS text, c.d52 AS cents FROM s AS a, t AS b, u AS c
        WHERE a.k = b.k AND b.s = c.s AND a.i32 < c.i32 WINDOW 9 SECONDS LATENESS 3 SECONDS""",
        {"slices": 2, "slice_by": "hash", "policy": "round_robin"},
        hops=False,
    ),
    "four streams sliced by time, now this way, now that": OnSpark(
        """SELECT a.id AS i, b.id AS j, c.id AS k, d.id AS l FROM s AS a, t AS b, u AS c, s AS d
        WHERE a.flag = b.flag AND ABS(b.i64 - c.i64) <= 1 AND c.day = d.day AND a.i64 + d.i64 < 3
        WINDOW a 6 SECONDS, b 2 SECONDS, c 4 SECONDS, d 5 SECONDS LATENESS 4 SECONDS""",
        {"slices": 5, "keep": "used", "policy": "output_rate"},
        hops=None,
    ),
    "any condition, one slice, in parts": OnSpark(
        """SELECT a.id AS i, b.id AS j FROM s AS a, t AS b
        WHERE (a.s LIKE '%b%' OR a.at <= b.at) AND jaccard(a.s, b.s) >= 0.3 WINDOW 7 SECONDS LATENESS 2 SECONDS""",
        {"slices": 1, "most_rows": 4},
        hops=True,
    ),
}


class NowAndThen:
    """An amount of work that is little enough for one task every other time it is asked about."""

    def __init__(self) -> None:
        self.asked = 0

    def __ge__(self, _seconds: float) -> bool:
        self.asked += 1
        return self.asked % 2 == 0


LITTLE: dict[bool | None, Callable[[], object]] = {True: lambda: -1.0, False: lambda: float("inf"), None: NowAndThen}


def check_on_spark(
    query: Join, asking: Question, pushed: list[dict[str, pa.Table]], given: OnSpark, folder: Path
) -> Rows:
    """The rows of a query on Spark against DuckDB's; every way that it was to run was seen."""
    schemas = {name: table.schema for name, table in pushed[0].items()}
    spec = query.spec()
    twin = Watermarks({stream.source: stream.lateness_us for stream in spec.streams})
    kept: dict[str, list[pa.Table]] = {name: [schema.empty_table()] for name, schema in schemas.items()}
    for part in pushed:
        for name, table in twin.admit(part).items():
            kept[name].append(table.cast(schemas[name]))
    expected = reference(asking, {name: pa.concat_tables(parts) for name, parts in kept.items()}, query)
    sink = Collected()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spark_query, "ONE_TASK_SECONDS", LITTLE[given.hops]())
        running = batched.run(query, folder, sink, **given.options)
    assert difference(sink.rows, expected.rows) == "", given.text
    assert sink.schema is not None
    assert type_names(sink.schema) == type_names(expected.schema)
    assert len(sink.batches) >= LEAST_BATCHES
    assert {name: counts["late"] for name, counts in running.status()["streams"].items()} == {
        stream.name: twin.late[stream.source] for stream in spec.streams
    }
    slices = given.options["slices"]
    ways = {True: {slices}, False: {1}, None: {1, slices}}[given.hops]
    assert {each["tasks"] for each in running.recent_progress() if any(each["rows"].values())} == ways
    return expected.rows


def on_spark(spark: SparkSession, text: str, folder: Path, schemas: Mapping[str, pa.Schema]) -> Join:
    """A query over the streams of a folder."""
    frames = batched.frames(spark, folder, schemas)
    query: Join = windrow.sql(text, streams=frames, time=dict.fromkeys(frames, "ts"))
    return query


def in_full(parts: Iterable[dict[str, pa.Table]], tables: Mapping[str, pa.Table]) -> list[dict[str, pa.Table]]:
    """Batches that name every stream, though it may bring nothing."""
    return [{name: part.get(name, table.slice(0, 0)) for name, table in tables.items()} for part in parts]


def brought(given: OnSpark, folder: Path) -> tuple[Question, dict[str, pa.Table], list[dict[str, pa.Table]]]:
    """A query's rows, out of order, in enough batches, laid out in a folder: what is asked, the rows, the batches."""
    asking = question(given.text)
    reads = dict.fromkeys(source.reads for source in asking.sources)
    tables = {read: batched.delivered(table_of(110, seed, span=90, null_times=True)) for seed, read in enumerate(reads)}
    arrivals = in_time(tables, jitter_us=6_000_000, seed=1)
    pushed = in_full(batches(tables, arrivals, len(arrivals) // LEAST_BATCHES), tables)
    batched.lay_out(folder, pushed, {read: table.schema for read, table in tables.items()})
    return asking, tables, pushed


def check_kind(given: OnSpark, spark: SparkSession, folder: Path) -> int:
    """A query over rows out of order, in enough batches, against DuckDB's; how many results it has."""
    asking, tables, pushed = brought(given, folder / "in")
    query = on_spark(spark, given.text, folder / "in", {read: table.schema for read, table in tables.items()})
    return check_on_spark(query, asking, pushed, given, folder / "checkpoint").total()


QUICK = ("a band sliced by its value, by slice", "three streams sliced by hash, in one task")


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.long) for name in EVERY]
)
def test_queries_of_every_kind_on_spark(name: str, spark: SparkSession, tmp_path: Path) -> None:
    assert check_kind(EVERY[name], spark, tmp_path) > 50


@pytest.mark.long
@pytest.mark.parametrize("streams", [2, 3, 4])
def test_random_queries_on_spark(streams: int, spark: SparkSession, tmp_path: Path) -> None:
    totals: list[int] = []
    number = itertools.count()

    @settings(max_examples=8, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(cases(streams=streams), ways(), disorders)
    def check(case: Case, way: Way, disorder: Disorder) -> None:
        assume(not re.search(r"\b[a-h]\.[vw]\b", case.question.text))  # Spark's arrays have no length
        folder = tmp_path / str(next(number))
        tables = {name: batched.delivered(table) for name, table in case.tables.items()}
        step_us = tick_us(tables)
        lateness = f"LATENESS {disorder.lateness * step_us // 1000} MILLISECONDS"
        text = re.sub(r"LATENESS \d+ DAYS", lateness, case.question.text)
        arrivals = in_time(tables, jitter_us=disorder.jitter * step_us, seed=disorder.seed)
        assume(len(arrivals) > LEAST_BATCHES)
        pushed = in_full(batches(tables, arrivals, len(arrivals) // LEAST_BATCHES), tables)
        schemas = {name: table.schema for name, table in tables.items()}
        batched.lay_out(folder / "in", pushed, schemas)
        query = on_spark(spark, text, folder / "in", schemas)
        options = {"slices": way.slices, "slice_by": way.slice_by, "policy": way.policy, "most_rows": way.most_rows}
        try:
            plan_query(query.spec(), slices=way.slices, slice_by=way.slice_by)
        except PlanError:
            options["slice_by"] = "time"
        given = OnSpark(text, options, way.hops)
        totals.append(check_on_spark(query, case.question, pushed, given, folder / "checkpoint").total())

    check()
    assert len(totals) >= 8
    assert sum(1 for total in totals if total) >= 2
