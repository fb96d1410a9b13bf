"""Tables, files and settings that nobody expects end as input or in one line: never in another error."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import windrow
from tests.faults.batches import DECLARED, table_of
from tests.faults.one_line import one_line
from windrow.control.controller import ControlSettings
from windrow.run.backlog import RepairSettings
from windrow.streams.files import FileSource
from windrow.streams.recorded import recorded as recorded_stream
from windrow.streams.replay import Replay

pytestmark = pytest.mark.usefixtures("interpreted")

TEXTS = (
    "SELECT a.id AS i, b.x AS x FROM one AS a, two AS b WHERE abs(a.x - b.x) <= 1 AND a.kind = b.kind WINDOW 1 DAYS",
    """SELECT a.*, result_id() AS r FROM one AS a, two AS b WHERE cosine(a.v, b.v) > 0.5 AND a.price <= b.price
    AND a.day = b.day WINDOW a ROWS 3, b 20 SECONDS LATENESS 5 SECONDS""",
    "SELECT * FROM one AS a, two AS b WHERE a.flag = b.flag WINDOW 99999 DAYS",
)


def pushed(seed: int) -> None:
    """Any table into a join of declared columns."""
    declared = DECLARED.empty_table()
    with windrow.local(windrow.sql(TEXTS[seed % len(TEXTS)], {"one": declared, "two": declared})) as join:
        join.push("a", table_of(seed))
        join.push("b", table_of(seed + 1))
        join.step(now_s=0)
        join.push("b", table_of(seed))
        join.finish()


def declared(seed: int) -> None:
    """A join of any tables."""
    one, two = table_of(seed), table_of(seed + 7)
    with windrow.local(windrow.sql(TEXTS[seed % len(TEXTS)], {"one": one, "two": two})) as join:
        join.push("a", one)
        join.push("b", two)
        join.finish()


def recorded(seed: int, folder: Path) -> None:
    """Any table as a file, damaged in half of all cases, read and replayed."""
    draw = random.Random(seed)
    table, kind = table_of(seed), draw.choice(("parquet", "arrow", "arrows", "csv", "csv.gz"))
    path = folder / f"{seed}.{kind}"
    try:
        if kind == "parquet":
            pq.write_table(table, path)
        elif kind.startswith("csv"):
            with pa.output_stream(path) as file:
                pyarrow.csv.write_csv(table, file)
        else:
            maker = pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream
            with maker(path, table.schema) as writer:
                writer.write_table(table)
    except (pa.ArrowException, TypeError):  # not every type has a place in every format
        path.write_bytes(b"")
    data = bytearray(path.read_bytes())
    for _ in range(draw.choice((0, 0, 1, 3)) if data else 0):
        data[draw.randrange(len(data))] = draw.randrange(256)
    path.write_bytes(data[: draw.choice((len(data), len(data), draw.randrange(len(data) + 1)))])
    source = FileSource(str(path), draw.choice((None, "ts", "id", "missing")), draw.choice((None, None, "ms")))
    try:
        stream = recorded_stream(source)
        rows = stream.read(stream.schema.names)
        replay = Replay({"one": (rows, stream.time, None)}, as_arrived=draw.random() < 0.5)
        assert sum(len(batch.tables["one"]) for batch in replay) == len(rows)
        rows.validate(full=True)
    finally:
        path.unlink()


def outcomes(seeds: range, work: Callable[[int], object]) -> Counter[str]:
    found = Counter(one_line(seed, lambda: work(seed)) for seed in seeds)  # noqa: B023 - called at once
    assert found.total() == len(seeds)
    return found


def test_any_table_can_be_pushed_or_is_refused() -> None:
    found = outcomes(range(150), pushed)
    assert min(found["done"], found["InputError"]) > 5


def test_any_table_can_be_declared_or_is_refused() -> None:
    found = outcomes(range(150), declared)
    assert min(found["done"], found["QueryError"]) > 5


def test_any_file_can_be_read_or_is_refused(tmp_path: Path) -> None:
    found = outcomes(range(150), lambda seed: recorded(seed, tmp_path))
    assert found["SourceError"] > 10
    assert found["done"] + found["InputError"] > 10


@pytest.mark.long
@pytest.mark.parametrize("work", [pushed, declared])
def test_many_tables(work: Callable[[int], object]) -> None:
    assert outcomes(range(1_000, 11_000), work)["done"] > 300


@pytest.mark.long
def test_many_files(tmp_path: Path) -> None:
    assert outcomes(range(1_000, 11_000), lambda seed: recorded(seed, tmp_path))["done"] > 300


def test_texts_of_megabytes() -> None:
    texts = ["x" * 3_000_000, "x" * 3_000_000 + "y", "", "é" * 1_000_000]
    rows = pa.table({"ts": pa.array(range(4), pa.timestamp("us")), "s": texts})
    text = "SELECT a.s AS s, length(b.s) AS n FROM one AS a, two AS b WHERE a.s = b.s AND a.s <= b.s WINDOW 1 SECONDS"
    with windrow.local(windrow.sql(text, {"one": rows, "two": rows})) as join:
        join.push("a", rows)
        join.push("b", rows)
        found = join.finish()
    assert sorted(found["n"].to_pylist()) == [0, 1_000_000, 3_000_000, 3_000_001]
    assert sorted(found["s"].to_pylist()) == sorted(texts)


@pytest.mark.long
def test_sets_of_a_million_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDROW_COMPILE", "1")
    half = [f"t{k}" for k in range(1_500_000)]
    rows = pa.table({
        "ts": pa.array(range(3), pa.timestamp("us")),
        "s": [" ".join(half[:1_000_000]), " ".join(half[500_000:]), "other"],
    })  # fmt: skip
    text = "SELECT jaccard(a.s, b.s) AS j FROM one AS a, two AS b WHERE jaccard(a.s, b.s) >= 0.3 WINDOW 1 SECONDS"
    with windrow.local(windrow.sql(text, {"one": rows, "two": rows})) as join:
        join.push("a", rows)
        join.push("b", rows)
        found = sorted(join.finish()["j"].to_pylist())
    assert found == [pytest.approx(1 / 3), pytest.approx(1 / 3), 1.0, 1.0, 1.0]


LIMITS: tuple[dict[str, Any], ...] = (
    {"throttle": 0}, {"throttle": -1}, {"throttle": 1.5}, {"throttle": float("nan")}, {"throttle": "much"},
    {"memory": 0}, {"memory": "-1MB"}, {"memory": "1 parsec"}, {"memory": ""}, {"result_memory": 0},
    {"buffer_rows": 0}, {"buffer_rows": -3}, {"batch_rows": 0}, {"policy": "none"}, {"favour": "late"},
    {"methods": ["magic"]}, {"shed": "hide"}, {"stale": "ignore"}, {"period": "1 second"},
    {"trigger": "soon"}, {"trigger": "-1 SECONDS"}, {"max_ahead": "x"}, {"max_ahead": "-5 SECONDS"}, {"nothing": 1},
)  # fmt: skip


@pytest.mark.parametrize("options", LIMITS, ids=str)
def test_settings_outside_their_limits_are_refused(options: dict[str, Any]) -> None:
    empty = DECLARED.empty_table()

    def begun() -> None:
        with windrow.local(windrow.sql(TEXTS[0], {"one": empty, "two": empty}), **options) as join:
            join.step(now_s=0)

    assert one_line(0, begun).endswith("Error")


@pytest.mark.parametrize(
    "made",
    [
        lambda: ControlSettings(fixed=0.0), lambda: ControlSettings(fixed=2.0), lambda: ControlSettings(interval_s=0.0),
        lambda: ControlSettings(sample=-0.1), lambda: ControlSettings(sample=1.5), lambda: ControlSettings(boost=0.5),
        lambda: ControlSettings(optimiser="magic"), lambda: ControlSettings(policy="none"),
        lambda: RepairSettings(order="none"), lambda: RepairSettings(most=0), lambda: FileSource(""),
        lambda: FileSource("x", None, "fortnights"), lambda: Replay({}, batch_us=0), lambda: Replay({}, batch_rows=-1),
    ],
)  # fmt: skip
def test_values_outside_their_limits_are_refused(made: Callable[[], object]) -> None:
    empty = DECLARED.empty_table()

    def used() -> None:
        value = made()
        if isinstance(value, ControlSettings):
            with windrow.local(windrow.sql(TEXTS[0], {"one": empty, "two": empty}), control=value) as join:
                join.step(now_s=0)

    assert one_line(0, used).endswith("Error")
