"""Datasets I to VI of driver-selection: selectivities from the keys that were really generated."""

from __future__ import annotations

from math import prod

import numpy as np
import pyarrow as pa
import pytest

from windrow.errors import UsageError
from windrow.streams.arrivals import SECOND_US
from windrow.streams.shared_keys import DATASETS, DURATION_S, generate_dataset
from windrow.streams.synthetic import MIDNIGHT_US


def selectivities(dataset: str) -> list[float]:
    """s12, s13, s23, s12_3, s13_2, s23_1, then the results per row of S1, S2, S3, then that of the whole join."""
    tables = generate_dataset(dataset, scale=1, seed=1)
    sizes = [table.num_rows for table in tables.values()]
    keys, where = np.unique(np.concatenate([table.column("key") for table in tables.values()]), return_inverse=True)
    counts = [np.bincount(own, minlength=len(keys)) for own in np.split(where, np.cumsum(sizes)[:-1])]
    pairs = [(0, 1, 2), (0, 2, 1), (1, 2, 0)]
    matches = {(i, j): int(counts[i] @ counts[j]) for i, j, _ in pairs}
    results = int(np.sum(counts[0] * counts[1] * counts[2]))
    first_step = [matches[i, j] / (sizes[i] * sizes[j]) for i, j, _ in pairs]
    second_step = [results / (matches[i, j] * sizes[k]) for i, j, k in pairs]
    return [*first_step, *second_step, *(results / size for size in sizes), results / prod(sizes)]


def test_dr_02_selectivities_of_datasets_i_to_iv() -> None:
    expected = [5e-09, 1e-06, 5e-06, 0.001, 5e-06, 1e-06, 5, 5, 5, 5e-12]
    assert selectivities("I") == pytest.approx(expected, rel=1e-9)


def test_dr_04_selectivities_of_datasets_v_and_vi() -> None:
    expected = [1e-05, 1e-05, 1e-05, 0.0001, 0.0001, 0.0001, 100.0, 10.0, 1.0, 1e-9]
    assert selectivities("VI") == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("dataset", DATASETS)
def test_sizes_scale_and_streams_end_together(dataset: str) -> None:
    tables = generate_dataset(dataset, scale=0.01, seed=2)
    assert [table.num_rows for table in tables.values()] == [stream.rows // 100 for stream in DATASETS[dataset]]
    for table in tables.values():
        assert table.schema == pa.schema({"ts": pa.timestamp("us"), "id": pa.int64(), "key": pa.int64()})
        times_s = (table.column("ts").cast(pa.int64()).to_numpy() - MIDNIGHT_US) / SECOND_US
        assert np.all(np.diff(times_s) >= 0)
        assert 0 <= times_s[0] < times_s[-1] < DURATION_S


def share_in_first_half(dataset: str, stream: str) -> float:
    times_us = generate_dataset(dataset, scale=0.01, seed=3)[stream].column("ts").cast(pa.int64()).to_numpy()
    return float(np.mean(times_us < MIDNIGHT_US + DURATION_S / 2 * SECOND_US))


def test_dr_19_arrivals_of_the_third_stream() -> None:
    measured = {dataset: round(share_in_first_half(dataset, "S3"), 2) for dataset in DATASETS}
    assert measured == {"I": 0.5, "II": 0.5, "III": 0.75, "IV": 0.2, "V": 0.8, "VI": 0.2}


def test_dr_19_steps_run_between_one_in_5_and_one_in_15() -> None:
    tables = generate_dataset("II", scale=0.01, seed=3)
    for stream, quarters in (("S3", [500, 1500, 500, 1500]), ("S2", [1500, 500, 1500, 500])):
        gaps_us = np.diff(tables[stream].column("ts").cast(pa.int64()).to_numpy())
        middles = [float(np.median(part)) for part in np.array_split(gaps_us, 4)]
        assert middles == pytest.approx(quarters, abs=1)


def test_the_key_does_not_depend_on_the_time() -> None:
    keys = generate_dataset("VI", scale=0.01, seed=4)["S3"].column("key").to_numpy()
    shared = keys < 10
    assert np.sum(shared) == 10 * 100
    assert abs(int(np.sum(shared[:5000])) - 500) < 100


@pytest.mark.parametrize(
    ("dataset", "scale", "shown"), [("VII", 1, "no dataset 'VII'"), ("I", 0, "leaves 0 shared keys")]
)
def test_unknown_datasets_and_scales_are_refused(dataset: str, scale: float, shown: str) -> None:
    with pytest.raises(UsageError, match=shown):
        generate_dataset(dataset, scale, seed=0)
