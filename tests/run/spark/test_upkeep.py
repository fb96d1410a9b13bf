"""Live segments over many batches: few files, little more than the windows on disk, nothing dropped too early."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from tests.run.spark.commits import QUESTION
from windrow.plan.slices import spans_in_turn, time_slicing
from windrow.query import types
from windrow.query.expression import Column
from windrow.query.spec import QuerySpec, Stream, Window
from windrow.run.spark.journal import Journal, segment_name
from windrow.run.spark.state import Commit, Gate
from windrow.run.spark.upkeep import SPAN_SHARE, Kept, after_batch, is_needed, merges_of
from windrow.store.codec import to_batch
from windrow.store.files import SegmentFile, read_segment, write_segment
from windrow.store.operand import Array, from_arrow
from windrow.store.segment import Layout, Segment, merge
from windrow.store.storage import LocalStorage

TIME, X, ID = (
    Column("a", "ts", types.TIMESTAMP),
    Column("a", "x", types.DOUBLE),
    Column("a", "id", types.BIGINT),
)
LAYOUT = Layout((TIME, X, ID), (X,))
ROW_BYTES = 24
SECOND_US = 1_000_000


def spec_of(window: Window, lateness_us: int = 0) -> QuerySpec:
    return QuerySpec((Stream("a", "a", LAYOUT.columns, "ts", window, lateness_us=lateness_us),), (), ())


def joined(name: str, members: Sequence[SegmentFile]) -> SegmentFile:
    first_us, last_us = min(f.first_us for f in members), max(f.last_us for f in members)
    rows, size = sum(f.rows for f in members), sum(f.bytes for f in members)
    clocks = {"a": (members[0].clocks["a"][0], members[-1].clocks["a"][1])} if members[0].clocks else {}
    return SegmentFile(name, rows, size, first_us, last_us, members[0].level + 1, clocks)


def merged(last: Commit, spec: QuerySpec, batch: int) -> Iterator[Kept]:
    """What tasks write for the merges of a batch."""
    for place, streams in merges_of(last.live, spec).items():
        held = {file.name: file for file in last.live[place]["a"]}
        for count, group in enumerate(streams["a"]):
            name = segment_name(batch, place, "a", "r", f"merge{count}")
            yield Kept(place, "a", joined(name, [held[member] for member in group]), tuple(group))


@pytest.mark.parametrize("by_hash", [True, False])
@pytest.mark.parametrize("day", [7_200, pytest.param(86_400, marks=pytest.mark.long)])
def test_files_stay_few_for_a_day_of_batches_of_a_second(day: int, by_hash: bool) -> None:
    """A slice by hash gets rows in every batch, one by time for a while and then none for as long."""
    slices = 3
    spec = spec_of(Window(span_us=day * SECOND_US))
    by_time = time_slicing("a", slices, day * SECOND_US)
    last = Commit(-1, QUESTION)
    most = rows = 0
    for batch in range(day + day // 8):
        first_us = batch * SECOND_US
        places = range(slices) if by_hash else spans_in_turn(by_time, np.array([first_us])).tolist()
        kept = [
            Kept(p, "a", SegmentFile(f"{batch}-{p}", 500, 9000, first_us, first_us + SECOND_US - 1, 0, {}))
            for p in places
        ]
        live, dying = after_batch(last, [*kept, *merged(last, spec, batch)], {"a": (first_us - day * SECOND_US, 0)})
        last = replace(last, batch=batch, live=live, dying=dying)
        files = [file for streams in live.values() for file in streams["a"]]
        most = max(most, len(files) + len(dying))
        rows = sum(file.rows for file in files)
        if batch % 1000 == 0:
            assert sum(file.rows for file in files if file.last_us >= first_us - day * SECOND_US) == rows
    in_window = 500 * len(list(places)) * day
    assert in_window <= rows <= in_window * (1 + 1 / SPAN_SHARE)
    assert most < 75 * slices
    assert max(file.level for streams in last.live.values() for file in streams["a"]) >= 2


def test_slices_that_get_no_rows_merge_what_they_have() -> None:
    spec = spec_of(Window(span_us=100 * SECOND_US))
    files = tuple(SegmentFile(f"s{k}", 1, 9, k * SECOND_US, k * SECOND_US, 0, {}) for k in range(14))
    live = {3: {"a": files}, 5: {"a": files[:2]}}
    assert merges_of(live, spec) == {3: {"a": [[f"s{k}" for k in range(13)]]}}


@pytest.mark.parametrize(("window_s", "slices", "late_s"), [(20, 1, 0), (20, 2, 2), (20, 5, 0), (600, 2, 0)])
def test_little_more_is_on_disk_than_the_windows_hold(
    window_s: int, slices: int, late_s: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A thousand rows a second and stream; counted is every byte below the checkpoint's address."""
    folder = tmp_path_factory.mktemp("state")
    storage = LocalStorage(folder)
    journal = Journal(storage)
    spec = spec_of(Window(span_us=window_s * SECOND_US), late_s * SECOND_US)
    draw = np.random.default_rng(window_s)
    last = Commit(-1, QUESTION)
    ratios = []
    for batch in range(window_s + 40):
        times_us = np.sort(draw.integers((batch - late_s) * SECOND_US, (batch + 1) * SECOND_US, 1000))
        homes = draw.integers(0, slices, 1000)
        journal.write_plan(batch, {"merges": merges_of(last.live, spec)})
        kept = [written(storage, batch, place, times_us[homes == place], draw) for place in range(slices)]
        kept += [rewritten(storage, last, each) for each in merged(last, spec, batch)]
        cutoff_us = (batch + 1 - late_s - window_s) * SECOND_US
        live, dying = after_batch(last, kept, {"a": (cutoff_us, 0)})
        gates = {"a": Gate(0, 0, 0, 0, {})}
        commit = replace(last, batch=batch, live=live, dying=dying, gates=gates)
        journal.write_commit(commit)
        journal.forget(batch - 2, (), last.dying)
        last = commit
        if batch >= window_s + 10:
            size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
            ratios.append(size / (window_s * 1000 * ROW_BYTES))
    assert len(ratios) == 30
    assert 1 < max(ratios) <= 1.5
    indexed = max(ratios) + 16 / ROW_BYTES * (1 + 1 / SPAN_SHARE)  # one index of all rows
    assert indexed <= 3


def written(storage: LocalStorage, batch: int, place: int, times_us: Array, draw: np.random.Generator) -> Kept:
    count = len(times_us)
    columns = (pa.array(times_us, pa.timestamp("us")), pa.array(draw.random(count)), pa.array(np.arange(count)))
    segment = Segment(LAYOUT, times_us, {}, columns, (from_arrow(columns[1], X.type),))
    assert to_batch(segment).nbytes == ROW_BYTES * count
    return Kept(place, "a", write_segment(storage, segment_name(batch, place, "a", "r", "1"), segment))


def rewritten(storage: LocalStorage, last: Commit, kept: Kept) -> Kept:
    held = {file.name: file for file in last.live[kept.place]["a"]}
    segment = merge([read_segment(storage, held[name], LAYOUT) for name in kept.replaces], -(2**63))
    assert (len(segment), segment.level) == (kept.file.rows, kept.file.level)
    return kept._replace(file=write_segment(storage, kept.file.name, segment))


def test_expiry_is_closed_at_the_cutoff_and_by_row_numbers() -> None:
    file = SegmentFile("s", 3, 9, 10, 20, 0, {"a": (4, 6), "b": (1, 9)})
    assert is_needed(file, "a", 20, 0)
    assert not is_needed(file, "a", 21, 0)
    assert is_needed(file, "a", -(2**63), 6)
    assert not is_needed(file, "a", -(2**63), 7)
    assert is_needed(file, "b", -(2**63), 7)
    assert not is_needed(replace(file, rows=0), "a", -(2**63), 0)


def test_a_batch_keeps_what_is_needed_and_tells_what_is_not() -> None:
    files = [SegmentFile(f"s{k}", 3, 9, 10 * k, 10 * k + 9, 0, {}, {"i": 4} if k == 1 else {}) for k in range(5)]
    last = Commit(3, QUESTION, live={0: {"a": tuple(files[:3]), "b": (replace(files[0], name="b0"),)}})
    new = Kept(1, "a", files[4])
    both = Kept(0, "a", joined("s12", files[1:3]), ("s1", "s2"))
    stillborn = Kept(0, "b", replace(files[0], name="b1"))
    live, dying = after_batch(last, [new, both, stillborn], {"a": (10, 0), "b": (10, 0)}.__getitem__)
    assert live == {0: {"a": (both.file,)}, 1: {"a": (new.file,)}}
    assert sorted(dying) == sorted(["b0", "b1", "s0", *files[1].names, "s2"])
    assert len(files[1].names) == 2
