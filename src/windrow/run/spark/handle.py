"""A running join on Spark, seen from the program that started it."""

from __future__ import annotations

from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from windrow.run.spark.query import BatchRunner


class RunningJoin:
    """Handle of a join on Spark; made by `SparkJoin.start`. `spark_query` is Spark's own."""

    def __init__(self, spark_query: StreamingQuery, runner: BatchRunner) -> None:
        self.spark_query = spark_query
        self._runner = runner

    def status(self) -> dict[str, Any]:
        """Where the join stands: the last batch, results so far, and each stream's rows by what became of them."""
        state = self._runner.last
        return {
            "active": self.spark_query.isActive,
            "batch": -1 if state is None else state.batch,
            "results": 0 if state is None else state.results,
            "segments": 0 if state is None else len(state.names()),
            "streams": {} if state is None else {name: dict(gate.counts) for name, gate in state.gates.items()},
        }

    def explain(self) -> str:
        """The plan: what each driver probes, by which method, and why."""
        lines = [f"slices by event time: {self._runner.plan.slices.count}"]
        for path in self._runner.setting.plan.paths:
            lines += [f"{path.driver} probes {step.stream}: {step.method} ({step.why})" for step in path.steps]
        return "\n".join(lines)

    def await_termination(self, timeout_s: int | None = None) -> bool:
        """Wait until the join ends; False if it still runs after `timeout_s`. What made it fail is raised."""
        if timeout_s is None:
            self.spark_query.awaitTermination()
            return True
        return bool(self.spark_query.awaitTermination(timeout_s))

    def stop(self) -> None:
        """Stop the join; a batch that is cut off is run again by a restart from the same checkpoint."""
        self.spark_query.stop()
