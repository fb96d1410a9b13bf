"""What travels: how many slices each probe visits under a slicing, and the slicing of each stream that needs fewest.

A row of a stream is kept on one slice. A row or a partial result that probes a stream is copied to each slice it
visits, and how many those are depends on how the probed stream is sliced, on nothing else:

    hash     1                                 if the step has the equality the stream is sliced by
    range    1 + width of the band / span      if the step has the band, and its width is constant
    time     1 + time reach / span             mostly all, because a window lies on all slices
             all of them                       otherwise

So what makes the sum over the steps that probe a stream smallest is chosen stream by stream (`auto`); ties go to time,
which loads all slices alike whatever the values are. How often a key comes is not known before the query runs: few
distinct keys, or one that most rows share, leave slices idle; then slice by time. A BOOLEAN is known to have few, so
`auto` does not slice by one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from windrow.errors import PlanError
from windrow.plan.bands import linear, ranges_over, same_words, width_of
from windrow.plan.plan import Path, Plan, Step
from windrow.plan.slices import KINDS, OFF_THE_GRID, ONE_SLICE, Slices, Slicing, slicing_key, time_slicing
from windrow.query.expression import Column, Expression
from windrow.query.predicate import Bound, Equality, Range, Search, Term, searches_of
from windrow.query.spec import QuerySpec
from windrow.query.types import BITS, Kind

AUTO = "auto"
BANDS_A_SPAN = 4
MARGIN_WORDS = 3
"""What a band over whole numbers is searched for beyond its own width."""
UNHASHED = frozenset({Kind.VECTOR, Kind.OTHER, Kind.NULL})
TEXT_BYTES = 16
"""Bytes of a text where nothing is known of it."""

Searching = tuple[tuple[str, ...], Step]
"""The streams joined so far, and the step they take."""


def choose_slices(spec: QuerySpec, paths: Sequence[Path], count: int, by: str = AUTO) -> Slices:
    """How each stream of a query is sliced: by what ships fewest copies, or by `time`, `hash` or `range` where that
    can be.
    """
    if by not in (AUTO, *KINDS):
        raise PlanError(f"there is no slicing '{by}'", hint=f"choose one of {', '.join((AUTO, *KINDS))}")
    if count < 1:
        raise PlanError(f"a join needs at least one slice, not {count}", hint="give slices=1 or more")
    chosen = tuple(_chosen(spec, _searching(paths, stream.name), stream.name, count, by) for stream in spec.streams)
    if by in ("hash", "range") and all(slicing.kind == "time" for slicing in chosen):
        wanted = "an equality" if by == "hash" else "a band of constant width"
        raise PlanError(f"no stream can be sliced by {by}", hint=f"that needs {wanted}; slice by time")
    return ONE_SLICE if count == 1 else Slices(count, chosen)


def copies(spec: QuerySpec, slicing: Slicing, members: Sequence[str], step: Step) -> float:
    """How many slices a partial result over `members` visits on average to take a step."""
    if slicing.kind == "time":
        return _spans_touched(slicing, _time_reach_us(spec, members, step))
    key = slicing_key(spec.conjuncts, slicing)
    if slicing.kind == "range":
        band = _band(spec, key, step)
        return float(slicing.count) if band is None else _spans_touched(slicing, band)
    equalities = (search for search in _searches(spec, step) if isinstance(search, Equality))
    found = any(same_words(search.key) == same_words(key) for search in equalities)
    return 1.0 if found else float(slicing.count)


def predicted_copies(spec: QuerySpec, plan: Plan) -> dict[str, tuple[float, ...]]:
    """For each driver, the slices that a row or partial result visits at each step of its path."""
    return {
        path.driver: tuple(copies(spec, plan.slices.of(step.stream), members, step) for members, step in _steps(path))
        for path in plan.firsts
    }


def slices_lines(spec: QuerySpec, plan: Plan, rates_hz: Mapping[str, float] | None = None) -> list[str]:
    """How streams are sliced and what is predicted to travel, for people; `rates_hz` are rows a second by stream."""
    if plan.slices.count == 1:
        return ["one slice: nothing travels"]
    lines = [f"{plan.slices.count} slices, each row is kept on one of them"]
    lines += [f"  {name}: {_slicing_text(spec, plan.slices.of(name))}" for name in (s.name for s in spec.streams)]
    if any(slicing.kind != "time" for slicing in plan.slices.streams):
        lines.append("  few distinct keys, or one that most rows share, would leave slices idle: that is not predicted")
    lines.append("predicted shuffle, in copies of a row or a partial result")
    predicted = predicted_copies(spec, plan)
    for driver, counts in predicted.items():
        steps = zip(plan.path(driver).steps, counts, strict=True)
        shown = ", ".join(f"to {step.stream} {_number(count)}" for step, count in steps)
        lines.append(f"  a new row of {driver}: kept 1, {shown}{_traffic(spec, driver, counts, rates_hz)}")
    best = replace(plan, slices=choose_slices(spec, plan.firsts, plan.slices.count))
    total, least = (sum(map(sum, each.values())) for each in (predicted, predicted_copies(spec, best)))
    if least < total:
        lines.append(f"  {_number(total)} in all; slices by {AUTO} would make it {_number(least)}")
    return lines


def row_bytes(spec: QuerySpec, name: str) -> int:
    """About how many bytes a row of a stream is when it travels: the columns the query reads."""
    return sum(_width(column) for column in spec.used_columns(name))


def _chosen(spec: QuerySpec, searching: Sequence[Searching], name: str, count: int, by: str) -> Slicing:
    candidates = [time_slicing(name, count, spec.stream(name).window.span_us)]
    if by in (AUTO, "hash"):
        hashed = _by_hash(spec, name, count)
        candidates += hashed if by == "hash" else [each for each in hashed if not _has_few_values(spec, each)]
    if by in (AUTO, "range"):
        candidates += _by_range(spec, searching, name, count)
    if by in ("hash", "range") and len(candidates) > 1:
        candidates = candidates[1:]
    return min(candidates, key=lambda slicing: sum(copies(spec, slicing, *each) for each in searching))


def _by_hash(spec: QuerySpec, name: str, count: int) -> list[Slicing]:
    return [
        Slicing(name, "hash", count, number)
        for number, conjunct in enumerate(spec.conjuncts)
        for search in searches_of(conjunct, name)
        if isinstance(search, Equality) and search.key.type.kind not in UNHASHED
    ]


def _by_range(spec: QuerySpec, searching: Sequence[Searching], name: str, count: int) -> list[Slicing]:
    """A slicing for each key of a band; event time is left to slices by time."""
    stream = spec.stream(name)
    found = []
    for number, conjunct in enumerate(spec.conjuncts):
        key = next((search.key for search in searches_of(conjunct, name) if isinstance(search, Range)), None)
        if key is None or stream.column(stream.time) in _parts(key):
            continue
        bands = [band for _, step in searching if (band := _band(spec, key, step)) is not None and band > 0]
        span = max(bands, default=math.inf) * BANDS_A_SPAN * OFF_THE_GRID
        if 0 < span < math.inf:
            found.append(Slicing(name, "range", count, number, span))
    return found


def _parts(key: Expression) -> tuple[Expression, ...]:
    return tuple(linear([Term(1, key)])[0])


def _has_few_values(spec: QuerySpec, slicing: Slicing) -> bool:
    return same_words(slicing_key(spec.conjuncts, slicing)).type.kind is Kind.BOOLEAN


def _steps(path: Path) -> list[Searching]:
    joined = (path.driver, *(step.stream for step in path.steps))
    return [(joined[: number + 1], step) for number, step in enumerate(path.steps)]


def _searching(paths: Sequence[Path], name: str) -> list[Searching]:
    return [each for path in paths for each in _steps(path) if each[1].stream == name]


def _searches(spec: QuerySpec, step: Step) -> list[Search]:
    return [search for number in step.conjuncts for search in searches_of(spec.conjuncts[number], step.stream)]


def _band(spec: QuerySpec, key: Expression, step: Step) -> float | None:
    """The width of the band that a step searches `key` in, in words; None where there is none of constant width."""
    width = width_of(ranges_over(key, [s for s in _searches(spec, step) if isinstance(s, Range)]))
    return width if width is None or key.type.is_float else width + MARGIN_WORDS


def _time_reach_us(spec: QuerySpec, members: Sequence[str], step: Step) -> float:
    """How much event time a step reaches from members that are about as old as each other."""
    stream = spec.stream(step.stream)
    low, high = (-math.inf if stream.window.span_us is None else -float(stream.window.span_us)), math.inf
    times: set[Expression] = set()
    for member in map(spec.stream, members):
        times.add(member.column(member.time))
        high = min(high, math.inf if member.window.span_us is None else float(member.window.span_us))
    for number in step.narrowing:
        for search in searches_of(spec.conjuncts[number], step.stream):
            if isinstance(search, Range) and search.key == stream.column(stream.time):
                low = max(low, _offset(search.low, times, -math.inf))
                high = min(high, _offset(search.high, times, math.inf))
    return max(0.0, high - low)


def _offset(bound: Bound | None, times: set[Expression], unknown: float) -> float:
    """How far a bound lies from the event time of a member, where it is that plus a constant."""
    if bound is None:
        return unknown
    parts, constant = linear(bound.terms)
    return constant if len(parts) == 1 and set(parts) <= times and set(parts.values()) == {1} else unknown


def _spans_touched(slicing: Slicing, width: float) -> float:
    """The slices that a range of some width touches on average, wherever it begins."""
    spans = width / float(slicing.span or 1)
    if spans >= slicing.count:
        return float(slicing.count)
    whole = math.floor(spans)
    part = spans - whole
    return min(slicing.count, whole + 1) * (1 - part) + min(slicing.count, whole + 2) * part


def _slicing_text(spec: QuerySpec, slicing: Slicing) -> str:
    if slicing.kind == "time":
        return f"by event time, in spans of {float(slicing.span or 0) / 1e6:g} s"
    key = slicing_key(spec.conjuncts, slicing)
    why = spec.conjuncts[slicing.conjunct or 0]
    if slicing.kind == "hash":
        return f"by the hash of {key} ({why})"
    width = float(slicing.span or 0) / 10.0**key.type.scale
    unit = 1e6 if key.type.is_time or key.type.kind is Kind.INTERVAL else 1.0
    return f"by the value of {key}, in spans of {width / unit:.4g}{' s' if unit > 1 else ''} ({why})"


def _traffic(spec: QuerySpec, driver: str, counts: Sequence[float], rates_hz: Mapping[str, float] | None) -> str:
    if rates_hz is None or driver not in rates_hz:
        return ""
    size = row_bytes(spec, driver)
    bytes_s = rates_hz[driver] * size * (1 + counts[0])
    return f"; {rates_hz[driver]:g} rows/s of about {size} bytes are {bytes_s / 1e6:.3g} MB/s to keep and to step 1"


def _number(count: float) -> str:
    return f"{count:.2f}".rstrip("0").rstrip(".")


def _width(column: Column) -> int:
    kind = column.type.kind
    if kind is Kind.VECTOR:
        return column.type.length * column.type.width // 8
    if kind in (Kind.VARCHAR, Kind.OTHER):
        return TEXT_BYTES
    return 16 if kind is Kind.DECIMAL else _WIDTHS.get(kind, BITS.get(kind, 64) // 8)


_WIDTHS = {Kind.BOOLEAN: 1, Kind.FLOAT: 4, Kind.DATE: 4}
