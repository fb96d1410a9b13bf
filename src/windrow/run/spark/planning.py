"""Parts of a batch's plan that follow from what it brings: in which order buffers drive, and where to cut it."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from windrow.plan.drivers import Load, Order, order_of_drivers
from windrow.query.spec import QuerySpec
from windrow.run.spark.setting import Setting
from windrow.run.spark.state import Commit
from windrow.run.spark.steering import Steering


def order_of(
    spec: QuerySpec,
    policy: str,
    last: Commit,
    rows: Mapping[str, int],
    batch: int,
    steering: Steering,
) -> Order | None:
    """The order in which the buffers of a batch drive, by what came, what the last commit says is stored, and what is
    expected of the steps.
    """
    names = [stream.name for stream in spec.streams]
    files = {name: [file for found in last.live.values() for file in found.get(name, ())] for name in names}
    loads = {
        name: Load(
            buffered=rows.get(name, 0),
            stored=sum(file.rows for file in files[name]),
            seen=last.gates[name].counts["rows"] if name in last.gates else 0,
            segments=len(files[name]),
        )
        for name in names
    }
    return order_of_drivers(policy, loads, last.results, batch, steering.prospects)


def cuts_of(setting: Setting, frame: DataFrame, rows: int) -> tuple[int, ...]:
    """Where to cut a batch that is too large for one job."""
    parts = -(-rows // setting.most_rows)
    if parts < 2:
        return ()
    times = {stream.name: stream.time for stream in setting.spec.streams}
    return setting.feed.cuts(frame, times, parts)
