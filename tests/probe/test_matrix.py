"""Matrix products: what matches is proposed, what is certain matches, and little is uncertain."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.probe import naive
from windrow.errors import UsageError
from windrow.probe import matrix
from windrow.probe.matrix import Function, propose, vectors

FUNCTIONS: dict[Function, Any] = {"cosine": naive.cosine, "dot": naive.dot, "l2": naive.l2}
Matrix = NDArray[Any]


def values_of(function: Function, stored: Matrix, probe: Matrix) -> NDArray[np.float64]:
    """The exact values, probe by stored."""
    rows, lines = stored.astype(np.float64).tolist(), probe.astype(np.float64).tolist()
    return np.array([[FUNCTIONS[function](line, row) for row in rows] for line in lines]).reshape(len(lines), len(rows))


def proposals(
    function: Function,
    stored: Matrix,
    probe: Matrix,
    threshold: Any,
    at_least: bool,
    capacity: int = 1 << 18,
    **rows: Any,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which pairs were proposed and which of them as certain; a pair proposed twice fails."""
    proposed, sure = np.zeros((2, len(probe), len(stored)), np.bool_)
    chunks = propose(function, vectors(stored), vectors(probe), threshold, at_least, capacity=capacity, **rows)
    for pairs, certain in chunks:
        assert 1 <= len(pairs.probe) == len(pairs.row) == len(certain) <= capacity
        assert not proposed[pairs.probe, pairs.row].any()
        assert len({*zip(pairs.probe.tolist(), pairs.row.tolist(), strict=True)}) == len(certain)
        proposed[pairs.probe, pairs.row] = True
        sure[pairs.probe, pairs.row] = certain
    return proposed, sure


def check(
    function: Function, stored: Matrix, probe: Matrix, threshold: float, at_least: bool, capacity: int = 7
) -> None:
    """All that match are proposed; all that are certain match, also strictly."""
    with np.errstate(all="ignore"):
        values = values_of(function, stored, probe)
    proposed, sure = proposals(function, stored, probe, threshold, at_least, capacity)
    matching = values >= threshold if at_least else values <= threshold
    strictly = values > threshold if at_least else values < threshold
    assert not (matching & ~proposed).any()
    assert not (sure & ~strictly).any()


elements = st.sampled_from(
    [0.0, -0.0, 1.0, -1.0, 0.1, 0.2, 0.3, 3.0, 1e-30, 1e-12, 1e12, 1e25, math.inf, -math.inf, math.nan]
)
plain_elements = st.sampled_from([0.0, 1.0, -1.0, 0.1, 0.2, 0.3, 0.7, 3.0, -2.0])


@st.composite
def sides(draw: st.DrawFn) -> tuple[Matrix, Matrix]:
    """Stored and probing vectors of one type and width."""
    width = draw(st.integers(1, 5))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    element = draw(st.sampled_from([elements, plain_elements]))
    line = st.lists(element, min_size=width, max_size=width)
    stored, probe = (draw(st.lists(line, max_size=9)) for _ in range(2))
    return np.array(stored, dtype).reshape(-1, width), np.array(probe, dtype).reshape(-1, width)


@given(sides(), st.sampled_from([*FUNCTIONS]), st.booleans(), st.sampled_from([1, 2, 7, 1000]), st.data())
def test_small_vectors_of_every_kind(
    vectors_of: tuple[Matrix, Matrix], function: Function, at_least: bool, capacity: int, data: st.DataObject
) -> None:
    stored, probe = vectors_of
    with np.errstate(all="ignore"):
        seen = values_of(function, stored, probe).ravel().tolist()
    threshold = data.draw(st.sampled_from([*seen, 0.0, -0.5, 0.5, 1.0, 1e300, -1e300, math.inf, -math.inf, math.nan]))
    check(function, stored, probe, threshold, at_least, capacity)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("at_least", [True, False])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_thresholds_equal_to_values(function: Function, at_least: bool, dtype: type[Any]) -> None:
    chance = np.random.default_rng(11)
    stored, probe = (chance.normal(size=(size, 33)).astype(dtype) for size in (120, 40))
    values = values_of(function, stored, probe)
    for share in (0.01, 0.5, 0.99):
        threshold = float(np.quantile(values, share, method="nearest"))
        check(function, stored, probe, threshold, at_least, 1000)
        proposed, sure = proposals(function, stored, probe, threshold, at_least)
        unsure = np.abs(values[proposed & ~sure] - threshold)
        assert 1 <= len(unsure) <= 8
        assert unsure.max() < (1e-2 if dtype is np.float32 else 1e-10)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_result_does_not_depend_on_blocks(function: Function, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(12)
    stored, probe = (chance.normal(size=(size, 16)).astype(np.float32) for size in (900, 700))
    threshold = 2.5 if function == "l2" else 0.8
    kinds = []
    for stored_block, block_bytes in ((384, 1 << 20), (100, 100 * 4 * 33), (1, 4)):
        monkeypatch.setattr(matrix, "_STORED_BLOCK", stored_block)
        monkeypatch.setattr(matrix, "_BLOCK_BYTES", block_bytes)
        some = probe if stored_block > 1 else probe[:20]
        kinds.append(proposals(function, stored, some, threshold, function != "l2")[1])
    assert kinds[0].any()
    assert (kinds[0] == kinds[1]).all()
    assert (kinds[0][:20] == kinds[2]).all()


def test_distance_far_from_the_origin() -> None:
    chance = np.random.default_rng(13)
    stored, probe = ((1000 + chance.normal(size=(size, 24))).astype(np.float32) for size in (60, 30))
    check("l2", stored, probe, 5.0, False)
    check("l2", stored, probe, 5.0, True)


def test_row_ranges_and_thresholds_of_each_probe() -> None:
    chance = np.random.default_rng(14)
    stored, probe = (chance.normal(size=(size, 4)) for size in (500, 50))
    low, high = chance.integers(0, 500, (2, 50)).astype(np.int32)
    thresholds = chance.uniform(-1, 1, 50)
    proposed, _ = proposals("cosine", stored, probe, thresholds, True, 7, row_low=low, row_high=high)
    rows = np.arange(500)
    inside = (low[:, None] <= rows) & (rows < high[:, None])
    expected = (values_of("cosine", stored, probe) >= thresholds[:, None]) & inside
    assert expected.any()
    assert (proposed == expected).all()


def test_zero_vectors_and_nan_have_no_cosine() -> None:
    stored = np.array([[0.0, 0.0], [np.nan, 1.0], [1.0, 0.0]])
    proposed, sure = proposals("cosine", stored, stored, -1.0, True)
    assert proposed.tolist() == sure.tolist() == [[False] * 3, [False] * 3, [False, False, True]]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("at_least", [True, False])
def test_rows_that_are_null_never_match(function: Function, at_least: bool) -> None:
    stored = vectors(np.ones((3, 2)), np.array([True, False, True]))
    probe = vectors(np.ones((2, 2)), np.array([False, True]))
    threshold = -9.0 if at_least else 9.0
    chunks = [pairs for pairs, _ in propose(function, stored, probe, threshold, at_least)]
    assert naive.collected(chunks, 9) == {(1, 0): 1, (1, 2): 1}


def test_vectors_beyond_the_error_bounds_are_not_certain() -> None:
    stored = np.array([[1e-20, 0.0], [1e20, 0.0], [1.0, 0.0]], np.float32)
    proposed, sure = proposals("cosine", stored, stored[2:], 0.5, True)
    assert proposed.tolist() == [[True, True, True]]
    assert sure.tolist() == [[False, False, True]]


def test_unfit_input_is_refused() -> None:
    single, double = vectors(np.ones((1, 2), np.float32)), vectors(np.ones((1, 2)))
    with pytest.raises(UsageError, match="float32 vectors of 2 dimensions searched by float64"):
        propose("dot", single, double, 0.0)
    with pytest.raises(UsageError, match="cannot hold 0"):
        propose("dot", double, double, 0.0, capacity=0)
    with pytest.raises(UsageError, match="1-dimensional int64"):
        vectors(np.ones(3, np.int64))
