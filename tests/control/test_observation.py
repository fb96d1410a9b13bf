"""Counts add up in any order and grouping, and come back from JSON."""

from __future__ import annotations

import json
from functools import reduce
from operator import add

from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.control.observation import NO_PATH, Arrival, Joined, Observation, PathTally, StepTally, summed

small = st.integers(0, 100)
steps = st.builds(StepTally, small, small, small, small, small.map(float))
lines = st.lists(small.map(float), max_size=3).map(tuple)
tallies = st.builds(
    PathTally,
    small,
    small,
    st.lists(steps, max_size=2).map(tuple),
    st.lists(lines, max_size=2).map(tuple),
    small.map(float),
    st.lists(lines, max_size=2).map(tuple),
    st.lists(small, max_size=2).map(tuple),
)
pages = st.dictionaries(st.sampled_from(("a", "b", "b/1")), tallies, max_size=3)
joined = st.builds(Joined, pages, pages)


@settings(max_examples=20)
@given(st.lists(joined, max_size=4), st.randoms(use_true_random=False))
def test_sums_do_not_depend_on_order_or_grouping(parts: list[Joined], random: object) -> None:
    total = summed(parts)
    mixed = list(parts)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    assert summed(mixed) == total
    assert reduce(add, reversed(parts), Joined()) == total
    middle = len(parts) // 2
    assert summed(parts[:middle]) + summed(parts[middle:]) == total
    for name in total.others:
        assert total.others[name].results == sum(part.others.get(name, NO_PATH).results for part in parts)


@settings(max_examples=20)
@given(joined)
def test_json_form(found: Joined) -> None:
    batch = Observation(3, 10.0, 1.0, 0.5, {"a": Arrival(5, late=1, watermark_us=7)}, found, {"a": 2}, 4, 9)
    assert Observation.from_values(json.loads(json.dumps(batch.to_values()))) == batch
