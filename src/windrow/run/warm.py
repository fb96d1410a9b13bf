"""Warming up: every kernel of a query is compiled before the first batch, on made-up rows.

    a row of each stream ─▶ filters, leaves ─▶ each step of each path, whether it matches or not ─▶ SELECT list

Compiling takes seconds, once a machine; after that kernels are loaded from the cache on disk. On Spark the driver
program compiles and the workers load, instead of all compiling the same. Queries with functions of the user are left
alone: made-up values are none of their business.
"""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa

from windrow.probe.gather import handles_of
from windrow.query import types
from windrow.query.expression import Column
from windrow.query.types import Kind
from windrow.run.admit import Entry
from windrow.run.intermediate import intermediate
from windrow.run.partial import View, first_partial
from windrow.run.program import Program
from windrow.run.results import result_batch
from windrow.run.sifting import Sifters

_MIDNIGHT = datetime.datetime(2000, 1, 1)


def warm(program: Program) -> None:
    """Compile, or load, what the batches of a program will call. The program is a spare one: its counters move."""
    if program.spec.functions:
        return
    for with_nulls in (False, True):  # which values can be NULL is compiled into some kernels
        _follow_paths(program, with_nulls)


def _follow_paths(program: Program, with_nulls: bool) -> None:
    entry = Entry(program, None, None)
    views: dict[str, View] = {}
    for stream in program.spec.streams:
        table = pa.table({column.name: _one(program, column) for column in program.kept[stream.name]})
        if with_nulls:
            time = table.column(stream.time)
            nothing = pa.table({f.name: time if f.name == stream.time else pa.nulls(1, f.type) for f in table.schema})
            table = pa.concat_tables([table, nothing])
        views[stream.name] = View(stream, (), entry.made_up(stream.name, table))
    first, sifters = np.zeros(1, np.int64), None if program.nodes else Sifters(program, 0)
    # The paths into a node come before those that read it, so that there is a row of it.
    levels = {name: node.level for name, node in program.nodes.items()}
    for path in sorted(program.plan.paths, key=lambda p: max(levels.get(name, 0) for name in (p.driver, *p.targets))):
        segment = views[path.driver].fresh
        if segment is None:
            continue
        partial = first_partial(views, path.driver, segment)
        for number, step in enumerate(program.steps[path.name]):
            view = views[step.target]
            if view.fresh is not None:
                step.begin(partial).warm(view.fresh)
                if sifters is not None:
                    sifter = sifters.of(path.name, number)
                    sifter.see(partial, view.fresh, None, None, 1)
                    sifter.end(partial)
                times_us, clocks = view.fresh.time_us[:1], {name: held[:1] for name, held in view.fresh.clocks.items()}
                partial = partial.extend(view, first, handles_of(0, first), times_us, clocks)
        if path.into is None:
            result_batch(program, partial)
        elif path.into not in views:
            views[path.into] = View(program.sources[path.into], (), intermediate(program, path.into, [partial]))


def _one(program: Program, column: Column) -> pa.Array:
    """One value of a column's type."""
    kind = column.type.kind
    if kind is Kind.OTHER:
        return pa.nulls(1, program.arrow_types.get(column, pa.null()))
    target = types.to_arrow(column.type)
    if kind is Kind.VECTOR:
        return pa.array([[1.0] * column.type.length], target)
    if pa.types.is_string(target):
        return pa.array(["a b"], target)
    if pa.types.is_decimal(target):
        return pa.array([Decimal(0)], target)
    if pa.types.is_timestamp(target):
        return pa.array([_MIDNIGHT], target)
    if pa.types.is_date(target):
        return pa.array([_MIDNIGHT.date()], target)
    if pa.types.is_boolean(target):
        return pa.array([True], target)
    return pa.array([1], pa.int64()).cast(target) if not pa.types.is_null(target) else pa.nulls(1)
