"""Aggregates on Spark, played: the lines of one process batch by batch, throttled or not; each result in one line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import windrow
from tests.run.spark.played import Played, PlayedSpark, Way
from tests.run.spark.test_throttled import CONTROL, throttled
from tests.run.test_summing import SELECT, SPAN_S, TABLES, in_duckdb, plain, query, rounded
from windrow.control.cells import Cells
from windrow.errors import StateError
from windrow.plan.shedding import Shedding
from windrow.query.builder import Join
from windrow.run.keeper import with_memory
from windrow.run.local import LocalJoin
from windrow.run.spark.keeping import bytes_of
from windrow.run.spark.wire import bytes_tally, tally_bytes
from windrow.run.tally import Tally

pytestmark = pytest.mark.usefixtures("interpreted")

CUTS = 6
EVERY_US = 5_000_000
IN_SPANS = f"EVERY {EVERY_US} MICROSECONDS"
THREE = f"""SELECT b.g, COUNT(*) AS n, SUM(c.v) AS s, AVG(a.v * c.v) AS m FROM a, b, c
    WHERE a.k = b.k AND b.i = c.i GROUP BY b.g {IN_SPANS} WINDOW 2 SECONDS"""


def cut(number: int) -> dict[str, pa.Table]:
    held = {}
    for name, table in TABLES.items():
        times = np.asarray(table["ts"]).astype(np.int64)
        held[name] = table.filter(pa.array(times * CUTS // (SPAN_S * 1_000_000) == number))
    return held


def three() -> Join:
    joined: Join = windrow.sql(THREE, streams={**TABLES, "c": TABLES["a"]})
    return joined


def lines(table: pa.Table) -> dict[tuple[Any, ...], list[Any]]:
    """Lines by span and group, their numbers to so few digits that the order of sums does not matter, nor that of the
    powers in an average's interval, which nearly cancel.
    """
    values = [name for name in table.schema.names if table.schema.field(name).type == pa.float64()]
    return {
        tuple(line[name] for name in line if name not in values): [
            None if line[name] is None else pytest.approx(line[name], rel=1e-6, abs=1e-9) for name in values
        ]
        for line in table.to_pylist()
    }


def tables_of(asked: Join, number: int) -> dict[str, pa.Table]:
    held = cut(number)
    return {name: held["a" if name == "c" else name] for name in asked.sources}


def run(played: Played, asked: Join, last: bool = True) -> list[pa.Table]:
    """The lines of each batch; the end of the input is a batch of its own."""
    for number in range(CUTS):
        played.run(number, tables_of(asked, number))
    if last:
        played.run(CUTS, {}, last=True)
    return [played.found[number][-1] for number in range(CUTS + last)]


@pytest.mark.parametrize("hops", [True, False], ids=["by slice", "in one task"])
@pytest.mark.parametrize("grouped", ["", "a.g, b.k"])
def test_exact_lines_are_those_of_duckdb(grouped: str, hops: bool, tmp_path: Path) -> None:
    selected, by = (f"{grouped}, {SELECT}", f"GROUP BY {grouped} {IN_SPANS}") if grouped else (SELECT, IN_SPANS)
    way = Way(3, hops=hops, fan_in=2, feed="blobs", most_rows=60)
    played = Played(query(selected, by), tmp_path, way, PlayedSpark(twice=True))
    found = run(played, query(selected, by))
    assert rounded(plain(found)) == rounded(in_duckdb(grouped, EVERY_US))
    assert played.state.results == sum(batch["results"] for batch in played.runner.progress) > 1000
    assert max(batch["parts"] for batch in played.runner.progress) > 1
    assert sum(len(each) > 0 for each in found) > 3


def by_the_log(asked: Join, log: list[Shedding], **options: Any) -> list[pa.Table]:
    """The lines in one process, by the plans of a log."""
    found = []
    with LocalJoin(asked, throttle=0.3, control=CONTROL, **options) as join:
        for number, shedding in enumerate(log):
            assert join.controller is not None
            join.controller.shedding = shedding
            join.controller._batches.clear()
            for name, table in tables_of(asked, number).items():
                join.push(name, table)
            found.append(join.step(now_s=0))
    return found


@pytest.mark.parametrize(
    ("slices", "policy", "hops"),
    [(1, "timestamp", True), (3, "timestamp", True), (2, "round_robin", False)],
    ids=["one slice", "by slice", "one task"],
)
@pytest.mark.parametrize("many", [2, 3])
def test_throttled_lines_are_those_of_one_process(
    many: int, slices: int, policy: str, hops: bool, tmp_path: Path
) -> None:
    asked = query(f"a.g, {SELECT}", f"GROUP BY a.g {IN_SPANS}") if many == 2 else three()
    played = throttled(asked, tmp_path, Way(slices, policy=policy, hops=hops, fan_in=2), spark=PlayedSpark(twice=True))
    found, log = [], []
    for number in range(CUTS):
        played.run(number, tables_of(asked, number))
        found.append(played.found[number][-1])
        log.append(played.runner.steering.shedding)
    for ours, theirs in zip(found, by_the_log(asked, log, policy=policy), strict=True):
        assert lines(ours) == lines(theirs)
    told = pa.concat_tables(found)
    assert len(told) > 5
    assert sum(shedding.restricts for shedding in log) > 2
    if many == 2:
        wide = [line for line in told.to_pylist() if line["n_low"] is not None and line["n_low"] < line["n_high"]]
        assert len(wide) > 2
        assert all(line["n_low"] <= line["n"] <= line["n_high"] for line in wide)


class StoppedError(Exception):
    """What stands for the death of the driver program."""


@pytest.mark.parametrize("dies_at", ["sink", "commit"])
def test_lines_are_the_same_after_a_restart(dies_at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = query(f"a.g, {SELECT}", f"GROUP BY a.g {IN_SPANS}")
    played = throttled(asked, tmp_path, Way(2))
    deliver = played.setting.sink

    def fail(*_: object) -> None:
        raise StoppedError

    log = []
    for number in range(CUTS):
        if number % 2:
            played.restart(sink=fail if dies_at == "sink" else deliver)
            if dies_at == "commit":
                monkeypatch.setattr(played.runner.journal, "write_commit", fail)
            with pytest.raises(StoppedError):
                played.run(number, tables_of(asked, number))
            played.restart(sink=deliver)
        played.run(number, tables_of(asked, number))
        log.append(played.runner.steering.shedding)
    whole = by_the_log(asked, log)
    for number, delivered in played.found.items():
        for each in delivered:
            assert lines(each) == lines(whole[number]), number
    assert {len(delivered) for delivered in played.found.values()} == ({1, 2} if dies_at == "commit" else {1})
    assert sum(map(len, whole)) > 5
    assert list(played.storage.list("sums")) == [f"sums/{number}" for number in (CUTS - 2, CUTS - 1)]


def test_what_was_let_go_for_memory_leaves_no_interval(tmp_path: Path) -> None:
    asked = query("COUNT(*) AS n", IN_SPANS)
    spec = asked.spec()
    exact = Played(asked, tmp_path / "exact", Way(1))
    free, sizes = [], []
    for number in range(CUTS):
        exact.run(number, cut(number))
        free.append(exact.found[number][-1])
        sizes.append(bytes_of(exact.state.live))
    control = with_memory(None, round(0.45 * max(sizes)), spec)
    found = pa.concat_tables(run(throttled(asked, tmp_path, Way(1), control=control), asked, last=False))
    expected = pa.concat_tables(free)
    assert found["span_start"].equals(expected["span_start"])
    assert sum(found["n"].to_pylist()) < sum(expected["n"].to_pylist())
    assert found["n_low"].null_count >= len(found) - 1 >= 2
    assert expected["n_low"].null_count == 0


def test_other_aggregates_need_another_checkpoint(tmp_path: Path) -> None:
    played = Played(query("COUNT(*) AS n", IN_SPANS), tmp_path, Way(1))
    played.run(0, cut(0))
    changed = (
        ("SUM(a.v) AS n", IN_SPANS, "was count\\(\\*\\) every 5 seconds, is sum\\(a.v\\)"),
        ("COUNT(*) AS n", "EVERY 1 MINUTE", "every 5 seconds, is count\\(\\*\\) every 1 minute"),
        ("a.g, COUNT(*) AS n", f"GROUP BY a.g {IN_SPANS}", "is count\\(\\*\\) by a.g"),
        ("a.v AS v", "", "is nothing"),
    )
    for selected, rest, said in changed:
        other = Played(query(selected, rest), tmp_path, Way(1))
        with pytest.raises(StateError, match=said):
            other.run(1, cut(1))
    again = Played(query("COUNT(*) AS many", IN_SPANS), tmp_path, Way(1))
    again.run(1, cut(1))
    assert again.state.batch == 1


def tally() -> Tally:
    random = np.random.default_rng(3)
    keys = ((1, "x", None), (2, None, 4), (-1, "x", 7))
    places, rows, strata = (random.integers(0, 3, 5) for _ in range(3))
    cells = {"a": Cells(places, rows, strata, random.normal(size=(5, 6)))}
    return Tally(9, keys, random.normal(size=(3, 17)), cells)


def test_a_tally_travels_whole() -> None:
    program = Played(query("a.g, b.k, COUNT(*) AS n", f"GROUP BY a.g, b.k {IN_SPANS}"), Path("/nowhere")).runner.program
    sent = tally()
    come = bytes_tally(tally_bytes(sent, program))
    assert (come.results, come.keys) == (sent.results, sent.keys)
    assert np.array_equal(come.sums, sent.sums)
    for name in ("lines", "rows", "strata", "sums"):
        assert np.array_equal(getattr(come.cells["a"], name), getattr(sent.cells["a"], name))


def test_batches_without_results_keep_spans_open(tmp_path: Path) -> None:
    asked = query("COUNT(*) AS n", IN_SPANS)
    played = Played(asked, tmp_path, Way(2))
    none: Mapping[str, pa.Table] = {name: table.slice(0, 0) for name, table in TABLES.items()}
    found = []
    for number in range(2 * CUTS):
        played.run(number, none if number % 2 else cut(number // 2))
        found.append(played.found[number][-1])
    assert [len(each) for each in found[1::2]] == [0] * CUTS
    expected = windrow.local(asked)
    for number in range(CUTS):
        for name, rows in cut(number).items():
            expected.push(name, rows)
        assert lines(found[2 * number]) == lines(expected.step(now_s=0))
