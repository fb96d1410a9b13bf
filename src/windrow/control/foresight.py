"""What steps found and took so far, as prospects: what is expected of them in the next batch.

    Observation ──▶ matches and candidates a pair in reach, seconds beside those of the table ──▶ plan.turns.Prospect

It has to be quick: what a step costs is the table's cost times one factor, how much longer it took than the table says.
(`windrow.control.fit` learns each coefficient, for decisions made now and then; with that a batch of three milliseconds
took one more.) And after batches of a few milliseconds it is asked only now and then: an order stays until it pays to
think about another.

>>> from windrow.control.observation import Joined, Observation, PathTally, StepTally
>>> from windrow.plan.plan import Path, Plan, Step
>>> from windrow.plan.work import REFERENCE
>>> plan = Plan("auto_total", (Path("a", (Step("b", "hashed", (0,), (), (), ""),)),))
>>> foresight = Foresight.of(REFERENCE, plan)
>>> foresight.prospects() is None
True
>>> done = Joined(others={"a": PathTally(10, 5, (StepTally(probes=10, searched=1000, candidates=20, matches=5),))})
>>> foresight.observe(Observation(0, 0.0, 1.0, 0.1, {}, done)).prospects()["a"][0].found
0.005
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from windrow.control.observation import Observation, StepTally
from windrow.plan.cost import StepCost
from windrow.plan.plan import Plan
from windrow.plan.turns import Prospect, Prospects
from windrow.plan.work import WorkCosts

FADING = 0.8
CALL_S, MOST_OFF = 2e-4, 5.0
"""What a step takes whatever it does, and how many times as long as expected a time may count: the first compiles."""


WORTH_S, SELDOM = 5e-3, 8


def pays(batch: int, busy_s: float) -> bool:
    """Whether to think about a batch, given the number of the one before and what it took.

    >>> pays(0, 0.003), pays(1, 0.003), pays(1, 0.03)
    (True, False, True)
    """
    return busy_s >= WORTH_S or batch % SELDOM == 0


@dataclass(frozen=True, slots=True)
class Seen:
    """Pairs in reach, rows looked at, and matches of a step; its seconds, and those of the table. The latest weigh
    most.
    """

    pairs: float = 0.0
    looked_at: float = 0.0
    found: float = 0.0
    seconds: float = 0.0
    expected_s: float = 0.0

    def after(self, tally: StepTally, guess: StepCost) -> Seen:
        """With one more batch; one in which nothing was in reach changes nothing."""
        if tally.searched == 0:
            return self
        expected_s = CALL_S + guess.seconds(tally.probes, tally.candidates, tally.matches)
        return Seen(
            FADING * self.pairs + tally.searched,
            FADING * self.looked_at + tally.candidates,
            FADING * self.found + tally.matches,
            FADING * self.seconds + min(tally.seconds, MOST_OFF * expected_s),
            FADING * self.expected_s + expected_s,
        )

    def prospect(self, target: str, guess: StepCost) -> Prospect:
        """What to expect; a step that nothing has reached yet is expected to find nothing."""
        if not self.pairs:
            return Prospect(target, 0.0, 0.0, guess)
        factor = self.seconds / self.expected_s or 1.0
        cost = StepCost(factor * guess.per_probe, factor * guess.per_candidate, factor * guess.per_result)
        return Prospect(target, self.found / self.pairs, self.looked_at / self.pairs, cost)


@dataclass(frozen=True, slots=True)
class Foresight:
    """What is known of the first path of each driver: a value; each observation makes a new one. `paths` has the target
    and the table's cost of each step.
    """

    paths: Mapping[str, tuple[tuple[str, StepCost], ...]]
    seen: Mapping[str, tuple[Seen, ...]]

    @staticmethod
    def of(costs: WorkCosts, plan: Plan) -> Foresight:
        """Nothing seen yet."""
        paths = {
            path.driver: tuple((step.stream, costs.step(step.method)) for step in path.steps) for path in plan.firsts
        }
        return Foresight(paths, {driver: (Seen(),) * len(steps) for driver, steps in paths.items()})

    def observe(self, observation: Observation) -> Foresight:
        """What is known after a batch."""
        seen = dict(self.seen)
        for done in (observation.joined.sampled, observation.joined.others):
            for driver, tally in done.items():
                if driver in seen:
                    held = zip(seen[driver], tally.steps, self.paths[driver], strict=True)
                    seen[driver] = tuple(each.after(step, guess) for each, step, (_, guess) in held)
        return replace(self, seen=seen)

    def prospects(self) -> Prospects | None:
        """What is expected of each step; None before all drivers have probed something."""
        if any(held[0].pairs == 0 for held in self.seen.values()):
            return None
        return {
            driver: tuple(
                held.prospect(target, guess) for held, (target, guess) in zip(self.seen[driver], steps, strict=True)
            )
            for driver, steps in self.paths.items()
        }
