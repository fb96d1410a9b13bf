"""Input buffers: of too many rows the oldest go and are counted; without a limit nothing ever goes."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow
from windrow.errors import UsageError
from windrow.run.buffer import Buffer


@given(st.one_of(st.none(), st.integers(1, 12)), st.lists(st.one_of(st.integers(0, 6), st.just("take")), max_size=20))
def test_what_a_list_would_hold(most: int | None, actions: list[int | str]) -> None:
    buffer, held, dropped, number = Buffer(most), list[int](), 0, 0
    for action in actions:
        if action == "take":
            assert [x for table in buffer.take() for x in table["x"].to_pylist()] == held
            held = []
        else:
            rows = list(range(number, number + int(action)))
            number += len(rows)
            buffer.push(pa.table({"x": pa.array(rows, pa.int64())}))
            held += rows
            if most is not None and len(held) > most:
                dropped += len(held) - most
                held = held[-most:]
        assert (len(buffer), buffer.dropped) == (len(held), dropped)


@pytest.mark.parametrize("most", [0, -1])
def test_a_buffer_without_room_is_refused(most: int) -> None:
    with pytest.raises(UsageError, match=f"a buffer cannot hold {most} rows"):
        Buffer(most)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(("buffer_rows", "expected"), [(None, 5), (3, 3), (5, 5), (1, 1)])
def test_a_join_drops_the_oldest_of_what_waits_and_counts_it(buffer_rows: int | None, expected: int) -> None:
    rows = pa.table({"ts": pa.array(range(5), pa.timestamp("us")), "x": pa.array(range(5), pa.int64())})
    text = "SELECT a.x AS i, b.x AS j FROM s AS a, t AS b WHERE a.x = b.x WINDOW 1 SECOND"
    query = windrow.sql(text, streams={"s": rows, "t": rows})
    with windrow.local(query, buffer_rows=buffer_rows) as join:
        for first in range(5):
            join.push("a", rows.slice(first, 1))
        join.push("b", rows)
        assert sorted(join.step()["i"].to_pylist()) == list(range(5 - expected, 5))
        assert join.dropped == 2 * (5 - expected)
        join.push("a", rows.slice(0, 1))
        join.step()
        assert join.dropped == 2 * (5 - expected)
