"""The entrances of all streams, from batch to batch: opened as a commit keeps them, and kept in the next one.

    commit k-1 ── opened ──▶ Entry: newest times, watermarks, counters, rows that wait ── gates_of ──▶ commit k

Rows that wait for a row window are files beside the commits (`Journal.waiting`).
"""

from __future__ import annotations

from windrow.run.admit import Entry
from windrow.run.program import Program
from windrow.run.spark.journal import Journal
from windrow.run.spark.state import Commit, Gate


def opened(program: Program, max_ahead_us: int | None, last: Commit, journal: Journal) -> Entry:
    """The entrances as a commit left them."""
    entry = Entry(program, max_ahead_us, None)
    for name, held in last.gates.items():
        gate = entry.gates[name]
        gate.newest_us, gate.watermark_us = held.newest_us, held.watermark_us
        gate.heard_us, gate.counted = held.heard_us, held.counted
        for counted, amount in held.counts.items():
            setattr(gate.counts, counted, amount)
        columns = [column.name for column in program.kept[name]]
        waiting = journal.waiting(last.batch, name, columns) if entry.row_windowed else None
        gate.waiting = [] if waiting is None else [waiting]
    return entry


def gates_of(entry: Entry) -> dict[str, Gate]:
    """What a commit keeps of the entrances."""
    return {
        name: Gate(gate.newest_us, gate.watermark_us, gate.heard_us, gate.counted, vars(gate.counts))
        for name, gate in entry.gates.items()
    }
