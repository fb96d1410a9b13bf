"""A stream of deltas against a window: the steady state in which the indexed joins are measured.

    time       0 s       0.5 s      1 s       1.5 s      2 s
    b          delta 0              delta 1              delta 2           stored: the newest `window` deltas
    a                    delta 0              delta 1                      probes, and is forgotten

Batch k holds delta k of both streams. All of a's rows in it see the same b rows, whole deltas from k - window + 1 to k,
so a peer that joins a's delta with a table of exactly those rows does the same join without looking at time. The engine
is not told: it checks every row's age, and stores, merges, indexes and expires as ever.

Keys are uniform over as many values as there are rows in the window, so a row of a matches about one row of b whatever
the size.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

import windrow
from benchmarks.measure import DisagreementError, timed

SCHEMA = pa.schema([("ts", pa.timestamp("us")), ("id", pa.int64()), ("x", pa.float64()), ("k", pa.int64())])
CONDITIONS = {"band": "ABS(a.x - b.x) <= 0.5", "equality": "a.k = b.k"}
_SECOND_US = 1_000_000
_SEEDS = {"a": 1, "b": 2}


@dataclass(frozen=True, slots=True)
class Sizes:
    """Rows a delta, deltas a window, batches measured once the window is full, and rounds of the peers among them."""

    delta_rows: int
    window_deltas: int
    batches: int
    peer_rounds: int

    @property
    def window_rows(self) -> int:
        return self.delta_rows * self.window_deltas


def delta(stream: str, number: int, sizes: Sizes) -> pa.Table:
    """Delta `number` of stream a or b; always the same rows for the same arguments."""
    rows = sizes.delta_rows
    random = np.random.default_rng([_SEEDS[stream], number])
    start_us = number * _SECOND_US + (_SECOND_US // 2 if stream == "a" else 0)
    times_us = start_us + np.sort(random.integers(0, _SECOND_US // 2, rows))
    ids = np.arange(number * rows, (number + 1) * rows)
    keys = random.integers(0, sizes.window_rows, rows)
    columns = [times_us, ids, random.uniform(0, sizes.window_rows, rows), keys]
    return pa.table([pa.array(values, kind) for values, kind in zip(columns, SCHEMA.types, strict=True)], schema=SCHEMA)


@dataclass
class DeltaJoin:
    """Our side: a running join, given one batch after the other. `condition` names one of `CONDITIONS`."""

    condition: str
    sizes: Sizes
    batch: int = 0
    seconds: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        windows = f"WINDOW a 0 SECONDS, b {self.sizes.window_deltas} SECONDS"
        text = f"SELECT a.id AS a_id, b.id AS b_id FROM a, b WHERE {CONDITIONS[self.condition]} {windows}"
        self.join = windrow.local(windrow.sql(text, streams={"a": SCHEMA, "b": SCHEMA}))

    def fill(self) -> None:
        """Run unmeasured batches until the window is full and as many segments as ever are merged."""
        for _ in range(self.sizes.window_deltas + 1):
            self.advance()
        self.seconds.clear()

    def advance(self) -> pa.Table:
        """One batch: insertion, merging, indexing and probing are timed, making the rows is not."""
        rows = {name: delta(name, self.batch, self.sizes) for name in ("a", "b")}

        def run() -> pa.Table:
            for name, table in rows.items():
                self.join.push(name, table)
            return self.join.step()

        spent, results = timed(run)
        self.seconds.append(spent)
        self.batch += 1
        return results

    @property
    def probing(self) -> pa.Table:
        """The delta of a in the last batch."""
        return delta("a", self.batch - 1, self.sizes)

    @property
    def window(self) -> pa.Table:
        """The rows of b that this delta was joined with."""
        numbers = range(max(0, self.batch - self.sizes.window_deltas), self.batch)
        return pa.concat_tables([delta("b", number, self.sizes) for number in numbers]).combine_chunks()


def check_same(ours: pa.Table, theirs: pa.Table, peer: str) -> None:
    """Refuse to compare times of different answers: both have to hold the same (a_id, b_id), as often."""
    found = [
        np.sort(np.rec.fromarrays([np.asarray(table.column(name)) for name in ("a_id", "b_id")]))
        for table in (ours, theirs)
    ]
    if len(found[0]) != len(found[1]) or (found[0] != found[1]).any():
        raise DisagreementError(
            f"{peer} found {len(found[1])} results, we found {len(found[0])}", hint="this is a defect, please report it"
        )
