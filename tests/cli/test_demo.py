"""`windrow demo`: generated streams, joined by Spark as time goes by."""

from __future__ import annotations

import io
import os
import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from tests.cli.conftest import Command
from windrow.cli.demo import (
    CALM,
    FEWEST_BATCHES,
    Load,
    Seen,
    calm_rate,
    rush_rate,
    told_of_repair,
    told_of_rush,
    watch,
)
from windrow.cli.interrupts import noted
from windrow.errors import FunctionError

A_BATCH_S = 0.5


@dataclass
class FakeSpark:
    """A running join whose clock only waiting moves: a batch each half second, a hundred rows a batch."""

    interrupted_at_s: float = float("inf")
    fails_at_s: float = float("inf")
    ends_at_s: float = float("inf")
    batch_s: float = A_BATCH_S
    throttle: float = 1.0
    now_s: float = 0.0
    waits: list[float] = field(default_factory=list)

    @property
    def spark_query(self) -> Any:
        return self

    @property
    def lastProgress(self) -> Mapping[str, float]:  # noqa: N802 - Spark's name
        return {"batchDuration": 123}

    def clock(self) -> float:
        return self.now_s

    def await_termination(self, timeout_s: float) -> bool:
        self.waits.append(timeout_s)
        self.now_s += timeout_s
        if self.now_s >= self.fails_at_s:
            raise FunctionError("no")
        if self.now_s >= self.interrupted_at_s:
            os.kill(os.getpid(), signal.SIGINT)
        return self.now_s >= self.ends_at_s

    def status(self) -> dict[str, Any]:
        batch = int(self.now_s / self.batch_s) - 1
        streams = {name: {"rows": 100 * (batch + 1), "late": 0, "stored": 40} for name in ("a", "b")}
        found = {"batch": batch, "results": 7 * (batch + 1), "streams": streams if batch >= 0 else {}}
        return {**found, "throttle": self.throttle}

    def random_drop(self) -> tuple[float, float] | None:
        return None if self.throttle >= 1 else (0.6, 0.2)


def look(fake: FakeSpark, seconds: float, console: Console) -> Seen:
    """Watch what is no Spark at all."""
    running: Any = fake
    with noted() as raise_noted:
        return watch(running, seconds, console, raise_noted, fake.clock)


def test_it_runs_so_many_seconds_from_the_first_batch_on() -> None:
    fake = FakeSpark()
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    seen = look(fake, 10, console)
    assert seen.complete
    assert fake.now_s == pytest.approx(10 + A_BATCH_S, abs=2 * A_BATCH_S)
    assert len(seen.batch_s) >= 20
    assert max(fake.waits) <= 1
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "14 matches/s" in shown
    assert "80 rows in windows" in shown
    assert "last batch 123 ms" in shown


def test_where_batches_take_long_it_waits_for_some() -> None:
    fake = FakeSpark(batch_s=7.0)
    seen = look(fake, 2, Console(file=io.StringIO()))
    assert seen.complete
    assert len(seen.batch_s) == FEWEST_BATCHES
    assert seen.status["results"] > 0


def test_lines_where_there_is_no_terminal() -> None:
    fake = FakeSpark(ends_at_s=8)
    console = Console(file=io.StringIO())
    assert look(fake, 8, console).complete
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert len(lines) >= 3
    assert all(re.fullmatch(r" *[\d.]+ s: [\d,]+ rows in, [\d,]+ results, .* ms", line) for line in lines)


def test_control_c_ends_it_early() -> None:
    fake = FakeSpark(interrupted_at_s=4)
    seen = look(fake, 10, Console(file=io.StringIO()))
    assert not seen.complete
    assert 0 < len(seen.batch_s) < 20
    assert seen.status["results"] > 0


def test_a_join_that_fails_is_raised() -> None:
    fake = FakeSpark(fails_at_s=3)
    with pytest.raises(FunctionError):
        look(fake, 10, Console(file=io.StringIO()))


def test_what_a_rush_cost_is_said_beside_random_dropping() -> None:
    fake = FakeSpark(ends_at_s=5, throttle=0.3)
    seen = look(fake, 5, Console(file=io.StringIO()))
    assert min(seen.throttles) == 0.3
    assert set(seen.rivals) == {(0.6, 0.2)}
    rush, beside = told_of_rush(seen, {"recall": {"recall": 0.71}})
    assert "as little as 30% of the full work" in rush
    assert "about 71% of all results came at once" in rush
    assert "60% of the results came at once" in beside
    assert "would have kept 20% at best" in beside
    assert told_of_rush(Seen(throttles=[1.0]), {}) == ["there was time for everything: nothing was left out"]
    repair = {"repaired_pieces": 12, "open_pieces": 2, "open_seconds": 1.25, "results": 3456}
    done, still = told_of_repair(repair)
    assert "3,456 results, of 12 pieces" in done
    assert "2 pieces, about 1.2 s" in still
    assert told_of_repair(None) == []


def test_the_rush_is_so_many_times_the_work_there_is_time_for() -> None:
    load = Load(1000.0, rush_rate(1000.0, 4), 90)
    assert load.steps == "40:1000,30:3651,30:1000"
    assert Load(20_000.0, 73_000.0, 3600).third_s == 8
    assert "a rush of 3,651 rows/s for 30 s" in load.text
    assert calm_rate(1e9, work=4 * CALM) == pytest.approx(2 * calm_rate(1e9))


def test_two_seconds_on_spark(spark: SparkSession, windrow_command: Command) -> None:
    ended = windrow_command("demo", "--seconds", "3", "--rate", "50", "--rush", "1", "--no-page")
    assert (ended.code, ended.err) == (0, "")
    assert "WINDOW 5 SECONDS" in ended.out
    assert re.search(r"^Report$", ended.out, re.MULTILINE)
    assert re.search(r"^  [\d,]+ rows in \([\d,]+ late\), [\d,]+ batches, [\d,]+ results$", ended.out, re.MULTILINE)
    assert "a probes b: loop" in ended.out
    assert re.search(r"nothing was left out|of the full work was done", ended.out)  # whichever the machine had time for
    assert "windrow run" in ended.out
    assert spark.range(3).count() == 3
