"""When a batch on Spark repairs: in what is left of the trigger, by what batches and repairs took of late."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.run.spark.played import Played, Way
from tests.run.spark.test_repaired import REPAIR, repairing, shed
from tests.run.spark.test_worker import QUESTIONS, batches_of, joined
from windrow.control.observation import Joined, Observation
from windrow.run.backlog import RepairSettings
from windrow.run.spark.repairing import FADED, Repairing
from windrow.run.spark.told import Told

pytestmark = pytest.mark.usefixtures("interpreted")


def behind(folder: Path, trigger_s: float, settings: RepairSettings = REPAIR) -> Repairing:
    """A join that has left things out, and is on time since."""
    query = joined(QUESTIONS["two"])
    played = repairing(Played(query, folder, Way(2)), trigger_s=0.001, clock=lambda: 0.0)
    for batch, tables in enumerate(batches_of(query.sources)[:4]):
        shed(played, batch, tables)
    assert played.runner.repairing is not None
    found = Repairing(played.runner.program, replace(played.setting, trigger_s=trigger_s), settings, None)
    found.restore(played.state.ledger)
    assert found.ledger.pieces
    return found


def calm(held: Repairing, busy_s: float, rows: int = 100, batches: int = 8) -> None:
    for batch in range(batches):
        held.observe(rows, Observation(batch, float(batch), 2.0, busy_s, {}, Joined()))


def took(held: Repairing, seconds: float) -> None:
    """A repair of nothing much that took so long, in a batch of its own."""
    done = Observation(0, 0.0, 2.0, 0.4, {}, Joined(), repaired=held.took(Told(), seconds))
    held.observe(100, replace(done, repaired=replace(done.repaired, pieces=1)))


def test_before_a_batch_was_seen_and_without_time_nothing_is_repaired(tmp_path: Path) -> None:
    held = behind(tmp_path, trigger_s=2.0)
    assert held.planned(100, last=False) == []
    calm(held, busy_s=1.9)
    assert held.planned(100, last=False) == []


def test_pieces_fit_into_what_is_left_of_the_trigger(tmp_path: Path) -> None:
    held = behind(tmp_path, trigger_s=2.0)
    calm(held, busy_s=0.4)
    found = held.planned(100, last=False)
    assert found
    held.begin({"repair": found})
    assert len(held.chosen) == len(found)
    assert 0 < held.expected_s() <= 0.85 * 2.0 - 0.4 - 0.3
    assert not held.is_overdue(0.4)
    assert held.is_overdue(1.9)
    held.put_off()
    assert held.chosen == ()


@pytest.mark.parametrize(("rows", "some"), [(100, True), (300, True), (400, False)])
def test_a_batch_of_more_rows_is_expected_to_take_longer(rows: int, some: bool, tmp_path: Path) -> None:
    held = behind(tmp_path, trigger_s=2.0)
    calm(held, busy_s=0.4)
    assert bool(held.planned(rows, last=False)) == some


def test_a_repair_that_needed_long_besides_its_work_is_tried_again_after_a_while(tmp_path: Path) -> None:
    held = behind(tmp_path, trigger_s=2.0)
    calm(held, busy_s=0.4)
    took(held, seconds=2.0)
    assert held.planned(100, last=False)  # once may be an accident
    for _ in range(8):
        took(held, seconds=2.0)
    assert held.planned(100, last=False) == []
    batches = next(number for number in range(100) if 2.0 * FADED**number < 0.85 * 2.0 - 0.4)
    calm(held, busy_s=0.4, batches=batches - 1)
    assert held.planned(100, last=False) == []
    calm(held, busy_s=0.4, batches=1)
    assert held.planned(100, last=False)


def test_without_a_trigger_batches_are_as_far_apart_as_they_were(tmp_path: Path) -> None:
    held = behind(tmp_path, trigger_s=0.0)
    calm(held, busy_s=0.4)
    assert held.planned(100, last=False)
    calm(held, busy_s=1.5)
    assert held.planned(100, last=False) == []


def test_pieces_may_all_wait_for_the_end(tmp_path: Path) -> None:
    held = behind(tmp_path, trigger_s=2.0, settings=RepairSettings(at_end=True))
    calm(held, busy_s=0.4)
    assert held.planned(100, last=False) == []
    held.take_all()
    assert held.chosen
    assert not held.ledger.pieces
