"""Files of a checkpoint that were damaged are refused in one line, or can be read; no other error comes of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.damage import damaged
from tests.run.spark.played import Way
from tests.run.spark.test_throttled import throttled
from tests.run.spark.test_worker import QUESTIONS, batches_of, joined
from windrow.errors import WindrowError
from windrow.plan.plan import Plan
from windrow.run.events import event_name, read_event
from windrow.run.spark.journal import Journal
from windrow.run.spark.state import Commit
from windrow.store.storage import LocalStorage

Read = Callable[[str], object]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A file of each kind, as a throttled join wrote it."""
    folder = tmp_path_factory.mktemp("checkpoint")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WINDROW_COMPILE", "0")
        patch.setenv("WINDROW_CACHE_DIR", str(tmp_path_factory.mktemp("kernels")))
        query = joined(QUESTIONS["two"])
        played = throttled(query, folder, Way(2, hops=False))
        for batch, tables in enumerate(batches_of(query.sources)[:3]):
            played.run(batch, tables)
    found = {kind: (folder / kind / "2.json").read_text() for kind in ("commits", "plans")}
    return {**found, "events": (folder / event_name(0)).read_text(), "plan": played.runner.plan.to_json()}


def readers(folder: Path) -> dict[str, Read]:
    """What reads each kind of file."""
    storage = LocalStorage(folder)

    def event(text: str) -> object:
        storage.put(event_name(0), text.encode("utf-8", "surrogatepass"))
        return read_event(storage, event_name(0))

    def written_plan(text: str) -> object:
        storage.put("plans/2.json", text.encode("utf-8", "surrogatepass"))
        return Journal(storage).plan(2)

    return {"commits": Commit.from_json, "plan": Plan.from_json, "events": event, "plans": written_plan}


def outcomes(kind: str, text: str, read: Read, seeds: range) -> Counter[str]:
    found: Counter[str] = Counter()
    for seed in seeds:
        try:
            read(damaged(text, seed))
        except WindrowError as error:
            told = str(error)
        except Exception as error:
            raise AssertionError(f"{kind}, seed {seed}: {type(error).__name__}: {error}") from error
        else:
            found["read"] += 1
            continue
        assert "\n" not in told, f"{kind}, seed {seed}"
        found["refused"] += 1
    return found


@pytest.mark.parametrize("kind", ["commits", "plan", "events", "plans"])
def test_damaged_files_are_refused(kind: str, written: dict[str, str], tmp_path: Path) -> None:
    read = readers(tmp_path)[kind]
    read(written[kind])
    assert json.loads(written[kind])
    found = outcomes(kind, written[kind], read, range(300))
    assert found["refused"] > 60
    assert found.total() == 300


@pytest.mark.long
@pytest.mark.parametrize("kind", ["commits", "plan", "events", "plans"])
def test_many_damaged_files_are_refused(kind: str, written: dict[str, str], tmp_path: Path) -> None:
    found = outcomes(kind, written[kind], readers(tmp_path)[kind], range(1_000, 21_000))
    assert found["refused"] > 4_000
