"""Checkpoints that are kept: one for each version of the format of commits, as the Windrow of its time wrote it.

    python -m tests.run.spark.golden      writes tests/data/checkpoint-VERSION.json for the version of this Windrow

A file holds two checkpoints after three batches, as names of objects and their bytes in base64: that of an exact join
with windows of rows, so that rows wait, and that of one under a throttle, with what is learned and left out. Write one
when the version changes, before the old code is gone; never write an old one again.
"""

from __future__ import annotations

import base64
import json
import tempfile
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.run.spark.played import Played, Way
from tests.run.spark.test_throttled import throttled
from tests.run.spark.test_worker import QUESTIONS, batches_of, joined
from windrow.run.spark.state import FORMAT_VERSION
from windrow.store.storage import LocalStorage

FOLDER = REPOSITORY / "tests" / "data"
KINDS = ("exact", "throttled")
BATCHES = 3
ROWS = 8
"""What a batch has of each stream."""
WAY = Way(2, hops=False, fan_in=2)


def path_of(version: int) -> Path:
    """Where the checkpoints of a version are kept."""
    return FOLDER / f"checkpoint-{version}.json"


def versions() -> list[int]:
    """The versions whose checkpoints are kept."""
    return sorted(int(path.stem.removeprefix("checkpoint-")) for path in FOLDER.glob("checkpoint-*.json"))


def played(kind: str, folder: Path) -> Played:
    """A join of one kind over the state in a folder."""
    if kind == "throttled":
        return throttled(joined(QUESTIONS["two"]), folder, WAY)
    return Played(joined(QUESTIONS["rows"]), folder, WAY)


def written(folder: Path) -> dict[str, dict[str, str]]:
    """The checkpoints that this Windrow writes, below a folder."""
    found = {}
    for kind in KINDS:
        join = played(kind, folder / kind)
        for batch, tables in enumerate(batches_of([s.source for s in join.spec.streams], ROWS)[:BATCHES]):
            join.run(batch, tables)
        found[kind] = {name: base64.b64encode(join.storage.get(name)).decode() for name in join.storage.list()}
    return found


def unpacked(version: int, kind: str, folder: Path) -> None:
    """Put a checkpoint of a version into a folder."""
    storage = LocalStorage(folder)
    for name, held in json.loads(path_of(version).read_text())[kind].items():
        storage.put(name, base64.b64decode(held))


def main() -> None:
    """Write the checkpoints of this version."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("WINDROW_COMPILE", "0")
        found = written(Path(folder))
    FOLDER.mkdir(exist_ok=True)
    path_of(FORMAT_VERSION).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
