"""`windrow demo`: generated streams, joined as time goes by."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from rich.console import Console

import windrow
from tests.cli.conftest import Command
from windrow.cli.demo import BATCH_S, QUERY, play
from windrow.run.local import LocalJoin
from windrow.streams.replay import Replay
from windrow.streams.synthetic import MIDNIGHT_US, cameras, generate


def test_two_seconds(windrow_command: Command) -> None:
    ended = windrow_command("demo", "--seconds", "2", "--rate", "50")
    assert (ended.code, ended.err) == (0, "")
    assert "WINDOW 5 SECONDS" in ended.out
    assert len(re.findall(r"rows in, [\d,]+ results, [\d,]+ matches/s", ended.out)) >= 2
    assert re.search(r"^Report$", ended.out, re.MULTILINE)
    assert "  a probes b: sorted" in ended.out
    assert "windrow run" in ended.out


@dataclass
class FakeTime:
    """A clock that only sleeping moves; `interrupted_at_s` is when somebody presses Ctrl-C."""

    interrupted_at_s: float = float("inf")
    now_s: float = 0.0
    slept_s: list[float] = field(default_factory=list)

    def clock(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)
        self.now_s += seconds
        if self.now_s > self.interrupted_at_s:
            raise KeyboardInterrupt


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[LocalJoin, Replay]]:
    monkeypatch.setenv("WINDROW_COMPILE", "0")
    rows = generate(cameras(20.0, (0.0, 1.0, 3.0), (0.0, 0.0, 0.0)), 10, seed=3)
    replay = Replay({name: (table, "ts", None) for name, table in rows.items()}, batch_us=int(BATCH_S * 1_000_000))
    with windrow.local(windrow.sql(QUERY.format(band="2"), streams=rows)) as join:
        yield join, replay


def test_batches_come_when_their_time_has_come(started: tuple[LocalJoin, Replay]) -> None:
    fake = FakeTime()
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    assert play(*started, MIDNIGHT_US, 10, console, clock=fake.clock, sleep=fake.sleep)
    assert fake.now_s == pytest.approx(10, abs=2 * BATCH_S)
    assert max(fake.slept_s) <= 1
    join = started[0]
    assert join.report.batches >= 20
    assert join.report.results > 100
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "matches/s" in shown
    assert "in window" in shown


def test_control_c_ends_it_early_with_a_report(started: tuple[LocalJoin, Replay]) -> None:
    fake = FakeTime(interrupted_at_s=4)
    console = Console(file=io.StringIO())
    assert not play(*started, MIDNIGHT_US, 10, console, clock=fake.clock, sleep=fake.sleep)
    assert 0 < started[0].report.batches < 20
