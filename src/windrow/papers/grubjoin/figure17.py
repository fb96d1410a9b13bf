"""Figure 17: two joins of a disaster claim application, under load shedding that is imposed (section VI-C).

Both correlate claims with problematic agents, in windows close to an hour, the first one in the larger ones; both have
strong time correlations. Up to 35 % shedding the output is nearly that of the full join; at 35 % the second join falls
behind and the first does not, because its windows are larger while its correlations are alike.

The application's data is not described there. Ours: agents are flagged now and then, and a claim of each comes up to 18
minutes earlier or later, at any time alike. Windows are 60 and 30 minutes, so that of the first join's windows 30 % are
worth looking at, and 60 % of the second's: chosen so that the second one's turn comes near the paper's 35 %. The join
is a nested loop over agents, in batches of two minutes; the throttle is fixed, so that no machine plays a part. A tenth
of the rows is shredded and loses what is shed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

import windrow
from windrow.control.controller import ControlSettings
from windrow.papers.experiment import Chart, Claim, Experiment, Outcome, Series
from windrow.papers.tables import Table
from windrow.run.simulate import simulate
from windrow.streams.synthetic import MIDNIGHT_US

MINUTE_S = 60.0
WINDOWS_S = {"first": 60 * MINUTE_S, "second": 30 * MINUTE_S}
LAG_S = 18 * MINUTE_S
RATE_HZ = 0.5
BATCH_S, INTERVAL_S, MEMORY_S = 2 * MINUTE_S, 4 * MINUTE_S, 60 * MINUTE_S
WARM_UP_S, RUN_S, QUICK_RUN_S = 90 * MINUTE_S, 300 * MINUTE_S, 180 * MINUTE_S
SHED, QUICK_SHED = (0.1, 0.2, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7), (0.3, 0.35, 0.5)
TURNING = 0.35
SAME = 0.95


def run(quick: bool, seed: int) -> Outcome:
    """Both joins at every percentage."""
    return shedding(QUICK_SHED if quick else SHED, QUICK_RUN_S if quick else RUN_S, seed)


def shedding(shed: Sequence[float], run_s: float, seed: int) -> Outcome:
    """The same for these shares of work left out."""
    tables = claims_and_agents(run_s, seed)
    rows = []
    for name, window_s in WINDOWS_S.items():
        full = _found(tables, window_s, None)
        rows.append((name, 0.0, full, 1.0))
        for share in shed:
            found = _found(tables, window_s, 1 - share)
            rows.append((name, share, found, found / full))
    table = Table.of(("join", "shed", "results", "share_of_full"), rows)
    series = tuple(Series.of(table.where(join=name), f"{name} join", x="shed", y="share_of_full") for name in WINDOWS_S)
    return Outcome(table, _claims(table), (Chart("share of the work left out", "share of the full output", series),))


def claims_and_agents(run_s: float, seed: int) -> dict[str, pa.Table]:
    """Flagged agents, and one claim of each, within `LAG_S` of it."""
    random = np.random.default_rng(seed)
    count = random.poisson(RATE_HZ * (run_s + 2 * LAG_S))
    flagged_s = random.uniform(-LAG_S, run_s + LAG_S, count)
    claimed_s = flagged_s + random.uniform(-LAG_S, LAG_S, count)
    return {"agents": _table(flagged_s, run_s), "claims": _table(claimed_s, run_s)}


def _table(times_s: np.ndarray[tuple[int], np.dtype[np.float64]], run_s: float) -> pa.Table:
    order = np.argsort(times_s)
    order = order[(times_s[order] >= 0) & (times_s[order] < run_s)]
    stamps = MIDNIGHT_US + (times_s[order] * 1e6).astype(np.int64)
    return pa.table({"ts": pa.array(stamps, pa.timestamp("us")), "agent": order})


def _found(tables: dict[str, pa.Table], window_s: float, throttle: float | None) -> int:
    text = f"SELECT c.agent AS agent FROM claims AS c, agents AS a WHERE c.agent = a.agent WINDOW {window_s:g} SECONDS"
    control = ControlSettings(interval_s=INTERVAL_S, memory_s=MEMORY_S, bins=10)
    options: dict[str, Any] = {} if throttle is None else {"throttle": throttle, "control": control}
    query = windrow.sql(text, streams=tables)
    return simulate(query, tables, batch_s=BATCH_S, methods=["loop"], **options).found(WARM_UP_S)


def _claims(table: Table) -> tuple[Claim, ...]:
    first, second = (
        dict(zip(of.numbers("shed"), of.numbers("share_of_full"), strict=True))
        for of in (table.where(join=name) for name in WINDOWS_S)
    )
    little = [kept[shed] for kept in (first, second) for shed in kept if 0 < shed < TURNING]
    beyond = [shed for shed in first if shed >= TURNING]
    return (
        Claim(
            f"nothing is lost below {TURNING:.0%} of shedding",
            "almost exactly the full output",
            f"{min(little):.3f} of it or more",
            min(little) >= SAME,
        ),
        Claim(
            f"at {TURNING:.0%} the second join falls behind, the first does not",
            "yes",
            f"{second[TURNING]:.3f} and {first[TURNING]:.3f} of the full output",
            second[TURNING] < SAME <= first[TURNING],
        ),
        Claim(
            "larger windows lose less by the same shedding",
            "yes",
            ", ".join(f"at {shed:.0%} {first[shed]:.2f} and {second[shed]:.2f}" for shed in beyond),
            all(first[shed] > second[shed] for shed in beyond),
        ),
    )


EXPERIMENT = Experiment("grubjoin/figure17", "Two joins of different windows, under imposed shedding", run)
