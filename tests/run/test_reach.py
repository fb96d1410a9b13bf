"""Where rows may look: ranges of lag as a plain loop finds them; strata, looked into whole or not at all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow
from windrow.plan.order import plan_query
from windrow.plan.shedding import Portion, Shedding, sampled
from windrow.query.spec import UNBOUNDED, Stream, Window
from windrow.run.reach import Reach, hull, stratum_length

small = st.integers(-50, 50)


@given(st.lists(st.tuples(small, small, small), min_size=1, max_size=5), small, small, st.lists(small, min_size=1))
def test_a_reach_is_what_a_loop_would_look_at(
    rows: list[tuple[int, int, int]], low: int, high: int, clock: list[int]
) -> None:
    own = np.array([row[0] for row in rows])
    reach = Reach.of(np.array([row[1] for row in rows]), np.array([row[2] for row in rows]))
    held = np.array(sorted(clock))
    narrow = reach.within(own, low, high).up_to(own)
    for number, (now, first, last) in enumerate(rows):
        inside = [tick for tick in held.tolist() if first <= tick <= last and low <= now - tick < high and tick <= now]
        found = held[(held >= narrow.low[number]) & (held <= narrow.high[number])]
        assert found.tolist() == inside
    everything = [(held >= a) & (held <= b) for _, a, b in rows]
    assert not reach.excludes(held) or not np.any(everything)
    assert not reach.covers(held) or np.all(everything)


def test_extremes_do_not_run_over() -> None:
    own = np.array([-(2**63), 0, 2**63 - 1])
    reach = Reach.of(np.full(3, -(2**63)), np.full(3, 2**63 - 1)).within(own, -(2**62), 2**62)
    assert (reach.low <= reach.high).all()
    assert hull(((0, 5), (9, 12))) == (0, 12)


def test_lengths_of_strata() -> None:
    def length(window: Window, strata: int) -> int:
        return stratum_length(Stream("a", "a", (), "ts", window), strata)

    assert length(Window(span_us=3_200_000), 32) == 100_000
    assert length(Window(span_us=5), 32) == 1
    assert length(Window(rows=64), 32) == 2
    assert length(Window(span_us=UNBOUNDED), 32) == UNBOUNDED // 32


ROWS = 600
TABLES = {
    "s": pa.table({"ts": pa.array(np.arange(40) * 50_000 + 10_000_000, pa.timestamp("us")), "x": np.arange(40)}),
    "t": pa.table({"ts": pa.array(np.arange(ROWS) * 20_000, pa.timestamp("us")), "x": np.arange(ROWS)}),
}


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(("window", "length"), [("WINDOW 8 SECONDS", 250_000), ("WINDOW a 9 DAYS, b ROWS 320", 10)])
@pytest.mark.parametrize("throttle", [0.1, 0.5, 0.9])
def test_strata_are_looked_into_whole_or_not_at_all(window: str, length: int, throttle: float) -> None:
    """A stored row's stratum is the piece of its clock that it lies in; each driver row draws for each stratum."""
    text = f"SELECT a.x AS i, b.x AS j FROM s AS a, t AS b WHERE a.x <= b.x + 1000 {window}"
    query = windrow.sql(text, streams=TABLES)
    everything = Shedding(throttle, seed=5, portions=(("a", (sampled(1.0, 1),)), ("b", (Portion(1.0, ((),)),))))

    def pairs(shedding: Shedding) -> set[tuple[int, int]]:
        with windrow.local(query, plan=replace(plan_query(query.spec()), shedding=shedding)) as join:
            for name, table in TABLES.items():
                join.push(name, table)
            found = pa.concat_tables([join.step(), join.finish()])
            return set(zip(found["i"].to_pylist(), found["j"].to_pylist(), strict=True))

    full = pairs(replace(everything, throttle=1.0))
    drawn = pairs(everything)
    assert drawn < full
    assert len(drawn) / len(full) == pytest.approx(throttle, abs=0.06)
    ticks = 20_000 if "SECONDS" in window else 1
    first = 0 if "SECONDS" in window else 1  # row clocks count from 1
    of_stratum: dict[tuple[int, int], set[int]] = {}
    for i, j in full:
        of_stratum.setdefault((i, (j * ticks + first) // length), set()).add(j)
    for (i, _), members in of_stratum.items():
        assert len({(i, j) in drawn for j in members}) == 1
    looks = {key: (key[0], next(iter(members))) in drawn for key, members in of_stratum.items()}
    strata = {stratum for _, stratum in looks}
    assert any(len({looks[i, stratum] for i in range(40) if (i, stratum) in looks}) == 2 for stratum in strata)
