"""Section 4.4: PSP-I, several rows in the ring at once.

The basic ring waits for a row's last END before it reads in the next one, and nodes are idle meanwhile, "since the
performance of the ring is determined by its slowest processing node". PSP-I reads in more, up to a limit; delayed purge
keeps results exact, at the price of some rows held twice. The paper has no figure of it; the columns here are what the
text is about. Equation 4's output is the limit: nodes without any idle time.
"""

from __future__ import annotations

from windrow.papers.experiment import Chart, Claim, Experiment, Outcome, Series
from windrow.papers.psp.scenario import QUICK_RUN_S, WARM_UP_S, Scenario, milliseconds
from windrow.papers.tables import Table

NODES = 14
LIMITS, QUICK_LIMITS = (1, 2, 3, 4, 6, 8, 12, 16), (1, 2, 4, 8)
ROWS, QUICK_ROWS = 400, 60
MOST_DUPLICATES = 0.2


def run(quick: bool, seed: int) -> Outcome:
    """Consecutive rows under every limit."""
    scenario = Scenario()
    feed = scenario.feed(QUICK_RUN_S, seed)
    begin = feed.position_at(WARM_UP_S)
    drivers = range(begin, begin + (QUICK_ROWS if quick else ROWS))
    rows = []
    for limit in QUICK_LIMITS if quick else LIMITS:
        done = scenario.simulate(feed, drivers, scenario.ring(NODES, limit), seed)
        busy = sum(done.busy_s) / NODES / done.span_s
        rows.append((limit, done.service_hz, done.output_hz, done.latency_s, done.stored_rows, busy))
    columns = ("at_once", "service_hz", "output_hz", "latency_s", "stored_rows", "busy")
    table = Table.of(columns, rows)
    service = Series.of(table, "rows a second", x="at_once", y="service_hz")
    latency = Series.of(table, "latency of a result (s)", x="at_once", y="latency_s")
    chart = Chart("rows at once", "rows a second", (service,), right=(latency,), right_title="latency (s)")
    return Outcome(table, _claims(scenario, table), (chart,))


def _claims(scenario: Scenario, table: Table) -> tuple[Claim, ...]:
    service, busy, stored = (table.numbers(name) for name in ("service_hz", "busy", "stored_rows"))
    latency, limits = table.numbers("latency_s"), table.numbers("at_once")
    most_hz = scenario.load.service_hz(NODES)
    extra = stored[-1] / stored[0] - 1
    return (
        Claim(
            "interleaving fills idle time",
            "long idle periods without it",
            f"nodes are {busy[0]:.0%} busy with one row, {busy[-1]:.0%} with {limits[-1]:.0f}",
            busy[-1] > busy[0],
        ),
        Claim(
            "throughput grows",
            "yes",
            f"{service[0]:.1f} to {service[-1]:.1f} rows a second; equation 3 allows {most_hz:.1f}",
            service[0] < service[-1] <= 1.05 * most_hz,
        ),
        Claim("some rows are held twice", "some", f"{extra:.1%}", 0 < extra < MOST_DUPLICATES),
        Claim(
            "a row shares the nodes with others",
            "not in the paper",
            f"latency {milliseconds(latency[0])} to {milliseconds(latency[-1])}",
            latency[-1] > latency[0],
        ),
    )


EXPERIMENT = Experiment("psp/interleaving", "PSP-I: several rows in the ring at once", run)
