"""Commits: what a restart reads is what was written, or it is refused."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from tests.run.spark.commits import QUESTION, commit_of, file_of
from windrow.errors import StateError
from windrow.run.spark.state import FORMAT_VERSION, Commit, Live, base_of, changed, difference


def test_a_commit_survives_its_passage_through_text() -> None:
    commit = commit_of(8)
    assert all(getattr(commit, field.name) != field.default for field in fields(Commit))
    assert Commit.from_json(commit.to_json()) == commit
    first = Commit(-1, QUESTION)
    assert Commit.from_json(first.to_json()) == first
    assert first.names() == set()


def test_the_names_of_a_commit_are_those_of_indexes_as_well() -> None:
    names = commit_of(1).names()
    assert {name for name in names if "-index-" not in name} == {"segments/1", "segments/2", "segments/3"}
    assert names == {*file_of("segments/1").names, *file_of("segments/2").names, "segments/3"}
    assert len(names) == 5


@pytest.mark.parametrize("version", [FORMAT_VERSION + 1, 0, str(FORMAT_VERSION), None])
def test_another_version_is_refused(version: object) -> None:
    text = json.dumps({**json.loads(commit_of(1).to_json()), "version": version})
    with pytest.raises(StateError, match=f"has format version {version}, this is {FORMAT_VERSION}"):
        Commit.from_json(text)


@pytest.mark.parametrize("name", ["version", *(field.name for field in fields(Commit))])
def test_a_commit_that_lacks_a_field_is_refused(name: str) -> None:
    value = json.loads(commit_of(1).to_json())
    value.pop(name)
    with pytest.raises(StateError, match="damaged"):
        Commit.from_json(json.dumps(value))


DAMAGE: dict[str, Any] = {
    "live": [],
    "gates": {"a": {"newest_us": 1}},
    "batch": "x",
    "dying": None,
    "results": [],
    "question": {"streams": {"a": {}}},
    "outputs": 3,
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_commit_with_a_field_of_another_kind_is_refused(name: str) -> None:
    value = {**json.loads(commit_of(1).to_json()), name: DAMAGE[name]}
    with pytest.raises(StateError, match="damaged"):
        Commit.from_json(json.dumps(value))


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "null", '"x"', commit_of(1).to_json()[:-20]])
def test_text_that_is_no_commit_is_refused(text: str) -> None:
    with pytest.raises(StateError, match="damaged"):
        Commit.from_json(text)


def test_a_commit_can_be_written_as_a_difference() -> None:
    base = commit_of(5)
    live: Live = {0: {"a": (file_of("segments/2"), file_of("segments/9"))}, 4: {"b": (file_of("segments/8", 0),)}}
    later = replace(base, batch=9, live=live)
    text = later.to_json(base)
    assert base_of(text) == 5
    assert base_of(base.to_json()) is None
    assert Commit.from_json(text, base) == later
    assert len(replace(base, batch=6).to_json(base)) < len(base.to_json()) - 100
    for other in (None, commit_of(4)):
        with pytest.raises(StateError, match="it builds on commit 5"):
            Commit.from_json(text, other)


def test_differences_bring_live_segments_from_any_state_to_any_later_one() -> None:
    draw = np.random.default_rng(4)
    live: Live = {}
    start = live
    number = 0
    for step in range(200):
        names = [file.name for streams in live.values() for files in streams.values() for file in files]
        gone = [name for name in names if draw.random() < 0.1]
        added = {}
        for place in range(3):
            count = int(draw.integers(0, 3))
            added[place] = {"a": [file_of(f"segments/{number + k}") for k in range(count)]}
            number += count
        live = changed(live, gone, added)
        assert changed(start, *difference(start, live)) == live
        if step % 20 == 19:
            start = live
    assert number > 400
    assert 0 < sum(len(files) for streams in live.values() for files in streams.values()) < number
