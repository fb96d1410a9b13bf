"""How a join is controlled, as asked for.

>>> ControlSettings(fixed=0.3).may_regulate
False
"""

from __future__ import annotations

from dataclasses import dataclass

from windrow.control.memory import EXPECTED, check_policy
from windrow.errors import PlanError
from windrow.plan.bins import MOST_BINS

POLICIES = ("auto", "harvest", "drop")
MIXTURE = "mixture"


@dataclass(frozen=True, slots=True)
class ControlSettings:
    """How a join is controlled.

    `interval_s` is Δ, `boost` γ, `sample` ω; `fixed` a throttle that does not follow the load. `policy` says what is
    left out: parts of windows (`harvest`), rows at random before the join, at regulated rates (`drop`), or what
    promises more (`auto`; parts of windows where the throttle is fixed or memory limited). `optimiser` is one of
    `windrow.plan.harvest.METHODS`, or `mixture`, the best two settings drawn from. What was learned half fades in
    `memory_s`, and down to `forget` at once when an interval finds what is `surprise` deviations off. The windows may
    take `memory_bytes`, shared out by `memory_policy`, one of `windrow.control.memory.POLICIES`.
    """

    interval_s: float = 5.0
    boost: float = 2.0
    sample: float = 0.1
    fixed: float | None = None
    policy: str = "auto"
    optimiser: str = MIXTURE
    bins: int = MOST_BINS
    behind: bool = False
    seed: int = 0
    target: float = 0.98
    memory_s: float = 30.0
    surprise: float = 5.0
    forget: float = 0.1
    memory_bytes: int | None = None
    memory_policy: str = EXPECTED

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            raise PlanError(f"there is no shedding policy '{self.policy}'", hint=f"choose one of {', '.join(POLICIES)}")
        check_policy(self.memory_policy)
        _check_optimiser(self.optimiser)
        if self.memory_bytes is not None and self.memory_bytes < 1:
            raise PlanError(f"windows cannot fit into {self.memory_bytes} bytes", hint="give a memory limit above 0")
        if not 0 <= self.sample < 1:
            raise PlanError(f"a sample cannot be {self.sample} of the rows", hint="give a share from 0 to below 1")
        if self.fixed is not None and not 0 < self.fixed <= 1:
            raise PlanError(f"the throttle is a share of the full work, not {self.fixed}", hint="give above 0, up to 1")

    @property
    def may_regulate(self) -> bool:
        """Whether rows may be dropped before the join."""
        follows = self.fixed is None and self.memory_bytes is None
        return self.policy == "drop" or (self.policy == "auto" and follows)


def _check_optimiser(name: str) -> None:
    """Refuse an optimiser that there is not; they are loaded only if one of them is meant."""
    if name != MIXTURE:
        from windrow.plan.harvest import METHODS

        if name not in METHODS:
            hint = f"choose one of {', '.join((MIXTURE, *METHODS))}"
            raise PlanError(f"there is no optimiser '{name}'", hint=hint)


DEFAULT = ControlSettings()
"""As nobody asked for anything in particular."""
