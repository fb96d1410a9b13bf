"""The program: a query and its plan made ready to run.

    spec + plan ──▶ what rows enter the windows        filters and required leaves, one list a stream
                    what the windows hold               a layout a stream, and a node: what the query uses, or all
                    what travels between steps          a part of the layout: what later steps and results read
                    how each driver's path is probed    a list of steps a path
                    what comes out                      the SELECT list

A leaf is the largest part of a conjunct that reads one stream; it is computed once, when a row enters. Where a
conjunct cannot be true if a leaf is NULL, rows with that NULL do not enter at all, and nobody behind the entrance
checks for it.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa

from windrow.errors import PlanError, QueryError, UsageError
from windrow.plan.nodes import nodes_of
from windrow.plan.plan import Path, Plan, Step
from windrow.probe.evaluate import Evaluator
from windrow.probe.hashed import combine
from windrow.probe.indexes import IndexKey
from windrow.probe.step import Leaves, StepProbe
from windrow.query import types
from windrow.query.builder import Join, schema_of
from windrow.query.expression import Call, Column, Expression, columns_of, streams_of, walk
from windrow.query.predicate import (
    TOKENS,
    Equality,
    Range,
    Search,
    Similarity,
    leaves_of,
    rejects_null,
    searches_into,
    searches_of,
    with_token_sets,
)
from windrow.query.spec import Output, QuerySpec
from windrow.query.types import BIGINT, Kind
from windrow.run.content import content_hash
from windrow.run.covering import check_plan
from windrow.run.partial import EVENT_TIME, Partial
from windrow.run.sources import Source, covered_by, stored_of
from windrow.store.codec import part_of, times_of
from windrow.store.operand import Array, Form, Operand, form_of
from windrow.store.segment import Layout, Segment, typed_text

ROW_ID = "row_id"
_APART = 0x1F3D5B79
BATCH = "batch"
UNKNOWN_BATCH = -1
SEARCHES: dict[str, tuple[type[Search], ...]] = {
    "hashed": (Equality,), "sorted": (Range,), "matrix": (Similarity,), "loop": (), "opaque": (),
}  # fmt: skip
"""What each method searches by."""

Keep: TypeAlias = Literal["used", "all"]
"""Which columns enter the windows: those the query uses, or all, so that another SELECT list can use others later."""


def kept_columns(spec: QuerySpec, name: str, keep: Keep) -> tuple[Column, ...]:
    """The columns of a stream that enter, its event time first."""
    if keep not in get_args(Keep):
        raise UsageError(f"there is nothing to keep called '{keep}'", hint=f"choose of {', '.join(get_args(Keep))}")
    used = spec.used_columns(name)
    return used if keep == "used" else tuple(dict.fromkeys((used[0], *spec.stream(name).columns)))


def row_id(column: Column) -> Expression:
    """The hidden leaf that holds the content hash of a stream's rows; `column` is its event time."""
    return Call(ROW_ID, (column,), BIGINT)


def arrow_types_of(query: Join | QuerySpec, spec: QuerySpec) -> dict[Column, pa.DataType]:
    """The Arrow type of each column, where the sources of a query say it."""
    if not isinstance(query, Join):
        return {}
    found = {}
    for stream in spec.streams:
        if stream.source in query.sources:
            schema = schema_of(query.sources[stream.source], stream.source)
            found.update(
                {column: schema.field(column.name).type for column in stream.columns if column.name in schema.names}
            )
    return found


def batch_of(column: Column) -> Expression:
    """The hidden leaf that holds the number of the batch a stream's rows came in; `column` is its event time."""
    return Call(BATCH, (column,), BIGINT)


@dataclass(frozen=True, slots=True)
class Entrance:
    """Which rows of a stream enter its window: `filters` have to be true and `required` leaves not NULL."""

    filters: tuple[Expression, ...]
    required: tuple[Expression, ...]


@dataclass
class Program:
    """A query made ready under a plan. `evaluator` counts faults over the life of the program.

    `carried` says for each path, and each of its steps, what partial results bring there of their members;
    `indexes` which indexes of a stream's segments steps ask for. One that `sheds` has a hash of each row's content,
    one that `repairs` the number of its batch, too.
    """

    spec: QuerySpec
    plan: Plan
    arrow_types: dict[Column, pa.DataType]
    keep: Keep = "used"
    sheds: bool = False
    repairs: bool = False
    evaluator: Evaluator = field(init=False)

    def __post_init__(self) -> None:
        self.used = {stream.name: self.spec.used_columns(stream.name) for stream in self.spec.streams}
        self.kept = {stream.name: kept_columns(self.spec, stream.name, self.keep) for stream in self.spec.streams}
        check_plan(self.spec, self.plan)
        self.evaluator = Evaluator(self.spec.functions)
        self.conjuncts = tuple(with_token_sets(conjunct) for conjunct in self.spec.conjuncts)
        self.outputs = tuple(Output(o.name, with_token_sets(o.expression)) for o in self.spec.outputs)
        self.joining = tuple(conjunct for conjunct in self.conjuncts if len(streams_of(conjunct)) > 1)
        leaves = tuple(dict.fromkeys(leaf for conjunct in self.joining for leaf in leaves_of(conjunct)))
        required = frozenset(leaf for leaf in leaves if any(rejects_null(conjunct, leaf) for conjunct in self.joining))
        self.leaves = Leaves({leaf: _form(leaf) for leaf in leaves}, frozenset(leaves) - required)
        self.layouts = {stream.name: self._layout(stream.name, leaves) for stream in self.spec.streams}
        self.entrances = {stream.name: self._entrance(stream.name, required) for stream in self.spec.streams}
        self._take_paths()
        self._parts: dict[tuple[str, tuple[str, ...]], Layout] = {}
        self.schema = pa.schema([pa.field(output.name, self._arrow_type(output.expression)) for output in self.outputs])

    def _take_paths(self) -> None:
        """What follows from the paths of the plan: its nodes, what they hold, and the steps to take."""
        self.nodes = nodes_of(self.plan.paths)
        self.sources: dict[str, Source] = {stream.name: stream for stream in self.spec.streams}
        self.sources |= {name: stored_of(self.spec, node) for name, node in self.nodes.items()}
        streams = {stream.name: self.layouts[stream.name] for stream in self.spec.streams}
        self.layouts = {**streams, **{name: self._node_layout(self.covered(name)) for name in self.nodes}}
        self.steps = {path.name: tuple(self._step(step) for step in path.steps) for path in self.plan.paths}
        self.targets = {path.name: path.targets for path in self.plan.paths}
        self.carried = {} if self.nodes else {path.name: self._carried(path) for path in self.plan.paths}
        self.indexes = {name: self._indexes(name) for name in self.sources}

    def reshaped(self, plan: Plan) -> Program:
        """The same query under a plan with another tree of joins; what streams' rows were stored as stays good."""
        check_plan(self.spec, plan)
        made = copy(self)
        made.plan = plan
        made._take_paths()
        return made

    def under(self, plan: Plan) -> Program:
        """The same query under a plan that differs in the methods of its steps alone; what rows were stored as stays
        good, and counters go on.
        """
        made = copy(self)
        made.plan = plan
        made.steps = {
            path.name: tuple(
                probe if step == held else replace(made._step(step), work=probe.work)
                for step, held, probe in zip(path.steps, before.steps, self.steps[path.name], strict=True)
            )
            for path, before in zip(plan.paths, self.plan.paths, strict=True)
        }
        made.indexes = {name: made._indexes(name) for name in self.sources}
        return made

    def covered(self, name: str) -> frozenset[str]:
        """The streams whose rows a source of the plan holds: one, or those beneath a node."""
        return covered_by(self.sources[name])

    @property
    def wants_id(self) -> bool:
        """Whether the SELECT list asks for `result_id()`."""
        nodes = (node for output in self.outputs for node in walk(output.expression))
        return any(isinstance(node, Call) and node.function == "result_id" for node in nodes)

    def content_of(self, partial: Partial, driver: str) -> Array:
        """What the driver's rows of partial results are drawn by: their content, and whose rows they are. In a join of
        a source with itself a row drives twice, and is drawn for anew.
        """
        found = [partial.find(row_id(self._time(name))) for name in sorted(self.covered(driver))]
        hashes = [operand.values for operand in found if operand is not None]
        if len(hashes) < len(found):
            raise PlanError("rows have no hash to draw by", place=driver, hint="make the program with sheds=True")
        number = list(self.sources).index(driver)
        return (hashes[0] if len(hashes) == 1 else combine(hashes)) + np.int64(number * _APART)

    def batches_in(self, name: str, segment: Segment) -> Array:
        """The number of the batch that each row of a stream's segment came in."""
        slot = self.layouts[name].slot(batch_of(self._time(name)))
        if slot is None:
            raise PlanError("rows do not know their batch", place=name, hint="make the program with repairs=True")
        return segment.operands[slot].values

    def derived(self, leaf: Expression, batch: pa.RecordBatch) -> Operand | None:
        """A leaf that was not asked for when rows were stored, from what is there; None if it cannot be had. Rows whose
        batch is not known came before those that are asked for it.
        """
        if isinstance(leaf, Call) and leaf.function == BATCH:
            return Operand(Form.NUMBER, (np.full(len(batch), UNKNOWN_BATCH, np.int64),))
        if not isinstance(leaf, Call) or leaf.function != ROW_ID:
            return None
        (stream,) = streams_of(leaf)
        texts = {column: typed_text(column) for column in self.used[stream] if column.type.kind is not Kind.OTHER}
        if not set(texts.values()) <= set(batch.schema.names):
            return None
        return content_hash(times_of(batch), texts, lambda column: batch.column(texts[column]))

    def part(self, name: str, fields: tuple[str, ...]) -> Layout:
        """What of a stream's layout a message with these fields holds."""
        key = (name, fields)
        if key not in self._parts:
            self._parts[key] = part_of(self.layouts[name], fields)
        return self._parts[key]

    def _layout(self, name: str, leaves: tuple[Expression, ...]) -> Layout:
        columns = self._delivered(name) if self.keep == "used" else self.kept[name]
        operands = [leaf for leaf in leaves if streams_of(leaf) == {name}]
        if self.wants_id or self.sheds:
            operands.append(row_id(self._time(name)))
        if self.repairs:
            operands.append(batch_of(self._time(name)))
        return Layout(columns, tuple(operands))

    def _node_layout(self, below: frozenset[str]) -> Layout:
        """What a node keeps of the streams below it: what the SELECT list reads, leaves of conditions that need others,
        too, and what results are told apart and aged by.
        """
        names = [stream.name for stream in self.spec.streams if stream.name in below]
        columns = tuple(column for name in names for column in self._delivered(name))
        open_ = (conjunct for conjunct in self.joining if not streams_of(conjunct) <= below)
        leaves = dict.fromkeys(leaf for conjunct in open_ for leaf in leaves_of(conjunct) if streams_of(leaf) <= below)
        hidden = [row_id(self._time(name)) for name in names if self.wants_id or self.sheds]
        aged = (name for name in names if self.spec.stream(name).freshness_us is not None)
        hidden += [Call(EVENT_TIME, (self._time(name),), BIGINT) for name in aged]
        return Layout(columns, (*leaves, *hidden))

    def _delivered(self, name: str) -> tuple[Column, ...]:
        """The columns of a stream that the SELECT list reads."""
        read = (column for output in self.outputs for column in columns_of(output.expression))
        return tuple(dict.fromkeys(column for column in read if column.stream == name))

    def _carried(self, path: Path) -> tuple[dict[str, Layout], ...]:
        """For each step of a path: of every stream, the columns results read and the leaves this and later steps do.
        Results of sampled rows are told apart by whose they are, so the driver's hash goes all the way.
        """
        steps = path.steps
        ids = {row_id(self._time(name)) for name in self.layouts} if self.wants_id else set()
        ids |= {row_id(self._time(path.driver))} if self.sheds else set()
        carried = []
        for number in range(len(steps)):
            drawn = {row_id(self._time(name)) for name in self.layouts} if self.sheds and number == 0 else ids
            read = {leaf for step in steps[number:] for n in step.conjuncts for leaf in leaves_of(self.conjuncts[n])}
            carried.append({
                name: Layout(self._delivered(name), tuple(each for each in layout.operands if each in read | drawn))
                for name, layout in self.layouts.items()
            })  # fmt: skip
        return tuple(carried)

    def _indexes(self, name: str) -> tuple[IndexKey, ...]:
        steps = (step for path in self.plan.firsts for step in self.steps[path.name] if step.target == name)
        return tuple(dict.fromkeys(key for step in steps if (key := step.index_key) is not None))

    def _entrance(self, name: str, required: frozenset[Expression]) -> Entrance:
        first = self.spec.streams[0].name
        filters = tuple(c for c in self.conjuncts if streams_of(c) == {name} or (not streams_of(c) and name == first))
        return Entrance(filters, tuple(leaf for leaf in self.layouts[name].operands if leaf in required))

    def _step(self, step: Step) -> StepProbe:
        leading = tuple((self.conjuncts[n], search) for n in step.leading for search in self._searches(n, step))
        if not leading and SEARCHES[step.method]:
            raise PlanError(
                f"'{step.method}' has nothing to search by",
                place=f"step to '{step.stream}'",
                hint="plan the query again",
            )
        narrowing = [
            search for number in step.narrowing for search in searches_of(self.conjuncts[number], step.stream)
            if isinstance(search, Range) and search.key == self._time(step.stream)
        ]  # fmt: skip
        conjuncts = tuple(self.conjuncts[number] for number in step.conjuncts)
        covered = self.covered(step.stream)
        made = StepProbe(step.stream, step.method, conjuncts, leading, tuple(narrowing), self.leaves, self.evaluator)
        return made if len(covered) == 1 else replace(made, covered=covered)

    def _searches(self, number: int, step: Step) -> list[Search]:
        offered = searches_into(self.conjuncts[number], self.covered(step.stream))
        found = [search for search in offered if isinstance(search, SEARCHES[step.method])]
        if not found:
            message = f"'{step.method}' cannot search by {self.conjuncts[number]}"
            raise PlanError(message, place=f"step to '{step.stream}'", hint="plan the query again")
        return found if step.method == "sorted" and len(step.leading) > 1 else found[:1]

    def _time(self, name: str) -> Column:
        stream = self.spec.stream(name)
        return stream.column(stream.time)

    def _arrow_type(self, expression: Expression) -> pa.DataType:
        if isinstance(expression, Column) and expression.type.kind is Kind.OTHER:
            if expression not in self.arrow_types:
                raise QueryError(
                    f"the Arrow type of {expression} is not known", hint="give the stream's schema with the query"
                )
            return self.arrow_types[expression]
        return types.to_arrow(expression.type)


def _form(leaf: Expression) -> Form:
    return Form.TOKENS if isinstance(leaf, Call) and leaf.function == TOKENS else form_of(leaf.type)
