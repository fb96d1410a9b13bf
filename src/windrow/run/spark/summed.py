"""Aggregates on Spark: tasks tell tallies, the driver program keeps the open spans, a file of each batch holds them.

    tasks ── tally ──▶ told ─┐
    sums/K-1 ── open spans ──┴─▶ lines of final spans ─▶ sink        open spans ─▶ sums/K ─▶ commit K

Batch K begins from what batch K-1 left, whoever ran it, so a batch that is run again gives the same lines, and each
result is in one line once. Which spans are final, and where something was left out, follows from the commit, the plan
of the batch, and what its tasks told.
"""

from __future__ import annotations

from typing import Self

import pyarrow as pa

from windrow.plan.shedding import Shedding
from windrow.query.spec import Summary
from windrow.run.admit import Entry
from windrow.run.program import Program
from windrow.run.spark.journal import Journal
from windrow.run.spark.told import Told
from windrow.run.summing import Summing


class Sums:
    """The open spans of a join on Spark, from batch to batch; `schema` is that of what is delivered."""

    def __init__(self, program: Program, summary: Summary, journal: Journal) -> None:
        self.program = program
        self.summary = summary
        self.journal = journal
        self.schema = self._summing().schema

    @classmethod
    def of(cls, program: Program, journal: Journal) -> Self | None:
        """What adds results up, if that is asked for."""
        summary = program.spec.summary
        return None if summary is None else cls(program, summary, journal)

    def final(self, batch: int, last: bool, shedding: Shedding, told: Told, entry: Entry, lets_go: bool) -> pa.Table:
        """The lines that a batch makes final (the last one all); what it leaves open is written down."""
        summing = self._summing()
        before = self.journal.sums(batch - 1)
        if before is not None:
            summing.restore(before)
        gates = entry.gates.values()
        summing.begin(told.oldest_us, max(gate.newest_us for gate in gates), shedding, lets_go)
        summing.take(told.tallies, shedding)
        lines = summing.final(None if last else min(gate.watermark_us for gate in gates))
        self.journal.write_sums(batch, summing.to_table())
        return lines

    def _summing(self) -> Summing:
        return Summing(self.summary, self.program.schema, (stream.name for stream in self.program.spec.streams))
