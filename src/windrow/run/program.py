"""The program: a query and its plan made ready to run.

    spec + plan ──▶ what rows enter the windows        filters and required leaves, one list a stream
                    what the windows hold               a layout a stream
                    how each driver's path is probed    a list of steps a driver
                    what comes out                      the SELECT list

A leaf is the largest part of a conjunct that reads one stream; it is computed once, when a row enters. Where a
conjunct cannot be true if a leaf is NULL, rows with that NULL do not enter at all, and nobody behind the entrance
checks for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from windrow.errors import QueryError
from windrow.plan.plan import Path, Plan, Step
from windrow.probe.evaluate import Evaluator
from windrow.probe.step import Leaves, StepProbe
from windrow.query import types
from windrow.query.expression import Call, Column, Expression, columns_of, streams_of, walk
from windrow.query.predicate import TOKENS, Range, Search, leaves_of, rejects_null, searches_of, with_token_sets
from windrow.query.spec import Output, QuerySpec
from windrow.query.types import BIGINT, Kind
from windrow.store.operand import Form, form_of
from windrow.store.segment import Layout

ROW_ID = "row_id"


def row_id(column: Column) -> Expression:
    """The hidden leaf that holds the content hash of a stream's rows; `column` is its event time."""
    return Call(ROW_ID, (column,), BIGINT)


@dataclass(frozen=True, slots=True)
class Entrance:
    """Which rows of a stream enter its window: `filters` have to be true and `required` leaves not NULL."""

    filters: tuple[Expression, ...]
    required: tuple[Expression, ...]


@dataclass
class Program:
    """A query made ready under a plan. `evaluator` counts faults over the life of the program."""

    spec: QuerySpec
    plan: Plan
    arrow_types: dict[Column, pa.DataType]
    evaluator: Evaluator = field(init=False)

    def __post_init__(self) -> None:
        self.evaluator = Evaluator(self.spec.functions)
        self.conjuncts = tuple(with_token_sets(conjunct) for conjunct in self.spec.conjuncts)
        self.outputs = tuple(Output(o.name, with_token_sets(o.expression)) for o in self.spec.outputs)
        self.joining = tuple(conjunct for conjunct in self.conjuncts if len(streams_of(conjunct)) > 1)
        leaves = tuple(dict.fromkeys(leaf for conjunct in self.joining for leaf in leaves_of(conjunct)))
        required = frozenset(leaf for leaf in leaves if any(rejects_null(conjunct, leaf) for conjunct in self.joining))
        self.leaves = Leaves({leaf: _form(leaf) for leaf in leaves}, frozenset(leaves) - required)
        self.layouts = {stream.name: self._layout(stream.name, leaves) for stream in self.spec.streams}
        self.entrances = {stream.name: self._entrance(stream.name, required) for stream in self.spec.streams}
        self.steps = {path.driver: tuple(self._step(step) for step in path.steps) for path in self.plan.paths}
        self.schema = pa.schema([pa.field(output.name, self._arrow_type(output.expression)) for output in self.outputs])
        _check_paths(self.spec, self.plan.paths)

    @property
    def wants_id(self) -> bool:
        """Whether the SELECT list asks for `result_id()`."""
        nodes = (node for output in self.outputs for node in walk(output.expression))
        return any(isinstance(node, Call) and node.function == "result_id" for node in nodes)

    def _layout(self, name: str, leaves: tuple[Expression, ...]) -> Layout:
        delivered = dict.fromkeys(
            column for output in self.outputs for column in columns_of(output.expression) if column.stream == name
        )
        operands = [leaf for leaf in leaves if streams_of(leaf) == {name}]
        if self.wants_id:
            stream = self.spec.stream(name)
            operands.append(row_id(stream.column(stream.time)))
        return Layout(tuple(delivered), tuple(operands))

    def _entrance(self, name: str, required: frozenset[Expression]) -> Entrance:
        first = self.spec.streams[0].name
        filters = tuple(c for c in self.conjuncts if streams_of(c) == {name} or (not streams_of(c) and name == first))
        return Entrance(filters, tuple(leaf for leaf in self.layouts[name].operands if leaf in required))

    def _step(self, step: Step) -> StepProbe:
        leading = tuple((self.conjuncts[n], search) for n in step.leading for search in self._searches(n, step))
        narrowing = [
            search for number in step.narrowing for search in searches_of(self.conjuncts[number], step.stream)
            if isinstance(search, Range) and search.key == self._time(step.stream)
        ]  # fmt: skip
        conjuncts = tuple(self.conjuncts[number] for number in step.conjuncts)
        return StepProbe(step.stream, step.method, conjuncts, leading, tuple(narrowing), self.leaves, self.evaluator)

    def _searches(self, number: int, step: Step) -> list[Search]:
        kinds = {"hashed": "Equality", "sorted": "Range", "matrix": "Similarity"}
        found = [
            s for s in searches_of(self.conjuncts[number], step.stream) if type(s).__name__ == kinds.get(step.method)
        ]
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


def _check_paths(spec: QuerySpec, paths: tuple[Path, ...]) -> None:
    names = {stream.name for stream in spec.streams}
    for path in paths:
        visited = [path.driver, *(step.stream for step in path.steps)]
        if sorted(visited) != sorted(names):
            raise QueryError(
                f"the path of '{path.driver}' visits {', '.join(visited)}", hint="a path visits each stream once"
            )
