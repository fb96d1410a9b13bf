"""Commits to test with."""

from __future__ import annotations

from windrow.run.spark.question import Asked, Question
from windrow.run.spark.state import Commit, Gate, Live
from windrow.store.files import SegmentFile

NEVER_US = -(2**63)
COUNTS = {"rows": 5, "late": 1, "bad": 0, "ahead": 0, "filtered": 2}
QUESTION = Question(
    {name: Asked(f"source {name}", "ts", "20 seconds", {"ts": "TIMESTAMP", "é": "DOUBLE"}) for name in ("a", "b")},
    ("a.é < b.é",),
    "all",
)


def file_of(name: str, level: int = 1) -> SegmentFile:
    """A segment's description; that of every other one is bare."""
    clocks = {"a": (4, 6)} if name[-1] in "02468" else {}
    return SegmentFile(name, 3, 1000, -5, 7, level, clocks, {"sorted a.x": 70} if level else {})


def commit_of(batch: int, run: str = "r1") -> Commit:
    """A commit with something in every field."""
    gates = {"a": Gate(2**62, NEVER_US, 17, 6, COUNTS), "b": Gate(NEVER_US, NEVER_US, None, 0, COUNTS)}
    live: Live = {
        0: {"a": (file_of("segments/1"), file_of("segments/2"))},
        11: {"b": (file_of("segments/3", level=0),)},
    }
    return Commit(
        batch=batch,
        question=QUESTION,
        query="query 7",
        run=run,
        now_us=12,
        results=34,
        gates=gates,
        live=live,
        dying=("segments/0", "segments/0-index-1"),
        slices={"a": {"kind": "time", "count": 2}},
        controller={"rate": 1.5},
        memory={"crowded": 2},
        ledger=[1, "two"],
        outputs=({"name": "part-1", "rows": 3},),
        freshness={"suppressed": 4},
    )
