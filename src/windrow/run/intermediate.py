"""Intermediate rows: what the paths into a node find, stored by value as a segment of that node.

    blocks of partial rows ──▶ time_us   the newest of the members, ascending       dies_us   when the first member dies
                               clocks    the newest count of each window of rows    the same of row clocks
                               columns   of all streams beneath: what the SELECT list reads
                               operands  of all streams beneath: leaves of conditions that are not decided yet

Nothing refers back to the members: their segments merge and leave as ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from windrow.errors import PlanError
from windrow.query.expression import Call, Expression
from windrow.run.admit import NEVER_US
from windrow.run.partial import Partial
from windrow.run.program import Program
from windrow.store.operand import Operand, from_arrow
from windrow.store.segment import Segment, merge


def intermediate(program: Program, node: str, blocks: Sequence[Partial]) -> Segment | None:
    """The new segment of a node; None if nothing was found."""
    found = [_stored(program, node, block) for block in blocks if len(block)]
    return replace(merge(found, NEVER_US), level=0) if found else None


def _stored(program: Program, node: str, block: Partial) -> Segment:
    """A block by value, its rows not in order yet."""
    layout = program.layouts[node]
    columns = {column: block.column(column) for column in layout.columns}
    operands = tuple(_operand(block, leaf) if leaf not in columns else from_arrow(columns[leaf], leaf.type)
                     for leaf in layout.operands)  # fmt: skip
    times = block.times
    return Segment(
        layout,
        times.newest_us,
        times.newest_clock,
        tuple(columns.values()),
        operands,
        dies_us=times.dies_us,
        dies_clocks=times.dies_clock,
    )


def _operand(block: Partial, leaf: Expression) -> Operand:
    found = block.find(leaf)
    if found is None:
        shown = leaf.function if isinstance(leaf, Call) else leaf
        raise PlanError(f"rows bring no {shown}", place="a node of the plan", hint="this is a defect, please report it")
    return found
