"""How tallies travel from the tasks of a batch to the driver program: Arrow streams, one after the other.

lines     the number of the span, the values of groups, the sums                   windrow.run.tally
cells     of one driver: line, bucket of rows, stratum, the sums      a stream a driver
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from windrow.control.cells import Cells, Floats
from windrow.run.program import Program
from windrow.run.tally import Tally

_RESULTS, _DRIVER = b"windrow.results", b"windrow.driver"
_CELLS = ("lines", "rows", "strata")


def tally_bytes(tally: Tally, program: Program) -> bytes:
    """A tally of some results as Arrow streams, one after the other: the lines, then the cells of each driver."""
    summary = program.spec.summary
    groups = () if summary is None else summary.groups
    kinds = [pa.int64(), *(program.schema.field(place).type for _, place in groups)]
    keys = [pa.array([key[number] for key in tally.keys], kind) for number, kind in enumerate(kinds)]
    parts = [_batch([*keys, _rows(tally.sums)], {_RESULTS: str(tally.results)})]
    for driver, cells in tally.cells.items():
        numbers = [pa.array(getattr(cells, name), pa.int64()) for name in _CELLS]
        parts.append(_batch([*numbers, _rows(cells.sums)], {_DRIVER: driver}))
    sink = pa.BufferOutputStream()
    for part in parts:
        with pa.ipc.new_stream(sink, part.schema) as writer:
            writer.write_batch(part)
    return bytes(sink.getvalue())


def bytes_tally(data: bytes) -> Tally:
    """What `tally_bytes` wrote."""
    lines, *cells = _batches(data)
    keys = zip(*(column.to_pylist() for column in lines.columns[:-1]), strict=True)
    found = {}
    for batch in cells:
        places, rows, strata = (np.asarray(column) for column in batch.columns[:-1])
        found[batch.schema.metadata[_DRIVER].decode()] = Cells(places, rows, strata, _matrix(batch.columns[-1]))
    return Tally(int(lines.schema.metadata[_RESULTS]), tuple(keys), _matrix(lines.columns[-1]), found)


def _batch(columns: list[pa.Array], said: dict[bytes, str]) -> pa.RecordBatch:
    batch = pa.RecordBatch.from_arrays(columns, names=[str(number) for number in range(len(columns))])
    return batch.replace_schema_metadata(said)


def _batches(data: bytes) -> Iterator[pa.RecordBatch]:
    source = pa.BufferReader(data)
    while source.tell() < source.size():
        with pa.ipc.open_stream(source) as reader:
            yield from reader


def _rows(matrix: Floats) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(matrix.reshape(-1), pa.float64()), matrix.shape[1])


def _matrix(rows: pa.Array) -> Floats:
    return np.asarray(rows.flatten(), np.float64).reshape(len(rows), -1)
