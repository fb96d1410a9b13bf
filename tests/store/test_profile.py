"""What is left of a store by place: it only falls, whatever is decided in whatever order."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from windrow.store.profile import Profile, Profiles

PLACES = np.arange(-5, 60)
CUTS = st.lists(st.integers(0, 50), min_size=1, max_size=4, unique=True).map(sorted)


@given(st.lists(st.tuples(CUTS, st.lists(st.floats(0, 1), min_size=5, max_size=5)), max_size=6))
def test_a_profile_is_the_least_share_ever_asked_for(steps: list[tuple[list[int], list[float]]]) -> None:
    profile, naive = Profile(), np.ones(len(PLACES))
    for bounds, drawn in steps:
        shares = drawn[: len(bounds) + 1]
        before = profile.at(PLACES)
        changed = profile.lower(bounds, shares)
        asked = np.array([shares[sum(int(place >= bound) for bound in bounds)] for place in PLACES.tolist()])
        naive = np.minimum(naive, asked)
        assert profile.at(PLACES).tolist() == naive.tolist()
        inside = np.array([any(low <= place < high for low, high in changed) for place in PLACES])
        assert inside.tolist() == (naive < before).tolist()
        assert (profile.least(-5, 59), profile.most(-5, 59)) == (naive.min(), naive.max())
    told = Profile.from_values(json.loads(json.dumps(profile.to_values())))
    assert told.at(PLACES).tolist() == naive.tolist()
    assert told.lets_go == (naive.min() < 1)


def test_what_is_older_than_all_rows_is_forgotten() -> None:
    profile = Profile()
    profile.lower([10, 20, 30], [0.1, 0.2, 0.3, 1.0])
    profile.forget(25)
    assert profile.at(np.array([25, 29, 30])).tolist() == [0.3, 0.3, 1.0]
    assert len(profile.starts) == 2


def test_rows_of_several_streams_were_held_by_the_product_of_their_shares_or_together_at_the_same_place() -> None:
    half, fifth = Profile(), Profile()
    half.lower([10], [0.5, 1.0])
    copied = half.copy()
    copied.lower([30], [0.1, 1.0])
    fifth.lower([10], [0.2, 1.0])
    both = Profiles({"a": half, "b": fifth})
    clocks = {"a": np.array([1, 2, 15, 15]), "b": np.array([2, 2, 2, 15])}
    assert both.chance(clocks).tolist() == [0.1, 0.2, 0.2, 1.0]
    assert both.chance({"b": clocks["b"], "a": clocks["a"]}).tolist() == [0.1, 0.2, 0.2, 1.0]
    assert both.lets_go
    assert not Profiles({"a": Profile()}).lets_go


def test_what_is_still_there_though_it_was_to_go_counts_once() -> None:
    gone = Profile()
    gone.lower([10], [0.0, 1.0])
    assert Profiles({"a": gone}).chance({"a": np.array([5, 10])}).tolist() == [1.0, 1.0]
