"""Methods that change while a join runs in process: when it is looked at, and what is compiled for that.

    batch k done ──▶ switching (control) ──▶ after batches 2, 4, 8, 16 …: another plan? ──▶ compiled, used from k + 1

Asked for, every change that is predicted to pay is made, and all kernels are compiled beforehand. Not asked for, only
sure ones are: a method that takes half as long, and saves more than compiling it costs over a few hundred batches. That
is mostly the hash index over few keys: with two of them it proposes half of all pairs, each at the price of many in a
loop. It needs nothing to be known of the keys, and methods that were never in use are never compiled.

Looking takes a twentieth of a millisecond. So short batches are looked at one by one in the beginning, later seldom.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from windrow.control.observation import Observation
from windrow.control.switching import COMPARED, SURE_GAIN, SURE_S, Switching
from windrow.plan.order import methods_of, with_method
from windrow.plan.plan import Plan
from windrow.run.options import LocalOptions
from windrow.run.program import Program
from windrow.run.warm import warm

EARLY = (2, 4)
EVERY = 8
LEARNING, LONG_S = 16, 5e-3


@dataclass
class Adapting:
    """Watches the methods of a join; `spare` is its program, to compile others like it, as they are first used."""

    switching: Switching
    spare: Program
    later: bool

    @staticmethod
    def of(asked: LocalOptions, program: Program) -> Adapting | None:
        """What watches the methods; None where they were chosen, or are part of what is to be the same each time."""
        told = (asked.plan, asked.methods, asked.throttle, asked.control, asked.memory, asked.charge)
        later = asked.adaptive is None
        kept = program.plan.is_tree or program.spec.functions or any(given is not None for given in told)
        if asked.adaptive is False or (later and kept):
            return None
        options = methods_of(program.spec, program.plan, COMPARED, asked.methods)
        if later and not options:
            return None
        for method in () if later else COMPARED:
            warm(Program(program.spec, with_method(program.plan, options, method), program.arrow_types))
        switching = Switching(options, asked.costs)
        return Adapting(replace(switching, gain=SURE_GAIN, least_s=SURE_S) if later else switching, program, later)

    def after(self, observation: Observation, plan: Plan) -> Plan:
        """The plan to go on with: the same one, unless other methods pay."""
        done = observation.batch + 1
        if plan.is_tree or (done > LEARNING and done % EVERY and observation.busy_s < LONG_S):
            return plan
        self.switching = self.switching.observe(observation, plan)
        if done not in EARLY and done % EVERY:
            return plan
        other = self.switching.decide(plan)
        if self.later and other is not plan:
            warm(Program(self.spare.spec, other, self.spare.arrow_types))
        return other
