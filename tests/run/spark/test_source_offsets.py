"""Sources without Spark: any way of cutting one into batches gives the same rows; options mean what they say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import ReadAllAvailable

from windrow.errors import InputError, StateError, UsageError, WindrowError
from windrow.run.spark.sources.clock import ClockReader, ClockSource
from windrow.run.spark.sources.replay import ReplayReader, ReplaySource
from windrow.run.spark.sources.slices import ROWS_A_SLICE, SLICE_SCHEMA, SlicedStream
from windrow.run.spark.sources.spark_types import in_spark_types
from windrow.run.spark.sources.synthetic import SyntheticReader, SyntheticSource
from windrow.streams.arrivals import SECOND_US, Poisson
from windrow.streams.synthetic import MIDNIGHT_US, GrubJoinStream

BEGAN_US = 1_700_000_000 * SECOND_US

ARRIVALS = {
    "poisson": {"rate_hz": "700"},
    "constant": {"arrivals": "constant", "rate_hz": "333.3"},
    "sinusoidal": {"arrivals": "sinusoidal", "rate_hz": "500", "amplitude": "0.9", "cycle_s": "7"},
    "step": {"arrivals": "step", "steps": "2:900,3:0,1:50"},
    "b-model": {"arrivals": "b-model", "rate_hz": "400", "bias": "0.2", "levels": "6", "cycle_s": "8"},
}


class Wall:
    """Wall time that only the test moves."""

    def __init__(self) -> None:
        self.now_us = BEGAN_US

    def __call__(self) -> int:
        return self.now_us


def synthetic(wall: Wall | None = None, /, **options: str) -> SyntheticReader:
    return SyntheticReader(SyntheticSource(options)._settings, wall or Wall())


def replay(path: Path | str, wall: Wall | None = None, /, **options: str) -> ReplayReader:
    return ReplayReader(ReplaySource({"path": str(path), **options})._settings, wall or Wall())


def rows_between(reader: DataSourceStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a batch, as Spark gets them: partition by partition, batch by batch."""
    start, end = json.loads(json.dumps(start)), json.loads(json.dumps(end))
    batches = [batch for part in reader.partitions(start, end) for batch in reader.read(part)]
    return [row for batch in batches if isinstance(batch, pa.RecordBatch) for row in batch.to_pylist()]


def advanced(reader: SyntheticReader | ReplayReader, start: dict[str, Any]) -> dict[str, Any]:
    end = json.loads(json.dumps(reader.latestOffset(start, ReadAllAvailable())))
    assert isinstance(end, dict)
    return end


def batches_to_the_end(reader: SyntheticReader | ReplayReader) -> list[list[dict[str, Any]]]:
    """All batches of a source that is asked again until there is no more."""
    start, batches = reader.initialOffset(), []
    while (end := advanced(reader, start)) != start:
        batches.append(rows_between(reader, start, end))
        start = end
    return batches


def flat(batches: Sequence[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch]


@pytest.mark.parametrize("arrivals", ARRIVALS)
@given(steps_us=st.lists(st.integers(1, 9_000_000), min_size=1, max_size=8), partitions=st.integers(1, 3))
@settings(max_examples=10)
def test_rows_do_not_depend_on_cuts_or_partitions(arrivals: str, steps_us: list[int], partitions: int) -> None:
    wall = Wall()
    cut = synthetic(wall, partitions=str(partitions), noise="3", **ARRIVALS[arrivals])
    start = offset = cut.initialOffset()
    in_pieces = []
    for step_us in steps_us:
        wall.now_us += step_us
        end = advanced(cut, offset)
        in_pieces += rows_between(cut, offset, end)
        offset = end
    whole = synthetic(wall, noise="3", **ARRIVALS[arrivals])
    assert in_pieces == rows_between(whole, start, offset)
    assert [row["id"] for row in in_pieces] == list(range(offset["rows"]))
    assert all(row["ts"].timestamp() * SECOND_US < MIDNIGHT_US + sum(steps_us) for row in in_pieces)


@pytest.mark.parametrize("arrivals", ARRIVALS)
def test_arrivals_keep_their_rate(arrivals: str) -> None:
    seconds = 168
    reader = synthetic(**ARRIVALS[arrivals], speed="max", span_s=str(seconds), duration_s=str(seconds))
    rows = flat(batches_to_the_end(reader))
    rate_hz = 1850 / 6 if arrivals == "step" else float(ARRIVALS[arrivals]["rate_hz"])
    # Six deviations of a Poisson count; the other patterns are exact up to a row a cycle.
    assert len(rows) == pytest.approx(rate_hz * seconds, abs=6 * (rate_hz * seconds) ** 0.5)
    times = [row["ts"] for row in rows]
    assert times == sorted(times)
    assert len({row["x"] for row in rows}) > 100


def test_constant_arrivals_have_no_seams() -> None:
    reader = synthetic(arrivals="constant", rate_hz="0.3", speed="max", span_s="60", duration_s="200000")
    times_us = np.array([row["ts"].timestamp() for row in flat(batches_to_the_end(reader))]) * SECOND_US
    gaps_us = np.diff(times_us)
    assert len(times_us) == 60_000 > ROWS_A_SLICE
    assert gaps_us.min() >= 3_333_332
    assert gaps_us.max() <= 3_333_335


def test_most_rows_of_a_batch() -> None:
    batches = batches_to_the_end(synthetic(rate_hz="5000", speed="max", max_rows_per_batch="7001", duration_s="20"))
    assert {len(batch) for batch in batches[:-1]} == {7001}
    assert [row["id"] for row in flat(batches)] == list(range(len(flat(batches))))
    assert flat(batches) == flat(
        batches_to_the_end(synthetic(rate_hz="5000", speed="max", span_s="3", duration_s="20"))
    )


def test_rows_of_one_microsecond_stay_together() -> None:
    reader = synthetic(rate_hz="5000000", speed="max", max_rows_per_batch="1", duration_s="0.0005")
    batches = [batch for batch in batches_to_the_end(reader) if batch]
    assert len({len(batch) for batch in batches}) > 1
    assert all(len({row["ts"] for row in batch}) == 1 for batch in batches)
    assert len({batch[0]["ts"] for batch in batches}) == len(batches)


def test_a_stream_follows_the_wall_time_since_it_began() -> None:
    wall = Wall()
    reader = synthetic(wall, arrivals="constant", rate_hz="10", start="now", speed="2")
    began = reader.initialOffset()
    assert advanced(reader, began) == began
    wall.now_us += 1_000_500
    end = advanced(reader, began)
    assert (end["rows"], end["until_us"], end["origin_us"]) == (21, 2_001_000, BEGAN_US)
    wall.now_us += 40_000
    assert advanced(reader, end) == end, "no row has come, so there is no batch"
    wall.now_us += 10 * SECOND_US
    restarted = synthetic(wall, arrivals="constant", rate_hz="10", start="now", speed="2", max_rows_per_batch="50")
    assert advanced(restarted, end)["rows"] == 71
    wall.now_us -= 60 * SECOND_US
    assert advanced(restarted, end) == end, "wall time went back"


def test_streams_and_seeds_draw_other_numbers() -> None:
    def drawn(**options: str) -> list[float]:
        return [row["x"] for row in flat(batches_to_the_end(synthetic(speed="max", duration_s="3", **options)))]

    assert drawn() == drawn(partitions="3")
    assert len({tuple(drawn(**options)) for options in ({}, {"seed": "1"}, {"name": "b"}, {"lag_s": "5"})}) == 4


def test_all_of_an_endless_stream_is_refused() -> None:
    with pytest.raises(UsageError, match="duration_s"):
        synthetic(speed="max").prepareForTriggerAvailableNow()
    wall = Wall()
    reader = synthetic(wall, rate_hz="1000")
    start = reader.initialOffset()
    wall.now_us += 1_000_000
    reader.prepareForTriggerAvailableNow()
    end = advanced(reader, start)
    wall.now_us += 1_000_000
    assert advanced(reader, end) == end
    assert end["rows"] > 900


def test_slices_have_spark_s_schema() -> None:
    stream = SlicedStream(GrubJoinStream("a", Poisson(10)), seed=0, slice_us=SECOND_US)
    assert all(rows.schema == SLICE_SCHEMA for rows in stream.rows(0, 0, 5 * SECOND_US, first_id=0))


def test_the_clock_ticks_and_never_goes_back() -> None:
    wall = Wall()
    reader = ClockReader(every_us=500_000, wall=wall)
    first = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    wall.now_us += 499_999
    assert reader.latestOffset(first, ReadAllAvailable()) == first == {"now_us": BEGAN_US}
    wall.now_us += 1
    second = reader.latestOffset(first, ReadAllAvailable())
    assert second == {"now_us": BEGAN_US + 500_000}
    assert rows_between(reader, first, second) == []
    wall.now_us -= 10 * SECOND_US
    assert reader.latestOffset(second, ReadAllAvailable()) == second
    assert rows_between(reader, second, second) == []


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Rows out of order, some at the same time, two without a time."""
    generator = np.random.default_rng(3)
    times = np.sort(generator.integers(0, 60_000, 2_000)) + generator.integers(0, 2_000, 2_000)
    missing = np.isin(np.arange(2_000), (0, 777))
    seen = pa.array(times, pa.timestamp("ms"), mask=missing)
    path = tmp_path / "seen.parquet"
    pq.write_table(pa.table({"seen": seen, "n": np.arange(2_000), "word": [f"w{n % 7}" for n in range(2_000)]}), path)
    return path


@pytest.mark.parametrize("as_arrived", ["true", "false"])
@pytest.mark.parametrize(
    "limit", [{"span_s": "3"}, {"max_rows_per_batch": "97"}, {"span_s": "9", "max_rows_per_batch": "150"}]
)
def test_a_replay_gives_each_row_once_in_order(recording: Path, as_arrived: str, limit: dict[str, str]) -> None:
    batches = batches_to_the_end(replay(recording, speed="max", as_arrived=as_arrived, **limit))
    rows = flat(batches)
    assert len(batches) >= 10
    assert len(rows) == 2_000
    if as_arrived == "true":
        assert [row["n"] for row in rows] == list(range(2_000))
    else:
        times = [row["seen"] for row in rows if row["seen"] is not None]
        assert times == sorted(times)
        assert sorted(row["n"] for row in rows) == list(range(2_000))
        place = [row["n"] for row in rows]
        assert place.index(777) == place.index(776) + 1, "a row without time comes with the row before it"
    assert max(map(len, batches)) <= int(limit.get("max_rows_per_batch", "2000"))


def test_a_replay_goes_at_its_speed(recording: Path) -> None:
    wall = Wall()
    reader = replay(recording, wall, speed="10", start="1970-01-01T00:00:10", columns="seen,n")
    start = reader.initialOffset()
    wall.now_us += 1_000_000
    end = advanced(reader, start)
    rows = rows_between(reader, start, end)
    expected = pq.read_table(recording).column("seen").cast("int64").drop_null().to_numpy()
    # The row at the very beginning has no time, and comes with the first that has one.
    timed = [row for row in rows if row["seen"] is not None]
    assert len(timed) == int((expected < 20_000).sum()) > 500
    assert len(rows) - len(timed) in (1, 2)
    assert list(rows[0]) == ["seen", "n"]
    wall.now_us += 3_600 * SECOND_US
    last = advanced(reader, end)
    assert last["rows"] == 2_000
    assert advanced(reader, last) == last


def test_a_replay_of_nothing_ends(tmp_path: Path) -> None:
    path = tmp_path / "none.parquet"
    pq.write_table(pa.table({"ts": pa.array([], pa.timestamp("us"))}), path)
    assert batches_to_the_end(replay(path, speed="max")) == []
    pq.write_table(pa.table({"ts": pa.array([None, None], pa.timestamp("us"))}), path)
    assert [len(batch) for batch in batches_to_the_end(replay(path, speed="max"))] == [2]


def test_large_batches_are_several_partitions(tmp_path: Path) -> None:
    path = tmp_path / "wide.parquet"
    texts = [f"{n:0100d}" for n in range(200_000)]
    pq.write_table(pa.table({"ts": pa.array(range(200_000), pa.timestamp("us")), "text": texts}), path)
    reader = replay(path, speed="max", max_rows_per_batch="150000")
    start = reader.initialOffset()
    end = advanced(reader, start)
    partitions = reader.partitions(start, end)
    assert len(partitions) == 3
    assert sum(batch.num_rows for part in partitions for batch in reader.read(part)) == 150_000


@pytest.mark.parametrize(
    ("changed", "what"),
    [({"rate_hz": "20"}, "stream"), ({"seed": "5"}, "seed"), ({"start": "2024-01-02"}, "start_us")],
)
def test_a_checkpoint_of_other_options_is_refused(changed: dict[str, str], what: str) -> None:
    start = synthetic().initialOffset()
    with pytest.raises(StateError, match=f"{what} of windrow-synthetic is"):
        advanced(synthetic(**changed), start)
    with pytest.raises(StateError, match="version 7"):
        advanced(synthetic(), {**start, "version": 7})
    assert advanced(synthetic(partitions="4", max_rows_per_batch="9"), start) == start


def test_a_checkpoint_of_other_files_is_refused(recording: Path) -> None:
    start = replay(recording).initialOffset()
    pq.write_table(pq.read_table(recording).slice(0, 1_500), recording)
    with pytest.raises(StateError, match="rows of windrow-replay is '1500'"):
        advanced(replay(recording), start)


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        (ClockSource, {"every_s": "-1"}, "every_s of windrow-clock is '-1'"),
        (ClockSource, {"every": "1"}, "windrow-clock has no option 'every'"),
        (SyntheticSource, {"rate_hz": "0"}, "rate_hz of windrow-synthetic is '0'"),
        (SyntheticSource, {"rate_hz": "fast"}, "rate_hz of windrow-synthetic is 'fast'"),
        (SyntheticSource, {"rate_hz": "inf"}, "rate_hz of windrow-synthetic is 'inf'"),
        (SyntheticSource, {"arrivals": "uniform"}, "arrivals of windrow-synthetic is 'uniform'"),
        (SyntheticSource, {"amplitude": "1"}, "no option 'amplitude'"),
        (SyntheticSource, {"arrivals": "step"}, "needs the option 'steps'"),
        (SyntheticSource, {"arrivals": "step", "steps": "1:2:3"}, "steps of windrow-synthetic is '1:2:3'"),
        (SyntheticSource, {"arrivals": "step", "steps": "1:0"}, "no row ever comes"),
        (SyntheticSource, {"arrivals": "step", "steps": "0:5"}, "duration_s of a step is 0"),
        (SyntheticSource, {"arrivals": "b-model", "rate_hz": "1e5", "cycle_s": "600"}, "a cycle of stream"),
        (SyntheticSource, {"seed": "-1"}, "seed of windrow-synthetic is '-1'"),
        (SyntheticSource, {"start": "soon"}, "start of windrow-synthetic is 'soon'"),
        (SyntheticSource, {"speed": "-2"}, "speed of windrow-synthetic is '-2'"),
        (SyntheticSource, {"span_s": "0"}, "span_s of windrow-synthetic is '0'"),
        (SyntheticSource, {"partitions": "1.5"}, "partitions of windrow-synthetic is '1.5'"),
        (ReplaySource, {}, "windrow-replay needs the option 'path'"),
        (ReplaySource, {"path": "a.parquet", "as_arrived": "1"}, "as_arrived of windrow-replay is '1'"),
    ],
)
def test_bad_options_fail_in_one_line(source: Any, options: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError) as raised:
        source(options)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_bad_files_fail_when_the_schema_is_asked_for(recording: Path, tmp_path: Path) -> None:
    for path, options, message in (
        (tmp_path / "none.parquet", {}, "does not exist"),
        (recording, {"columns": "n,absent"}, "there is no column 'absent'"),
        (f"{recording}?time=absent", {}, "there is no time column 'absent'"),
    ):
        with pytest.raises(WindrowError, match=message):
            ReplaySource({"path": str(path), **options}).schema()


def test_types_spark_lacks_become_wider_ones() -> None:
    table = pa.table(
        {
            "u8": pa.array([255], pa.uint8()),
            "u64": pa.array([2**64 - 1], pa.uint64()),
            "half": pa.array([0.5], pa.float16()),
            "word": pa.array(["a"]).dictionary_encode(),
            "none": pa.array([None], pa.null()),
            "ns": pa.array([-1], pa.timestamp("ns")),
            "zone": pa.array([1], pa.timestamp("ms", "Europe/Berlin")),
            "tags": pa.array([[7]], pa.large_list(pa.uint32())),
            "large": pa.array(["b"], pa.large_string()),
        }
    )
    taken = in_spark_types(table, "f")
    assert taken.drop_columns(["ns", "zone"]).to_pylist() == [
        {"u8": 255, "u64": Decimal(2**64 - 1), "half": 0.5, "word": "a", "none": None, "tags": [7], "large": "b"}
    ]
    assert taken.schema.field("ns").type == pa.timestamp("us")
    assert taken.schema.field("zone").type == pa.timestamp("us", "UTC")
    assert [taken.column(name).cast("int64").to_pylist() for name in ("ns", "zone")] == [[-1], [1_000]]
    with pytest.raises(InputError, match="no type for column 'months'"):
        in_spark_types(pa.table({"months": pa.array([], pa.month_day_nano_interval())}), "f")
