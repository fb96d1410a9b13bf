"""The stores of a tree of joins in one process: what nodes hold, when it leaves, how a new tree begins.

    a batch is done      the nodes' new rows are stored; rows of which a member's time is over leave
    another tree         an epoch begins: the stores of its nodes are built from the windows, in full, with nothing
                         left out; what is built was there before the next batch, and does not drive

A row of a node may go when it died before the watermark of every stream that is not beneath it: what comes can have no
older newest row. Windows of streams keep what they keep in the m-way form, so any tree can follow any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from windrow.control.allowance import Allowances
from windrow.control.controller import ControlSettings
from windrow.errors import UsageError
from windrow.plan.drivers import AUTO
from windrow.plan.plan import Plan
from windrow.query.spec import QuerySpec
from windrow.run.admit import NEVER_US, Entry
from windrow.run.batch import build_nodes
from windrow.run.options import LocalOptions
from windrow.run.program import Program
from windrow.store.segment import Segment, merge
from windrow.store.window import NodeStore


@dataclass(frozen=True, slots=True)
class NodeReport:
    """What an inner node holds now, and how many rows it has taken in and copied in merges since it was made."""

    stored: int
    stored_bytes: int
    segments: int
    found: int


class Tree:
    """The stores of the nodes of a program's plan; there are none in the m-way form."""

    def __init__(self, program: Program) -> None:
        lateness_us = max(stream.lateness_us for stream in program.spec.streams)
        self.below = {name: frozenset(node.streams) for name, node in program.nodes.items()}
        self.stores = {
            name: NodeStore(name, program.layouts[name], program.sources[name].window, lateness_us)
            for name in program.nodes
        }

    @staticmethod
    def built(program: Program, windows: Mapping[str, Sequence[Segment]]) -> Tree:
        """The nodes' stores, filled from what the windows of the streams hold."""
        tree = Tree(program)
        whole = {name: merge(held, NEVER_US) for name, held in windows.items() if held}
        for name, segment in build_nodes(program, whole).items():
            tree.stores[name].add(segment)
        return tree

    @property
    def stored(self) -> dict[str, tuple[Segment, ...]]:
        """The segments of each node."""
        return {name: tuple(store.segments) for name, store in self.stores.items()}

    def keep(self, made: Mapping[str, Segment], entry: Entry) -> None:
        """Take in the new rows of a batch, and let go of those that can meet nothing that comes."""
        counted = {name: entry.gates[name].counted for name in entry.row_windowed}
        for name, store in self.stores.items():
            others = (gate for other, gate in entry.gates.items() if counted or other not in self.below[name])
            store.leave(min(gate.watermark_us for gate in others), counted)
            if name in made:
                store.add(made[name])

    def report(self) -> dict[str, NodeReport]:
        """What each node holds."""
        return {
            name: NodeReport(len(store), store.nbytes, len(store.segments), store.added)
            for name, store in self.stores.items()
        }


def bound_to_mway(asked: LocalOptions, policy: str, is_tree: bool) -> str | None:
    """The option that was given and works on the m-way form alone, if there is one; a throttle follows the tree that
    it began with.
    """
    given = {
        "throttle": not is_tree and (asked.throttle is not None or asked.control is not None),
        "memory": asked.memory is not None,
        'shed="repair"': asked.shed == "repair",
        "adaptive": asked.adaptive,
        f'policy="{policy}"': policy in AUTO.values(),
    }
    return next((option for option, is_given in given.items() if is_given), None)


def allowances_of(
    spec: QuerySpec, plan: Plan, settings: ControlSettings | None, asked: LocalOptions
) -> Allowances | None:
    """Who says which rows may probe in a tree; None where all may."""
    if settings is None or not plan.is_tree:
        if asked.allowance is not None:
            hint = "give a shape and a throttle as well, or leave it out"
            raise UsageError("an allowance is of a tree of joins that is throttled", hint=hint)
        return None
    hint = "take shape='mway'"
    if settings.policy == "drop":
        raise UsageError("a tree of joins drops no rows before it", hint=hint)
    if spec.summary is not None:
        raise UsageError("aggregates of a throttled tree of joins are not known", hint=hint)
    return Allowances(spec, plan, settings, asked.allowance or "auto")


def check_free(bound: str | None) -> None:
    """Refuse a tree of joins beside an option that works on the m-way form."""
    if bound is not None:
        raise UsageError(f"a tree of joins cannot run with {bound}", hint="leave it out, or take shape='mway'")
