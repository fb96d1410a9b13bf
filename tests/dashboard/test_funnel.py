"""Why nothing joins: the condition that kills is named, whichever way it does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.dashboard import made
from windrow.dashboard.funnel import verdict_of


def stages_of(view: Any, driver: str) -> dict[str, float]:
    return {stage["name"]: stage["count"] for stage in view["funnel"]["whole"][driver]}


def test_the_condition_that_no_pair_passes_is_named(runs: Path) -> None:
    view = made.seen(runs / "far")
    verdict = view["funnel"]["verdict"]
    killer = next(each for each in view["funnel"]["conditions"] if each["kills"])
    assert killer["text"] == view["funnel"]["conditions"][verdict["conjunct"]]["text"]
    assert "1000000000" in killer["text"]
    assert verdict["tone"] == "bad"
    assert verdict["text"].startswith("Nothing joins: “")
    assert verdict["text"].endswith("it passes none of the pairs within reach.")
    band = next(each for each in view["funnel"]["conditions"] if "abs" in each["text"])
    assert 0 < band["passing"] < 1
    assert killer["passing"] == 0


def test_the_stages_count_rows_then_pairs_then_results(runs: Path) -> None:
    view = made.seen(runs / "near")
    for driver, source in (("a", "cam1"), ("b", "cam2")):
        counts = list(stages_of(view, driver).items())
        names, numbers = [name for name, _ in counts], [number for _, number in counts]
        assert names[0] == "rows in"
        assert names[2:4] == ["passed the filters of the stream", "met rows in time"]
        assert numbers[0] == numbers[2] == len(made.ROWS[source])
        pairs = [stage["count"] for stage in view["funnel"]["whole"][driver] if stage["unit"] == "pairs"]
        assert pairs[0] >= pairs[1] >= pairs[-1] > 0
        assert (names[-1], numbers[-1]) == ("results", pairs[-1])
    results = sum(stages_of(view, driver)["results"] for driver in ("a", "b"))
    assert results == view["head"]["results"] > 0


def test_the_last_batches_have_a_funnel_of_their_own(runs: Path) -> None:
    funnel = made.seen(runs / "near")["funnel"]
    recent, whole = (funnel[span]["a"][0]["count"] for span in ("recent", "whole"))
    assert 0 < recent <= whole


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"rows": 0}, "No rows have come from b"),
        ({"late": 10**9}, "all rows of b are late or bad, most of them late"),
        ({"filtered": 10**9}, "no row of b passes"),
    ],
)
def test_a_stream_of_which_nothing_enters_is_named(runs: Path, change: dict[str, int], says: str) -> None:
    history = made.history_of(runs / "near")
    assert history.query is not None
    assert history.plan is not None
    batch = history.batches[-1]
    streams = {**batch.streams, "b": replace(batch.streams["b"], **change)}
    found = verdict_of(replace(batch, streams=streams), batch.totals, history.query, history.plan, [])
    assert says in found.text
    assert found.tone == "bad"


@pytest.mark.usefixtures("interpreted")
def test_a_filter_that_lets_nothing_through_is_named(tmp_path: Path) -> None:
    made.run(made.NEAR.replace("a.id >= 0", "a.id < 0"), tmp_path, batches=3)
    funnel = made.seen(tmp_path)["funnel"]
    assert funnel["verdict"]["text"] == f"Nothing joins: no row of a passes “{funnel['conditions'][0]['text']}”."


@pytest.mark.usefixtures("interpreted")
def test_in_a_join_of_three_the_step_where_pairs_end_tells(tmp_path: Path) -> None:
    text = (
        "SELECT a.id AS i FROM cam1 AS a, cam2 AS b, cam3 AS c "
        "WHERE ABS(a.x - b.x) <= 200 AND ABS(b.x - c.x) <= 200 AND c.x > 5000 + b.x WINDOW 5 SECONDS"
    )
    made.run(text, tmp_path, batches=12)
    funnel = made.seen(tmp_path)["funnel"]
    assert funnel["verdict"]["tone"] == "bad"
    assert "5000" in funnel["conditions"][funnel["verdict"]["conjunct"]]["text"]


@pytest.mark.usefixtures("interpreted")
def test_a_function_of_the_users_is_not_called_for_the_page(tmp_path: Path) -> None:
    import windrow
    from windrow.query.spec import UserFunction
    from windrow.query.types import BOOLEAN

    calls = []

    def never(x: float, y: float) -> bool:
        calls.append((x, y))
        return False

    join = windrow.sql(
        f"{made.SELECT} WHERE ABS(a.x - b.x) <= 30 AND never(a.x, b.x) WINDOW 5 SECONDS", made.ROWS,
        functions=[UserFunction("never", never, BOOLEAN, "pair")],
    )  # fmt: skip
    counted = []
    for folder in (None, tmp_path):
        calls.clear()
        with windrow.local(join, events=folder) as running:
            for name in ("cam1", "cam2"):
                running.push(name, made.ROWS[name].slice(0, 100))
            running.step()
            running.finish()
        counted.append(len(calls))
    assert counted[0] == counted[1] > 0
