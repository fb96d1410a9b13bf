"""What the tasks of a batch tell the driver program: results, new segments, counts of the entrance, notes of clerks.

rows of the job ──take_in──▶ results, staged or as they are │ segments written │ counts, to the gates │ work
                                                                                                       │
                   commit before ──observation── what the batch did, for whoever steers ◀──────────────┘
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import Row

from windrow.control.ledger import Driven
from windrow.control.observation import NO_REPAIR, Arrival, Joined, Observation, Repaired, summed
from windrow.run.admit import NEVER_US, Entry
from windrow.run.freshness import FreshResults
from windrow.run.spark.messages import AGED, CAME, COUNT, DONE, KEPT, NOTED, RESULT, STAGED, SUMMED
from windrow.run.spark.results import ResultFile
from windrow.run.spark.state import Commit, Live
from windrow.run.spark.upkeep import Kept
from windrow.run.spark.wire import bytes_tally
from windrow.run.tally import Tally
from windrow.store.files import SegmentFile


class Came(NamedTuple):
    """New rows of a stream, as the ledger is to know them: how many each portion has, and where they lie."""

    rows: Mapping[int, int]
    driven: Driven


@dataclass
class Told:
    """What the tasks of a batch have told so far. `dying` are objects that this batch is the last to need."""

    results: int = 0
    files: list[ResultFile] = field(default_factory=list)
    inline: list[pa.Table] = field(default_factory=list)
    aside: dict[str, list[ResultFile]] = field(default_factory=dict)
    seconds: float = 0.0
    work: list[Joined] = field(default_factory=list)
    merged: int = 0
    kept: list[Kept] = field(default_factory=list)
    tallies: list[Tally] = field(default_factory=list)
    dying: set[str] = field(default_factory=set)
    came: dict[str, Came] = field(default_factory=dict)
    repaired: Repaired = NO_REPAIR
    aged: FreshResults = field(default_factory=lambda: FreshResults({}, 0))

    def take_in(self, rows: Sequence[Row], entry: Entry, now_us: int) -> list[Kept]:
        """Take in what the tasks of a job tell; counts go to the entrances. The segments that were written."""
        kept: list[Kept] = []
        for row in rows:
            kind, payload = row["kind"], bytes(row["payload"])
            if kind == RESULT:
                self.inline.append(pa.ipc.open_stream(payload).read_all())
                self.results += row["rows"]
                continue
            if kind == SUMMED:
                self.tallies.append(bytes_tally(payload))
                self.results += row["rows"]
                continue
            value = json.loads(payload)
            if kind == STAGED:
                self.files.append(ResultFile(**value))
                self.results += row["rows"]
            elif kind == DONE:
                self.seconds += value["seconds"]
            elif kind == NOTED:
                self.work.append(Joined.from_values(value))
            elif kind == CAME:
                self._came(row["path"], value.pop("rows"), Driven(**value))
            elif kind == AGED:
                self.aged.take_in(value)
            elif kind == COUNT:
                _heard(entry, row["path"], value, now_us)
                self.aside.setdefault(row["path"], []).extend(ResultFile(**file) for file in value["aside"])
            elif kind == KEPT:
                file, replaces = SegmentFile.from_fields(value["file"]), tuple(value["replaces"])
                facts = {name: fact for name, fact in value.items() if name not in ("file", "replaces")}
                kept.append(Kept(row["slice"], row["path"], file, replaces, facts))
                self.merged += file.rows if replaces else 0
        self.kept += kept
        return kept

    def join(self, late: Told, repaired: Repaired) -> None:
        """With what tasks told that repaired pieces besides."""
        self.files += late.files
        self.inline += late.inline
        self.results += late.results
        self.repaired = repaired

    def _came(self, stream: str, rows: Mapping[str, int], driven: Driven) -> None:
        counts = {int(number): count for number, count in rows.items()}
        held = self.came.get(stream)
        if held is not None:
            counts = {n: counts.get(n, 0) + held.rows.get(n, 0) for n in {**held.rows, **counts}}
            driven = held.driven.together(driven)
        self.came[stream] = Came(counts, driven)

    @property
    def lost(self) -> float:
        """About how many results were missed because rows were let go for memory."""
        return sum(tally.lost for did in self.work for held in (did.sampled, did.others) for tally in held.values())

    @property
    def oldest_us(self) -> int | None:
        """The event time of the oldest row that was stored; None without any."""
        return min((each.file.first_us for each in self.kept if each.file.rows and not each.replaces), default=None)

    def observation(
        self, batch: int, now_us: int, busy_s: float, last: Commit, entry: Entry, live: Live
    ) -> Observation:
        """What a batch did that began at `now_us`, after the one that `last` is of, and left `live` behind."""
        files = {name: [file for held in live.values() for file in held.get(name, ())] for name in entry.gates}
        arrivals = {
            name: Arrival(
                rows=gate.counts.rows - (last.gates[name].counts["rows"] if name in last.gates else 0),
                late=gate.counts.late,
                stored=sum(file.rows for file in files[name]),
                stored_bytes=sum(file.total_bytes for file in files[name]),
                watermark_us=None if gate.watermark_us == NEVER_US else gate.watermark_us,
            )
            for name, gate in entry.gates.items()
        }
        span_s = (now_us - last.now_us) / 1e6 if last.batch >= 0 else 0.0
        joined = summed(self.work).settled()
        prompt = self.results - self.repaired.results
        return Observation(
            batch,
            now_us / 1e6,
            span_s,
            busy_s,
            arrivals,
            joined,
            results=prompt,
            merged=self.merged,
            repaired=self.repaired,
        )


def _heard(entry: Entry, stream: str, value: Mapping[str, Any], now_us: int) -> None:
    gate = entry.gates[stream]
    if value["newest_us"] > NEVER_US:
        gate.newest_us, gate.heard_us = max(gate.newest_us, value["newest_us"]), now_us
    for name, amount in value["counts"].items():
        setattr(gate.counts, name, getattr(gate.counts, name) + amount)
