"""The GrubJoin process: the paper's numbers, lags that can be measured, and independence of the streams."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from windrow.errors import UsageError
from windrow.streams.arrivals import SECOND_US, Constant, Poisson
from windrow.streams.synthetic import MIDNIGHT_US, NONALIGNED_NOISE, GrubJoinStream, cameras, generate

WINDOW_S = 20.0
EPSILON = 1.0


def seconds_and_values(table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    times_us = table.column("ts").cast(pa.int64()).to_numpy()
    return (times_us - MIDNIGHT_US) / SECOND_US, table.column("x").to_numpy()


def lags_of_matches(first: pa.Table, second: pa.Table) -> np.ndarray:
    """T(second) − T(first) of all pairs of the ε-join within the window."""
    first_s, first_x = seconds_and_values(first)
    second_s, second_x = seconds_and_values(second)
    lags_s = second_s[None, :] - first_s[:, None]
    close = np.abs(second_x[None, :] - first_x[:, None]) <= EPSILON
    matches: np.ndarray = lags_s[close & (np.abs(lags_s) <= WINDOW_S)]
    return matches


def test_gj_34_the_value_at_a_time() -> None:
    stream = GrubJoinStream("cam", Constant(1), lag_s=5, noise=0, domain=1000, period_s=50)
    values = stream.values(np.array([10.0, 50.0]), np.random.default_rng(0))
    assert values.tolist() == pytest.approx([300.0, 100.0], rel=1e-9)


def test_gj_35_mean_lags_of_the_nonaligned_setting() -> None:
    tables = generate(cameras(rate_hz=15), duration_s=150, seed=3)
    first = tables["cam1"]
    measured = [float(np.mean(lags_of_matches(first, tables[name]))) for name in ("cam2", "cam3")]
    assert measured == pytest.approx([-5.0, -15.0], abs=0.25)


def test_gj_36_every_nonaligned_match_is_completed_by_cam1() -> None:
    nonaligned = generate(cameras(rate_hz=15), duration_s=150, seed=4)
    aligned = generate(cameras(rate_hz=15, lags_s=(0, 0, 0)), duration_s=150, seed=4)
    for name in ("cam2", "cam3"):
        later = lags_of_matches(nonaligned["cam1"], nonaligned[name]) > 0
        assert len(later) > 1000
        assert np.mean(later) == pytest.approx(0.0, abs=0.01)
        assert 0.2 < np.mean(lags_of_matches(aligned["cam1"], aligned[name]) > 0) < 0.8


def test_noise_spreads_values_by_its_size() -> None:
    stream = GrubJoinStream("cam", Constant(1), noise=NONALIGNED_NOISE[2])
    values = stream.values(np.full(20_000, 25.0), np.random.default_rng(5))
    assert np.mean(values) == pytest.approx(500, abs=2)
    assert np.std(values) == pytest.approx(50, rel=0.03)


def test_values_stay_inside_the_domain_at_the_wrap() -> None:
    stream = GrubJoinStream("cam", Constant(1), lag_s=-1e-19, noise=0)
    assert stream.values(np.array([0.0]), np.random.default_rng(0)).tolist() == [0.0]
    noisy = GrubJoinStream("cam", Constant(1), noise=50).values(np.zeros(1000), np.random.default_rng(0))
    assert np.all((noisy >= 0) & (noisy < 1000))


def test_columns_and_counts() -> None:
    table = generate([GrubJoinStream("a", Constant(10))], duration_s=2, seed=0)["a"]
    assert table.schema == pa.schema({"ts": pa.timestamp("us"), "id": pa.int64(), "x": pa.float64()})
    assert table.column("id").to_pylist() == list(range(20))
    assert table.column("ts")[0].value == MIDNIGHT_US


def test_adding_a_stream_changes_no_other() -> None:
    one, two, three = cameras(rate_hz=20)
    alone = generate([two], duration_s=10, seed=9)
    together = generate([one, two, three], duration_s=10, seed=9)
    assert alone["cam2"].equals(together["cam2"])
    assert not together["cam1"].column("ts").equals(together["cam2"].column("ts"))


def test_same_seed_same_rows_other_seed_other_rows() -> None:
    first, again, other = (generate(cameras(rate_hz=20), duration_s=5, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first["cam1"] != other["cam1"]


def test_a_stream_made_in_pieces_goes_on_without_a_jump() -> None:
    stream = GrubJoinStream("a", Constant(4))
    whole = generate([stream], duration_s=60, seed=0)["a"]
    second_half = generate([stream], duration_s=30, seed=1, start_us=MIDNIGHT_US + 30 * SECOND_US)["a"]
    np.testing.assert_allclose(whole.column("x").to_numpy()[120:], second_half.column("x").to_numpy(), atol=1e-9)


@pytest.mark.parametrize(
    ("make", "shown"),
    [
        (lambda: GrubJoinStream("a", Poisson(1), noise=-1), "noise of stream 'a' is -1"),
        (lambda: GrubJoinStream("a", Poisson(1), domain=0), "domain of stream 'a' is 0"),
        (lambda: GrubJoinStream("a", Poisson(1), period_s=float("inf")), "period_s of stream 'a' is inf"),
        (lambda: cameras(lags_s=(0, 1)), "2 lags but 3 noise levels"),
        (lambda: generate([GrubJoinStream("a", Poisson(1))] * 2, 1, 0), "two streams are named 'a'"),
    ],
)
def test_senseless_streams_are_refused(make: Callable[[], object], shown: str) -> None:
    with pytest.raises(UsageError, match=shown):
        make()
