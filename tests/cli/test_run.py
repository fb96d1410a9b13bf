"""`windrow run` in this process against DuckDB over the same files, and what it writes beside its results."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import csv
from pyarrow import parquet as pq

from tests.cli.conftest import Command
from tests.cli.recordings import NEAR, camera, cameras_and_query, in_order, write
from tests.oracle.duck import answer, difference, question, rows_of

CAMERAS = {"cam1": camera(1), "cam2": camera(2)}
LEAST_BATCHES = 20
HERE = ("run", "--runtime", "local")


def check(out: Path, text: str, tables: dict[str, pa.Table] = CAMERAS) -> None:
    assert difference(rows_of(pq.read_table(out)), answer(question(text), tables).rows) == ""
    assert pq.read_metadata(out).num_rows > 100


def test_parquet_and_csv_give_what_duckdb_gives(windrow_command: Command, folder: Path) -> None:
    ended = windrow_command(*HERE, *cameras_and_query(folder), "--out", "near.parquet")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("800 rows in (0 late, 0 bad), ")
    assert "Results are in near.parquet" in ended.out
    check(folder / "near.parquet", NEAR)
    assert sorted(path.name for path in folder.iterdir()) == ["cam1.parquet", "cam2.csv", "near.parquet", "near.sql"]


@pytest.mark.parametrize("path", ["parts", "parts/part-*.parquet", "parts/part-?.parquet?time=ts"])
def test_a_folder_or_a_pattern_is_many_files(windrow_command: Command, folder: Path, path: str) -> None:
    arguments = cameras_and_query(folder)[:1]
    for number in range(4):
        write(CAMERAS["cam1"].slice(number * 100, 100), folder / "parts" / f"part-{number}.parquet")
    write(CAMERAS["cam2"], folder / "cam2.arrow")
    ended = windrow_command(
        *HERE, *arguments, "--stream", f"cam1={path}", "--stream", "cam2=cam2.arrow", "--out", "near"
    )
    assert ended.code == 0, ended.err
    check(folder / "near" / "part-00000.parquet", NEAR)


def test_a_self_join_reads_one_source_twice(windrow_command: Command, folder: Path) -> None:
    text = "SELECT a.id AS a_id, b.id AS b_id FROM s AS a, s AS b WHERE a.x < b.x AND a.kind = b.kind WINDOW 2 SECONDS"
    write(CAMERAS["cam1"], folder / "s.parquet")
    ended = windrow_command(*HERE, "-", "--stream", "s=s.parquet", "--out", "pairs.parquet", stdin=text)
    assert ended.code == 0, ended.err
    check(folder / "pairs.parquet", text, {"s": CAMERAS["cam1"]})


def test_aggregates_are_lines_of_spans(windrow_command: Command, folder: Path) -> None:
    arguments = cameras_and_query(folder)[1:]
    text = f"SELECT COUNT(*) AS n {NEAR[NEAR.index('FROM') :]} EVERY 2 SECONDS"
    ended = windrow_command(*HERE, "-", *arguments, "--out", "counts.parquet", stdin=text)
    assert ended.code == 0, ended.err
    lines = pq.read_table(folder / "counts.parquet")
    assert lines.schema.names == ["span_start", "n", "n_low", "n_high"]
    assert sum(lines["n"].to_pylist()) == len(answer(question(NEAR), CAMERAS).rows)


def test_aliases_that_are_names_of_other_sources(windrow_command: Command, folder: Path) -> None:
    text = "SELECT cam1.id AS p, cam2.id AS q FROM cam2 AS cam1, cam1 AS cam2 WHERE cam1.x = cam2.x WINDOW 9 SECONDS"
    ended = windrow_command(*HERE, *cameras_and_query(folder, text), "--out", "swapped.parquet")
    assert ended.code == 0, ended.err
    sources = {"cam1": CAMERAS["cam2"], "cam2": CAMERAS["cam1"]}
    check(folder / "swapped.parquet", text, sources)


@pytest.mark.parametrize(
    "options",
    [
        ("--method", "loop"),
        ("--method", "sorted", "--policy", "output_rate"),
        ("--policy", "auto", "--favour", "early"),
        ("--batch", "7 seconds"),
        ("--batch", "60 minutes"),
        ("--as-arrived", "--lateness", "1 minute"),
    ],
)
def test_options_that_leave_the_results_alone(windrow_command: Command, folder: Path, options: tuple[str, ...]) -> None:
    ended = windrow_command(*HERE, *cameras_and_query(folder), "--out", "near.parquet", *options)
    assert ended.code == 0, ended.err
    check(folder / "near.parquet", NEAR)


def test_times_recorded_as_numbers_become_timestamps(windrow_command: Command, folder: Path) -> None:
    text = "SELECT a.at AS at, b.id AS b_id FROM s AS a, s AS b WHERE a.x = b.x AND a.at < b.at WINDOW 20 SECONDS"
    table = CAMERAS["cam1"]
    millis = pc.divide(table["ts"].cast(pa.int64()), 1000)
    write(table.drop_columns(["ts"]).append_column("at", millis), folder / "s.parquet")
    ended = windrow_command(*HERE, "-", "--stream", "s=s.parquet?time=at&unit=ms", "--out", "r.parquet", stdin=text)
    assert ended.code == 0, ended.err
    stamped = table.append_column("at", table["ts"])
    assert pq.read_schema(folder / "r.parquet").field("at").type == pa.timestamp("us")
    check(folder / "r.parquet", text, {"s": stamped})


def test_json_is_all_there_is_on_standard_output(windrow_command: Command, folder: Path) -> None:
    arguments = cameras_and_query(folder, NEAR.replace("a.kind = b.kind", "near(a.x, b.x)"))
    (folder / "mine.py").write_text(
        "from windrow import function\n\n@function(returns='BOOLEAN', mode='pair')\ndef near(x, y):\n"
        "    print('called')\n    return abs(x - y) < 0.25\n",
        encoding="utf-8",
    )
    options = ("--udf", "mine.py", "--out", "near.parquet", "--report", "report.json", "--json")
    ended = windrow_command(*HERE, *arguments, *options)
    assert ended.code == 0, ended.err
    report = json.loads(ended.out)
    assert report == json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert (report["rows"], report["late"], report["bad"]) == (800, 0, 0)
    assert report["batches"] >= LEAST_BATCHES
    assert report["results"] == pq.read_metadata(folder / "near.parquet").num_rows > 0
    assert report["seconds"] > 0
    assert report["peak_memory_bytes"] > 0
    assert {(step["driver"], step["store"]) for step in report["steps"]} == {("a", "b"), ("b", "a")}
    assert all(step["method"] and step["why"] for step in report["steps"])


def test_a_memory_limit_is_kept_and_what_it_cost_is_told(windrow_command: Command, folder: Path) -> None:
    ended = windrow_command(*HERE, *cameras_and_query(folder), "--out", "exact.parquet", "--json")
    assert ended.code == 0, ended.err
    exact = json.loads(ended.out)
    options = ("--out", "near.parquet", "--memory", "2kB", "--batch", "2 seconds")
    ended = windrow_command(*HERE, *cameras_and_query(folder), *options, "--json")
    assert ended.code == 0, ended.err
    report = json.loads(ended.out)
    memory = report["memory"]
    assert memory["limit_bytes"] == 2000 >= memory["largest_bytes"] > 0
    assert memory["let_go"] == sum(stream["let_go"] for stream in report["streams"].values()) > 0
    assert 0 < report["results"] < exact["results"]
    ended = windrow_command(*HERE, *cameras_and_query(folder), *options)
    assert f"{memory['let_go']:,} rows were let go for memory" in ended.out
    assert "larger than the memory by themselves" in ended.out if memory["crowded"] else True


def test_a_memory_limit_that_cannot_be_used(windrow_command: Command, folder: Path) -> None:
    ended = windrow_command(*HERE, *cameras_and_query(folder), "--out", "near.parquet", "--memory", "lots")
    assert ended.code == 2
    assert "'lots' is not a memory limit" in ended.err
    assert not (folder / "near.parquet").exists()


def test_late_and_bad_rows_are_counted_and_set_aside(windrow_command: Command, folder: Path) -> None:
    text = NEAR + "LATENESS a 1 MINUTE"
    arguments = cameras_and_query(folder, text)
    times = CAMERAS["cam2"]["ts"]
    timeless = pc.if_else(pc.equal(CAMERAS["cam2"]["id"], 7), pa.scalar(None, times.type), times)
    write(CAMERAS["cam2"].set_column(0, "ts", timeless), folder / "cam2.csv")
    options = ("--as-arrived", "--lateness", "30 seconds", "--batch", "1 second", "--set-aside", "left", "--json")
    ended = windrow_command(*HERE, *arguments, "--out", "near.parquet", *options)
    assert ended.code == 0, ended.err
    streams = json.loads(ended.out)["streams"]
    assert streams["a"]["late"] == 0
    assert streams["b"]["late"] > 0
    assert streams["b"]["bad"] == 1
    assert sorted(path.name for path in (folder / "left").iterdir()) == ["b-bad-time.parquet", "b-late.parquet"]
    assert pq.read_metadata(folder / "left" / "b-late.parquet").num_rows == streams["b"]["late"]
    assert pq.read_table(folder / "left" / "b-bad-time.parquet")["id"].to_pylist() == [7]


@pytest.mark.parametrize("name", ["near.csv", "near.csv.gz", "near.arrow", "near.feather", "near.parquet", "near/"])
def test_results_in_every_format_even_without_rows(windrow_command: Command, folder: Path, name: str) -> None:
    arguments = cameras_and_query(folder, NEAR.replace("<= 0.5", "<= 0.5 AND a.id < 0"))
    ended = windrow_command(*HERE, *arguments, "--out", name)
    assert ended.code == 0, ended.err
    path = folder / name
    if name.startswith("near.csv"):
        found = csv.read_csv(path)
    elif name in ("near.arrow", "near.feather"):
        with pa.ipc.open_file(path) as reader:
            found = reader.read_all()
    else:
        found = pq.read_table(path)
    assert found.column_names == ["a_id", "b_id", "ax", "seen"]
    assert found.num_rows == 0


def test_rows_in_csv_are_the_rows_in_parquet(windrow_command: Command, folder: Path) -> None:
    arguments = cameras_and_query(folder)
    for name in ("near.parquet", "near.csv"):
        assert windrow_command(*HERE, *arguments, "--out", name).code == 0
    written = pq.read_table(folder / "near.parquet")
    found = csv.read_csv(folder / "near.csv").cast(written.schema)
    assert difference(rows_of(found), rows_of(written)) == ""


def test_an_existing_result_file_is_replaced(windrow_command: Command, folder: Path) -> None:
    (folder / "near.parquet").write_text("old", encoding="utf-8")
    assert windrow_command(*HERE, *cameras_and_query(folder), "--out", "near.parquet").code == 0
    check(folder / "near.parquet", NEAR)


def test_in_order_or_not_the_results_are_the_same(windrow_command: Command, folder: Path) -> None:
    arguments = cameras_and_query(folder)
    write(in_order(CAMERAS["cam1"]), folder / "cam1.parquet")
    assert windrow_command(*HERE, *arguments, "--out", "near.parquet").code == 0
    check(folder / "near.parquet", NEAR)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_leaves_nothing_behind(folder: Path, number: signal.Signals) -> None:
    arguments = cameras_and_query(folder, NEAR.replace("a.kind = b.kind", "wait(a.x)"))
    (folder / "slow.py").write_text(
        "import time\nfrom windrow import function\n\n@function(returns='BOOLEAN', mode='pair')\ndef wait(x):\n"
        "    open('started', 'w').close()\n    time.sleep(60)\n    return True\n",
        encoding="utf-8",
    )
    before = {path.name for path in folder.iterdir()}
    command = [sys.executable, "-c", "from windrow.cli.main import main; main()", *HERE, *arguments]
    running = subprocess.Popen(
        [*command, "--udf", "slow.py", "--out", "near", "--report", "report.json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with running:
        while not (folder / "started").exists() and running.poll() is None:
            time.sleep(0.02)
        assert {path.name for path in folder.iterdir()} > before | {"started", "near"}
        running.send_signal(number)
        out, err = running.communicate()
    assert (running.returncode, out) == (1, "")
    assert err.startswith("windrow: stopped before the end; nothing was left behind. Until then: ")
    assert err.count("\n") == 1
    assert {path.name for path in folder.iterdir()} - {"started", "__pycache__"} == before
