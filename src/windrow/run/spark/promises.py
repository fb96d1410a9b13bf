"""FRESHNESS on Spark: what was promised, from batch to batch and from commit to commit.

    plan k      written before it: can the batch that begins now keep its promises?     infeasible, or refused
    tasks       hold back results that are stale by the plan's clock, and tell how many
    commit k    how promises were kept so far, for the next start

The tasks' part is `windrow.run.freshness.FreshResults`. Event times of new rows are in the tasks' hands, so a batch is
judged by when the one before it began; rows of replayed recordings have the recordings' clock, and take no time of it.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from windrow.control.observation import Observation
from windrow.run.admit import Entry
from windrow.run.freshness import Freshness, FreshnessReport, FreshResults
from windrow.run.spark.setting import Setting
from windrow.run.spark.state import Commit, Live, each_file


class Promises:
    """The promises of one join on Spark; made by `of`."""

    def __init__(self, freshness: Freshness, is_timed: bool) -> None:
        self.freshness = freshness
        self.is_timed = is_timed

    @staticmethod
    def of(setting: Setting) -> Promises | None:
        """Those of a query; None where none were asked for. Refused here if they are, and cannot be kept at all."""
        freshness = Freshness.of(setting.spec, setting.stale, setting.trigger_s * setting.pace)
        return None if freshness is None else Promises(freshness, setting.is_timed)

    def restore(self, commit: Commit) -> None:
        """Go on counting where a commit ended."""
        if commit.freshness is not None:
            self.freshness.suppressed = int(commit.freshness["suppressed"])
            self.freshness.infeasible_since = commit.freshness["infeasible_since"]

    def expect(self, batch: int, now_us: int, live: Live) -> None:
        """A batch is about to be planned."""
        now_s, firsts = now_us / 1e6, dict.fromkeys(self.freshness.row_windowed, now_us)
        for _, name, file in each_file(live):
            if name in firsts:
                firsts[name] = min(firsts[name], file.first_us)
        windows_s = {name: now_s - first_us / 1e6 for name, first_us in firsts.items()}
        self.freshness.expect(batch, now_s, None, windows_s)

    def observe(self, done: Observation, entry: Entry, aged: FreshResults) -> None:
        """A batch is done; `aged` is what its tasks held back."""
        busy_s = done.busy_s if self.is_timed else 0.0
        newest_us = max(gate.newest_us for gate in entry.gates.values())
        self.freshness.observe(done.batch, done.now_s, busy_s, newest_us, aged)

    def report(self) -> FreshnessReport:
        """How they were kept so far."""
        return self.freshness.report()

    def to_values(self) -> dict[str, Any]:
        """What a commit keeps."""
        return asdict(self.report())
