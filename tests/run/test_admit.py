"""The entrance: which rows are input, how far watermarks have come, and how rows are counted for row windows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import windrow
from tests.oracle.arrivals import batches, in_time, shuffled
from tests.oracle.duck import plain
from tests.oracle.naive import Watermarks, row_counts
from tests.oracle.tables import table_of
from windrow.errors import InputError
from windrow.plan.order import plan_query
from windrow.query import types
from windrow.run.admit import NEVER_US, Entry
from windrow.run.program import Program
from windrow.store.operand import to_arrow
from windrow.store.segment import Segment

pytestmark = pytest.mark.usefixtures("interpreted")

SECOND = 1_000_000


def rows(times_s: list[float | None], start: int = 0) -> pa.Table:
    """Rows at these seconds, numbered."""
    stamps = [None if each is None else int(each * SECOND) for each in times_s]
    return pa.table({
        "ts": pa.array(stamps, pa.timestamp("us")),
        "id": pa.array(range(start, start + len(stamps)), pa.int64()),
        "x": pa.array([float(start + k) for k in range(len(stamps))], pa.float64()),
    })  # fmt: skip


class Asides:
    """What was set aside."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, list[int]]] = []

    def __call__(self, stream: str, reason: str, table: pa.Table) -> None:
        self.seen.append((stream, reason, table["id"].to_pylist()))


def entry_of(
    clauses: str = "WINDOW 10 SECONDS",
    *,
    where: str = "",
    max_ahead_us: int | None = None,
    aside: Asides | None = None,
    tables: dict[str, pa.Table] | None = None,
    select: str = "a.id AS i, b.id AS j",
) -> Entry:
    tables = tables or {"s": rows([]), "t": rows([])}
    text = f"SELECT {select} FROM s AS a, t AS b {where} {clauses}"
    spec = windrow.sql(text, streams=tables, time={"s": "ts", "t": "ts"}).spec()
    return Entry(Program(spec, plan_query(spec), {}), max_ahead_us, aside)


def ids(segment: Segment) -> list[int]:
    return list(segment.columns[0].to_pylist())


def counts(entry: Entry, name: str) -> dict[str, int]:
    found = entry.gates[name].counts
    return {"rows": found.rows, "late": found.late, "bad": found.bad, "ahead": found.ahead, "filtered": found.filtered}


def test_rows_enter_in_order_of_time_with_what_the_layout_asks_for() -> None:
    entry = entry_of(where="WHERE a.x * 2 < b.x", select="a.id AS i, b.x AS y, a.x AS z")
    fresh = entry.admit({"a": [rows([3, 1]), rows([2], start=2)]}, 0)
    assert fresh["a"].time_us.tolist() == [SECOND, 2 * SECOND, 3 * SECOND]
    assert ids(fresh["a"]) == [1, 2, 0]
    assert [str(leaf) for leaf in fresh["a"].layout.operands] == ["a.x * 2"]
    assert to_arrow(fresh["a"].operands[0], types.DOUBLE).to_pylist() == [2.0, 4.0, 0.0]
    assert len(fresh["b"]) == 0
    assert [array.type for array in fresh["b"].columns] == [pa.float64()]


def test_filters_and_nulls_that_rule_a_row_out_keep_it_out() -> None:
    table = rows([1, 2, 3, 4]).set_column(2, "x", pa.array([1.0, None, 5.0, float("nan")]))
    entry = entry_of(where="WHERE a.x < b.x AND a.id <> 2")
    assert ids(entry.admit({"a": [table]}, 0)["a"]) == [0]
    assert counts(entry, "a") == {"rows": 4, "late": 0, "bad": 0, "ahead": 0, "filtered": 3}
    assert entry.gates["a"].newest_us == 4 * SECOND


def test_watermarks_follow_the_newest_row_and_never_go_back() -> None:
    entry = entry_of("WINDOW 10 SECONDS LATENESS a 2 SECONDS, b 5 SECONDS")
    reached = []
    for times in ([10], [9, 12], [], [11, 10], [30], [28]):
        entry.admit({"a": [rows(list(times))]}, 0)
        reached.append(entry.gates["a"].watermark_us // SECOND)
    assert reached == [8, 10, 10, 10, 28, 28]
    assert entry.gates["b"].watermark_us == NEVER_US
    assert counts(entry, "a")["late"] == 0


def test_late_is_below_the_watermark_of_the_batches_before() -> None:
    aside = Asides()
    entry = entry_of("WINDOW 10 SECONDS LATENESS 2 SECONDS", aside=aside)
    assert ids(entry.admit({"a": [rows([10, 3])]}, 0)["a"]) == [1, 0]
    assert ids(entry.admit({"a": [rows([8, 7.999999, 9], start=2)]}, 0)["a"]) == [2, 4]
    assert counts(entry, "a") == {"rows": 5, "late": 1, "bad": 0, "ahead": 0, "filtered": 0}
    assert aside.seen == [("a", "late", [3])]


def test_rows_without_a_time_are_bad() -> None:
    aside = Asides()
    entry = entry_of(aside=aside)
    assert ids(entry.admit({"b": [rows([None, 1, None])]}, 0)["b"]) == [1]
    assert counts(entry, "b") == {"rows": 3, "late": 0, "bad": 2, "ahead": 0, "filtered": 0}
    assert aside.seen == [("b", "bad time", [0, 2])]


def test_rows_too_far_ahead_move_no_watermark() -> None:
    aside = Asides()
    entry = entry_of("WINDOW 10 SECONDS LATENESS 1 SECONDS", max_ahead_us=5 * SECOND, aside=aside)
    assert ids(entry.admit({"a": [rows([100, 105, 105.000001, 999])]}, 100 * SECOND)["a"]) == [0, 1]
    assert counts(entry, "a") == {"rows": 4, "late": 0, "bad": 0, "ahead": 2, "filtered": 0}
    assert entry.gates["a"].watermark_us == 104 * SECOND
    assert aside.seen == [("a", "too far ahead", [2, 3])]


def test_idle_streams_take_the_smallest_watermark_of_the_others() -> None:
    entry = entry_of("WINDOW 10 SECONDS IDLE b 60 SECONDS")
    entry.admit({"a": [rows([100])], "b": [rows([50])]}, 0)
    entry.admit({"a": [rows([110])]}, 60 * SECOND)
    assert entry.gates["b"].watermark_us == 50 * SECOND
    entry.admit({"a": [rows([120])]}, 60 * SECOND + 1)
    assert entry.gates["b"].watermark_us == 120 * SECOND
    entry.admit({"b": [rows([119, 121])]}, 70 * SECOND)
    assert counts(entry, "b")["late"] == 1
    assert entry.gates["b"].watermark_us == 121 * SECOND
    assert entry.gates["a"].watermark_us == 120 * SECOND


def test_without_a_timeout_no_stream_is_idle() -> None:
    entry = entry_of()
    entry.admit({"a": [rows([100])]}, 0)
    entry.admit({"a": [rows([200])]}, 10**15)
    assert entry.gates["b"].watermark_us == NEVER_US


def test_what_is_needed_depends_on_the_others() -> None:
    entry = entry_of("WINDOW a 10 SECONDS, b 3 SECONDS LATENESS 1 SECONDS")
    assert entry.expiry("a")[0] == NEVER_US
    entry.admit({"a": [rows([100])], "b": [rows([50])]}, 0)
    assert entry.expiry("a") == (39 * SECOND, 0)
    assert entry.expiry("b") == (96 * SECOND, 0)


@pytest.mark.parametrize("size", [1, 7, 50, None])
def test_counts_are_those_of_a_slow_twin(size: int | None) -> None:
    tables = {"s": table_of(80, 1, span=100, null_times=True), "t": table_of(80, 2, span=100, null_times=True)}
    twin = Watermarks({"s": 2 * SECOND, "t": 0})
    entry = entry_of("WINDOW 10 SECONDS LATENESS a 2 SECONDS, b 0 SECONDS", tables=tables)
    for batch in batches(tables, in_time(tables, jitter_us=9 * SECOND, seed=3), size):
        expected = twin.admit(batch, limit_us=90 * SECOND)
        entry.max_ahead_us = 40 * SECOND
        fresh = entry.admit({{"s": "a", "t": "b"}[name]: [table] for name, table in batch.items()}, 50 * SECOND)
        for alias, name in (("a", "s"), ("b", "t")):
            known = expected[name]["id"].to_pylist() if name in expected else []
            assert Counter(ids(fresh[alias])) == Counter(known)
    for alias, name in (("a", "s"), ("b", "t")):
        found = counts(entry, alias)
        assert found["late"] == twin.late[name]
        assert found["bad"] + found["ahead"] == twin.bad[name]
        assert found["bad"] > 0
        assert found["ahead"] > 0
    assert size is None or twin.late.total() > 0


@pytest.mark.parametrize("size", [1, 7, 50, None])
@pytest.mark.parametrize("seed", range(3))
def test_row_clocks_are_those_of_a_slow_twin(size: int | None, seed: int) -> None:
    tables = {"s": table_of(60, seed, span=15), "t": table_of(50, seed + 9, span=15)}
    select = "a.id AS i, a.f64 AS p, a.s AS q, a.v AS r, b.id AS j, b.flag AS u, b.d52 AS w"
    entry = entry_of("WINDOW a ROWS 5, b ROWS 3 LATENESS 9 DAYS", where="WHERE a.i32 > 0", tables=tables, select=select)
    entry.program.entrances["a"] = type(entry.program.entrances["a"])((), ())  # every row is to be seen here
    spec = entry.program.spec
    used = {name: [column.name for column in spec.used_columns(name)] for name in ("a", "b")}
    expected = row_counts({"a": tables["s"], "b": tables["t"]}, used, ["a", "b"])
    found: dict[str, Counter[tuple[Any, ...]]] = {"a": Counter(), "b": Counter()}
    seen = 0
    pushed = list(batches(tables, shuffled(tables, seed), size))
    for number, batch in enumerate(pushed):
        last = number == len(pushed) - 1
        fresh = entry.admit({{"s": "a", "t": "b"}[name]: [t] for name, t in batch.items()}, 0, last=last)
        for alias, segment in fresh.items():
            columns = [repr_of(column) for column in segment.columns]
            clocks = [segment.clocks[name].tolist() for name in ("a", "b")]
            found[alias].update(zip(segment.time_us.tolist(), *columns, *clocks, strict=True))
            seen += len(segment)
    assert seen == 110
    for alias, name in (("a", "s"), ("b", "t")):
        table = tables[name]
        names = [column.name for column in entry.program.layouts[alias].columns]
        columns = [repr_of(table[each]) for each in names]
        counted = [expected[alias][each].tolist() for each in ("a", "b")]
        times = plain(table["ts"])
        assert found[alias] == Counter(zip(times, *columns, *counted, strict=True))


def repr_of(column: Any) -> list[str]:
    return [repr(value) for value in plain(column)]


def test_row_windows_hold_rows_back_until_every_stream_has_passed_them() -> None:
    entry = entry_of("WINDOW a ROWS 2, b 5 SECONDS LATENESS 1 SECONDS")
    assert len(entry.admit({"a": [rows([1, 2, 3])]}, 0)["a"]) == 0
    fresh = entry.admit({"b": [rows([3, 4], start=10)]}, 0)
    assert ids(fresh["a"]) == [0]
    assert len(fresh["b"]) == 0
    fresh = entry.admit({"a": [rows([9], start=3)], "b": [rows([9], start=12)]}, 0)
    assert (ids(fresh["a"]), ids(fresh["b"])) == ([1, 2], [10, 11])
    assert fresh["a"].clocks["a"].tolist() == [2, 3]
    assert fresh["b"].clocks["a"].tolist() == [3, 3]
    assert sum(len(table) for table in entry.gates["a"].waiting) == 1
    assert entry.expiry("a")[1] == 2
    fresh = entry.admit({}, 0, last=True)
    assert (ids(fresh["a"]), ids(fresh["b"])) == ([3], [12])
    assert fresh["b"].clocks["a"].tolist() == [4]


def test_filtered_rows_count_in_a_row_window() -> None:
    entry = entry_of("WINDOW a ROWS 2, b 5 SECONDS", where="WHERE a.x <> 1")
    fresh = entry.admit({"a": [rows([1, 2, 3])], "b": [rows([4])]}, 0, last=True)
    assert ids(fresh["a"]) == [0, 2]
    assert fresh["a"].clocks["a"].tolist() == [1, 3]


def test_equal_rows_of_two_streams_are_ordered_by_stream() -> None:
    entry = entry_of("WINDOW ROWS 2")
    fresh = entry.admit({"a": [rows([1, 1])], "b": [rows([1, 1])]}, 0, last=True)
    assert fresh["a"].clocks == {"a": pytest.approx([1, 2]), "b": pytest.approx([0, 0])}
    assert fresh["b"].clocks == {"a": pytest.approx([2, 2]), "b": pytest.approx([1, 2])}


def test_columns_are_delivered_in_the_form_the_query_was_bound_to() -> None:
    for kind in (pa.timestamp("ms"), pa.timestamp("ns"), pa.timestamp("s")):
        table = rows([1, 2]).set_column(0, "ts", pa.array([1, 2], pa.timestamp("s")).cast(kind))
        fresh = entry_of(select="a.ts AS at, a.id AS i").admit({"a": [table]}, 0)
        assert fresh["a"].time_us.tolist() == [SECOND, 2 * SECOND]
        assert fresh["a"].columns[0].type == pa.timestamp("us")


WRONG = {
    "a missing column": (rows([1]).drop_columns(["x"]), "no column 'x'"),
    "another type": (
        rows([1]).set_column(2, "x", pa.array(["1.5"])),
        "column 'x' is string, the query was bound to DOUBLE",
    ),
    "a wider type": (rows([1]).set_column(2, "x", pa.array([1], pa.int64())), "bound to DOUBLE"),
    "a time with a zone": (
        rows([1]).set_column(0, "ts", pa.array([1], pa.timestamp("us", "UTC"))),
        "bound to TIMESTAMP",
    ),
}


@pytest.mark.parametrize("kind", WRONG)
def test_another_schema_is_refused(kind: str) -> None:
    table, message = WRONG[kind]
    with pytest.raises(InputError, match=message) as caught:
        entry_of(where="WHERE a.x < b.x").admit({"a": [table]}, 0)
    assert caught.value.place == "stream a"


def test_a_column_of_nulls_fits_every_type() -> None:
    table = rows([1, 2]).set_column(2, "x", pa.nulls(2))
    fresh = entry_of(select="a.x AS z, b.id AS j").admit({"a": [table]}, 0)
    assert fresh["a"].columns[0].to_pylist() == [None, None]
    assert fresh["a"].columns[0].type == pa.float64()


def test_content_hashes_are_of_all_the_query_reads_and_of_nothing_else() -> None:
    tables = {"s": table_of(40, 1), "t": table_of(40, 1)}
    select = "result_id() AS r, a.f64 AS p, a.s AS q, a.v AS w, a.d18 AS d"
    entry = entry_of("WINDOW 1 DAYS LATENESS 1 DAYS", tables=tables, select=select)
    whole = entry.admit({"a": [tables["s"]]}, 0)["a"]
    again = entry_of("WINDOW 1 DAYS LATENESS 1 DAYS", tables=tables, select=select)
    parts = [again.admit({"a": [tables["s"].slice(k, 1)]}, 0)["a"] for k in np.random.default_rng(1).permutation(40)]

    def pairs(segments: list[Segment]) -> Counter[tuple[Any, ...]]:
        found: Counter[tuple[Any, ...]] = Counter()
        for segment in segments:
            content = [repr_of(column) for column in segment.columns]
            found.update(zip(segment.time_us.tolist(), *content, segment.operands[-1].values.tolist(), strict=True))
        return found

    assert pairs([whole]) == pairs(parts)
    assert len({key[-1] for key in pairs([whole])}) == len({key[:-1] for key in pairs([whole])})
