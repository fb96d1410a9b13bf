"""A query and its plan in plain words and as trees, for people who have not met either before.

    each a with each b, so that                    a                                    a new row of a …
      abs(a.x - b.x) <= 1                          └─ b   sorted   abs(a.x - b.x) <= 1  … looks into the window of b

>>> step = Step("b", "hashed", conjuncts=(0,), leading=(0,), narrowing=(), why="a.k = b.k: a hash index on the key")
>>> last = Step("c", "loop", conjuncts=(1,), leading=(), narrowing=(), why="b.x < c.x + a.x: a compiled loop")
>>> print("\\n".join(tree_lines(("a.k = b.k", "b.x < c.x + a.x"), Path("a", (step, last)))))
a
└─ b  hashed  a.k = b.k
   └─ c  loop  b.x < c.x + a.x
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from windrow.plan.plan import Path, Plan, Step
from windrow.query.spec import UNBOUNDED, QuerySpec, Window

METHOD_MEANS: Mapping[str, str] = MappingProxyType(
    {
        "hashed": "rows are filed by the hash of their key; equal ones are looked up, no others are touched",
        "sorted": "rows are kept in order of a value; two binary searches find the range that can match",
        "matrix": "vectors are multiplied block by block; what comes near the threshold is computed again, exactly",
        "loop": "each row in reach is compared, by machine code made from the condition",
        "opaque": "your function is called on each row in reach",
    }
)
"""What a method does, for somebody who reads its name for the first time."""

_UNITS_US = (
    ("DAYS", 86_400_000_000),
    ("HOURS", 3_600_000_000),
    ("MINUTES", 60_000_000),
    ("SECONDS", 1_000_000),
    ("MILLISECONDS", 1_000),
)


def span_text(span_us: int) -> str:
    """A span of time in the largest unit that gives a whole number.

    >>> span_text(90_000_000), span_text(1_500), span_text(0), span_text(2**63 - 1)
    ('90 SECONDS', '1500 MICROSECONDS', '0 SECONDS', 'without end')
    """
    if span_us == UNBOUNDED:
        return "without end"
    if span_us == 0:
        return "0 SECONDS"
    return next(
        (f"{span_us // unit_us} {unit}" for unit, unit_us in _UNITS_US if span_us % unit_us == 0),
        f"{span_us} MICROSECONDS",
    )


def window_text(window: Window) -> str:
    """A window as a query writes it."""
    return span_text(window.span_us) if window.span_us is not None else f"ROWS {window.rows}"


def query_lines(spec: QuerySpec) -> list[str]:
    """What a query asks, in words."""
    names = [stream.name for stream in spec.streams]
    conditions = [str(conjunct) for conjunct in spec.conjuncts]
    given = "for which" if conditions else "whatever they hold, if"
    lines = [f"one result for each combination of a row of {_listed(names, 'and of')} {given}"]
    lines += [f"  {condition}" for condition in conditions]
    together = "  and the newest of them came while the others were in their windows: "
    lines.append(together + ", ".join(f"{stream.name} {_stays(stream.window)}" for stream in spec.streams))
    lines.append("an inner join: a row that meets nothing gives nothing")
    return lines


def step_text(conjuncts: Sequence[str], step: Step) -> str:
    """What a step searches by, and what it checks besides."""
    searched = step.leading or step.conjuncts
    shown = " AND ".join(conjuncts[place] for place in searched) or "everything"
    rest = [conjuncts[place] for place in step.conjuncts if place not in searched]
    return f"{shown}; then {' AND '.join(rest)}" if rest else shown


def tree_lines(conjuncts: Sequence[str], path: Path, notes: Sequence[str] = ()) -> list[str]:
    """A driver's path as a tree, each store below what probes it; `notes` stand behind the steps."""
    lines = [path.name]
    for number, step in enumerate(path.steps):
        note = f"  ({notes[number]})" if number < len(notes) else ""
        lines.append(f"{'   ' * number}└─ {step.stream}  {step.method}  {step_text(conjuncts, step)}{note}")
    return lines


def method_lines(plan: Plan) -> list[str]:
    """What the methods of a plan do, each once."""
    used = dict.fromkeys(step.method for path in plan.paths for step in path.steps)
    return [f"{method}: {METHOD_MEANS[method]}" for method in used]


def _listed(names: Iterable[str], word: str) -> str:
    """Names as a sentence has them.

    >>> _listed(["a", "b", "c"], "and")
    'a, b and c'
    """
    *others, last = names
    return f"{', '.join(others)} {word} {last}" if others else last


def _stays(window: Window) -> str:
    return (
        f"for {span_text(window.span_us).lower()}" if window.span_us is not None else f"its newest {window.rows} rows"
    )
