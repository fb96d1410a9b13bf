"""The funnel: why so few rows become results, and which condition turns most pairs away.

    rows in ─▶ on time, with a time ─▶ passed filters ─▶ met rows in time ─▶ pairs within reach ─▶ looked at
                                                            a step:             ─▶ passed each condition ─▶ matches
                                                            the last step:      ─▶ results

Rows, pairs within reach, pairs looked at and matches are counted. What passes one condition after the other is known
from a few pairs drawn of those within reach (`windrow.control.sift`). The condition that kills is the one that alone
rejects most of the drawn pairs; where no pair fails by one condition alone, the one that fewest pairs pass. It is
looked for in the steps where the rows end: those that pairs reach and nothing leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from windrow.dashboard.batches import Asked, Batch, PathPlan, PathTotal, Planned, StepTotal, Totals
from windrow.dashboard.skew import Skew
from windrow.dashboard.wording import count_text, share_text


@dataclass(frozen=True)
class Stage:
    """One bar: how many of what are left, and the condition it is about, if any."""

    name: str
    count: float
    unit: str
    step: int | None = None
    conjunct: int | None = None
    estimated: bool = False


@dataclass(frozen=True)
class Verdict:
    """What to say of the funnel: `tone` is `good`, `note` or `bad`; the condition that kills, where one does."""

    tone: str
    text: str
    conjunct: int | None = None


@dataclass(frozen=True)
class Evidence:
    """What drawn pairs say of one condition."""

    pairs: int = 0
    passed: int = 0
    alone: int = 0

    def plus(self, pairs: int, passed: int, alone: int) -> Evidence:
        return Evidence(self.pairs + pairs, self.passed + passed, self.alone + alone)

    @property
    def passing(self) -> float:
        """The share of pairs it holds for."""
        return self.passed / self.pairs if self.pairs else 1.0


def funnel_view(
    batch: Batch, recent: Sequence[Batch], query: Asked, plan: Planned, skew: Sequence[Skew]
) -> dict[str, Any]:
    """What the page shows: the stages of each driver in the whole run and of late, and what to say of it."""
    late, paths = _since(recent), [path for path in plan.firsts if path.driver in query.streams]
    verdict = verdict_of(batch, batch.totals, query, plan, skew)
    evidence = evidence_of(plan, batch.totals, ended=False)
    return {
        "drivers": [path.driver for path in paths],
        "whole": {path.driver: _shown(stages(path, batch, batch.totals, query)) for path in paths},
        "recent": {path.driver: _shown(stages(path, late[0], late[1], query)) for path in paths} if late else None,
        "recent_batches": len(recent),
        "verdict": asdict(verdict),
        "conditions": [
            {
                "text": each.text,
                "streams": list(each.streams),
                "passing": evidence[number].passing if number in evidence else None,
                "pairs": evidence[number].pairs if number in evidence else 0,
                "kills": number == verdict.conjunct,
            }
            for number, each in enumerate(query.conjuncts)
        ],
    }


def stages(path: PathPlan, batch: Batch, totals: Totals, query: Asked) -> list[Stage]:
    """The bars of one driver's rows."""
    stream = batch.streams[path.driver]
    sound = max(0, stream.rows - stream.late - stream.bad - stream.ahead)
    found = [
        Stage("rows in", stream.rows, "rows"),
        Stage("in time for their watermark", sound, "rows"),
        Stage("passed the filters of the stream", max(0, sound - stream.filtered - stream.dropped), "rows"),
    ]
    total = totals.paths.get(path.driver)
    if total is None or list(total.targets) != [step.stream for step in path.steps]:
        return [*found, Stage("results", 0, "results")]
    for number, (step, did) in enumerate(zip(path.steps, total.steps, strict=False)):
        if number == 0:
            found.append(Stage("met rows in time", min(total.drivers, did.met), "rows"))
        found.append(Stage(f"pairs within reach of {step.stream}", did.searched, "pairs", number))
        found.append(Stage(f"looked at by the {step.method} method", did.candidates, "pairs", number))
        found += _conditions(number, step.order, did, query)
    if path.into is not None:
        return found  # what it gives are rows of an inner node, which drive on
    return [*found, Stage("results", total.results, "results")]


def verdict_of(batch: Batch, totals: Totals, query: Asked, plan: Planned, skew: Sequence[Skew]) -> Verdict:
    """What to say: the first reason for which nothing comes, else which condition turns most away."""
    clocks = f" Clocks seem skewed: {skew[0].text}." if skew else ""
    for name, stream in batch.streams.items():
        if not stream.rows:
            return Verdict("bad", f"No rows have come from {name}, so nothing can join.")
        if not stream.entered:
            return _nothing_entered(batch, query, name)
    searched = sum(path.steps[0].searched for path in totals.paths.values() if path.steps)
    if not totals.results and not searched:
        return Verdict("bad", f"Nothing joins: no row met a row of another stream within the window.{clocks}")
    evidence = evidence_of(plan, totals, ended=not totals.results)
    killer = killing(evidence)
    if killer is None:
        return Verdict("note" if totals.results else "bad", _few(totals) + clocks)
    told = f"“{query.conjuncts[killer].text}”"
    passing = evidence[killer]
    if not totals.results:
        tried = "passes none" if not passing.passed else f"passes {share_text(passing.passing)}"
        return Verdict(
            "bad", f"Nothing joins: {told} turns most pairs away; it {tried} of the pairs within reach.{clocks}", killer
        )
    share = share_text(1 - passing.passing)
    text = f"{_few(totals)} {told} turns most pairs away: {share} of those within reach.{clocks}"
    return Verdict("note" if skew else "good", text, killer)


def evidence_of(plan: Planned, totals: Totals, ended: bool) -> dict[int, Evidence]:
    """What the drawn pairs say of each condition, over all first paths; `ended`: of steps that pairs reached and
    nothing left, if there are any.
    """
    steps = [
        (step.order, did)
        for path in plan.firsts
        for step, did in zip(path.steps, _steps(totals.paths.get(path.driver), path), strict=False)
        if did.searched
    ]
    if ended:
        steps = [(order, did) for order, did in steps if not did.matches] or steps
    found: dict[int, Evidence] = {}
    for order, did in steps:
        if not did.pairs and len(order) == 1:  # not drawn, but counted
            found[order[0]] = found.get(order[0], Evidence()).plus(
                did.searched, did.matches, did.searched - did.matches
            )
        for number, passed, alone in zip(order, did.passed, did.alone, strict=False):
            found[number] = found.get(number, Evidence()).plus(did.pairs, passed, alone)
    return found


def killing(evidence: dict[int, Evidence]) -> int | None:
    """The condition that turns most pairs away.

    >>> killing({0: Evidence(100, 3, 0), 1: Evidence(100, 0, 3)}), killing({0: Evidence(9, 9, 0)})
    (1, None)
    >>> killing({0: Evidence(100, 1, 0), 1: Evidence(100, 40, 0)})
    0
    """
    rejecting = {number: each for number, each in evidence.items() if each.passed < each.pairs}
    if not rejecting:
        return None
    return max(rejecting, key=lambda number: (rejecting[number].alone, -rejecting[number].passing, -number))


def _nothing_entered(batch: Batch, query: Asked, name: str) -> Verdict:
    stream = batch.streams[name]
    reasons = {"late": stream.late, "without a time": stream.bad, "too far ahead": stream.ahead, "": stream.filtered}
    most = max(reasons, key=lambda reason: reasons[reason])
    if most:
        return Verdict("bad", f"Nothing joins: all rows of {name} are late or bad, most of them {most}.")
    number = next((n for n, each in enumerate(query.conjuncts) if list(each.streams) in ([name], [])), None)
    told = "its filter" if number is None else f"“{query.conjuncts[number].text}”"
    return Verdict("bad", f"Nothing joins: no row of {name} passes {told}.", number)


def _conditions(number: int, order: Sequence[int], did: StepTotal, query: Asked) -> Iterable[Stage]:
    """One bar a condition; the last one is what matched, which is counted."""
    for place, conjunct in enumerate(order):
        name = query.conjuncts[conjunct].text
        if place + 1 == len(order):
            yield Stage(name, did.matches, "pairs", number, conjunct)
        elif did.pairs and place < len(did.through):
            about = min(did.candidates, did.through[place] / did.pairs * did.searched)
            yield Stage(name, max(did.matches, about), "pairs", number, conjunct, estimated=True)
    if not order:
        yield Stage("no condition", did.matches, "pairs", number)


def _few(totals: Totals) -> str:
    return f"{count_text(totals.results)} results so far." if totals.results else "Nothing joins yet."


def _steps(total: PathTotal | None, path: PathPlan) -> tuple[StepTotal, ...]:
    same = total is not None and list(total.targets) == [step.stream for step in path.steps]
    return total.steps if total is not None and same else ()


def _shown(found: Sequence[Stage]) -> list[dict[str, Any]]:
    """Stages with the share that is left of the stage before, where both count the same."""
    shown: list[dict[str, Any]] = []
    before: Stage | None = None
    for stage in found:
        same = before is not None and before.unit == stage.unit and before.step == stage.step
        left = stage.count / before.count if before is not None and same and before.count > 0 else None
        told = {**asdict(stage), "left": None if left is None else min(1.0, left), "text": count_text(stage.count)}
        shown.append(told)
        before = stage
    return shown


def _since(recent: Sequence[Batch]) -> tuple[Batch, Totals] | None:
    """What has come since the first of the last batches, as if the run had begun there."""
    if len(recent) < 2 or recent[0].totals.since != recent[-1].totals.since:
        return None
    first, last = recent[0], recent[-1]
    counts = ("rows", "late", "bad", "ahead", "filtered", "dropped")
    streams = {
        name: replace(now, **{c: max(0, getattr(now, c) - getattr(first.streams[name], c)) for c in counts})
        for name, now in last.streams.items() if name in first.streams
    }  # fmt: skip
    paths = {
        name: _less(now, first.totals.paths[name]) if name in first.totals.paths else now
        for name, now in last.totals.paths.items()
    }
    if streams.keys() != last.streams.keys():
        return None
    return replace(last, streams=streams), replace(last.totals, paths=paths)


def _less(now: PathTotal, before: PathTotal) -> PathTotal:
    if now.targets != before.targets:
        return now
    steps = tuple(_step_less(one, two) for one, two in zip(now.steps, before.steps, strict=False))
    drivers, results = max(0, now.drivers - before.drivers), max(0, now.results - before.results)
    return replace(now, drivers=drivers, results=results, steps=steps)


def _step_less(now: StepTotal, before: StepTotal) -> StepTotal:
    numbers = ("probes", "searched", "candidates", "matches", "met", "pairs")
    less: dict[str, Any] = {name: max(0, getattr(now, name) - getattr(before, name)) for name in numbers}
    for name in ("passed", "through", "alone"):
        held = getattr(before, name) or (0,) * len(getattr(now, name))
        less[name] = tuple(max(0, a - b) for a, b in zip(getattr(now, name), held, strict=False))
    return replace(now, **less)
