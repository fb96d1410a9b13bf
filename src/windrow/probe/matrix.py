"""Similarity of vectors by blocked matrix products: cosine, dot product and distance against a threshold.

                    stored block              bound of a pair = base(probe) + slope(probe) · weight(stored)
                 ┌───────────────┐
     probe block │ dot products  │──► scan:   below the outer bound    left out
                 └───────────────┘            above the inner bound    proposed, certain
                   stays in cache             between                  proposed, to be evaluated again

A matrix product rounds differently with every block size and in 32 bits coarsely, but never by more than γ_n·|a|·|b|,
where γ_n = n·u / (1 − n·u), n is the number of dimensions and u the unit roundoff. The outer and the inner bound lie
that far (and the roundings of everything around it) to both sides of the threshold: what is left out cannot match
when evaluated in order in 64 bits, what is certain must match, for `>=` and for `>` alike. Thresholds are turned into
bounds on dot products:

    cosine ≥ t    a·b ≥ t·|a|·|b|              dot ≥ t    a·b ≥ t              l2 ≤ t    a·b ≥ (|a|² + |b|² − t²) / 2

The other directions are the same with −a. Pairs whose value is NULL for sure (an element is NaN, the cosine with a
zero vector) are left out; vectors so long or short that the bounds might not hold are proposed as not certain.

>>> import numpy as np
>>> stored = vectors(np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 2.0]]))
>>> probe = vectors(np.array([[3.0, 0.0]]))
>>> [(pairs.row.tolist(), certain.tolist()) for pairs, certain in propose("cosine", stored, probe, 0.6)]
[([0, 1], [True, False])]
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from windrow.errors import UsageError
from windrow.probe.blas import one_thread
from windrow.probe.jit import compiled, frozen
from windrow.probe.pairs import CAPACITY, Pairs, Rows, kept, row_bounds

Function = Literal["cosine", "dot", "l2"]
Floats = NDArray[np.float64]
Matrix = NDArray[Any]
Truths = NDArray[np.bool_]

_BLOCK_BYTES = 512 * 384 * 4
_STORED_BLOCK = 384
_CHUNK = 64
_NEVER = np.inf
_UNKNOWN = np.nan


class Vectors(NamedTuple):
    """One vector a row, and the sum of squares of each in 64 bits."""

    values: Matrix
    squares: Floats


class Bounds(NamedTuple):
    """What a dot product is compared with: base + slope · weight. Infinity says never, NaN says evaluate again."""

    outer_base: Matrix
    outer_slope: Matrix
    inner_base: Floats
    inner_slope: Floats
    weight: Matrix


_Output = tuple[Rows, Rows, Truths]
_Held = tuple[Matrix, Matrix, Floats, Floats, Matrix]


class _Margin(NamedTuple):
    """`share`: error of a product as a share of |a|·|b|; it does not cover squares outside `smallest` … `largest`."""

    share: float
    unit: float
    smallest: float
    largest: float


def vectors(values: Matrix, valid: Truths | None = None) -> Vectors:
    """The vectors with their sums of squares, added up in index order; rows that are not `valid` (NULL) never match.

    Floats of 32 and of 64 bits keep their type.
    """
    if values.ndim != 2 or values.dtype.kind != "f":
        raise UsageError(f"vectors as a {values.ndim}-dimensional {values.dtype} array", hint="give a matrix of floats")
    matrix = frozen(values, np.float32) if values.dtype == np.float32 else frozen(values, np.float64)
    squares = np.empty(len(matrix), np.float64)
    _fill_squares(matrix, squares)
    if valid is not None:
        squares[~valid] = np.nan
    return Vectors(matrix, frozen(squares, np.float64))


def propose(
    function: Function,
    stored: Vectors,
    probe: Vectors,
    threshold: ArrayLike,
    at_least: bool = True,
    row_low: Rows | None = None,
    row_high: Rows | None = None,
    capacity: int = CAPACITY,
) -> Iterator[tuple[Pairs, Truths]]:
    """All pairs whose similarity may reach the threshold of the probe row (or stay within it, if not `at_least`).

    With each chunk comes an array that tells which pairs are certain to match; the others have to be evaluated.
    """
    if stored.values.dtype != probe.values.dtype or stored.values.shape[1] != probe.values.shape[1]:
        raise UsageError(
            f"{stored.values.dtype} vectors of {stored.values.shape[1]} dimensions searched by {probe.values.dtype} "
            f"vectors of {probe.values.shape[1]}",
            hint="give both sides the same type and dimensions",
        )
    if capacity < 1:
        raise UsageError(f"a chunk cannot hold {capacity} pairs", hint="give a capacity of at least 1")
    thresholds = np.broadcast_to(np.asarray(threshold, np.float64), probe.squares.shape)
    # A dot product has to be large where a similarity has to be large or a distance small; otherwise −a is multiplied.
    sign = 1 if at_least is not (function == "l2") else -1
    bounds = bounds_of(function, stored, probe, thresholds, sign)
    return _scan_blocks(stored, probe, sign, bounds, row_bounds(row_low, row_high, len(probe.squares)), capacity)


def bounds_of(function: Function, stored: Vectors, probe: Vectors, thresholds: Floats, sign: int) -> Bounds:
    """The outer and inner bounds on dot products (of −a, where sign is −1) for each probe and each stored vector."""
    kind = stored.values.dtype.type
    margin = _margin(stored.values)
    with np.errstate(over="ignore", invalid="ignore"):
        if function == "cosine":
            outer, inner, weight = _cosine_bounds(stored.squares, probe.squares, sign * thresholds, margin)
        elif function == "dot":
            outer, inner, weight = _dot_bounds(stored.squares, probe.squares, sign * thresholds, margin)
        else:
            outer, inner, weight = _distance_bounds(stored.squares, probe.squares, thresholds, sign, margin)
        floor = margin.smallest if function == "cosine" else 0.0
        null = 0.0 if function == "cosine" else None
        # A bound that is only large must not read as "never": vectors with infinite elements may still reach it.
        limit = float(np.finfo(kind).max)
        base = _exceptions(np.clip(outer[0], -limit, limit), probe.squares, floor, margin.largest, null)
        base[np.isnan(thresholds)] = _NEVER
        inner_base = np.where(np.isnan(base), _UNKNOWN, inner[0])
        weight = _exceptions(weight, stored.squares, floor, margin.largest, null)
        return Bounds(
            frozen(base, kind),
            frozen(outer[1], kind),
            frozen(inner_base, np.float64),
            frozen(inner[1], np.float64),
            frozen(weight, kind),
        )


def _margin(values: Matrix) -> _Margin:
    single = values.dtype == np.float32
    unit = 2.0**-24 if single else 2.0**-53
    terms = (values.shape[1] + 24) * unit
    share = 1.01 * (terms / (1.0 - terms) + (2 * values.shape[1] + 64) * 2.0**-53)
    return _Margin(share, unit, *((1e-24, 1e30) if single else (1e-140, 1e140)))


def _exceptions(bound: Floats, squares: Floats, floor: float, largest: float, null: float | None) -> Floats:
    """Vectors whose value is NULL never match; vectors out of the range of the error bounds are always evaluated."""
    bound = np.where((squares < floor) | (squares > largest), _UNKNOWN, bound)
    return np.where(np.isnan(squares) | (squares == null), _NEVER, bound)


_Lines = tuple[tuple[Floats, Floats], tuple[Floats, Floats], Floats]


def _cosine_bounds(stored: Floats, probe: Floats, thresholds: Floats, margin: _Margin) -> _Lines:
    none, length = np.zeros(len(probe)), np.sqrt(probe)
    slack = margin.share * (1.0 + np.where(np.isinf(thresholds), 0.0, np.abs(thresholds)))
    return (none, (thresholds - slack) * length), (none, (thresholds + slack) * length), np.sqrt(stored)


def _dot_bounds(stored: Floats, probe: Floats, thresholds: Floats, margin: _Margin) -> _Lines:
    slack = 16 * margin.unit * np.where(np.isinf(thresholds), 0.0, np.abs(thresholds))
    error = margin.share * np.sqrt(np.maximum(probe, margin.smallest))
    weight = np.sqrt(np.maximum(stored, margin.smallest))
    return (thresholds - slack, -error), (thresholds + slack, error), weight


def _distance_bounds(stored: Floats, probe: Floats, thresholds: Floats, sign: int, margin: _Margin) -> _Lines:
    """Half of sign · (|a|² + |b|² − t²), each part moved outward, or inward, by twice the share of its own square."""
    share = 2 * margin.share
    squared = np.where(thresholds < 0, -np.inf, thresholds * thresholds)
    slack = np.where(np.isinf(squared), 0.0, 16 * margin.unit * squared)
    error = share * np.maximum(probe, margin.smallest)
    weight = (sign * stored - share * np.maximum(stored, margin.smallest)) / 2
    outer = (sign * (probe - squared) - error - slack) / 2
    inner = (sign * (probe - squared) + error + slack) / 2 + 3 * share * margin.smallest
    ratio = (1 + share) / (1 - share)
    slope = ratio if sign > 0 else 1 / ratio
    one = np.ones(len(probe))
    return (outer, one), (inner, slope * one), weight


def _scan_blocks(
    stored: Vectors, probe: Vectors, sign: int, bounds: Bounds, rows: tuple[Rows, Rows], capacity: int
) -> Iterator[tuple[Pairs, Truths]]:
    kind = stored.values.dtype
    probe_block = _BLOCK_BYTES // (_STORED_BLOCK * kind.itemsize)
    buffer = np.empty(probe_block * _STORED_BLOCK, kind)
    state = np.zeros(3, np.int64)
    output = _output(capacity)
    held = (bounds.outer_base, bounds.outer_slope, bounds.inner_base, bounds.inner_slope, bounds.weight)
    for row in range(0, len(stored.squares), _STORED_BLOCK):
        row_stop = min(row + _STORED_BLOCK, len(stored.squares))
        columns = stored.values[row:row_stop].T
        for at in range(0, len(probe.squares), probe_block):
            stop = min(at + probe_block, len(probe.squares))
            if len(rows[0]) and (rows[0][at:stop].min() >= row_stop or rows[1][at:stop].max() <= row):
                continue
            lines = probe.values[at:stop] if sign > 0 else -probe.values[at:stop]
            product = buffer[: (stop - at) * (row_stop - row)]
            with one_thread(), np.errstate(all="ignore"):
                np.matmul(lines, columns, out=product.reshape(stop - at, row_stop - row))
            block = np.array([at, stop, row, row_stop], np.int64)
            state[:2] = 0
            while not _scan(product, block, held, *rows, state, output):
                yield _chunk(output, capacity)
                output = _output(capacity)
                state[2] = 0
    if state[2]:
        yield _chunk(output, int(state[2]))


def _output(capacity: int) -> _Output:
    return np.empty(capacity, np.int32), np.empty(capacity, np.int32), np.empty(capacity, np.bool_)


def _chunk(output: _Output, count: int) -> tuple[Pairs, Truths]:
    probe, row, certain = output
    return Pairs(kept(probe, count), kept(row, count)), kept(certain, count)


@compiled
def _fill_squares(values: Matrix, squares: Floats) -> None:
    for row in range(len(values)):
        total = 0.0
        for dimension in range(values.shape[1]):
            element = np.float64(values[row, dimension])
            total += element * element
        squares[row] = total


@compiled
def _candidates(products: Matrix, weights: Matrix, base: float, slope: float) -> np.int32:
    """How many products are not below their bound. Compared the way that counts NaN, and without a branch."""
    count = np.int32(0)
    for place in range(len(products)):
        count += np.int32(not products[place] < base + slope * weights[place])
    return count


@compiled
def _scan(
    product: Matrix,
    block: NDArray[np.int64],
    bounds: _Held,
    row_low: Rows,
    row_high: Rows,
    state: NDArray[np.int64],
    output: _Output,
) -> bool:
    """Collect pairs from a block until it ends (True) or the output is full; `state`: line, column, pairs written."""
    start, stop, row_start, row_stop = block
    outer_base, outer_slope, inner_base, inner_slope, weights = bounds
    probe_out, row_out, certain_out = output
    width, room = row_stop - row_start, len(probe_out)
    line, column, count = int(state[0]), int(state[1]), int(state[2])
    while line < stop - start:
        probe = start + line
        base, slope = outer_base[probe], outer_slope[probe]
        end = width
        if len(row_low) > 0:
            column = max(column, int(row_low[probe]) - row_start)
            end = min(width, int(row_high[probe]) - row_start)
        if base == np.inf:
            end = 0
        while column < end:
            chunk_stop = min(column + _CHUNK, end)
            products = product[line * width + column : line * width + chunk_stop]
            if _candidates(products, weights[row_start + column : row_start + chunk_stop], base, slope) == 0:
                column = chunk_stop
                continue
            for place in range(column, chunk_stop):
                value, weight = product[line * width + place], weights[row_start + place]
                if value < base + slope * weight or weight == np.inf:
                    continue
                if count == room:
                    state[0], state[1], state[2] = line, place, count
                    return False
                probe_out[count] = probe
                row_out[count] = row_start + place
                inner = inner_base[probe] + inner_slope[probe] * np.float64(weight)
                certain_out[count] = np.float64(value) > inner
                count += 1
            column = chunk_stop
        line, column = line + 1, 0
    state[2] = count
    return True
