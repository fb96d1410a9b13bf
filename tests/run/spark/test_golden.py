"""A checkpoint that another Windrow wrote is gone on with, or refused in one line that says what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.oracle.duck import rows_of
from tests.run.spark.golden import BATCHES, KINDS, ROWS, path_of, played, unpacked, versions, written
from tests.run.spark.played import Rows
from tests.run.spark.test_worker import QUESTIONS, batches_of, joined
from windrow.errors import StateError
from windrow.run.local import local
from windrow.run.spark.checkpoint import described, read_checkpoint
from windrow.run.spark.state import FORMAT_VERSION

pytestmark = pytest.mark.usefixtures("interpreted")


def exact(kind: str) -> list[Rows]:
    """The rows of each batch of the exact join, in one process."""
    query = joined(QUESTIONS["two" if kind == "throttled" else "rows"])
    found = []
    with local(query) as join:
        for tables in batches_of(query.sources, ROWS):
            for name, table in tables.items():
                join.push(name, table)
            found.append(rows_of(join.step(now_s=0)))
    return found


def test_there_is_a_checkpoint_of_this_version() -> None:
    assert FORMAT_VERSION in versions(), "run python -m tests.run.spark.golden"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", versions())
def test_a_kept_checkpoint_is_gone_on_with_or_refused(version: int, kind: str, tmp_path: Path) -> None:
    unpacked(version, kind, tmp_path)
    join = played(kind, tmp_path)
    batches = batches_of([stream.source for stream in join.spec.streams], ROWS)
    if version != FORMAT_VERSION:
        with pytest.raises(StateError, match=f"format version {version}, this is {FORMAT_VERSION}") as told:
            join.run(BATCHES, batches[BATCHES])
        assert "\n" not in str(told.value)
        return
    assert described(read_checkpoint(str(tmp_path)))["batch"] == BATCHES - 1
    expected = exact(kind)
    for batch in range(BATCHES, BATCHES + 3):
        found = join.run(batch, batches[batch])
        assert found <= expected[batch] if kind == "throttled" else found == expected[batch]
    assert sum(rows.total() for rows in expected[BATCHES : BATCHES + 3]) > 5


def test_what_is_kept_is_what_is_written_now(tmp_path: Path) -> None:
    """The kept checkpoint has the objects that this Windrow writes; names end in the run's and the attempt's."""

    def stems(names: object) -> list[str]:
        assert isinstance(names, dict)
        return sorted(name.rpartition("/")[0] for name in names)

    kept, now = json.loads(path_of(FORMAT_VERSION).read_text()), written(tmp_path)
    for kind in KINDS:
        assert stems(kept[kind]) == stems(now[kind])
