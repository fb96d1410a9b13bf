"""The in-process runtime as it is used: push, step, finish, iterate, and what is refused on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import windrow
from tests.oracle.arrivals import BATCH_SIZES, POLICIES, batches, in_time, run, shuffled
from tests.oracle.duck import rows_of
from tests.oracle.tables import table_of
from windrow.errors import FunctionError, InputError, PlanError, QueryError, UsageError
from windrow.plan.order import plan_query
from windrow.plan.plan import Path, Plan
from windrow.query.spec import UserFunction
from windrow.query.types import DOUBLE
from windrow.streams.replay import ReplayBatch

pytestmark = pytest.mark.usefixtures("interpreted")

ALWAYS = "LATENESS 4000000 DAYS"


def table(times_s: list[int], values: list[Any] | None = None) -> pa.Table:
    stamps = pa.array([each * 1_000_000 for each in times_s], pa.timestamp("us"))
    return pa.table({"ts": stamps, "x": pa.array(values if values is not None else times_s, pa.int64())})


def pair_query(where: str = "a.x <= b.x", sources: str = "s AS a, t AS b") -> windrow.Join:
    text = f"SELECT a.x AS i, b.x AS j FROM {sources} WHERE {where} WINDOW 10 SECONDS {ALWAYS}"
    return windrow.sql(text, streams={"s": table([]), "t": table([])})


def test_rows_wait_for_the_step() -> None:
    with windrow.local(pair_query()) as join:
        join.push("s", table([1]))
        join.push("t", table([2]))
        assert join.report.results == 0
        assert join.step().to_pylist() == [{"i": 1, "j": 2}]
        assert join.step().num_rows == 0
        join.push("b", table([3]).to_batches()[0])
        assert join.step().to_pylist() == [{"i": 1, "j": 3}]
        assert join.finish().num_rows == 0
        assert join.report.results == 2


def test_a_source_feeds_every_stream_that_reads_it() -> None:
    with windrow.local(pair_query("a.x < b.x", "s AS a, s AS b")) as join:
        join.push("s", table([1, 2, 3]))
        assert rows_of(join.step()) == Counter({(1, 2): 1, (1, 3): 1, (2, 3): 1})
        join.push("a", table([0]))
        assert rows_of(join.step()) == Counter({(0, 1): 1, (0, 2): 1, (0, 3): 1})


def test_a_streams_name_goes_before_a_sources() -> None:
    text = f"SELECT a.x AS i, s.x AS j FROM s AS a, s WHERE a.x < s.x WINDOW 10 SECONDS {ALWAYS}"
    query = windrow.sql(text, streams={"s": table([])})
    with windrow.local(query) as join:
        join.push("s", table([5]))
        join.push("a", table([1]))
        assert join.step().to_pylist() == [{"i": 1, "j": 5}]
    replayed = windrow.local(query, [ReplayBatch({"s": table([1, 2])}, 3_000_000)])
    assert [results.to_pylist() for results in replayed] == [[{"i": 1, "j": 2}]]


def test_results_have_the_schema_of_the_select_list() -> None:
    expected = pa.schema([("i", pa.int64()), ("j", pa.int64())])
    with windrow.local(pair_query()) as join:
        assert join.schema == expected
        assert join.step().schema == expected
        join.push("a", table([]))
        assert join.step().schema == expected
        assert join.finish().schema == expected


@pytest.mark.parametrize("size", [1, 3, None])
def test_iterating_over_inputs(size: int | None) -> None:
    tables = {"s": table([1, 5, 3, 8]), "t": table([2, 4, 9])}
    inputs = list(batches(tables, shuffled(tables, 1), size))
    whole: Counter[tuple[Any, ...]] = Counter()
    for results in windrow.local(pair_query(), inputs):
        assert results.num_rows > 0
        whole += rows_of(results)
    assert whole == Counter({(i, j): 1 for i in (1, 5, 3, 8) for j in (2, 4, 9) if i <= j})


def test_inputs_are_read_one_batch_at_a_time() -> None:
    taken: list[int] = []

    def endless() -> Iterator[dict[str, pa.Table]]:
        while True:
            taken.append(len(taken))
            yield {"s": table(taken[-1:]), "t": table(taken[-1:])}

    results = iter(windrow.local(pair_query("a.x = b.x"), endless()))
    assert [next(results).to_pylist() for _ in range(3)] == [[{"i": k, "j": k}] for k in range(3)]
    assert len(taken) == 3


def test_row_windows_deliver_the_rest_at_the_end() -> None:
    text = "SELECT a.x AS i, b.x AS j FROM s AS a, t AS b WINDOW a ROWS 1, b 100 SECONDS"
    query = windrow.sql(text, streams={"s": table([]), "t": table([])})
    join = windrow.local(query)
    join.push("s", table([1, 2, 3]))
    join.push("t", table([4]))
    early, late = join.step(), join.finish()
    assert early.num_rows == 0
    assert late.to_pylist() == [{"i": 3, "j": 4}]


def test_rows_that_find_no_room_are_told() -> None:
    with windrow.local(pair_query(), buffer_rows=2) as join:
        for times_s in ([0, 1, 2], [3, 4]):
            join.push("s", table(times_s))
        join.step()
        told = join.observation
        assert told is not None
        assert {name: (arrival.rows, arrival.dropped) for name, arrival in told.arrivals.items()} == {
            "a": (2, 3),
            "b": (0, 0),
        }
        join.step()
        told = join.observation
        assert told is not None
        assert [arrival.dropped for arrival in told.arrivals.values()] == [0, 0]
        assert join.dropped == 3


@pytest.mark.parametrize("most", [1, 2, 3, 100])
def test_a_step_takes_no_more_rows_than_asked_for(most: int) -> None:
    with windrow.local(pair_query(), batch_rows=most) as join:
        for stream in ("s", "t"):
            for times_s in ([0, 1], [2, 3, 4]):
                join.push(stream, table(times_s))
        found, waiting = [], []
        for _ in range(6):
            found.append(join.step())
            told = join.observation
            assert told is not None
            assert max(arrival.rows for arrival in told.arrivals.values()) <= most
            waiting.append(dict(told.waiting))
    with windrow.local(pair_query()) as join:
        for stream in ("s", "t"):
            join.push(stream, table([0, 1, 2, 3, 4]))
        assert rows_of(pa.concat_tables(found)) == rows_of(join.step())
    assert waiting[0] == {"a": max(0, 5 - most), "b": max(0, 5 - most)}
    assert waiting[-1] == {"a": 0, "b": 0}


def test_a_step_has_to_take_some_rows() -> None:
    with pytest.raises(UsageError, match="cannot take 0 rows"):
        windrow.local(pair_query(), batch_rows=0)


def test_a_matrix_product_looks_at_all_pairs_within_reach() -> None:
    """Few of them are proposed, but all were multiplied: that is what its cost is about."""
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([1.0, 0.0, 0.0, 1.0, 1.0, 0.0]), 2)
    rows = table([0, 1, 2]).append_column("v", vectors)
    text = "SELECT a.x AS i, b.x AS j FROM s AS a, t AS b WHERE cosine(a.v, b.v) >= 0.9 WINDOW 10 SECONDS"
    with windrow.local(windrow.sql(text, streams={"s": rows, "t": rows}), methods=["matrix"]) as join:
        join.push("t", rows)
        join.step()
        join.push("s", rows)
        assert len(join.step()) == 5
        told = join.observation
    assert told is not None
    (step,) = told.joined.others["a"].steps
    assert (step.probes, step.searched, step.candidates, step.matches) == (3, 9, 9, 5)


def test_a_finished_join_is_closed() -> None:
    join = windrow.local(pair_query())
    join.finish()
    for use in (lambda: join.push("a", table([1])), join.step, join.finish, lambda: next(iter(join))):
        with pytest.raises(UsageError, match="finished") as caught:
            use()
        assert "windrow.local" in caught.value.hint
    with windrow.local(pair_query()) as left:
        pass
    with pytest.raises(UsageError, match="finished"):
        left.step()
    assert left.report.batches == 0


def test_what_cannot_be_pushed() -> None:
    join = windrow.local(pair_query())
    with pytest.raises(QueryError, match="no stream 'c'") as unknown:
        join.push("c", table([1]))
    assert "a, b" in unknown.value.hint
    with pytest.raises(InputError, match="cannot push list"):
        join.push("a", [1, 2])
    with pytest.raises(InputError, match="no column 'x'"):
        join.push("a", table([1]).drop_columns(["x"]))


def test_more_columns_than_the_query_uses_and_any_order_are_fine() -> None:
    wide = table([1]).append_column("more", pa.array([[1, 2]])).select(["more", "x", "ts"])
    with windrow.local(pair_query()) as join:
        join.push("a", wide)
        join.push("b", table([1]))
        assert join.step().to_pylist() == [{"i": 1, "j": 1}]


def test_chunks_and_slices_are_read_as_they_lie() -> None:
    chunked = pa.concat_tables([table([9]), table([1, 2, 3]).slice(1, 1), table([]), table([3])])
    with windrow.local(pair_query("a.x = b.x")) as join:
        join.push("a", chunked.slice(1))
        join.push("b", table([1, 2, 3, 9]))
        assert rows_of(join.step()) == Counter({(2, 2): 1, (3, 3): 1})


def test_what_does_not_enter_is_handed_over() -> None:
    aside: list[tuple[str, str, pa.Table]] = []
    text = "SELECT a.x AS i FROM s AS a, t AS b WINDOW 10 SECONDS LATENESS 2 SECONDS"
    query = windrow.sql(text, streams={"s": table([]), "t": table([])})
    options: dict[str, Any] = {"max_ahead": "5 SECONDS", "clock": lambda: 100.0}
    with windrow.local(query, set_aside=lambda *each: aside.append(each), **options) as join:
        timeless = table([0]).set_column(0, "ts", pa.nulls(1, pa.timestamp("us")))
        join.push("a", pa.concat_tables([table([100, 106]), timeless]))
        join.step()
        join.push("a", table([97, 98, 200]))
        join.step(now_s=150.0)
        report = join.report.streams["a"]
    shown = [(stream, reason, rows["x"].to_pylist()) for stream, reason, rows in aside]
    first = [("a", "bad time", [0]), ("a", "too far ahead", [106])]
    assert shown == [*first, ("a", "late", [97]), ("a", "too far ahead", [200])]
    assert (report.bad, report.too_far_ahead, report.late) == (1, 2, 1)
    assert aside[0][2].schema.names == ["ts", "x"]


@pytest.mark.parametrize("policy", POLICIES)
def test_result_ts_and_result_id_are_of_the_members_alone(policy: str) -> None:
    tables = {"s": table_of(50, 1), "t": table_of(50, 2), "u": table_of(30, 3)}
    text = f"""SELECT result_id() AS r, result_ts() AS at, a.id AS i, b.id AS j, c.id AS k,
        a.ts AS p, b.ts AS q, c.ts AS o FROM s AS a, t AS b, u AS c WHERE a.i32 = b.i32 AND b.k = c.k
        WINDOW 5 SECONDS {ALWAYS}"""
    query = windrow.sql(text, streams=tables, time=dict.fromkeys(tables, "ts"))
    expected = run(query, tables, in_time(tables), size=None).rows
    assert expected.total() > 20
    for row in expected:
        assert row[1] == max(row[5:])
    names = {row[0] for row in expected}
    assert len(names) == len({row[2:] for row in expected})
    for place, size in enumerate((1, 7, 50)):
        assert run(query, tables, shuffled(tables, place), size=size, policy=policy).rows == expected


def test_columns_of_types_that_are_not_computed_with_pass_through() -> None:
    extra = {
        "tags": pa.array([["p"], [], None, ["q", "r"]], pa.list_(pa.string())),
        "place": pa.array([{"u": 1, "w": "x"}, None, {"u": None, "w": "y"}, {"u": 4, "w": None}]),
        "big": pa.array([0, 2**64 - 1, None, 5], pa.uint64()),
        "raw": pa.array([b"\x00", b"", None, b"zz"]),
        "clock": pa.array([1, 2, None, 4], pa.time64("us")),
        "label": pa.array(["m", None, "m", "n"]).dictionary_encode(),
    }
    rows = table([1, 2, 3, 4])
    for name, array in extra.items():
        rows = rows.append_column(name, array)
    columns = ", ".join(f"a.{name} AS {name}" for name in extra)
    text = f"SELECT a.x AS i, {columns} FROM s AS a, s AS b WHERE a.x = b.x WINDOW 9 SECONDS {ALWAYS}"
    query = windrow.sql(text, streams={"s": rows})
    found = []
    with windrow.local(query) as join:
        for start in (2, 0, 3, 1):
            join.push("s", rows.slice(start, 1))
            found.append(join.step())
        found.append(join.finish())
        assert join.schema.field("big").type == pa.uint64()
        assert join.schema.field("place").type == rows["place"].type
    whole = pa.concat_tables(found).sort_by("i")
    for name in extra:
        assert whole[name].to_pylist() == rows[name].to_pylist(), name


def test_a_plan_can_be_given_as_it_is() -> None:
    query = pair_query("a.x = b.x")
    plan = plan_query(query.spec(), policy="output_rate", methods=("loop",))
    with windrow.local(query, plan=plan) as join:
        join.push("a", table([1, 2]))
        join.push("b", table([2]))
        assert join.step().to_pylist() == [{"i": 2, "j": 2}]
        assert join.report.policy == "output_rate"
        assert {step.method for step in join.report.steps} == {"loop"}


def test_plans_that_do_not_cover_the_query_are_refused() -> None:
    query = pair_query("a.x = b.x AND a.x < 9")
    good = plan_query(query.spec())
    step = good.path("a").steps[0]
    wrong = {
        "driven by a": (good.paths[0],),
        "driven by nobody": (),
        r"the path of 'a' visits a\. ": (Path("a", ()), good.paths[1]),
        "the path of 'a' visits a, b, b": (Path("a", (step, step)), good.paths[1]),
        "no method 'magic'": (Path("a", (replace(step, method="magic"),)), good.paths[1]),
        r"decides conditions \(\)": (Path("a", (replace(step, conjuncts=(), leading=()),)), good.paths[1]),
        r"decides conditions \(0, 7\)": (Path("a", (replace(step, conjuncts=(0, 7)),)), good.paths[1]),
        "'hashed' has nothing to search by": (Path("a", (replace(step, leading=()),)), good.paths[1]),
        "'matrix' cannot search by a.x = b.x": (Path("a", (replace(step, method="matrix"),)), good.paths[1]),
    }
    for message, paths in wrong.items():
        with pytest.raises(PlanError, match=message) as caught:
            windrow.local(query, plan=Plan("timestamp", paths))
        assert "\n" not in str(caught.value)
    with pytest.raises(PlanError, match="no driver policy 'x'"):
        windrow.local(query, plan=Plan("x", good.paths))


def test_unknown_options_are_refused() -> None:
    with pytest.raises(PlanError, match="no driver policy 'fastest'"):
        windrow.local(pair_query(), policy="fastest")
    with pytest.raises(PlanError, match="no method 'magic'"):
        windrow.local(pair_query(), methods=["magic"])


def test_a_function_that_raises_ends_the_step() -> None:
    def picky(x: float) -> float:
        if x > 2:
            raise ValueError(f"{x} is too much")
        return x

    text = f"SELECT a.x AS i FROM s AS a, t AS b WHERE picky(a.x) <= b.x WINDOW 10 SECONDS {ALWAYS}"
    functions = [UserFunction("picky", picky, DOUBLE, "pair")]
    query = windrow.sql(text, streams={"s": table([]), "t": table([])}, functions=functions)
    with windrow.local(query) as join:
        join.push("a", table([1, 3]))
        with pytest.raises(FunctionError, match=r"picky.*raised ValueError: 3.* is too much"):
            join.step()


def test_faults_are_counted_in_the_report() -> None:
    query = pair_query("a.x / (b.x - 2) >= 0")
    with windrow.local(query) as join:
        join.push("a", table([1, 2]))
        join.push("b", table([1, 2, 3]))
        assert rows_of(join.step()) == Counter({(1, 3): 1, (2, 3): 1})
        assert join.report.faults == 2


def test_a_query_from_the_builder_and_a_bare_specification_run_alike() -> None:
    rows = table([1, 2, 3])
    built = (
        windrow.join()
        .stream("a", rows, window="10 seconds")
        .stream("b", rows, window="10 seconds")
        .where("a.x < b.x")
        .where(lambda x, y: x + y > 3, on=("a.x", "b.x"))
        .select("a.x AS i", "b.x AS j")
    )
    for query in (built, built.spec()):
        with windrow.local(query) as join:
            join.push("a", rows)
            join.push("b", rows)
            assert rows_of(join.step()) == Counter({(1, 3): 1, (2, 3): 1})


@pytest.mark.parametrize("size", BATCH_SIZES)
def test_what_is_held_stays_bounded(size: int | None) -> None:
    times = list(range(600))
    tables = {"s": table(times), "t": table(times)}
    text = "SELECT a.x AS i, b.x AS j FROM s AS a, t AS b WHERE a.x = b.x WINDOW 20 SECONDS LATENESS 5 SECONDS"
    query = windrow.sql(text, streams=tables)
    most, found = 0, 0
    with windrow.local(query) as join:
        for batch in batches(tables, in_time(tables), size):
            for name, rows in batch.items():
                join.push(name, rows)
            found += join.step().num_rows
            most = max(most, sum(stream.stored for stream in join.report.streams.values()))
        found += join.finish().num_rows
    assert found == 600
    width = (size or 1200) // 2
    assert most <= 2 * (20 + 5 + (20 // 4 + 5) + 2 + 2 * width)  # window, lateness, span of a merged segment


def test_empty_pushes_and_steps_change_nothing() -> None:
    with windrow.local(pair_query()) as join:
        join.push("a", table([1]))
        join.step()
        for _ in range(3):
            join.push("a", table([]))
            join.push("b", table([]))
            assert join.step().num_rows == 0
        join.push("b", table([2]))
        assert join.step().num_rows == 1
        assert join.report.batches == 5
        assert np.isfinite(join.report.seconds)


def test_a_wrong_schema_is_refused_when_pushed_and_loses_nothing() -> None:
    rows = pa.table({"ts": pa.array([1], pa.timestamp("us")), "x": [1.0]})
    query = windrow.sql("SELECT a.x AS p, b.x AS q FROM a, b WINDOW 1 SECOND", streams={"a": rows, "b": rows})
    with windrow.local(query) as join:
        join.push("a", rows)
        with pytest.raises(windrow.InputError, match="'x' is string"):
            join.push("b", rows.set_column(1, "x", pa.array(["one"])))
        join.push("b", rows)
        assert join.step().to_pylist() == [{"p": 1.0, "q": 1.0}]


def test_an_event_time_beyond_64_bits_of_microseconds_is_a_bad_row() -> None:
    rows = pa.table({"ts": pa.array([2**62, 1], pa.timestamp("s")), "x": [1.0, 2.0]})
    query = windrow.sql("SELECT a.x AS p, b.x AS q FROM a, b WINDOW 1 SECOND", streams={"a": rows, "b": rows})
    with windrow.local(query) as join:
        join.push("a", rows)
        join.push("b", rows)
        assert join.step().to_pylist() == [{"p": 2.0, "q": 2.0}]
        assert join.report.streams["a"].bad == 1
