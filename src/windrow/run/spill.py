"""Results that are too many for memory: the first are kept there, the others lie in a file that is mapped.

    blocks ─▶ pieces ── up to `limit_bytes` ──▶ memory ─┐
                  └──── the rest ─────────────▶ a file ─┴─▶ one table

So a condition that nearly everything fulfils makes a step slow, not the process die: pages of a mapped file can go at
any time. The file has no name once it is mapped, is its user's alone before, and goes with the table.

>>> Spill.of("2MB").limit_bytes
2000000
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from itertools import chain

import pyarrow as pa

from windrow.errors import SourceError, WindrowError
from windrow.plan.memory import limit_bytes
from windrow.run.partial import Partial
from windrow.run.program import Program
from windrow.run.results import result_batches


class Spill:
    """Collects results; `spilled_bytes` is what has been written to files so far."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.spilled_bytes = 0

    @staticmethod
    def of(memory: str | int) -> Spill:
        """For results that may take so much memory."""
        return Spill(limit_bytes(memory))

    def table(self, program: Program, blocks: Iterable[Partial]) -> pa.Table:
        """All blocks of a batch as one table."""
        batches = (batch for block in blocks for batch in result_batches(program, block))
        kept: list[pa.RecordBatch] = []
        size = 0
        for batch in batches:
            size += batch.nbytes
            if size > self.limit_bytes:
                spilled = self._mapped(chain([batch], batches), program.schema)
                return pa.concat_tables([pa.Table.from_batches(kept, program.schema), spilled])
            kept.append(batch)
        return pa.Table.from_batches(kept, program.schema)

    def _mapped(self, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
        """Batches as a table that lies in a file."""
        try:
            with tempfile.NamedTemporaryFile(prefix="windrow-results-") as file:
                with pa.ipc.new_file(file, schema) as writer:
                    for batch in batches:
                        writer.write_batch(batch)
                file.flush()
                self.spilled_bytes += file.tell()
                return pa.ipc.open_file(pa.memory_map(file.name)).read_all()
        except WindrowError:
            raise
        except OSError as error:
            hint = "make room or set TMPDIR, take results as they are found (stream_step), or raise result_memory"
            message = f"results beyond {self.limit_bytes:,} bytes cannot be spilled: {error}"
            raise SourceError(message, place=tempfile.gettempdir(), hint=hint) from error
