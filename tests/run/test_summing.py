"""Aggregates over results: exactly what DuckDB says, and with intervals that hold it where something is left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import windrow
from windrow.plan.order import plan_query
from windrow.plan.shedding import Portion, Shedding, sampled
from windrow.query.builder import Join
from windrow.run.local import LocalJoin
from windrow.run.summing import Summing

pytestmark = pytest.mark.usefixtures("interpreted")
SPAN_S = 24
SELECT = "COUNT(*) AS n, SUM(a.v) AS s, COUNT(b.v) AS c, AVG(a.v * b.v) AS m, SUM(b.i) AS i"
Line = tuple[Any, ...]


def rows(seed: int, count: int = 300) -> pa.Table:
    random = np.random.default_rng(seed)
    times = np.sort(random.integers(0, SPAN_S * 1_000_000, count))
    return pa.table({
        "ts": pa.array(times, pa.timestamp("us")),
        "k": random.integers(0, 5, count),
        "g": pa.array([None if each == 3 else f"g{each}" for each in random.integers(0, 4, count)]),
        "v": pa.array([None if each > 1.5 else each for each in random.normal(2, 1, count)]),
        "i": pa.array(random.integers(1, 9, count), pa.int32()),
    })  # fmt: skip


TABLES = {"a": rows(1), "b": rows(2)}


def query(selected: str, rest: str, windows: str = "4 SECONDS") -> Join:
    text = f"SELECT {selected} FROM a, b WHERE a.k = b.k {rest} WINDOW {windows}"
    return windrow.sql(text, streams=TABLES)


def run(join: LocalJoin, cuts: int = 6) -> list[pa.Table]:
    """What each batch gave, and the end of the input."""
    return list(stepped(join, cuts))


def in_duckdb(grouped: str, every_us: int | None) -> list[Line]:
    con = duckdb.connect()
    for name, table in TABLES.items():
        con.register(name, table)
    start = f"make_timestamp(epoch_us(greatest(a.ts, b.ts)) // {every_us} * {every_us})" if every_us else ""
    by = ", ".join(column for column in (start, grouped) if column)
    near = "abs(epoch_us(a.ts) - epoch_us(b.ts)) <= 4000000"
    text = f"SELECT {by + ',' if by else ''} {SELECT} FROM a, b WHERE a.k = b.k AND {near}"
    return con.sql(f"{text} {'GROUP BY ' + by if by else ''}").fetchall()


def plain(tables: Sequence[pa.Table]) -> list[Line]:
    """Lines without their intervals, which have to be the values."""
    table = pa.concat_tables(tables)
    values = [name for name in table.schema.names if f"{name}_low" in table.schema.names]
    for name in values:
        assert table[name].equals(table[f"{name}_low"])
        assert table[name].equals(table[f"{name}_high"])
    kept = [name for name in table.schema.names if not name.endswith(("_low", "_high"))]
    return [tuple(line.values()) for line in table.select(kept).to_pylist()]


def rounded(lines: Sequence[Line]) -> list[Line]:
    """In an order of their own, with digits that do not depend on the order of sums."""
    digits = [tuple(round(float(v), 6) if isinstance(v, int | float) else v for v in line) for line in lines]
    return sorted(digits, key=str)


@pytest.mark.parametrize("every_us", [5_000_000, 700_000, 3_600_000_000, None])
@pytest.mark.parametrize("grouped", ["", "a.g", "b.k", "a.g, b.k"])
def test_exact_aggregates_are_those_of_duckdb(grouped: str, every_us: int | None) -> None:
    selected = f"{grouped}, {SELECT}" if grouped else SELECT
    rest = f"{'GROUP BY ' + grouped if grouped else ''} {f'EVERY {every_us} MICROSECONDS' if every_us else ''}"
    expected = rounded(in_duckdb(grouped, every_us))
    for cuts in (1, 6):
        found = run(windrow.local(query(selected, rest)), cuts)
        assert rounded(plain(found)) == expected
    assert len(expected) >= 1


def test_a_span_is_final_when_it_comes() -> None:
    join = windrow.local(query("COUNT(*) AS n", "LATENESS 1 SECONDS EVERY 2 SECONDS"))
    found = run(join, cuts=12)
    starts = [each["span_start"].cast(pa.int64()).to_pylist() for each in found]
    ordered = [start for batch in starts for start in batch]
    assert ordered == sorted(set(ordered))
    assert sum(map(bool, starts[:-1])) > 8
    for batch, of_batch in enumerate(starts[:-1], start=1):
        assert all(start + 2_000_000 <= (2 * batch - 1) * 1_000_000 for start in of_batch)
    assert join.report.results == sum(pa.concat_tables(found)["n"].to_pylist())
    assert join.schema == found[0].schema


def test_rows_in_row_windows_are_summed_too() -> None:
    found = run(windrow.local(query("COUNT(*) AS n", "EVERY 6 SECONDS", "a ROWS 20, b 3 SECONDS")))
    plainly = windrow.local(query("a.i AS i", "", "a ROWS 20, b 3 SECONDS"))
    assert sum(pa.concat_tables(found)["n"].to_pylist()) == sum(map(len, run(plainly)))


def shed(asked: Join, throttle: float, seed: int, share: float = 0.4) -> LocalJoin:
    portions = (sampled(share, 1), Portion(0.35, (((0, 2_500_000),),)), Portion(0.65 - share, (((0, 2_000_000),),)))
    shedding = Shedding(throttle, seed, portions=tuple((name, portions) for name in ("a", "b")))
    return windrow.local(asked, plan=replace(plan_query(asked.spec()), shedding=shedding))


def test_intervals_hold_what_was_left_out() -> None:
    asked = query(SELECT, "EVERY 6 SECONDS")
    (true,) = ({line["span_start"]: line for line in pa.concat_tables(run(windrow.local(asked))).to_pylist()},)
    held: dict[str, list[bool]] = {}
    errors: dict[str, list[float]] = {}
    widths: dict[str, list[float]] = {}
    for seed in range(30):
        for line in pa.concat_tables(run(shed(asked, 0.5, seed), cuts=3)).to_pylist():
            exact = true[line["span_start"]]
            for name in ("n", "s", "c", "m", "i"):
                low, high = line[f"{name}_low"], line[f"{name}_high"]
                held.setdefault(name, []).append(low <= exact[name] <= high)
                errors.setdefault(name, []).append(line[name] - exact[name])
                widths.setdefault(name, []).append((high - low) / 2)
    for name, found in held.items():
        assert len(found) == 30 * len(true)
        assert np.mean(found) >= 0.88, name
        deviation = float(np.std(errors[name]))
        assert abs(np.mean(errors[name])) < 4 * deviation / np.sqrt(len(found)), name
        # Of an average it rests on few rows, and is the wider for that.
        assert np.median(widths[name]) < (1.8 if name == "m" else 1.5) * 1.96 * deviation, name


def test_few_sampled_results_have_no_interval() -> None:
    found = pa.concat_tables(run(shed(query("a.g, b.i, COUNT(*) AS n", "GROUP BY a.g, b.i EVERY 2 SECONDS"), 0.3, 1)))
    assert found["n"].null_count == 0
    assert found["n_low"].null_count == found["n_high"].null_count > len(found) / 2


def test_where_rows_were_dropped_nothing_is_sure() -> None:
    asked = query("COUNT(*) AS n", "EVERY 6 SECONDS")
    plan = replace(plan_query(asked.spec()), shedding=Shedding(keep=(("a", 0.5),)))
    found = pa.concat_tables(run(windrow.local(asked, plan=plan)))
    assert len(found) == found["n_low"].null_count == 4


def test_spans_before_and_after_a_throttled_batch_are_exact() -> None:
    asked = query("COUNT(*) AS n", "EVERY 2 SECONDS")
    join = windrow.local(asked, plan=shed(asked, 0.5, 1).plan)
    throttled, free = join.plan, plan_query(asked.spec())
    found = []
    for cut in range(12):
        join.plan = throttled if cut == 6 else free
        for name, table in TABLES.items():
            times = np.asarray(table["ts"]).astype(np.int64)
            join.push(name, table.filter(pa.array(times // 2_000_000 == cut)))
        found.append(join.step(now_s=2.0 * cut + 2))
    lines = pa.concat_tables([*found, join.finish()]).to_pylist()
    exact = [line["n_low"] == line["n"] == line["n_high"] for line in lines]
    assert exact == [number != 6 for number in range(12)]


def test_open_spans_go_on_from_a_table() -> None:
    asked = query(f"a.g, {SELECT}", "GROUP BY a.g EVERY 5 SECONDS")
    whole, parted = shed(asked, 0.5, 2), shed(asked, 0.5, 2)
    for number, (ours, theirs) in enumerate(zip(stepped(parted), stepped(whole), strict=True)):
        assert ours.equals(theirs), number
        assert parted.summing is not None
        kept = parted.summing.to_table()
        parted.summing = Summing(parted.summing.summary, parted.program.schema, parted.stores)
        parted.summing.restore(kept)
        assert parted.summing.to_table().equals(kept)


def stepped(join: LocalJoin, cuts: int = 6) -> Iterator[pa.Table]:
    for cut in range(cuts):
        for name, table in TABLES.items():
            times = np.asarray(table["ts"]).astype(np.int64)
            join.push(name, table.filter(pa.array(times * cuts // (SPAN_S * 1_000_000) == cut)))
        yield join.step(now_s=SPAN_S * (cut + 1) / cuts)
    yield join.finish()
