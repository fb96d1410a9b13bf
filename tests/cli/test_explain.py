"""`windrow explain`: the plan and why, for people and for machines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from tests.cli.conftest import Command
from tests.cli.recordings import NEAR, cameras_and_query
from windrow.cli.explained import predicted_lines
from windrow.control.forecast import Forecast, Known, Overload
from windrow.plan.plan import Plan
from windrow.run.look import Look

THREE = """
SELECT a.id AS a_id, c.id AS c_id
FROM cam1 AS a, cam2 AS b, cam1 AS c
WHERE a.kind = b.kind AND ABS(b.x - c.x) <= 0.5 AND a.x > 3
WINDOW 90 SECONDS, c ROWS 100
LATENESS 2 SECONDS
"""


def test_text_names_filters_windows_steps_and_reasons(windrow_command: Command, folder: Path) -> None:
    ended = windrow_command("explain", "--look", "0", *cameras_and_query(folder, THREE))
    assert (ended.code, ended.err) == (0, "")
    for line in (
        "  a: cam1 from cam1.parquet, event time ts, window 90 SECONDS, lateness 2 SECONDS",
        "    enters only if a.x > 3",
        "  c: cam1 from cam1.parquet, event time ts, window ROWS 100, lateness 2 SECONDS",
        "Plan, policy timestamp: new rows run in order of event time",
        "  a new row of b",
        "    1. probes a, hashed: a.kind = b.kind: a hash index on the key",
        "    2. probes c, sorted: abs(b.x - c.x) <= 0.5: a sorted index on c.x",
        "  a_id BIGINT, c_id BIGINT",
    ):
        assert line in ended.out.splitlines()


def test_a_tree_is_drawn(windrow_command: Command, folder: Path) -> None:
    ended = windrow_command("explain", *cameras_and_query(folder, THREE), "--shape", "((a b) c)")
    assert (ended.code, ended.err) == (0, "")
    for line in (
        "  a new row of a, for (a b)",
        "  a new row of c",
        "    1. probes (a b), sorted: abs(b.x - c.x) <= 0.5: a sorted index on b.x",
        "  ├─ (a b), stored",
        "  │  └─ b",
    ):
        assert line in ended.out.splitlines()
    told = json.loads(windrow_command("explain", *cameras_and_query(folder, THREE), "--shape", "linear", "--json").out)
    assert [path["into"] for path in told["plan"]["paths"]] == ["(a b)", "(a b)", None, None]
    refused = windrow_command("explain", *cameras_and_query(folder, THREE), "--shape", "(a b)")
    assert refused.code == 1
    assert "the shape (a b) is not of the streams a, b, c" in refused.err


def test_json_holds_the_plan_that_would_run(windrow_command: Command, folder: Path) -> None:
    arguments = cameras_and_query(folder, THREE)
    ended = windrow_command(
        "explain", "--look", "0", *arguments, "--json", "--policy", "round_robin", "--method", "sorted"
    )
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    plan = Plan.from_json(json.dumps(found["plan"]))
    assert plan.policy == "round_robin"
    assert [path.driver for path in plan.paths] == ["a", "b", "c"]
    assert {step.method for path in plan.paths for step in path.steps} == {"sorted", "loop"}
    assert found["conjuncts"] == ["a.kind = b.kind", "abs(b.x - c.x) <= 0.5", "a.x > 3"]
    assert [stream["window_us"] for stream in found["streams"]] == [90_000_000, 90_000_000, None]
    assert found["streams"][2]["window_rows"] == 100
    assert "a.x > 3" in found["streams"][0]["entrance"]
    assert found["streams"][1]["columns"] == ["ts", "x", "kind"]
    assert found["outputs"] == [{"name": "a_id", "type": "BIGINT"}, {"name": "c_id", "type": "BIGINT"}]


def test_slices_and_what_travels_are_told(windrow_command: Command, folder: Path) -> None:
    arguments = cameras_and_query(folder, THREE)
    ended = windrow_command(
        "explain", "--look", "0", *arguments, "--slices", "4", "--slice-by", "auto", "--rate", "b=500"
    )
    assert (ended.code, ended.err) == (0, "")
    for line in (
        "On Spark",
        "  4 slices, each row is kept on one of them",
        "    a: by the hash of a.kind (a.kind = b.kind)",
        "    c: by the value of c.x, in spans of 2.472 (abs(b.x - c.x) <= 0.5)",
        "    a new row of a: kept 1, to b 1, to c 1.4",
        "    a new row of c: kept 1, to b 4, to a 1",
    ):
        assert line in ended.out.splitlines()
    (told,) = (line for line in ended.out.splitlines() if line.startswith("    a new row of b"))
    assert "500 rows/s of about" in told
    assert "MB/s to keep and to step 1" in told


def test_slices_by_time_when_asked(windrow_command: Command, folder: Path) -> None:
    arguments = cameras_and_query(folder, THREE)
    ended = windrow_command("explain", "--look", "0", *arguments, "--slices", "4", "--slice-by", "time", "--json")
    found = json.loads(ended.out)
    assert {each["kind"] for each in found["plan"]["slices"]["streams"]} == {"time"}
    assert found["copies"] == {"a": [4, 4], "b": [4, 4], "c": [4, 4]}
    by_time = windrow_command("explain", "--look", "0", *arguments, "--slices", "4", "--slice-by", "time").out
    assert "    24 in all; slices by auto would make it 9.81" in by_time.splitlines()
    assert (
        "  one slice: nothing travels"
        in windrow_command("explain", "--look", "0", *arguments, "--slices", "1").out.splitlines()
    )
    assert "slices" in windrow_command("explain", "--look", "0", *arguments).out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--slices", "0"), "at least one slice, not 0"),
        (("--slice-by", "x"), "no slicing 'x'"),
        (("--rate", "z=5"), "'z=5' names no stream"),
        (("--rate", "a=fast"), "'fast' is no rate"),
        (("--rate", "a=-1"), "'-1' is no rate"),
        (("--rate", "a"), "'' is no rate"),
    ],
)
def test_wrong_slices_and_rates_are_told_in_a_line(
    arguments: tuple[str, ...], told: str, windrow_command: Command, folder: Path
) -> None:
    ended = windrow_command("explain", "--look", "0", *cameras_and_query(folder, THREE), *arguments)
    assert ended.code == 2
    assert told in ended.err
    assert "Traceback" not in ended.err


def test_what_a_look_foretells_is_said_in_words(windrow_command: Command, folder: Path) -> None:
    arguments = cameras_and_query(folder)
    ended = windrow_command("explain", *arguments)
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    for line in (
        "  one result for each combination of a row of a and of b for which",
        "  an inner join: a row that meets nothing gives nothing",
        "  hashed: rows are filed by the hash of their key; equal ones are looked up, no others are touched",
        "The same as trees, for each new row of the stream at the top",
        "  with the costs built in; windrow calibrate measures this machine's",
        "  at these rates everything is done: recall 100 %",
    ):
        assert line in lines
    for start in ("  from 800 rows, ", "  └─ b  hashed  a.kind = b.kind; then abs(", "  memory: "):
        assert any(line.startswith(start) for line in lines), start
    assert sum("recall" in line and "to expect" in line for line in lines) == 3
    predicted = json.loads(windrow_command("explain", *arguments, "--json").out)["predicted"]
    assert predicted["saturation"] > 1
    assert predicted["look"]["longer_than_windows"] is True
    assert set(predicted["streams"]) == {"a", "b"}


@pytest.mark.parametrize(("recall", "said"), [(0.3, True), (0.9, False)])
def test_where_shedding_has_little_to_gain_that_is_said(recall: float, said: bool) -> None:
    overloads = (Overload(4.0, throttle=0.25, recall=recall),)
    told = Forecast({}, {}, 0.5, {}, 10.0, saturation=2.0, recall=1.0, overloads=overloads)
    lines = list(predicted_lines(Look(10, 1.0, 5, True, cast(Known, None)), told, "built in"))
    assert any("little to gain by searching less" in line for line in lines) is said
    assert "at 4 times these rates throttle auto does 25.0% of the work" in lines[-2 if said else -1]


def test_rates_can_be_wished_and_may_be_too_much(windrow_command: Command, folder: Path) -> None:
    arguments = cameras_and_query(folder)
    given = ("--rate", "a=1e6", "--rate", "b=1e6")
    predicted = json.loads(windrow_command("explain", *arguments, *given, "--json").out)["predicted"]
    assert predicted["load"] > 1 > predicted["saturation"]
    assert 0 < predicted["recall"] < 1
    assert "throttle auto: recall" in windrow_command("explain", *arguments, *given).out


def test_without_a_look_nothing_is_foretold(windrow_command: Command, folder: Path) -> None:
    arguments = cameras_and_query(folder)
    ended = windrow_command("explain", *arguments, "--look", "0")
    assert "The same as trees" in ended.out.splitlines()
    assert (
        "  nothing: that needs rows of every stream to look at, and windrow has looked at none"
        in ended.out.splitlines()
    )
    assert json.loads(windrow_command("explain", *arguments, "--look", "0", "--json").out)["predicted"] is None
    short = windrow_command("explain", *arguments, "--look", "100").out
    assert "what comes of more than that is not predicted: the look was shorter than the longest window" in short


def test_nothing_is_written(windrow_command: Command, folder: Path) -> None:
    arguments = cameras_and_query(folder, NEAR)
    before = sorted(folder.iterdir())
    assert windrow_command("explain", *arguments).code == 0
    assert sorted(folder.iterdir()) == before
