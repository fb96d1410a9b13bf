"""Results: blocks of complete partial rows turned into the SELECT list's columns.

Plain columns are gathered by reference as they were stored; expressions are evaluated over the block. A block is cut
where its rows are wide, so that what is in hand at once stays small however much matches: rows of texts or vectors
begin with a piece that is guessed from what is stored, the next are as long as those before let expect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from windrow.query.expression import Column
from windrow.run.partial import Partial, View
from windrow.run.program import Program
from windrow.store.operand import to_arrow

LARGEST_PIECE_BYTES = 64 << 20
_USUAL_BYTES = 16
"""What a value is taken for that has to be computed first."""
_GROWTH = 4


def result_batch(program: Program, partial: Partial) -> pa.RecordBatch:
    """The SELECT list over a block of results."""
    arrays = []
    for output in program.outputs:
        if isinstance(output.expression, Column):
            arrays.append(partial.column(output.expression))
        else:
            arrays.append(to_arrow(program.evaluator.evaluate(output.expression, partial), output.expression.type))
    return pa.RecordBatch.from_arrays(arrays, schema=program.schema)


def result_batches(
    program: Program, block: Partial, largest_bytes: int = LARGEST_PIECE_BYTES
) -> Iterator[pa.RecordBatch]:
    """The SELECT list over a block of results, in pieces of about `largest_bytes` at most."""
    start, step = 0, max(1, int(largest_bytes / _row_bytes(program, block))) if len(block) else 1
    while start < len(block):
        whole = start == 0 and step >= len(block)
        piece = block if whole else block.pick(np.arange(start, min(start + step, len(block))))
        batch = result_batch(program, piece)
        yield batch
        start += len(batch)
        step = max(1, min(_GROWTH * step, largest_bytes * len(batch) // max(1, batch.nbytes)))


def result_table(program: Program, blocks: Iterable[Partial]) -> pa.Table:
    """All blocks of a batch as one table."""
    batches = [batch for block in blocks for batch in result_batches(program, block)]
    return pa.Table.from_batches(batches, program.schema)


def _row_bytes(program: Program, block: Partial) -> float:
    """About how wide a result is, by what is stored."""
    read = [output.expression for output in program.outputs]
    stored = sum(_column_bytes(block.views[each.stream], each) for each in read if isinstance(each, Column))
    return stored + _USUAL_BYTES * sum(not isinstance(each, Column) for each in read) or 1.0


def _column_bytes(view: View, column: Column) -> float:
    place = view.segments[0].layout.columns.index(column)
    rows = sum(map(len, view.segments))
    return float(sum(segment.columns[place].nbytes for segment in view.segments) / max(1, rows))
