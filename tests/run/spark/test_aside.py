"""Rows set aside by the tasks of a batch are published together, each once."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from windrow.run.spark.aside import BECAUSE, Aside
from windrow.run.spark.results import ResultFile, write_results
from windrow.store.storage import LocalStorage


def staged(aside: Aside, name: str, values: list[int]) -> ResultFile:
    rows = pa.table({"x": values, BECAUSE: ["late"] * len(values)})
    file = write_results(aside.output, name, rows.schema, rows.to_batches(), inline_bytes=0)
    assert isinstance(file, ResultFile)
    return file


def held(folder: Path) -> dict[str, list[int]]:
    return {
        file.relative_to(folder).as_posix(): pq.read_table(file, partitioning=None)["x"].to_pylist()
        for file in sorted(folder.glob("stream=*/*/*.parquet"))
    }


def test_a_batch_may_set_aside_rows_of_several_streams(tmp_path: Path) -> None:
    expected: dict[str, list[int]] = {}
    for batch in range(2):
        aside = Aside(LocalStorage(tmp_path))  # the second one follows a restart
        staged(aside, f"failed {batch}", [0])
        for run in ("cut off", "again"):
            files = {name: [staged(aside, f"{batch} {name} {run}", [batch, 7])] for name in ("a", "é b")}
            aside.deliver({**files, "c": []}, batch)
        expected |= {f"stream={name}/batch={batch}/part-0.parquet": [batch, 7] for name in ("a", "%C3%A9%20b")}
        assert held(tmp_path) == expected
        assert not list((tmp_path / "_staged").iterdir())
