"""How a step is probed, per shape of its condition."""

from __future__ import annotations

import pytest

from tests.plan.queries import spec_of
from windrow.errors import PlanError
from windrow.plan.methods import METHODS, choose, known_methods, narrows

ALL = frozenset(METHODS)

SHAPES: dict[str, tuple[int, str, tuple[int, ...], tuple[int, ...]]] = {
    "a.i = b.i": (0, "hashed", (0,), ()),
    "a.k = b.k AND a.x < b.x AND a.i = b.i": (0, "hashed", (0, 2), ()),
    "abs(a.x - b.x) <= 1 AND a.i = b.i": (0, "hashed", (1,), ()),
    "abs(a.x - b.x) <= 1": (1, "sorted", (0,), ()),
    "b.x BETWEEN a.x AND a.y": (1, "sorted", (0, 1), ()),
    "a.x BETWEEN b.x AND b.y": (3, "sorted", (0,), ()),
    "a.x < b.x AND a.y > b.y AND b.x < a.x + 5": (1, "sorted", (0, 2), ()),
    "cosine(a.v, b.v) > 0.9": (2, "matrix", (0,), ()),
    "a.x < b.x AND cosine(a.v, b.v) > 0.9": (2, "matrix", (1,), ()),
    "a.x < b.x": (3, "sorted", (0,), ()),
    "a.x < b.x OR a.i = b.i": (4, "loop", (), ()),
    "a.x * b.x > 1": (4, "loop", (), ()),
    "near(a.x, b.x) AND a.x * b.x > 1": (4, "loop", (), ()),
    "near(a.x, b.x)": (5, "opaque", (), ()),
    "levenshtein(a.k, b.k) < 2": (5, "opaque", (), ()),
    "a.x > 0": (6, "loop", (), ()),
    "b.ts >= a.ts": (1, "loop", (), (0,)),
    "b.ts >= a.ts AND near(a.x, b.x)": (1, "loop", (), (0,)),
    "b.ts >= a.ts AND a.x < b.x": (1, "sorted", (1,), (0,)),
    "b.ts >= a.ts AND a.i = b.i": (0, "hashed", (1,), (0,)),
    "b.ts = a.ts": (0, "hashed", (0,), (0,)),
}


@pytest.mark.parametrize("where", SHAPES)
def test_the_choice_follows_the_shape(where: str) -> None:
    spec = spec_of(where)
    choice = choose(spec, ["a"], "b", ALL)
    assert (choice.rank, choice.step.method, choice.step.leading, choice.step.narrowing) == SHAPES[where]
    assert choice.step.stream == "b"
    joining = () if where == "a.x > 0" else tuple(range(len(spec.conjuncts)))
    assert choice.step.conjuncts == joining
    assert choice.step.why


RESTRICTED = {
    ("a.i = b.i", ("sorted",)): "sorted",
    ("a.i = b.i", ("loop",)): "loop",
    ("a.i = b.i", ()): "loop",
    ("a.k = b.k", ("sorted", "matrix")): "loop",
    ("abs(a.x - b.x) <= 1", ("hashed",)): "loop",
    ("cosine(a.v, b.v) > 0.9", ("loop",)): "loop",
    ("cosine(a.v, b.v) > 0.9", ("matrix",)): "matrix",
    ("near(a.x, b.x)", ("loop",)): "opaque",
    ("near(a.x, b.x)", ("hashed",)): "opaque",
}


@pytest.mark.parametrize(("where", "methods"), RESTRICTED)
def test_methods_can_be_restricted(where: str, methods: tuple[str, ...]) -> None:
    choice = choose(spec_of(where), ["a"], "b", known_methods(methods))
    assert choice.step.method == RESTRICTED[where, methods]


def test_a_condition_counts_where_its_last_stream_is_joined() -> None:
    spec = spec_of("a.i = b.i AND b.i = c.i AND a.x + b.x < c.x AND a.x > 0", ("a", "b", "c"))
    assert choose(spec, ["a"], "b", ALL).step.conjuncts == (0,)
    assert choose(spec, ["a"], "c", ALL).step.conjuncts == ()
    assert choose(spec, ["a", "b"], "c", ALL).step.conjuncts == (1, 2)
    assert choose(spec, ["b", "c"], "a", ALL).step.conjuncts == (0, 2)


def test_only_event_time_narrows() -> None:
    spec = spec_of("b.ts - a.ts >= INTERVAL 5 SECONDS AND a.x < b.x AND abs(a.ts - b.ts) < INTERVAL 1 SECOND")
    assert [narrows(spec, number, "b") for number in range(3)] == [True, False, True]
    assert [narrows(spec, number, "a") for number in range(3)] == [True, False, True]


def test_every_method_is_known_and_no_other() -> None:
    assert known_methods(None) == ALL
    assert known_methods(("hashed",)) == {"hashed", "loop", "opaque"}
    with pytest.raises(PlanError, match="no method 'quantum'") as caught:
        known_methods(("sorted", "quantum"))
    assert "matrix" in caught.value.hint


def test_reasons_name_the_condition() -> None:
    assert "a.x < b.x" in choose(spec_of("a.x < b.x"), ["a"], "b", ALL).step.why
    assert "cross product" in choose(spec_of("a.x > 0"), ["a"], "b", ALL).step.why
