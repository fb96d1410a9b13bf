"""Repair of a query that is stopped: rounds between its last batch and the next.

    commit N ─▶ rounds/N-1-plan: pieces ─▶ job ─▶ sink, as batch -R ─▶ rounds/N-1: the ledger then ─▶ rounds/N-2-plan …

    the query goes on:    commit N, with the ledger of its last round ─▶ batch N+1

Spark knows nothing of rounds, so they do not take the numbers of its batches: to the sink the rounds of a query are
batches -1, -2, … One that was begun is ended first, by its plan, whoever goes on: so a sink that is keyed by batch
holds each row once, whatever died in between. Pieces that a batch has chosen which was begun, and not committed, are
left to it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from windrow.control.ledger import Piece
from windrow.errors import StateError
from windrow.run.spark.state import Commit
from windrow.store.storage import Storage

FORMAT_VERSION = 1
FOLDER = "rounds"


@dataclass(frozen=True)
class Standing:
    """Where a query that is stopped stands: its last commit, as its rounds left it, the number of these, and the pieces
    of one that was begun.
    """

    commit: Commit
    rounds: int = 0
    begun: tuple[Piece, ...] | None = None


def standing(storage: Storage, commit: Commit) -> Standing:
    """What rounds have been run since a commit."""
    rounds = 0
    while (found := _read(storage, _name(commit.batch, rounds + 1))) is not None:
        commit, rounds = replace(commit, ledger=found["ledger"], results=int(found["results"])), rounds + 1
    plan = _read(storage, _plan_name(commit.batch, rounds + 1))
    return Standing(commit, rounds, None if plan is None else tuple(map(Piece.from_row, plan["pieces"])))


def write_plan(storage: Storage, batch: int, number: int, pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
    """Write which pieces a round runs; those that hold, which are others if somebody wrote some before."""
    name, rows = _plan_name(batch, number), [piece.to_row() for piece in pieces]
    if storage.put_new(name, _text({"pieces": rows})):
        return pieces
    held = _read(storage, name)
    return pieces if held is None else tuple(map(Piece.from_row, held["pieces"]))


def write_round(storage: Storage, batch: int, number: int, ledger: Any, results: int) -> None:
    """Write how a round left the ledger, and how many results there were then; refused if somebody else has done."""
    name, data = _name(batch, number), _text({"ledger": ledger, "results": results})
    if not storage.put_new(name, data) and storage.find(name) != data:
        message = f"round {number} after batch {batch} has been run by another program"
        raise StateError(message, place=storage.place(name), hint="repair from one program at a time")


def check_alone(storage: Storage, batch: int, rounds: int) -> None:
    """Refuse to go on from a commit that somebody else repairs meanwhile."""
    if storage.find(_plan_name(batch, rounds + 1)) is not None:
        hint = "restart the query: it goes on from the repair"
        raise StateError("the query was repaired by another program while it ran", place=storage.address, hint=hint)


def _read(storage: Storage, name: str) -> dict[str, Any] | None:
    found = storage.find(name)
    if found is None:
        return None
    try:
        values = dict(json.loads(found))
        version = values["version"]
    except (ValueError, KeyError, TypeError) as error:
        message = f"'{name}' is damaged: {type(error).__name__} {error}"
        raise StateError(message, place=storage.place(name), hint="restore it from a copy") from error
    if version != FORMAT_VERSION:
        message = f"'{name}' has format version {version}, this is {FORMAT_VERSION}"
        raise StateError(message, place=storage.place(name), hint="repair with the version that wrote it")
    return values


def _text(values: Mapping[str, Any]) -> bytes:
    return json.dumps({**values, "version": FORMAT_VERSION}, separators=(",", ":")).encode()


def _name(batch: int, number: int) -> str:
    return f"{FOLDER}/{batch}-{number}.json"


def _plan_name(batch: int, number: int) -> str:
    return f"{FOLDER}/{batch}-{number}-plan.json"
