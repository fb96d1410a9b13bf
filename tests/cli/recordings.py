"""Small recorded streams for the tests of the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv
from pyarrow import parquet as pq

NEAR = """
SELECT a.id AS a_id, b.id AS b_id, a.x AS ax, result_ts() AS seen
FROM cam1 AS a, cam2 AS b
WHERE ABS(a.x - b.x) <= 0.5 AND a.kind = b.kind
WINDOW a 20 SECONDS, b 5 SECONDS
"""


def camera(seed: int, rows: int = 400) -> pa.Table:
    """A minute of a camera, in no order, with NULLs; prices on a grid, so that thresholds are met exactly."""
    generator = np.random.default_rng(seed)
    x = np.round(generator.random(rows) * 20, 1)
    return pa.table(
        {
            "ts": pa.array(generator.integers(0, 60_000, rows) * 1000, pa.timestamp("us")),
            "id": np.arange(rows, dtype=np.int64),
            "x": pa.array(x, mask=generator.random(rows) < 0.05),
            "kind": pa.array(generator.choice(["car", "van", "bus"], rows)),
            "unread": pa.array([[1, 2]] * rows),
        }
    )


def write(table: pa.Table, path: Path) -> Path:
    """The table as a file of the format its name says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".csv":
        csv.write_csv(table.drop_columns(["unread"]) if "unread" in table.column_names else table, path)
    elif path.suffix == ".arrow":
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    else:
        pq.write_table(table, path)
    return path


def in_order(table: pa.Table) -> pa.Table:
    """The rows by event time."""
    return table.take(pc.sort_indices(table["ts"]))


def cameras_and_query(folder: Path, query: str = NEAR) -> tuple[str, ...]:
    """Two cameras as `cam1.parquet` and `cam2.csv` and a query in a folder; the arguments that name them."""
    write(camera(1), folder / "cam1.parquet")
    write(camera(2), folder / "cam2.csv")
    (folder / "near.sql").write_text(query, encoding="utf-8")
    return ("near.sql", "--stream", "cam1=cam1.parquet", "--stream", "cam2=cam2.csv")
