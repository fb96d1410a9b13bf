"""Doing less than all: which share of each stream's rows looks at which parts of the windows.

The rows of a driver are shared out by a seeded hash of their content: a draw u in [0, 1) a row.

    u    0          ω                              .8             1
         | sampled  |  portion: these lag ranges   |  portion: those   |

    a portion of rows               at step 1 … m-1 it looks at
    ------------------------------  ---------------------------------------------------------------------------
    nothing restricted              whole windows: the exact join
    harvested                       stored rows whose lag lies in the step's ranges (window harvesting, IV)
    harvested, with no range        nothing: these rows are not allowed to probe
    sampled                         whole windows, but in the first step only strata of event time: stratum q for
                                    which a hash of the row and q draws less than the throttle z (shredding, V-B)

Every decision follows from what is written here, the driver's content and the stored row's time alone. So a task that
is run again, on another worker, with its rows in another order, decides the same.

Before all this a share `keep` of a stream's rows may be let in and the rest dropped: RandomDrop, the comparison.

>>> half = Portion(0.9, (((0, 1_000_000),), None))
>>> shedding = Shedding(throttle=0.3, seed=7, portions=(("a", (sampled(0.1, 2), half)),))
>>> Shedding.from_values(shedding.to_values()) == shedding, shedding.of("b")
(True, ())
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from windrow.errors import PlanError
from windrow.plan.bins import Lags

STRATA = 32
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Portion:
    """A share of a driver's rows, and for each step of their path the lags they look at (None: all of them).

    They take the driver's first path, or another `alternative` of the plan.
    """

    share: float
    lags: tuple[Lags | None, ...]
    sampled: bool = False
    alternative: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left out, sampling aside."""
        return all(ranges is None for ranges in self.lags)


def sampled(share: float, steps: int, alternative: int = 0) -> Portion:
    """A portion that is shredded."""
    return Portion(share, (None,) * steps, sampled=True, alternative=alternative)


@dataclass(frozen=True, slots=True)
class Shedding:
    """What is left out. `throttle` is z, `strata` into how many pieces of time a window is cut for sampled rows.

    A driver without portions is not restricted; `keep` names streams of which only a share of the rows is let in; then
    `regulated` says which share of the full work that comes to.
    """

    throttle: float = 1.0
    seed: int = 0
    strata: int = STRATA
    portions: tuple[tuple[str, tuple[Portion, ...]], ...] = ()
    keep: tuple[tuple[str, float], ...] = ()
    regulated: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.throttle <= 1:
            raise PlanError(f"the throttle is a share of the full work, not {self.throttle}", hint="give 0 to 1")
        for stream, share in self.keep:
            if not 0 <= share <= 1:
                raise PlanError(f"{share} of '{stream}' cannot be kept", hint="give a share from 0 to 1")
        for driver, portions in self.portions:
            total = sum(portion.share for portion in portions)
            if portions and abs(total - 1) > ROUNDING:
                raise PlanError(f"the portions of '{driver}' add up to {total}", hint="share out all of its rows")

    def of(self, driver: str) -> tuple[Portion, ...]:
        """The portions of a driver's rows; empty: all rows look everywhere."""
        return next((portions for name, portions in self.portions if name == driver), ())

    @property
    def work(self) -> float:
        """The share of the full work that is done."""
        return self.throttle if self.regulated is None else self.regulated

    @property
    def restricts(self) -> bool:
        """Whether anything may be left out."""
        restricted = any(
            not portion.is_whole or (portion.sampled and self.throttle < 1)
            for _, portions in self.portions
            for portion in portions
        )
        return restricted or any(share < 1 for _, share in self.keep)

    def to_values(self) -> dict[str, Any]:
        """As values that JSON knows."""
        return asdict(self)

    @staticmethod
    def from_values(values: Mapping[str, Any]) -> Shedding:
        """What `to_values` gave, after a way through JSON or not."""
        portions = tuple((str(driver), tuple(map(_portion, found))) for driver, found in values["portions"])
        keep = tuple((str(stream), float(share)) for stream, share in values["keep"])
        return Shedding(
            float(values["throttle"]),
            int(values["seed"]),
            int(values["strata"]),
            portions,
            keep,
            values.get("regulated"),
        )


def _portion(values: Mapping[str, Any]) -> Portion:
    lags = tuple(None if ranges is None else tuple((int(a), int(b)) for a, b in ranges) for ranges in values["lags"])
    return Portion(float(values["share"]), lags, bool(values["sampled"]), int(values["alternative"]))


ALL = Shedding()
"""Nothing is left out."""
