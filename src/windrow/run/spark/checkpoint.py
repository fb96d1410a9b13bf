"""A checkpoint seen from outside: for people who want to know what is in it, without Spark, whether or not it runs.

    DIR/windrow      the join's own state: commits, plans, segments        DIR/spark      Spark's: offsets, its commits

Everything shown comes from the last commit, which names all that is live. To find that one the folder of commits is
listed, which a running query never does.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from windrow.errors import StateError
from windrow.run.admit import NEVER_US
from windrow.run.spark.journal import Journal
from windrow.run.spark.owed import repair_of
from windrow.run.spark.rounds import standing
from windrow.run.spark.state import Commit, Gate, each_file
from windrow.store.storage import Storage, open_storage, shown

STATE = "windrow"
"""The folder of the state below a checkpoint."""

_COMMIT = re.compile(r"commits/0*(\d+)\b.*")


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint's last commit, and the batches whose commits are still on disk."""

    address: str
    commit: Commit
    batches: tuple[int, ...]


def read_checkpoint(address: str) -> Checkpoint:
    """What is at an address; a `StateError` where there is no checkpoint."""
    found = find_checkpoint(address)
    if found is None:
        hint = "give the folder that was --checkpoint or start(checkpoint=…); a query has a state after its first batch"
        raise StateError(f"there is no state in '{shown(address)}'", hint=hint)
    return found


def find_checkpoint(address: str) -> Checkpoint | None:
    """The checkpoint at an address, or the state that is itself there; None without either."""
    for storage in (open_storage(f"{address.rstrip('/')}/{STATE}"), open_storage(address)):
        batches = committed(storage)
        commit = Journal(storage).commit(batches[-1]) if batches else None
        if commit is not None:
            return Checkpoint(address, standing(storage, commit).commit, batches)
    return None


def committed(storage: Storage) -> tuple[int, ...]:
    """The batches whose commits are on disk, in order."""
    found = (_COMMIT.fullmatch(name) for name in storage.list("commits"))
    return tuple(sorted({int(match[1]) for match in found if match}))


def described(checkpoint: Checkpoint) -> dict[str, Any]:
    """A checkpoint as plain values; times are microseconds since 1970, None before there are any."""
    commit = checkpoint.commit
    repair = repair_of(commit)
    newest_us = max((gate.watermark_us for gate in commit.gates.values()), default=NEVER_US)
    return {
        "batch": commit.batch,
        "batches_on_disk": list(checkpoint.batches),
        "now_us": commit.now_us,
        "results": commit.results,
        "slices": len(commit.live),
        "segments": sum(1 for _ in each_file(commit.live)),
        "bytes": sum(file.total_bytes for _, _, file in each_file(commit.live)),
        "dying": len(commit.dying),
        "repair": None if repair is None else asdict(repair),
        "conditions": list(commit.question.conditions),
        "streams": {name: _stream(commit, name, gate, newest_us) for name, gate in commit.gates.items()},
    }


def holder(commit: Commit, name: str) -> str | None:
    """The stream that holds the expiry of another's rows back: of all others the one with the lowest watermark.

    None if no other stream has a watermark above the lowest one: then all are in step.
    """
    others = {other: gate.watermark_us for other, gate in commit.gates.items() if other != name}
    lowest = min(others, key=lambda other: others[other], default=None)
    newest_us = max(gate.watermark_us for gate in commit.gates.values())
    return lowest if lowest is not None and others[lowest] < newest_us else None


def _stream(commit: Commit, name: str, gate: Gate, newest_us: int) -> dict[str, Any]:
    files = [file for _, stream, file in each_file(commit.live) if stream == name]
    known = gate.watermark_us != NEVER_US
    asked = commit.question.streams.get(name)
    return {
        "window": None if asked is None else asked.window,
        **gate.counts,
        "newest_us": None if gate.newest_us == NEVER_US else gate.newest_us,
        "watermark_us": gate.watermark_us if known else None,
        "behind_us": newest_us - gate.watermark_us if known else None,
        "held_back_by": holder(commit, name),
        "stored": sum(file.rows for file in files),
        "bytes": sum(file.total_bytes for file in files),
        "index_bytes": sum(file.total_bytes - file.bytes for file in files),
        "segments": len(files),
        "levels": {str(level): count for level, count in sorted(Counter(file.level for file in files).items())},
        "slices": sum(1 for streams in commit.live.values() if streams.get(name)),
        "first_us": min((file.first_us for file in files), default=None),
        "last_us": max((file.last_us for file in files), default=None),
    }
