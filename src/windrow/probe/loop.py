"""Loops that predicates are put into: templates that `windrow.probe.compile` fills in.

`DECIDE` stands for the statements of a predicate, which `continue` with the next pair unless all conjuncts are true;
`HOIST` for what depends on the probe row alone. The functions are read as text, never called.

`scan_pairs` is `loop_pairs` in two passes over a chunk of rows: it first only counts the matches, which the compiler
turns into vector instructions because nothing is written, and appends in a second pass where there were any. Chunks
after a rich one skip the count.
"""

from __future__ import annotations

from typing import Any

HOIST = DECIDE = None
i = j = 0
uint64 = int


def filter_pairs(inputs: Any, probes: Any, rows: Any, count: Any, faults: Any) -> Any:
    """Keep, in place, the pairs for which the predicate is true; returns how many."""
    kept = 0
    for k in range(count):
        i = probes[k]
        j = rows[k]
        DECIDE
        probes[kept] = i
        rows[kept] = j
        kept += 1
    return kept


def loop_pairs(inputs: Any, row_low: Any, row_high: Any, state: Any, probes: Any, rows: Any, faults: Any) -> Any:
    """Try probe row i with stored rows row_low[i] up to row_high[i]; stops when the output is full, `state` says where
    to go on.
    """
    count = 0
    first = state[1]
    for i in range(state[0], len(row_low)):
        HOIST
        for j in range(max(first, row_low[i]), row_high[i]):
            DECIDE
            probes[count] = i
            rows[count] = j
            count += 1
            if count == len(probes):
                state[0] = i
                state[1] = j + 1
                return count
        first = 0
    state[0] = len(row_low)
    return count


def scan_pairs(inputs: Any, row_low: Any, row_high: Any, state: Any, probes: Any, rows: Any, faults: Any) -> Any:
    """As `loop_pairs`, for predicates that compute with numbers only: counts a chunk's matches before writing them."""
    count = 0
    first = state[1]
    rich = False
    for i in range(state[0], len(row_low)):
        HOIST
        start = max(first, row_low[i])
        while start < row_high[i]:
            stop = min(start + 256, row_high[i])
            hits = 0
            if not rich:
                for j in range(uint64(start), uint64(stop)):
                    DECIDE
                    hits += 1
            if rich or hits > 0:
                before = count
                for j in range(start, stop):
                    DECIDE
                    probes[count] = i
                    rows[count] = j
                    count += 1
                    if count == len(probes):
                        state[0] = i
                        state[1] = j + 1
                        return count
                rich = count - before > 16
            start = stop
        first = 0
    state[0] = len(row_low)
    return count


def evaluate_rows(inputs: Any, values: Any, valid: Any, faults: Any) -> Any:
    """Compute an expression for every row."""
    for i in range(len(values)):
        DECIDE
