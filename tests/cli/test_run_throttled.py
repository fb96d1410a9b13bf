"""`windrow run` with less than all of the work, and in real time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyarrow import parquet as pq
from pyspark.sql import SparkSession

from tests.cli.conftest import Command
from tests.cli.recordings import camera, cameras_and_query
from tests.oracle.duck import answer, question, rows_of
from tests.run.spark.played import Rows

BAND = "SELECT a.id AS i, b.id AS j FROM cam1 AS a, cam2 AS b WHERE ABS(a.x - b.x) <= 3 WINDOW 20 SECONDS"
HERE = ("run", "--runtime", "local")
OUT = ("--out", "near.parquet", "--json")


def all_rows() -> Rows:
    return answer(question(BAND), {"cam1": camera(1), "cam2": camera(2)}).rows


def found(folder: Path) -> Rows:
    return rows_of(pq.read_table(folder / "near.parquet"))


def test_a_share_of_the_work_gives_a_part_of_the_rows(windrow_command: Command, folder: Path) -> None:
    ended = windrow_command(*HERE, *cameras_and_query(folder, BAND), *OUT, "--throttle", "0.2")
    assert (ended.code, ended.err) == (0, "")
    report = json.loads(ended.out)
    assert report["throttle"] == 0.2
    assert report["recall"]["low"] <= found(folder).total() / all_rows().total() <= report["recall"]["high"]
    assert not found(folder) - all_rows()
    assert 0 < found(folder).total() < 0.8 * all_rows().total()


@pytest.mark.parametrize("when", [(), ("--repair-at-end",), ("--repair-order", "productive")])
def test_what_is_repaired_makes_up_for_what_was_left_out(
    when: tuple[str, ...], windrow_command: Command, folder: Path
) -> None:
    arguments = (*HERE, *cameras_and_query(folder, BAND), *OUT, "--throttle", "0.2", "--shed", "repair")
    ended = windrow_command(*arguments, *when)
    assert (ended.code, ended.err) == (0, "")
    table = pq.read_table(folder / "near.parquet")
    assert table.column_names[-1] == "repaired"
    late = sum(table.column("repaired").to_pylist())
    assert rows_of(table.drop_columns(["repaired"])) == all_rows()
    assert json.loads(ended.out)["repair"]["results"] == late > 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--repair-at-end",), "nothing is repaired (at: --repair-at-end)"),
        (("--shed", "later"), "cannot be treated as 'later'"),
        (("--shed", "repair", "--repair-order", "newest"), "in the order 'newest'"),
    ],
)
def test_repairs_that_cannot_be(options: tuple[str, ...], says: str, windrow_command: Command, folder: Path) -> None:
    ended = windrow_command("run", *cameras_and_query(folder, BAND), *OUT, *options)
    assert ended.code == 2
    assert says in ended.err


def test_on_spark_what_was_left_out_is_repaired_by_the_end(
    spark: SparkSession, windrow_command: Command, folder: Path
) -> None:
    assert spark.sparkContext is not None
    arguments = ("run", *cameras_and_query(folder, BAND), *OUT, "--batch", "20 seconds", "--checkpoint", "near.state")
    ended = windrow_command(*arguments, "--throttle", "0.2", "--shed", "repair", "--repair-at-end")
    assert (ended.code, ended.err) == (0, "")
    table = pq.read_table(folder / "near.parquet")
    late = sum(table.column("repaired").to_pylist())
    assert rows_of(table.drop_columns(["repaired"])) == all_rows()
    assert json.loads(ended.out)["repair"]["results"] == late > 0
    said = windrow_command("state", "near.state").out
    assert f"pieces left out: 0 open, {json.loads(ended.out)['repair']['repaired_pieces']:,} repaired" in said
    again = windrow_command("repair", "near.state", "--json")
    assert (again.code, again.err) == (0, "")
    assert json.loads(again.out) == json.loads(ended.out)["repair"]
    assert "pieces are repaired, with" in windrow_command("repair", "near.state").out


def test_a_folder_that_is_no_checkpoint_cannot_be_repaired(
    spark: SparkSession, windrow_command: Command, folder: Path
) -> None:
    assert spark.sparkContext is not None
    ended = windrow_command("repair", str(folder))
    assert ended.code == 2
    assert "does not say what its query asks" in ended.err


def test_all_of_the_work_gives_all_rows(windrow_command: Command, folder: Path) -> None:
    ended = windrow_command(*HERE, *cameras_and_query(folder, BAND), *OUT, "--throttle", "1")
    assert ended.code == 0, ended.err
    assert found(folder) == all_rows()


def test_in_real_time_where_there_is_time_enough(windrow_command: Command, folder: Path) -> None:
    ended = windrow_command(
        *HERE, *cameras_and_query(folder, BAND), *OUT, "--pace", "120", "--batch", "10 seconds", "--throttle", "1"
    )
    assert ended.code == 0, ended.err
    assert found(folder) == all_rows()
    assert json.loads(ended.out)["elapsed_seconds"] > 0.4


def test_on_spark_in_real_time(spark: SparkSession, windrow_command: Command, folder: Path) -> None:
    assert spark.sparkContext is not None
    arguments = ("run", *cameras_and_query(folder, BAND), *OUT, "--pace", "60", "--batch", "20 seconds")
    ended = windrow_command(*arguments, "--throttle", "0.3")
    assert (ended.code, ended.err) == (0, "")
    report = json.loads(ended.out)
    assert (report["throttle"], report["rows"]) == (0.3, 800)
    assert 1 < report["batches"] <= 3
    assert not found(folder) - all_rows()
    assert found(folder).total() == report["results"] == report["recall"]["emitted"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("--throttle", "0"), "the throttle is '0' (at: --throttle)"),
        (("--throttle", "1.5"), "the throttle is '1.5' (at: --throttle)"),
        (("--throttle", "some"), "the throttle is 'some' (at: --throttle)"),
        (("--throttle", "auto"), "there is time for everything (at: --throttle auto)"),
        (("--pace", "0"), "time cannot pass 0 times as fast (at: pace)"),
    ],
)
def test_what_cannot_be(windrow_command: Command, folder: Path, given: tuple[str, ...], says: str) -> None:
    ended = windrow_command(*HERE, *cameras_and_query(folder, BAND), *OUT, *given)
    assert ended.code == 2
    assert says in ended.err
    assert not (folder / "near.parquet").exists()
