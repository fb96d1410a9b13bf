"""Recorded streams through the join, in at least twenty batches, against DuckDB over the whole recording.

Skipped where the recordings are absent (`recorded` in `tests/conftest.py`).
"""

from __future__ import annotations

from pathlib import Path

import windrow
from tests.oracle import recordings
from tests.oracle.arrivals import run
from tests.oracle.duck import answer, difference, question
from tests.oracle.recordings import Recording

LEAST_BATCHES = 20


def check(recording: Recording, *, batch: int, least_rows: int, policy: str = "timestamp") -> None:
    """The same multiset as DuckDB, of at least `least_rows` rows, over enough batches."""
    text = recording.text
    query = windrow.sql(text, streams=recording.tables, time=dict.fromkeys(recording.tables, "ts"))
    expected = answer(question(text), recording.tables).rows
    assert expected.total() >= least_rows
    found = run(query, recording.tables, recording.arrivals, size=batch, policy=policy)
    assert found.steps >= LEAST_BATCHES
    assert difference(found.rows, expected) == ""


def test_quotes_of_two_venues_within_300_ms_and_a_price_band(recorded: Path) -> None:
    check(recordings.quotes(recorded, minutes=45), batch=500, least_rows=1_000)


def test_connections_follow_their_clients_dns_answer_as_arrived(recorded: Path) -> None:
    check(recordings.connections(recorded, rows=15_000, lateness="900 SECONDS"), batch=700, least_rows=1_000)


def test_headlines_of_three_sources_share_half_their_words_within_a_day(recorded: Path) -> None:
    check(recordings.headlines(recorded, days=11), batch=60, least_rows=5)


def test_five_groups_of_sensors_on_equal_epoch(recorded: Path) -> None:
    check(recordings.sensors(recorded, minutes=120), batch=100, least_rows=1_000, policy="round_robin")
