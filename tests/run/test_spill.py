"""Results that are too many, or too wide, for memory: in pieces, beyond the limit in a file; the rows are the same."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import windrow
from tests.oracle.duck import rows_of
from windrow.errors import SourceError, UsageError
from windrow.run import spill
from windrow.run.results import result_batches

pytestmark = pytest.mark.usefixtures("interpreted")

EVERYTHING = "SELECT a.x AS ax, b.x AS bx, b.x + 1 AS more FROM a, b WHERE a.x < b.x + 1000 WINDOW 1 SECONDS"


def rows(count: int) -> pa.Table:
    return pa.table({"ts": pa.array(range(count), pa.timestamp("us")), "x": pa.array(range(count), pa.int64())})


def joined(text: str, table: pa.Table, **options: Any) -> tuple[pa.Table, Any]:
    with windrow.local(windrow.sql(text, {"a": table, "b": table}), **options) as join:
        join.push("a", table)
        join.push("b", table)
        return join.finish(), join.report


def test_what_is_beyond_the_limit_lies_in_a_file_without_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    whole, nothing = joined(EVERYTHING, rows(300))
    assert (len(whole), nothing.spilled_bytes) == (90_000, 0)
    before = pa.total_allocated_bytes()
    found, report = joined(EVERYTHING, rows(300), result_memory="1MB")
    assert report.spilled_bytes >= 1_000_000
    assert pa.total_allocated_bytes() - before <= 1_200_000
    assert found.nbytes >= 2_000_000
    assert rows_of(found) == rows_of(whole)
    assert "MB of results spilled" in str(report)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_: object) -> None:
            """Nothing to close."""

        def write_batch(self, batch: pa.RecordBatch) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pa.ipc, "new_file", lambda *_: Full())
    with pytest.raises(SourceError, match="No space left") as told:
        joined(EVERYTHING, rows(50), result_memory=1)
    assert "\n" not in str(told.value)


def test_a_limit_has_to_be_one() -> None:
    with pytest.raises(UsageError, match="'none' is not a memory limit"):
        joined(EVERYTHING, rows(1), result_memory="none")


@pytest.mark.parametrize("largest_bytes", [1, 1_000, 100_000])
def test_pieces_of_wide_rows_are_small_and_lose_nothing(largest_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    count, widths = 12, [1, 4_000, 3, 50]
    table = pa.table({
        "ts": pa.array(range(count), pa.timestamp("us")),
        "s": [chr(97 + k) * widths[k % 4] for k in range(count)],
        "v": pa.array([[float(k)] * 64 for k in range(count)], pa.list_(pa.float64(), 64)),
    })  # fmt: skip
    text = "SELECT a.s AS s, b.v AS v, lower(b.s) AS low FROM a, b WHERE a.s <> b.s OR a.s = b.s WINDOW 1 SECONDS"
    pieces: list[list[int]] = []

    def noted(program: Any, block: Any) -> Any:
        found = list(result_batches(program, block, largest_bytes))
        pieces.append([batch.nbytes for batch in found])
        return iter(found)

    whole = joined(text, table)[0]
    monkeypatch.setattr(spill, "result_batches", noted)
    cut, _ = joined(text, table)
    assert rows_of(cut) == rows_of(whole)
    assert len(whole) == count * count
    widest = 2 * 4_000 + 64 * 8 + 100
    assert max(map(max, pieces)) <= max(widest, 4 * largest_bytes)
    assert sum(map(len, pieces)) >= min(count * count, whole.nbytes // (4 * largest_bytes))


def test_an_empty_batch_has_the_columns() -> None:
    found, _ = joined(EVERYTHING, rows(0))
    assert found.schema.names == ["ax", "bx", "more"]
    assert np.issubdtype(found["more"].to_numpy().dtype, np.integer)
