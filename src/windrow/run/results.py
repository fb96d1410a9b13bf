"""Results: blocks of complete partial rows turned into the SELECT list's columns.

Plain columns are gathered by reference as they were stored; expressions are evaluated over the block.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from windrow.query.expression import Column
from windrow.run.partial import Partial
from windrow.run.program import Program
from windrow.store.operand import to_arrow


def result_batch(program: Program, partial: Partial) -> pa.RecordBatch:
    """The SELECT list over a block of results."""
    arrays = []
    for output in program.outputs:
        if isinstance(output.expression, Column):
            arrays.append(partial.column(output.expression))
        else:
            arrays.append(to_arrow(program.evaluator.evaluate(output.expression, partial), output.expression.type))
    return pa.RecordBatch.from_arrays(arrays, schema=program.schema)


def result_table(program: Program, blocks: Iterable[Partial]) -> pa.Table:
    """All blocks of a batch as one table."""
    return pa.Table.from_batches([result_batch(program, block) for block in blocks], program.schema)
