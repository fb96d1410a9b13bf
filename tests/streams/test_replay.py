"""Replay: nothing lost, nothing doubled, all streams in step, batches of sensible sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import InputError, UsageError
from windrow.streams.replay import Recorded, Replay, ReplayBatch, default_span_us
from windrow.streams.synthetic import cameras, generate

Times = list[int | None]


def recorded_rows(times_us: Times) -> Recorded:
    ids = pa.array(range(len(times_us)), pa.int64())
    return pa.table({"ts": pa.array(times_us, pa.timestamp("us")), "id": ids}), "ts", None


def rows_of(table: pa.Table) -> list[tuple[int | None, int]]:
    times_us = table.column("ts").cast(pa.int64()).to_pylist()
    return list(zip(times_us, table.column("id").to_pylist(), strict=True))


def shape(batches: list[ReplayBatch]) -> list[dict[str, Times]]:
    return [{name: [time for time, _ in rows_of(table)] for name, table in batch.tables.items()} for batch in batches]


def test_all_streams_advance_together() -> None:
    inputs = {"a": recorded_rows([1, 2, 2, 5]), "b": recorded_rows([1, 5, 6, 8])}
    replay = Replay(inputs, batch_us=3)
    batches = list(replay)
    assert shape(batches) == [{"a": [1, 2, 2], "b": [1]}, {"a": [5], "b": [5, 6]}, {"a": [], "b": [8]}]
    assert [batch.end_us for batch in batches] == [4, 7, 10]
    assert (replay.rows, replay.batches, len(replay), replay.span_us, replay.empty_spans) == (8, 3, 3, 3, 0)


def test_spans_without_rows_give_no_batch() -> None:
    replay = Replay({"a": recorded_rows([0, 1, 10**15])}, batch_us=10)
    assert shape(list(replay)) == [{"a": [0, 1]}, {"a": [10**15]}]
    assert replay.empty_spans == 10**14 - 1


def test_rows_are_ordered_first_and_ties_keep_their_order() -> None:
    (batch,) = Replay({"a": recorded_rows([5, 1, 5, 1])}, batch_us=100)
    assert rows_of(batch.tables["a"]) == [(1, 1), (1, 3), (5, 0), (5, 2)]


def test_as_arrived_keeps_the_order_of_the_file() -> None:
    inputs = {"a": recorded_rows([1, 7, 2, 9, 3]), "b": recorded_rows([2, 8])}
    replay = Replay(inputs, batch_us=4, as_arrived=True)
    assert shape(list(replay)) == [{"a": [1], "b": [2]}, {"a": [7, 2], "b": [8]}, {"a": [9, 3], "b": []}]


@pytest.mark.parametrize("as_arrived", [False, True])
def test_a_row_without_time_comes_with_the_row_before_it(as_arrived: bool) -> None:
    replay = Replay({"a": recorded_rows([None, 3, None, 20, None, None])}, batch_us=10, as_arrived=as_arrived)
    assert shape(list(replay)) == [{"a": [None, 3, None]}, {"a": [20, None, None]}]


def test_a_stream_without_any_time_comes_first() -> None:
    replay = Replay({"a": recorded_rows([None, None]), "b": recorded_rows([10**15, 10**15 + 9])}, batch_us=5)
    assert shape(list(replay)) == [{"a": [None, None], "b": [10**15]}, {"a": [], "b": [10**15 + 9]}]


def test_batches_by_rows_merge_the_streams() -> None:
    inputs = {"a": recorded_rows([1, 3, 5]), "b": recorded_rows([3, 4])}
    replay = Replay(inputs, batch_rows=2)
    assert shape(list(replay)) == [{"a": [1, 3], "b": []}, {"a": [], "b": [3, 4]}, {"a": [5], "b": []}]
    assert [batch.end_us for batch in replay] == [4, 5, 6]
    assert (replay.batches, replay.span_us) == (3, None)


@pytest.mark.parametrize("inputs", [{}, {"a": recorded_rows([])}, {"a": recorded_rows([]), "b": recorded_rows([])}])
@pytest.mark.parametrize("options", [{}, {"batch_us": 7}, {"batch_rows": 3}, {"as_arrived": True}])
def test_nothing_to_replay(inputs: dict[str, Recorded], options: dict[str, Any]) -> None:
    replay = Replay(inputs, **options)
    assert (list(replay), replay.rows, replay.batches, replay.empty_spans) == ([], 0, 0, 0)


@pytest.mark.parametrize("times_us", [[5], [5, 5, 5], [-(2**63), 2**63 - 1], [None, None]])
@pytest.mark.parametrize("options", [{}, {"batch_us": 1}, {"batch_rows": 1}, {"as_arrived": True}])
def test_corners(times_us: Times, options: dict[str, Any]) -> None:
    batches = list(Replay({"a": recorded_rows(times_us)}, **options))
    assert [time for batch in shape(batches) for time in batch["a"]] == times_us


def test_an_empty_stream_beside_a_full_one() -> None:
    replay = Replay({"a": recorded_rows([]), "b": recorded_rows(list(range(40)))})
    assert replay.batches == 20
    assert all(batch.tables["a"].num_rows == 0 for batch in replay)


def test_other_units_of_time() -> None:
    seconds = pa.table({"at": [0, 1, 2]}), "at", "s"
    fractions = pa.table({"at": [0.5, 1.5]}), "at", None
    replay = Replay({"a": seconds, "b": fractions}, batch_us=1_000_000)
    counts = [{name: table.num_rows for name, table in batch.tables.items()} for batch in replay]
    assert counts == [{"a": 1, "b": 1}, {"a": 1, "b": 1}, {"a": 1, "b": 0}]


def test_batches_of_ordered_streams_are_slices() -> None:
    table, time, unit = recorded_rows(list(range(100)))
    first, *_ = Replay({"a": (table, time, unit)}, batch_us=10)
    buffers = [column.chunk(0).buffers()[1].address for column in (first.tables["a"].column("id"), table.column("id"))]
    assert buffers[0] == buffers[1]


def test_the_default_span_gives_20_batches_or_100_000_rows_each() -> None:
    assert default_span_us([np.arange(10)]) == 1
    assert Replay(generate_inputs()).batches == 20
    many = [np.arange(0, 3_000_000, dtype=np.int64)] * 2
    assert default_span_us(many) == 50_000


def test_the_default_span_copes_with_gaps() -> None:
    crowd = np.arange(1000, dtype=np.int64)
    outlier = np.array([10**15], dtype=np.int64)
    span_us = default_span_us([np.concatenate((crowd, outlier))])
    assert 20 <= len(set((crowd // span_us).tolist())) <= 100


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({"batch_us": 0}, "cannot span 0 microseconds"),
        ({"batch_rows": 0}, "cannot hold 0 rows"),
        ({"batch_us": 1, "batch_rows": 1}, "either by time or by rows"),
    ],
)
def test_senseless_batches_are_refused(options: dict[str, Any], shown: str) -> None:
    with pytest.raises(UsageError, match=shown):
        Replay({}, **options)


def test_an_unknown_time_column_is_named() -> None:
    with pytest.raises(InputError, match=r"stream 'a' has no time column 'when'.*ts, id"):
        Replay({"a": (recorded_rows([1])[0], "when", None)})


times = st.lists(st.none() | st.integers(-50, 50) | st.sampled_from([-(2**63), 2**63 - 1]), max_size=12)


@given(
    streams=st.dictionaries(st.sampled_from(["a", "b", "c"]), times, min_size=1),
    cut=st.sampled_from([{}, {"batch_us": 1}, {"batch_us": 7}, {"batch_us": 10**6}])
    | st.builds(lambda rows: {"batch_rows": rows}, st.sampled_from([1, 2, 7, 49])),
    as_arrived=st.booleans(),
)
def test_nothing_is_lost_doubled_or_out_of_step(
    streams: dict[str, Times], cut: dict[str, int], as_arrived: bool
) -> None:
    inputs = {name: recorded_rows(own) for name, own in streams.items()}
    replay = Replay(inputs, as_arrived=as_arrived, **cut)
    batches = list(replay)
    assert len(batches) == replay.batches
    assert replay.rows == sum(len(own) for own in streams.values())
    sizes = [sum(table.num_rows for table in batch.tables.values()) for batch in batches]
    assert all(sizes)
    if "batch_rows" in cut:
        assert all(size == cut["batch_rows"] for size in sizes[:-1])
        assert not sizes or sizes[-1] <= cut["batch_rows"]
    for name, (table, _, _) in inputs.items():
        replayed = [row for batch in batches for row in rows_of(batch.tables[name])]
        assert Counter(replayed) == Counter(rows_of(table))
        if as_arrived:
            assert replayed == rows_of(table)
        else:
            present = [time for time, _ in replayed if time is not None]
            assert present == sorted(present)
    check_ends(batches, overlapping="batch_rows" in cut or as_arrived)


def check_ends(batches: list[ReplayBatch], overlapping: bool) -> None:
    """No row is at or beyond its batch's end; in order, none is before the end of the batch before."""
    reached = -(2**63)
    for batch in batches:
        present = [time for table in batch.tables.values() for time, _ in rows_of(table) if time is not None]
        assert all(time < batch.end_us or time == 2**63 - 1 for time in present)
        assert overlapping or all(time >= reached for time in present)
        assert batch.end_us >= reached
        reached = batch.end_us


@pytest.mark.parametrize("make", [lambda: Replay(generate_inputs()), lambda: Replay(generate_inputs(), batch_rows=50)])
def test_it_can_be_iterated_again(make: Callable[[], Replay]) -> None:
    replay = make()
    assert [batch.end_us for batch in replay] == [batch.end_us for batch in replay]
    assert replay.batches >= 20


def generate_inputs() -> dict[str, Recorded]:
    tables = generate(cameras(rate_hz=50), duration_s=10, seed=2)
    return {name: (table, "ts", None) for name, table in tables.items()}
