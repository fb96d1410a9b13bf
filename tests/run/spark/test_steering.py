"""What the controller on Spark is told of time: the work of batches, not the waiting between them."""

from __future__ import annotations

import pytest

import windrow
from tests.oracle.tables import table_of
from windrow.control.observation import Joined, Observation
from windrow.plan.order import plan_query
from windrow.plan.work import REFERENCE
from windrow.run.spark.steering import Steering


def told_s(trigger_s: float, took_s: float, apart_s: float) -> float:
    """What a batch is said to take, when batches take so long and begin so far apart."""
    tables = {name: table_of(3, 1) for name in ("s", "t")}
    query = windrow.sql("SELECT a.id AS i FROM s AS a, t AS b WINDOW 1 SECOND", tables, time=dict.fromkeys("st", "ts"))
    spec = query.spec()
    clock = [0.0]
    steering = Steering(spec, plan_query(spec), None, REFERENCE, trigger_s=trigger_s, stopwatch=lambda: clock[0])
    for batch in range(6):
        clock[0] = batch * apart_s
        steering.begin()
        clock[0] += took_s
        steering.observe(Observation(batch, batch * apart_s, apart_s, took_s, {}, Joined()))
        steering.end(0.0)
    assert steering.observation is not None
    return steering.observation.busy_s


@pytest.mark.parametrize(
    ("trigger_s", "took_s", "apart_s", "busy_s"),
    [(1.0, 0.25, 1.0, 0.25), (1.0, 1.25, 1.5, 1.5), (0.0, 0.25, 0.375, 0.375)],
    ids=["there is time to wait", "one follows the other at once", "without a trigger"],
)
def test_waiting_for_the_trigger_is_no_work(trigger_s: float, took_s: float, apart_s: float, busy_s: float) -> None:
    assert told_s(trigger_s, took_s, apart_s) == pytest.approx(busy_s)
