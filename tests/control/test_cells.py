"""Cells of sampled rows: their squares are those of a slow loop, however tasks shared the results out."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest

from windrow.control.cells import Cells, Floats, powers, summed, together
from windrow.control.sample import Weights
from windrow.plan.shedding import Portion, Shedding, sampled

COLUMNS, LINES = 3, 4


def weights_of(portions: int, throttle: float = 0.4) -> Weights:
    rest = tuple(Portion(0.8 / portions, (((0, 10 * (number + 1)),),)) for number in range(portions))
    found = Weights.of(Shedding(throttle, portions=(("a", (sampled(0.2, 1), *rest)),)), "a")
    assert found is not None
    return found


def results(portions: int, seed: int = 5, count: int = 300) -> Cells:
    """A cell a result, not yet added up."""
    random = np.random.default_rng(seed)
    lines, rows, strata = (random.integers(0, most, count) for most in (LINES, 40, 3))
    values = random.normal(1, 1, (count, COLUMNS))
    held = random.integers(0, 2, (portions, count))
    return Cells(lines, rows, strata, np.concatenate([values, *(part[:, None] * values for part in held)], axis=1))


def naive(cells: Cells, weights: Weights, gamma: float) -> Floats:
    """The covariances, result by result, as `windrow.control.sample` has the variance."""
    z, f, h = weights.throttle, weights.share, weights.rest
    by_row: dict[tuple[int, int], list[Any]] = defaultdict(list)
    for k in range(len(cells)):
        parts = cells.sums[k].reshape(-1, COLUMNS)
        by_row[int(cells.lines[k]), int(cells.rows[k])].append(np.array([cells.strata[k], *parts], dtype=object))
    total = np.zeros((LINES, COLUMNS, COLUMNS))
    for (line, _), found in by_row.items():
        u = sum(each[1] for each in found) / z
        v = [sum(each[2 + p] for each in found) for p in range(len(weights.shares))]
        mean = sum(s * part for s, part in zip(weights.shares, v, strict=True))
        total[line] += h / f**2 * np.outer(u - gamma * mean, u - gamma * mean)
        if len(v) > 1:
            spread = sum(s * np.outer(part, part) for s, part in zip(weights.shares, v, strict=True))
            total[line] += gamma**2 * h / f * (spread - np.outer(mean, mean))
        for stratum in {each[0] for each in found}:
            own = [each for each in found if each[0] == stratum]
            u = sum(each[1] for each in own) / z
            v = [sum(each[2 + p] for each in own) for p in range(len(weights.shares))]
            less = sum(h * s * np.outer(part, part) for s, part in zip(weights.shares, v, strict=True))
            total[line] += (1 - z) / f * (np.outer(u, u) - gamma**2 * less)
    return total.reshape(LINES, -1)


def variance(squares: dict[str, Floats], gamma: float) -> Floats:
    uv = squares["uv"].reshape(LINES, COLUMNS, COLUMNS)
    crossed = (uv + uv.transpose(0, 2, 1)).reshape(LINES, -1)
    return squares["uu"] - gamma * crossed + gamma**2 * squares["vv"]


@pytest.mark.parametrize("gamma", [1.0, 1.7])
@pytest.mark.parametrize("portions", [1, 2])
def test_squares_are_those_of_a_slow_loop(portions: int, gamma: float) -> None:
    weights, cells = weights_of(portions), results(portions)
    squares = together([cells]).squares(weights, COLUMNS, LINES)
    np.testing.assert_allclose(variance(squares, gamma), naive(cells, weights, gamma), rtol=1e-9, atol=1e-9)
    ones = summed(cells.lines * 40 + cells.rows, cells.sums[:, :1] / weights.throttle, LINES * 40)
    np.testing.assert_allclose(squares["rows"], (ones.reshape(LINES, 40) ** 2).sum(axis=1, keepdims=True))


def test_powers_are_all_products() -> None:
    row = np.array([[2.0, 3.0, 5.0, 7.0, 11.0, 13.0]])  # u of three columns, v of three
    (found,) = powers(row, 3, 2)
    assert found.tolist() == [a * b for a, b in combinations_with_replacement((3.0, 5.0, 11.0, 13.0), 2)]


def test_it_does_not_matter_who_found_what() -> None:
    weights, cells = weights_of(2), results(2)
    order = np.random.default_rng(1).permutation(len(cells))
    tasks = [
        together([Cells(cells.lines[own], cells.rows[own], cells.strata[own], cells.sums[own])])
        for own in np.array_split(order, 5)
    ]
    whole, parts = together([cells]), together(tasks)
    assert len(whole) == len(parts) < len(cells)
    others = parts.squares(weights, COLUMNS, LINES)
    for name, numbers in whole.squares(weights, COLUMNS, LINES).items():
        np.testing.assert_allclose(others[name], numbers)


def test_nothing_sampled_has_no_squares() -> None:
    none = np.zeros(0, np.int64)
    nothing = together([Cells(none, none, none, np.zeros((0, 2 * COLUMNS)))])
    assert len(nothing) == 0
    assert not any(numbers.any() for numbers in nothing.squares(weights_of(1), COLUMNS, LINES).values())


def test_lines_are_renumbered() -> None:
    cells = together([results(1)])
    moved = cells.at(np.array([7, 6, 5, 4]))
    assert moved.lines.tolist() == [7 - line for line in cells.lines.tolist()]
