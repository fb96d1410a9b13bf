"""How a step is probed: which conjunct leads the search, and by which method.

The candidates are read off the predicate (`windrow.query.predicate`); the choice follows the shape of the condition
alone:

    rank  condition on the probed stream              method
    0     equality (several: their joint hash)        hashed
    1     range closed at both ends                   sorted
    2     vector similarity against a threshold       matrix
    3     range open at one end                       sorted
    4     anything that compiles                      loop
    5     the user's function alone                   opaque     (a loop over the window's rows)
    6     nothing                                     loop       (a cross product)

A condition on the probed stream's event time is not a method: it narrows the rows looked at, whatever the method is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from windrow.errors import PlanError
from windrow.plan.plan import Step
from windrow.probe.rules import is_compiled_whole
from windrow.query.expression import Column, streams_of
from windrow.query.predicate import Equality, Range, Search, Similarity, searches_into, searches_of
from windrow.query.spec import QuerySpec

METHODS = ("loop", "sorted", "hashed", "matrix", "opaque")


@dataclass(frozen=True, slots=True)
class Choice:
    """A step and how promising its search is: lower ranks first."""

    rank: int
    step: Step


def known_methods(methods: Collection[str] | None) -> frozenset[str]:
    """The methods a plan may use; `loop` is always among them, because it serves every condition."""
    if methods is None:
        return frozenset(METHODS)
    for method in methods:
        if method not in METHODS:
            raise PlanError(f"there is no method '{method}'", hint=f"choose among {', '.join(METHODS)}")
    return frozenset((*methods, "loop", "opaque"))


def choose(
    spec: QuerySpec,
    members: Collection[str],
    target: str,
    allowed: frozenset[str],
    covered: frozenset[str] = frozenset(),
) -> Choice:
    """The best step from partial results over the streams `members` to the store of `target`; of an inner node, which
    has rows of the streams `covered`.
    """
    return choices(spec, members, target, allowed, covered)[0]


def choices(
    spec: QuerySpec,
    members: Collection[str],
    target: str,
    allowed: frozenset[str],
    covered: frozenset[str] = frozenset(),
) -> tuple[Choice, ...]:
    """The best step by each method that serves, the most promising first."""
    covered = covered or frozenset({target})
    checkable = checkable_at(spec, members, covered)
    narrowing = () if len(covered) > 1 else tuple(n for n in checkable if narrows(spec, n, target))
    found: dict[str, Choice] = {}
    for rank, method, leading, why in _candidates(spec, checkable, narrowing, target, covered):
        if method in allowed and method not in found:
            narrowed = bool(narrowing) and rank >= 3
            reason = f"{why}, within the time range of {spec.conjuncts[narrowing[0]]}" if narrowed else why
            step = Step(target, method, checkable, leading, narrowing, reason)
            found[method] = Choice(1 if narrowed else rank, step)
    if not found:
        raise PlanError("no method serves this step", hint="this is a defect of the planner, please report it")
    return tuple(found.values())


def checkable_at(spec: QuerySpec, members: Collection[str], covered: frozenset[str]) -> tuple[int, ...]:
    """The conditions that can be checked once rows over `members` meet rows over the streams `covered`."""
    joined = {*members} | covered
    streams = [streams_of(conjunct) for conjunct in spec.conjuncts]
    return tuple(n for n, s in enumerate(streams) if s & covered and len(s) > 1 and s <= joined and not s <= covered)


def narrows(spec: QuerySpec, number: int, target: str) -> bool:
    """Whether a conjunct bounds the event time of the target."""
    stream = spec.stream(target)
    time = stream.column(stream.time)
    return time.type.is_time and any(
        isinstance(s, Range) and s.key == time for s in searches_of(spec.conjuncts[number], target)
    )


def _candidates(
    spec: QuerySpec, checkable: tuple[int, ...], narrowing: tuple[int, ...], target: str, covered: frozenset[str]
) -> list[tuple[int, str, tuple[int, ...], str]]:
    found: list[tuple[int, str, tuple[int, ...], str]] = []
    searches = {number: searches_into(spec.conjuncts[number], covered) for number in checkable}
    equalities = tuple(n for n in checkable if any(isinstance(s, Equality) for s in searches[n]))
    if equalities:
        shown = " AND ".join(str(spec.conjuncts[n]) for n in equalities)
        found.append((0, "hashed", equalities, f"{shown}: a hash index on the key"))
    found.extend(_ranges(spec, searches, narrowing))
    found.extend(
        (2, "matrix", (number,), f"{spec.conjuncts[number]}: a blocked matrix product")
        for number in checkable
        if any(isinstance(s, Similarity) for s in searches[number])
    )
    compiled = [n for n in checkable if is_compiled_whole(spec.conjuncts[n])]
    if compiled or not checkable:
        why = (
            f"{spec.conjuncts[compiled[0]]}: a compiled loop"
            if compiled
            else f"nothing relates {target} to the others: a cross product"
        )
        found.append((4 if compiled else 6, "loop", (), why))
    else:
        found.append((5, "opaque", (), f"{spec.conjuncts[checkable[0]]}: a function over candidates"))
    return sorted(found, key=lambda candidate: candidate[0])


def _ranges(
    spec: QuerySpec, searches: Mapping[int, Sequence[Search]], narrowing: tuple[int, ...]
) -> list[tuple[int, str, tuple[int, ...], str]]:
    """Ranges over one key belong together: they meet."""
    by_key: dict[object, list[tuple[int, Range]]] = {}
    for number, offered in searches.items():
        for search in offered:
            if isinstance(search, Range) and number not in narrowing:
                by_key.setdefault(search.key, []).append((number, search))
    found = []
    for parts in by_key.values():
        closed = any(part.low for _, part in parts) and any(part.high for _, part in parts)
        numbers = tuple(dict.fromkeys(number for number, _ in parts))
        shown = " AND ".join(str(spec.conjuncts[number]) for number in numbers)
        key = parts[0][1].key
        indexed = f"a sorted index on {key if isinstance(key, Column) else 'its key'}"
        found.append((1 if closed else 3, "sorted", numbers, f"{shown}: {indexed}"))
    return found
