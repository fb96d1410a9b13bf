"""What a batch is charged for: the counts of an Observation as Work, which costs turn into seconds.

    Observation, Plan ── work_of ──▶ Work ── WorkCosts.seconds_of ──▶ Spent, part by part

An observation counts steps by their place, the plan knows the method at each. Rows merged and indexed, and decisions
made, are not part of it: whoever keeps the stores says them.

>>> from windrow.control.observation import Arrival, Joined, PathTally, StepTally
>>> from windrow.plan.plan import Path, Step
>>> from windrow.plan.work import REFERENCE
>>> plan = Plan("timestamp", (Path("a", (Step("b", "loop", (0,), (), (), ""),)),))
>>> one = PathTally(drivers=10, results=5, steps=(StepTally(10, 1000, 1000, 5),))
>>> joined = Joined(sampled={"a": one}, others={"a": one})
>>> batch = Observation(0, 0.0, 1.0, 0.5, {"a": Arrival(20)}, joined, results=10)
>>> work_of(batch, plan).steps
(StepWork(method='loop', probes=20, candidates=2000, matches=10),)
>>> REFERENCE.seconds_of(work_of(batch, plan, merged_rows=500)).total_s > 0
True
"""

from __future__ import annotations

from windrow.control.observation import Observation
from windrow.plan.plan import Plan
from windrow.plan.work import StepWork, Work


def work_of(
    observation: Observation, plan: Plan, *, merged_rows: float = 0, indexed_rows: float = 0, decisions: float = 0
) -> Work:
    """All the work of a batch that ran by `plan`; without arrivals, of what ran as a part of one: repairs."""
    done: dict[str, StepWork] = {}
    by_name = {path.name: path for path in plan.paths}
    for paths in (observation.joined.sampled, observation.joined.others):
        for name, tally in paths.items():
            for step, counts in zip(by_name[name].steps, tally.steps, strict=False):
                held = done.get(step.method, StepWork(step.method, 0, 0, 0))
                done[step.method] = StepWork(
                    step.method,
                    held.probes + counts.probes,
                    held.candidates + counts.candidates,
                    held.matches + counts.matches,
                )
    return Work(
        batches=1 if observation.arrivals else 0,
        rows=sum(arrival.rows for arrival in observation.arrivals.values()),
        merged_rows=merged_rows,
        indexed_rows=indexed_rows,
        results=observation.results,
        decisions=decisions,
        steps=tuple(done.values()),
    )
