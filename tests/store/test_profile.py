"""What is left of a store by place: it only falls, whatever is decided in whatever order."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from windrow.store.profile import Profile

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
        assert profile.least(-5, 59) == naive.min()


def test_what_is_older_than_all_rows_is_forgotten() -> None:
    profile = Profile()
    profile.lower([10, 20, 30], [0.1, 0.2, 0.3, 1.0])
    profile.forget(25)
    assert profile.at(np.array([25, 29, 30])).tolist() == [0.3, 0.3, 1.0]
    assert len(profile.starts) == 2
