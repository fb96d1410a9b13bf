"""Recorded streams through the join, in at least twenty batches, against DuckDB over the whole recording.

Skipped where the recordings are absent (`recorded` in `tests/conftest.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import windrow
from tests.oracle.arrivals import Arrivals, run
from tests.oracle.duck import answer, difference, question

LEAST_BATCHES = 20


@dataclass(frozen=True)
class Recording:
    """Streams by name and the order in which their rows arrived."""

    tables: dict[str, pa.Table]
    arrivals: Arrivals


def merged(tables: dict[str, pa.Table]) -> Recording:
    """In event-time order, as a replay in step brings them."""
    stamps = [(stamp, name, row) for name, table in tables.items() for row, stamp in enumerate(microseconds(table))]
    return Recording(tables, [(name, row) for _, name, row in sorted(stamps)])


def microseconds(table: pa.Table) -> list[int]:
    return list(table["ts"].cast(pa.int64()).to_pylist())


def check(recording: Recording, text: str, *, batch: int, least_rows: int, policy: str = "timestamp") -> None:
    """The same multiset as DuckDB, of at least `least_rows` rows, over enough batches."""
    query = windrow.sql(text, streams=recording.tables, time=dict.fromkeys(recording.tables, "ts"))
    expected = answer(question(text), recording.tables).rows
    assert expected.total() >= least_rows
    found = run(query, recording.tables, recording.arrivals, size=batch, policy=policy)
    assert found.steps >= LEAST_BATCHES
    assert difference(found.rows, expected) == ""


def test_quotes_of_two_venues_within_300_ms_and_a_price_band(recorded: Path) -> None:
    quotes = pq.read_table(recorded / "fx_quotes.parquet")
    start = quotes["ts"].cast(pa.int64())[0].as_py()
    early = pc.less(quotes["ts"].cast(pa.int64()), start + 45 * 60_000_000)
    quotes = quotes.filter(early)
    tables = {venue: quotes.filter(pc.equal(quotes["venue"], venue)) for venue in ("fxcm", "oanda")}
    check(
        merged(tables),
        """
        SELECT a.ts AS a_ts, a.bid AS a_bid, b.ts AS b_ts, b.bid AS b_bid, a.bid - b.bid AS gap
        FROM fxcm AS a, oanda AS b
        WHERE a.symbol = b.symbol AND ABS(a.bid - b.bid) <= 0.00002
        WINDOW 300 MILLISECONDS
        """,
        batch=500,
        least_rows=1_000,
    )


def test_connections_follow_their_clients_dns_answer_as_arrived(recorded: Path) -> None:
    columns = ["seq", "ts", "uid", "id_orig_h"]
    dns = pq.read_table(recorded / "zeek_dns.parquet", columns=columns)
    ssl = pq.read_table(recorded / "zeek_ssl.parquet", columns=columns).slice(0, 15_000)
    last = pc.max(ssl["ts"])
    dns = dns.filter(pc.less_equal(dns["ts"], last))
    arrivals = zeek_arrivals({"dns": dns, "ssl": ssl})
    check(
        Recording({"dns": dns, "ssl": ssl}, arrivals),
        """
        SELECT d.uid AS d_uid, s.uid AS s_uid, d.seq AS d_seq, s.seq AS s_seq
        FROM dns AS d, ssl AS s
        WHERE d.id_orig_h = s.id_orig_h AND s.ts >= d.ts
        WINDOW d 60 SECONDS, s 60 SECONDS
        LATENESS 900 SECONDS
        """,
        batch=700,
        least_rows=1_000,
    )


def zeek_arrivals(tables: dict[str, pa.Table]) -> Arrivals:
    """Each log in its own order of arrival, a row not before the newest event time its log has reached."""
    order = []
    for name, table in tables.items():
        reached = -(2**63)
        for row, stamp in enumerate(microseconds(table)):
            reached = max(reached, stamp)
            order.append((reached, name, row))
    return [(name, row) for _, name, row in sorted(order)]


def test_headlines_of_three_sources_share_half_their_words_within_a_day(recorded: Path) -> None:
    news = pq.read_table(recorded / "news_headlines.parquet")
    start = news["ts"].cast(pa.int64())[0].as_py()
    news = news.filter(pc.less(news["ts"].cast(pa.int64()), start + 11 * 86_400_000_000))
    tables = {source: news.filter(pc.equal(news["source"], source)) for source in ("abc", "nbc", "cbs")}
    check(
        merged(tables),
        """
        SELECT a.slug AS a_slug, b.slug AS b_slug, c.slug AS c_slug, jaccard(a.slug, b.slug) AS alike
        FROM abc AS a, nbc AS b, cbs AS c
        WHERE jaccard(a.slug, b.slug) >= 0.5 AND jaccard(b.slug, c.slug) >= 0.5
        WINDOW 1 DAYS
        """,
        batch=60,
        least_rows=5,
    )


def test_five_groups_of_sensors_on_equal_epoch(recorded: Path) -> None:
    sensors = pq.read_table(recorded / "intel_clean.parquet", columns=["ts", "epoch", "moteid", "temperature", "light"])
    start = sensors["ts"].cast(pa.int64())[0].as_py()
    sensors = sensors.filter(pc.less(sensors["ts"].cast(pa.int64()), start + 120 * 60_000_000))
    tables = {}
    for group in range(5):
        motes = pa.array([mote for mote in range(1, 55) if mote % 5 == group and mote < 25], pa.int16())
        tables[f"g{group}"] = sensors.filter(pc.is_in(sensors["moteid"], value_set=motes))
    check(
        merged(tables),
        """
        SELECT a.epoch AS epoch, a.moteid AS a, b.moteid AS b, c.moteid AS c, d.moteid AS d, e.moteid AS e,
               a.temperature AS t, a.light + e.light AS lights
        FROM g0 AS a, g1 AS b, g2 AS c, g3 AS d, g4 AS e
        WHERE a.epoch = b.epoch AND b.epoch = c.epoch AND c.epoch = d.epoch AND d.epoch = e.epoch
          AND ABS(a.temperature - b.temperature) <= 2
        WINDOW 40 SECONDS
        """,
        batch=100,
        least_rows=1_000,
        policy="round_robin",
    )
