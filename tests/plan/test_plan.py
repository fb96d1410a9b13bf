"""Plans as text: what is written is read, anything else is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import PlanError
from windrow.plan.drivers import POLICIES
from windrow.plan.methods import METHODS
from windrow.plan.plan import FORMAT_VERSION, Path, Plan, Step
from windrow.plan.slices import ONE_SLICE, Slices, Slicing

numbers = st.lists(st.integers(0, 9), max_size=3).map(tuple)
steps = st.builds(Step, st.text(max_size=5), st.sampled_from(METHODS), numbers, numbers, numbers, st.text(max_size=20))
paths = st.builds(Path, st.text(max_size=5), st.lists(steps, max_size=3).map(tuple))
spans = st.one_of(st.integers(1, 2**62), st.floats(5e-324, 1.7e308))
slicings = st.one_of(
    st.builds(Slicing, st.text(max_size=3), st.just("time"), st.just(3), span=st.integers(1, 2**62)),
    st.builds(Slicing, st.text(max_size=3), st.just("hash"), st.just(3), st.integers(0, 9)),
    st.builds(Slicing, st.text(max_size=3), st.just("range"), st.just(3), st.integers(0, 9), spans),
)
slices = st.one_of(st.just(ONE_SLICE), st.builds(Slices, st.just(3), st.lists(slicings, max_size=3).map(tuple)))
plans = st.builds(Plan, st.sampled_from(sorted(POLICIES)), st.lists(paths, max_size=3).map(tuple), slices)

PLAN = Plan("timestamp", (Path("a", (Step("b", "hashed", (0, 1), (0,), (1,), 'a."k" = b.k'),)), Path("b", ())))


@given(plans)
def test_there_and_back(plan: Plan) -> None:
    text = plan.to_json()
    assert Plan.from_json(text) == plan
    assert Plan.from_json(text).to_json() == text
    assert hash(Plan.from_json(text)) == hash(plan)


def test_the_version_is_written() -> None:
    assert json.loads(PLAN.to_json())["version"] == FORMAT_VERSION


def test_a_plan_that_says_nothing_of_slices_has_one() -> None:
    assert PLAN.slices == ONE_SLICE
    assert json.loads(PLAN.to_json())["slices"] == {"count": 1, "streams": []}


@pytest.mark.parametrize("version", [FORMAT_VERSION + 1, 1, 0, str(FORMAT_VERSION), None])
def test_other_versions_are_refused(version: object) -> None:
    text = json.dumps({**json.loads(PLAN.to_json()), "version": version})
    with pytest.raises(PlanError, match=f"format version {version}, this is {FORMAT_VERSION}"):
        Plan.from_json(text)


WRONG = {
    "not JSON": "{",
    "empty": "",
    "a list": "[]",
    "a number": "3",
    "null": "null",
    "no version": '{"policy": "timestamp", "paths": []}',
    "no paths": f'{{"version": {FORMAT_VERSION}, "policy": "timestamp"}}',
    "no driver": f'{{"version": {FORMAT_VERSION}, "policy": "timestamp", "paths": [{{"steps": []}}]}}',
    "a step that is none": f'{{"version": {FORMAT_VERSION}, "policy": "", "paths": [{{"driver": "a", "steps": [1]}}]}}',
    "no slices": f'{{"version": {FORMAT_VERSION}, "policy": "timestamp", "paths": []}}',
    "a span that is no number": PLAN.to_json().replace(
        '"streams": []', '"streams": [{"stream": "a", "kind": "time", "count": 1, "conjunct": null, "span": "5"}]'
    ),
    "conjuncts that are no numbers": PLAN.to_json().replace('"conjuncts": [\n            0,', '"conjuncts": [\n "x",'),
}


@pytest.mark.parametrize("kind", WRONG)
def test_other_shapes_are_refused(kind: str) -> None:
    assert WRONG[kind] != PLAN.to_json()
    with pytest.raises(PlanError, match="this is not a plan") as caught:
        Plan.from_json(WRONG[kind])
    assert "\n" not in str(caught.value)


def test_paths_are_found_by_driver() -> None:
    assert PLAN.path("b") == Path("b", ())
    with pytest.raises(PlanError, match="no path for 'c'"):
        PLAN.path("c")
