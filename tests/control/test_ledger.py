"""The ledger: its JSON form, its bound, what is due, and how predictions are corrected."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from windrow.control.ledger import LEAST_S, Driven, Ledger, Piece, Tally, Written
from windrow.control.pieces import Outlook, Units, forecast, guessed, price, restricted_steps
from windrow.errors import StateError
from windrow.plan.bins import Bins
from windrow.plan.cost import StepCost, StepStatistics
from windrow.plan.plan import Path, Plan, Step
from windrow.plan.shedding import Portion, Shedding, sampled

SHEDDING = Shedding(0.25, 7, portions=(("a", (sampled(0.1, 2), Portion(0.9, (((0, 5), (9, 12)), None)))),))


def filled(batches: int = 6, most: int = 100) -> Ledger:
    ledger = Ledger(most=most, off=0.0)
    for batch in range(batches):
        driven = {"a": Driven(10 * batch, 10 * batch + 9, {"b": batch + 1})}
        pieces = [Piece(batch, "a", number, number, 50, 1.0, 5.0 * batch) for number in range(2)]
        ledger = ledger.enter(Written(batch, SHEDDING, ("b", "a") if batch % 2 else None, driven), pieces)
    return ledger


def test_it_is_the_same_after_a_way_through_json() -> None:
    _, left = filled(batches=6, most=9).due(2.5, "oldest")
    left = left.took(1.0, 3.0)
    assert Ledger.from_values(json.loads(json.dumps(left.to_values()))) == left
    with pytest.raises(StateError, match="format version 99, this is 2"):
        Ledger.from_values({**left.to_values(), "version": 99})


def test_over_its_bound_it_forgets_the_oldest_and_counts_them() -> None:
    ledger = filled(batches=6, most=5)
    assert [(piece.batch, piece.portion) for piece in ledger.pieces] == [(3, 1), (4, 0), (4, 1), (5, 0), (5, 1)]
    assert ledger.forgotten == Tally(7, 350.0, 7.0, 45.0)
    assert sorted(ledger.written) == [3, 4, 5]
    assert (ledger.oldest_us, ledger.least_clocks) == (30, {"b": 4})


@pytest.mark.parametrize(("order", "first"), [("oldest", 0), ("productive", 5)])
def test_what_is_due_fits_and_parts_add_up(order: str, first: int) -> None:
    ledger = filled()
    seen: list[Piece] = []
    for _ in range(100):
        due, ledger = ledger.due(0.7, order)
        assert 0 < sum(piece.cost_s for piece in due) <= 0.7 + 1e-9
        seen += due
        if not ledger.pieces:
            break
    assert seen[0].batch == first
    for batch in range(6):
        for portion in range(2):
            parts = sorted((p.from_share, p.to_share) for p in seen if (p.batch, p.portion) == (batch, portion))
            assert (parts[0][0], parts[-1][1]) == (0.0, 1.0)
            assert all(one[1] == two[0] for one, two in pairwise(parts))
    assert ledger.repaired.rows == pytest.approx(600)
    assert not ledger.written


def test_what_a_plan_says_is_done_is_done_in_a_ledger_that_is_read_again() -> None:
    ledger = filled()
    due, left = ledger.due(2.5, "oldest")
    chosen = [Piece.from_row(json.loads(json.dumps(piece.to_row()))) for piece in due]
    assert chosen == list(due)
    read = Ledger.from_values(json.loads(json.dumps(ledger.to_values())))
    found, rest = read.parted(chosen)
    assert [piece.place for piece in found] == [piece.place for piece in due]
    assert [piece.place for piece in rest.pieces] == sorted(piece.place for piece in left.pieces)
    done = rest.repairing(found)
    assert done.repaired.rows + sum(piece.rows for piece in done.pieces) == pytest.approx(600)
    assert done.parted(chosen) == ((), done)
    again = rest.reopened(found, read.written)
    assert Tally.of(again.pieces).rows == pytest.approx(600)
    assert again.written == read.written
    assert {piece.place: piece for piece in again.parted(chosen)[1].pieces} == {p.place: p for p in rest.pieces}


def test_pieces_that_cannot_be_repaired_are_forgotten_and_counted() -> None:
    ledger = filled(batches=3)
    left = ledger.forgetting(piece for piece in ledger.pieces if piece.portion == 1)
    assert [piece.portion for piece in left.pieces] == [0, 0, 0]
    assert left.forgotten == Tally(3, 150.0, 3.0, 15.0)


def test_a_single_row_is_not_cut() -> None:
    written = Written(0, SHEDDING, None, {"a": Driven(0, 9)})
    ledger = Ledger(off=0.0).enter(written, [Piece(0, "a", 0, 0, 1, 1.0, 1.0), Piece(0, "a", 1, 0, 10, 1.0, 1.0)])
    due, left = ledger.due(0.5, "oldest")
    assert [(piece.portion, piece.share) for piece in due] == [(1, 0.5)]
    assert [(piece.portion, piece.share) for piece in left.pieces] == [(0, 1.0), (1, 0.5)]


def test_what_work_took_corrects_what_is_predicted() -> None:
    ledger = Ledger()
    piece = Piece(0, "a", 0, 0, 10, 1.0, 1.0)
    for _ in range(30):
        ledger = ledger.took(1.0, 4.0)
    assert ledger.took_s / ledger.predicted_s == pytest.approx(4.0, rel=0.01)
    assert ledger.off < 0.05
    ledger = ledger.enter(Written(0, SHEDDING, None, {"a": Driven(0, 9)}), [piece])
    (part,), _ = ledger.due(2.0, "oldest")
    assert 0.4 < part.share <= 0.5
    assert ledger.open.cost_s == pytest.approx(4.0, rel=0.01)


def test_pieces_are_priced_at_what_steps_cost_now() -> None:
    written = Written(0, SHEDDING, None, {"a": Driven(0, 9)})
    piece = Piece(0, "a", 0, 0, 10, 0.0, 1.0, work=(Units(1, 4, 2), Units(2, 8, 1)))
    ledger = Ledger(off=0.0).enter(written, [piece])
    for factor in (1.0, 3.0):
        cost = StepCost(0.1 * factor, 0.01 * factor, 0.0)
        (priced,) = ledger.priced({"a": (cost, cost)}).pieces
        assert priced.cost_s == pytest.approx(LEAST_S + 10 * factor * (0.3 + 0.12))
        now, _ = priced.cut(0.5)
        (again,) = ledger.enter(written, ()).without((), (now,)).priced({"a": (cost, cost)}).pieces
        assert again.cost_s == pytest.approx(LEAST_S + 5 * factor * (0.3 + 0.12))


def outlooks() -> tuple[Outlook, ...]:
    scores = (0.5, 0.3, 0.2, 0.0)
    return tuple(Outlook(Bins(100, 4), 80.0, StepStatistics(k, 0.05, scores)) for k in range(2))


def test_pieces_cost_and_find_what_is_missing_of_the_whole() -> None:
    path = outlooks()
    half = Portion(1.0, (((0, 50),), ((0, 25),)))
    steps = restricted_steps(half, 0.3)
    found = [forecast(half, 0.3, step, path) for step in steps]
    assert steps == (0, 1)
    prompt = forecast(half, 0.3, 2, path)
    seconds = [price(each.work, [StepCost(0.0, 1.0, 0.0)] * 2) for each in (*found, prompt)]
    in_first, in_second = 40 + 4 * 0.8, 20 + 4 * 0.5
    assert seconds == pytest.approx(
        [40 + 4 * 0.2 * (1 + 80), in_first + 4 * 0.8 * (60 + 4 * 0.5), in_first + 4 * 0.8 * in_second]
    )
    assert [each.results for each in found] == pytest.approx([0.2 * 4 * 4, 0.8 * 4 * 0.5 * 4])
    assert sum(each.results for each in found) + prompt.results == pytest.approx(16.0)


def test_a_sampled_portion_has_one_piece_and_one_that_probes_nothing_too() -> None:
    path = outlooks()
    thin = sampled(0.1, 2)
    assert restricted_steps(thin, 0.25) == (0,)
    assert restricted_steps(thin, 1.0) == ()
    assert forecast(thin, 0.25, 0, path).results == pytest.approx(0.75 * 16)
    assert restricted_steps(Portion(1.0, ((), ((0, 5),))), 0.25) == (0,)
    assert forecast(Portion(1.0, ((), ())), 0.25, 0, path).results == pytest.approx(16)


def test_a_guess_takes_every_probe_for_a_match() -> None:
    plan = Plan("timestamp", (Path("a", (Step("b", "loop", (0,), (), (), ""),)),))
    bins = {"a": (Bins(100, 4),)}
    (step,) = guessed(plan, bins, {"a": 5, "b": 200})["a"]
    assert forecast(Portion(1.0, ((),)), 0.5, 0, (step,)).results == pytest.approx(1.0)
