"""Recorded streams, with a join to ask of each and the order in which their rows arrived (`recorded` in conftest.py).

quotes        two venues, a price band within 300 ms         in event-time order
connections   a client's dns answer, then its connection     as arrived, out of order by up to minutes
headlines     three sources that share half their words      in event-time order
sensors       five groups on equal epoch                     in event-time order
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tests.oracle.arrivals import Arrivals

MINUTE_US = 60_000_000
DAY_US = 86_400_000_000


@dataclass(frozen=True)
class Recording:
    """Streams by name, the order in which their rows arrived, and a query."""

    tables: dict[str, pa.Table]
    arrivals: Arrivals
    text: str


def quotes(folder: Path, minutes: int) -> Recording:
    """Quotes of two venues for the same money, at almost the same price."""
    held = first(pq.read_table(folder / "fx_quotes.parquet"), minutes * MINUTE_US)
    tables = {venue: held.filter(pc.equal(held["venue"], venue)) for venue in ("fxcm", "oanda")}
    text = """
        SELECT a.ts AS a_ts, a.bid AS a_bid, b.ts AS b_ts, b.bid AS b_bid, a.bid - b.bid AS gap
        FROM fxcm AS a, oanda AS b
        WHERE a.symbol = b.symbol AND ABS(a.bid - b.bid) <= 0.00002
        WINDOW 300 MILLISECONDS"""
    return Recording(tables, in_step(tables), text)


def connections(folder: Path, rows: int, lateness: str) -> Recording:
    """Encrypted connections that follow an answer to their client within a minute, out of so many connections."""
    columns = ["seq", "ts", "uid", "id_orig_h"]
    dns = pq.read_table(folder / "zeek_dns.parquet", columns=columns)
    ssl = pq.read_table(folder / "zeek_ssl.parquet", columns=columns).slice(0, rows)
    tables = {"dns": dns.filter(pc.less_equal(dns["ts"], pc.max(ssl["ts"]))), "ssl": ssl}
    text = f"""
        SELECT d.uid AS d_uid, s.uid AS s_uid, d.seq AS d_seq, s.seq AS s_seq
        FROM dns AS d, ssl AS s
        WHERE d.id_orig_h = s.id_orig_h AND s.ts >= d.ts
        WINDOW d 60 SECONDS, s 60 SECONDS
        LATENESS {lateness}"""
    return Recording(tables, as_arrived(tables), text)


def headlines(folder: Path, days: int) -> Recording:
    """Headlines of three sources within a day that share at least half of their words."""
    held = first(pq.read_table(folder / "news_headlines.parquet"), days * DAY_US)
    tables = {source: held.filter(pc.equal(held["source"], source)) for source in ("abc", "nbc", "cbs")}
    text = """
        SELECT a.slug AS a_slug, b.slug AS b_slug, c.slug AS c_slug, jaccard(a.slug, b.slug) AS alike
        FROM abc AS a, nbc AS b, cbs AS c
        WHERE jaccard(a.slug, b.slug) >= 0.5 AND jaccard(b.slug, c.slug) >= 0.5
        WINDOW 1 DAYS"""
    return Recording(tables, in_step(tables), text)


def sensors(folder: Path, minutes: int) -> Recording:
    """Readings of five groups of sensors in the same epoch; the first 24 sensors."""
    columns = ["ts", "epoch", "moteid", "temperature", "light"]
    held = first(pq.read_table(folder / "intel_clean.parquet", columns=columns), minutes * MINUTE_US)
    tables = {}
    for group in range(5):
        motes = pa.array([mote for mote in range(1, 25) if mote % 5 == group], pa.int16())
        tables[f"g{group}"] = held.filter(pc.is_in(held["moteid"], value_set=motes))
    text = """
        SELECT a.epoch AS epoch, a.moteid AS a, b.moteid AS b, c.moteid AS c, d.moteid AS d, e.moteid AS e,
               a.temperature AS t, a.light + e.light AS lights
        FROM g0 AS a, g1 AS b, g2 AS c, g3 AS d, g4 AS e
        WHERE a.epoch = b.epoch AND b.epoch = c.epoch AND c.epoch = d.epoch AND d.epoch = e.epoch
          AND ABS(a.temperature - b.temperature) <= 2
        WINDOW 40 SECONDS"""
    return Recording(tables, in_step(tables), text)


def first(table: pa.Table, span_us: int) -> pa.Table:
    """The rows up to a time after the first."""
    stamps = table["ts"].cast(pa.int64())
    return table.filter(pc.less(stamps, stamps[0].as_py() + span_us))


def in_step(tables: dict[str, pa.Table]) -> Arrivals:
    """In event-time order, as a replay in step brings them."""
    stamps = [(stamp, name, row) for name, table in tables.items() for row, stamp in enumerate(microseconds(table))]
    return [(name, row) for _, name, row in sorted(stamps)]


def as_arrived(tables: dict[str, pa.Table]) -> Arrivals:
    """Each stream in its own order of arrival, a row not before the newest event time its stream has reached."""
    order = []
    for name, table in tables.items():
        reached = -(2**63)
        for row, stamp in enumerate(microseconds(table)):
            reached = max(reached, stamp)
            order.append((reached, name, row))
    return [(name, row) for _, name, row in sorted(order)]


def microseconds(table: pa.Table) -> list[int]:
    """The event times."""
    return list(table["ts"].cast(pa.int64()).to_pylist())
