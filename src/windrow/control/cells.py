"""Cells: what sampled rows' results add up to, row by row and stratum by stratum, and the squares of it.

A row is sampled with all its results, and each of its strata again, so the variance of a weighed sum is made of the
squares of sums by row, and by row and stratum (`windrow.control.sample` has the formula; here the share is as planned,
and γ is left open). Several tasks may find results of one row: sums add up, squares do not. So tasks tell cells, and
the squares are taken when a batch is complete.

Rows are hashed into buckets, each with a random sign. That bounds how many cells there are, and squares of what shares
a bucket are right on average; with fewer sampled rows than buckets they are nearly the rows' own.

>>> one = Cells(*(np.array([each]) for each in (0, 5, 2)), np.array([[1.0, 0.5]]))
>>> both = together([one, one])
>>> len(both), both.sums.tolist()
(1, [[2.0, 1.0]])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from windrow.control.sample import Weights

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
BUCKETS = 1 << 12
POWERS = (("second", 2), ("fourth", 4))
"""Sums over rows of powers, by which it is known how many rows really count; signs do not matter to even ones."""


@dataclass(frozen=True, slots=True)
class Cells:
    """Of each cell the line it belongs to, the bucket of its rows, its stratum, and sums over its results: of the
    columns, then for each portion of other rows of the columns times what that portion would find (v).
    """

    lines: Numbers
    rows: Numbers
    strata: Numbers
    sums: Floats

    def __len__(self) -> int:
        return len(self.lines)

    def at(self, places: Numbers) -> Cells:
        """The same with lines by other numbers: line k becomes `places[k]`."""
        return replace(self, lines=places[self.lines])

    def squares(self, weights: Weights, columns: int, count: int) -> dict[str, Floats]:
        """For each of `count` lines what `windrow.control.sums` knows when a batch is complete, by its names there."""
        parts = self.sums.reshape(len(self), self.sums.shape[1] // columns, columns)
        plain, held = parts[:, 0], np.moveaxis(parts[:, 1:], 1, 0)
        share, rest, throttle = weights.share, weights.rest, weights.throttle
        shares = np.array(weights.shares)
        mean = np.tensordot(shares, held, axes=1) if len(held) else np.zeros_like(plain)
        rows, cells = (self.lines, self.rows), (self.lines, self.rows, self.strata)
        full = plain / throttle
        by_row, both = _by(rows, np.concatenate([full, mean], axis=1))
        u, v = both[:, :columns], both[:, columns:]
        by_part = [(part, _by(rows, own)[1], *_by(cells, own)) for part, own in zip(shares, held, strict=True)]
        by_cell, thin = _by(cells, full)
        uu = rest / share**2 * _products(by_row, u, u, count) + (1 - throttle) / share * _products(
            by_cell, thin, thin, count
        )
        vv = rest / share**2 * _products(by_row, v, v, count)
        if len(shares) > 1:
            vv -= rest / share * _products(by_row, v, v, count)
        for part, own, lines, strata in by_part:
            vv -= (1 - throttle) / share * rest * part * _products(lines, strata, strata, count)
            if len(shares) > 1:
                vv += rest / share * part * _products(by_row, own, own, count)
        uv = rest / share**2 * _products(by_row, u, v, count)
        scaled = np.sqrt(rest) / share * both
        return {
            "rows": summed(by_row, u[:, :1] ** 2, count),
            "uu": uu,
            "uv": uv,
            "vv": vv,
            **{name: summed(by_row, powers(scaled, columns, power), count) for name, power in POWERS},
        }


def pairs(columns: int) -> range:
    """The columns that say whether an argument is there; its value is in the next one."""
    return range(1, columns, 2)


def terms(power: int) -> tuple[tuple[int, ...], ...]:
    """The products of so many of the four numbers that a row has for an argument: u and v of its two columns."""
    return tuple(combinations_with_replacement(range(4), power))


def powers(both: Floats, columns: int, power: int) -> Floats:
    """For each row of u and v of all columns, argument by argument, those products."""
    found = [
        np.prod([both[:, (there, there + 1, columns + there, columns + there + 1)[each]] for each in term], axis=0)
        for there in pairs(columns)
        for term in terms(power)
    ]
    return np.stack(found, axis=1) if found else np.zeros((len(both), 0))


def together(parts: Sequence[Cells]) -> Cells:
    """All cells of some tasks or blocks, those of one bucket and stratum added up."""
    lines, rows, strata, sums = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("lines", "rows", "strata", "sums")
    )
    if not len(lines):
        return Cells(lines, rows, strata, sums)
    order, starts = _runs((lines, rows, strata))
    firsts = order[starts]
    return Cells(lines[firsts], rows[firsts], strata[firsts], np.add.reduceat(sums[order], starts, axis=0))


def summed(places: Numbers, values: Floats, count: int) -> Floats:
    """Sums of lines of values, place by place."""
    columns = [np.bincount(places, values[:, number], minlength=count) for number in range(values.shape[1])]
    return np.stack(columns, axis=1) if columns else np.zeros((count, 0))


def _by(by: Sequence[Numbers], values: Floats) -> tuple[Numbers, Floats]:
    """Sums of lines of values that agree in some numbers; the first of these, and the sums."""
    if not len(values):
        return by[0], values
    order, starts = _runs(by)
    return by[0][order[starts]], np.add.reduceat(values[order], starts, axis=0)


def _products(lines: Numbers, one: Floats, two: Floats, count: int) -> Floats:
    """For each line the sum of its products of two columns, as a flat matrix."""
    return summed(lines, np.einsum("ni,nj->nij", one, two).reshape(len(one), one.shape[1] * two.shape[1]), count)


def _runs(by: Sequence[Numbers]) -> tuple[Numbers, Numbers]:
    """An order in which what agrees in some numbers lies together, and where each run of it begins."""
    order = np.lexsort(tuple(reversed(by)))
    changes = np.zeros(len(order), np.bool_)
    changes[0] = True
    for numbers in by:
        held = numbers[order]
        changes[1:] |= held[1:] != held[:-1]
    return order, np.flatnonzero(changes)
