"""Spark's UI shows what a job is for; what other code had set is there again afterwards."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from windrow.run.spark.described import CALL_SITES, DESCRIPTION, described

TEXT = "windrow batch 12: hop 1 of 2"


def test_jobs_and_stages_carry_batch_and_hop(spark: SparkSession) -> None:
    context = spark.sparkContext
    context.setLocalProperty(DESCRIPTION, "of somebody else")
    with described(context, 12, "hop 1 of 2"):
        spark.range(4).repartition(2).write.format("noop").mode("append").save()
        spark.range(4).repartition(2).collect()
    assert context.getLocalProperty(DESCRIPTION) == "of somebody else"
    assert [context.getLocalProperty(name) for name in CALL_SITES] == [None, None]
    context.setLocalProperty(DESCRIPTION, None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a failing batch"), described(context, 13, "sink"):
        raise ValueError("a failing batch")
    assert context.getLocalProperty(DESCRIPTION) is None
    store = context._jsc.sc().statusStore()
    context._jsc.sc().listenerBus().waitUntilEmpty()
    jobs = [store.jobsList(None).apply(number) for number in range(store.jobsList(None).size())]
    ours = [job for job in jobs if TEXT in job.description().toString()]
    assert len(ours) >= 2
    stages = [store.lastStageAttempt(job.stageIds().apply(k)) for job in ours for k in range(job.stageIds().size())]
    assert len(stages) > 2
    assert all(TEXT in stage.description().toString() for stage in stages)
    assert TEXT in {stage.name() for stage in stages}
