"""ATR and CTR find what the join finds, and show what PSP's paper says of them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.run.cluster.rings import COSTS, Case, random_case
from windrow.errors import UsageError
from windrow.run.cluster.aligned import AlignedSetting, simulate_aligned
from windrow.run.cluster.coordinated import CoordinatedSetting, greedy_cover, simulate_coordinated
from windrow.run.cluster.feed import Feed
from windrow.run.cluster.matching import Chance
from windrow.run.cluster.outcome import ClusterRun
from windrow.streams.arrivals import Poisson

WINDOWS, ORDERS = (2_000_000,) * 3, ((1, 2), (0, 2), (0, 1))


def chance() -> Chance:
    return Chance((0.1,) * 3, np.random.default_rng(1))


def feed_of(rate_hz: float, duration_s: float) -> Feed:
    return Feed.drawn([Poisson(rate_hz)] * 3, duration_s, seed=1)


def aligned(case: Case, nodes: int, segment_us: int) -> ClusterRun:
    setting = AlignedSetting(case.windows_us, case.orders, COSTS, nodes, segment_us)
    return simulate_aligned(case.feed, setting, case.matching())


def coordinated(case: Case, nodes: int, copies: int, segment_us: int) -> ClusterRun:
    setting = CoordinatedSetting(case.windows_us, case.orders, COSTS, nodes, copies, segment_us)
    return simulate_coordinated(case.feed, setting, case.matching(), seed=1)


@pytest.mark.parametrize("streams", [2, 3, 4])
def test_all_schemes_find_the_join(streams: int) -> None:
    for seed in range(3):
        case = random_case(seed, streams, 3, closed=bool(seed % 2), rows=18 - 2 * streams)
        expected = case.expected()
        for nodes, segment_us in ((1, 7), (3, 12), (4, 60)):
            assert Counter(aligned(case, nodes, segment_us).members) == expected
        for nodes, copies, segment_us in ((1, 1, 5), (4, 1, 3), (5, 3, 6)):
            assert Counter(coordinated(case, nodes, copies, segment_us).members) == expected


def test_more_aligned_nodes_make_no_row_faster() -> None:
    """PS-26: latency does not fall, throughput rises, and so do states, because more segments are worked on at once."""
    feed = feed_of(40, 30)
    runs = []
    for nodes in (2, 4, 8):
        setting = AlignedSetting(WINDOWS, ORDERS, COSTS, nodes, 2_000_000)
        runs.append(simulate_aligned(feed, setting, chance(), until_s=30))
    assert runs[2].latency_s >= 0.95 * runs[0].latency_s
    assert runs[0].stored_rows < runs[1].stored_rows < runs[2].stored_rows
    assert runs[0].service_hz < runs[1].service_hz < runs[2].service_hz


def test_segments_shorter_than_windows_store_more_copies() -> None:
    feed = feed_of(2, 60)
    stored = {}
    for segment_us in (500_000, 2_000_000, 8_000_000):
        run = simulate_aligned(feed, AlignedSetting(WINDOWS, ORDERS, COSTS, 40, segment_us), chance())
        stored[segment_us] = run.sent_a_row
    assert stored[500_000] > stored[2_000_000] > stored[8_000_000] > 1


def test_coordinated_nodes_and_copies() -> None:
    """PS-27: latency falls with nodes and rises with copies; states are as large as there are copies."""
    feed = feed_of(50, 12)
    drivers = feed.sample(4, 12, 40)
    of = {
        (nodes, copies): simulate_coordinated(
            feed, CoordinatedSetting(WINDOWS, ORDERS, COSTS, nodes, copies, 100_000), chance(), drivers=drivers
        )
        for nodes, copies in ((6, 2), (18, 2), (18, 9))
    }
    assert of[18, 2].latency_s < of[6, 2].latency_s
    assert of[18, 2].latency_s < of[18, 9].latency_s
    assert of[18, 2].stored_rows == of[6, 2].stored_rows
    assert of[18, 9].stored_rows == pytest.approx(4.5 * of[18, 2].stored_rows)
    assert of[18, 9].overlaps > of[18, 2].overlaps > 0
    assert of[18, 9].lookups == pytest.approx(4.5 * of[18, 2].lookups)


@given(st.lists(st.integers(0, 2**10 - 1), min_size=1, max_size=8))
def test_a_cover_has_every_segment_once(held: list[int]) -> None:
    wanted = 0
    for each in held:
        wanted |= each
    cover = greedy_cover(dict(enumerate(held)), wanted, [0.0] * len(held))
    shares = list(cover.values())
    assert sum(shares) == wanted
    assert all(share and share & ~held[node] == 0 for node, share in cover.items())
    assert len(cover) <= wanted.bit_count()


def test_what_cannot_be_covered() -> None:
    with pytest.raises(UsageError, match="no node holds the segments 100"):
        greedy_cover({0: 0b011}, 0b111, [0.0])
    with pytest.raises(UsageError, match="3 copies on 2 nodes"):
        CoordinatedSetting(WINDOWS, ORDERS, COSTS, 2, 3, 10)
    with pytest.raises(UsageError, match="0 nodes"):
        AlignedSetting(WINDOWS, ORDERS, COSTS, 0, 10)
    setting = CoordinatedSetting(WINDOWS, ORDERS, COSTS, 2, 1, 10)
    with pytest.raises(UsageError, match="no row probes"):
        simulate_coordinated(feed_of(1, 1), setting, chance(), drivers=[])
