"""Figure 7: what ATR, CTR and PSP spend CPU on, compared (section 7).

The paper's table has words, Low, Middle, High, Yes and No; here each line is a count that stands for it, for every row
that comes in, on 10 nodes at a selectivity of .1: segments of 20 s for ATR, 2 copies for CTR. Latencies and throughput
are in Figure 8.

Two lines are not as the paper has them. A row is stored once in PSP, but wanders: it is inserted on every node in turn,
more often than CTR inserts its copies; rows held are what the paper's "Low" can be about. And "No" for ATR's metadata
holds only if knowing the segments of a row by its time is none; its entries per row are counted as routing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from windrow.papers.experiment import Claim, Experiment, Outcome
from windrow.papers.psp.scenario import Scenario
from windrow.papers.tables import Table
from windrow.plan.ring.relocation import Growth
from windrow.run.cluster.aligned import AlignedSetting, simulate_aligned
from windrow.run.cluster.coordinated import CoordinatedSetting, simulate_coordinated
from windrow.streams.arrivals import SECOND_US

NODES, SEGMENT_S, COPIES, PIECE_US = 10, 20, 2, 200_000
BEGIN_S, ROWS, QUICK_ROWS = 30.0, 400, 60
ATR, CTR, PSP = "ATR", "CTR", "PSP"
ITEMS = (
    "routing_entries_read",
    "rows_on_two_nodes",
    "rows_moved_together",
    "stored_per_window_row",
    "inserts",
    "rows_sent",
)


@dataclass(frozen=True, slots=True)
class Counts:
    """What a scheme does for one row, in the order of `ITEMS`."""

    lookups: float
    overlaps: float
    granule: float
    stored: float
    inserts: float
    sent: float


def run(quick: bool, seed: int) -> Outcome:
    """The three schemes under one load."""
    scenario, rows = Scenario(), QUICK_ROWS if quick else ROWS
    found = {ATR: _aligned(scenario, seed), CTR: _coordinated(scenario, rows, seed), PSP: _ring(scenario, rows, seed)}
    pairs = list(found.items())
    table = Table.of(
        ("scheme", *ITEMS),
        [(name, *(getattr(counts, each) for each in Counts.__slots__)) for name, counts in pairs],
    )
    return Outcome(table, _claims(found))


def _ring(scenario: Scenario, rows: int, seed: int) -> Counts:
    feed = scenario.feed(BEGIN_S + 10, seed)
    begin = feed.position_at(BEGIN_S)
    done = scenario.simulate(feed, range(begin, begin + rows), scenario.ring(NODES), seed)
    stored = done.stored_rows / _in_windows(scenario)
    return Counts(0.0, 0.0, 1.0, stored, float(NODES), done.sent_a_row)


def _coordinated(scenario: Scenario, rows: int, seed: int) -> Counts:
    feed = scenario.feed(BEGIN_S + 10, seed)
    begin = feed.position_at(BEGIN_S)
    setting = CoordinatedSetting(scenario.windows_us, scenario.orders, scenario.costs, NODES, COPIES, PIECE_US, True)
    done = simulate_coordinated(feed, setting, scenario.chance(seed), drivers=range(begin, begin + rows), seed=seed)
    piece = scenario.rate_hz * PIECE_US / SECOND_US
    stored = done.stored_rows / _in_windows(scenario)
    return Counts(done.lookups / rows, done.overlaps / rows, piece, stored, float(COPIES), done.sent_a_row)


def _aligned(scenario: Scenario, seed: int) -> Counts:
    """All rows, on nodes fast enough to keep up, so that nothing but the scheme shows."""
    costs = replace(scenario.costs, compare_s=0.0, insert_s=0.0, purge_s=0.0, send_s=0.0)
    feed = scenario.feed(BEGIN_S + 2 * SEGMENT_S, seed)
    setting = AlignedSetting(scenario.windows_us, scenario.orders, costs, NODES, SEGMENT_S * SECOND_US)
    done = simulate_aligned(feed, setting, scenario.chance(seed))
    settled = done.within(lambda cycle: BEGIN_S < cycle.end_s < BEGIN_S + SEGMENT_S)
    copies = done.sent_rows / feed.rows
    granule = scenario.streams * scenario.rate_hz * SEGMENT_S
    return Counts(copies, 0.0, granule, settled.stored_rows / _in_windows(scenario), copies, copies)


def _in_windows(scenario: Scenario) -> float:
    return scenario.streams * scenario.rate_hz * scenario.window_s


def _claims(found: dict[str, Counts]) -> tuple[Claim, ...]:
    atr, ctr, psp = found[ATR], found[CTR], found[PSP]
    nodes = Growth.of(NODES, 1)
    moved = float(sum(nodes.passed_on) + nodes.added) / (NODES + 1)
    return (
        Claim(
            "routing: Low for ATR, High for CTR, Low for PSP",
            "Low / High / Low",
            _told(atr.lookups, ctr.lookups, psp.lookups, "entries read"),
            ctr.lookups > 10 * max(atr.lookups, psp.lookups),
        ),
        Claim(
            "metadata of segments: only CTR has to know where each lies",
            "No / Yes / No",
            _told(atr.lookups, ctr.lookups, psp.lookups, "entries read"),
            psp.lookups == 0 and ctr.lookups > 10 * atr.lookups,
        ),
        Claim(
            "removal of duplicates: only in CTR nodes find the same",
            "No / Yes / No",
            _told(atr.overlaps, ctr.overlaps, psp.overlaps, "rows on two nodes asked"),
            ctr.overlaps > 0 == atr.overlaps == psp.overlaps,
        ),
        Claim(
            "granularity of balancing: Large for ATR, Small for CTR and PSP",
            "Large / Small / Small",
            _told(atr.granule, ctr.granule, psp.granule, "rows move together"),
            atr.granule > 10 * max(ctr.granule, psp.granule),
        ),
        Claim(
            "state management: High for ATR and CTR, Low for PSP (rows held)",
            "High / High / Low",
            _told(atr.stored, ctr.stored, psp.stored, "rows held per row in the windows"),
            psp.stored < 1.05 and min(atr.stored, ctr.stored) > 1.2,
        ),
        Claim(
            "state management: High for ATR and CTR, Low for PSP (rows inserted)",
            "High / High / Low",
            _told(atr.inserts, ctr.inserts, psp.inserts, "inserts"),
            psp.inserts < min(atr.inserts, ctr.inserts),
        ),
        Claim(
            "adaptation of PSP costs little",
            "Low",
            f"a node more: no row moves passively, {moved:.0%} of the rows at once",
            nodes.slices() == (1,) * (NODES + 1),
        ),
        Claim(
            "network transmission: Low for ATR, Middle for CTR, High for PSP",
            "Low / Middle / High",
            _told(atr.sent, ctr.sent, psp.sent, "rows sent"),
            atr.sent < ctr.sent < psp.sent,
        ),
    )


def _told(atr: float, ctr: float, psp: float, unit: str) -> str:
    return f"{' / '.join(f'{each:.4g}' for each in (atr, ctr, psp))} {unit}"


EXPERIMENT = Experiment("psp/figure7", "What ATR, CTR and PSP spend CPU on", run)
