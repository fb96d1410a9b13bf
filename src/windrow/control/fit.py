"""What a probe, a candidate and a match cost, learned while running, for each driver, probed stream and method.

    StepTally of a batch ──▶ a row of the fit: (probes, candidates, matches) ──▶ seconds ──▶ StepCost

    prior       the calibrated table says a first guess. All is counted in units of it: coefficients q = cost / guess
    far off     times that are far too long, one after the other, multiply the guess as a whole, and learning begins
                again from there; so do times that are far too short, of rows that are more than probes: of a machine
                that decides slowly, probes that met nothing say nothing
    new         a step that was not seen yet is taken to cost what all steps by its method cost
    few data    q is drawn towards one factor for all three, because another machine is slower in everything, and that
                factor towards 1, less so with each row. Where rows are alike (collinear), the proportions of the guess
                stay
    forgetting  a row weighs a little less with each that follows
    outliers    a time further off than usual counts as just that far off. Several in a row on the same side are no
                outliers but a change: then what was learned before loses most of its weight
    signs       no coefficient is negative (`windrow.control.nonnegative`)

A row counts by relative error, except that rows of less than a millisecond say little: what a call costs by itself
drowns them. All is kept in sums, so that the state is a few numbers a step, whatever was seen.

>>> from windrow.control.observation import Joined, Observation, PathTally, StepTally
>>> from windrow.plan.plan import Path, Step
>>> from windrow.plan.work import REFERENCE
>>> plan = Plan("timestamp", (Path("a", (Step("b", "loop", (0,), (), (), ""),)),))
>>> fit = CostFit.of(REFERENCE, plan)
>>> fit.cost("a", 0) == REFERENCE.step("loop")
True
>>> for batch in range(100):
...     probes, candidates = 10**5 * (1 + batch % 7), 10**7 * (1 + batch % 3)
...     step = StepTally(probes, candidates, candidates, 0, seconds=1e-6 * probes + 3e-9 * candidates)
...     joined = Joined(others={"a": PathTally(probes, 0, (step,))})
...     fit = fit.observe(Observation(batch, 1.0 * batch, 1.0, 0.1, {}, joined))
>>> 2.8e-9 < fit.cost("a", 0).per_candidate < 3.2e-9
True
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from windrow.control.nonnegative import nonnegative
from windrow.control.observation import Observation, StepTally
from windrow.errors import StateError
from windrow.plan.cost import Floats, StepCost
from windrow.plan.plan import Plan, driver_of
from windrow.plan.work import WorkCosts

FORMAT_VERSION = 2
FORGETTING = 0.98
TO_COMMON = 0.03
TO_GUESS, LEAST_TO_GUESS, TRUSTING = 0.3, 0.003, 0.85
YOUNG = 0.1
USUAL, LEAST_USUAL, LEARNING_USUAL = 0.5, 0.03, 0.1
SURPRISE = 3.0
CHANGE_AFTER, CHANGE_KEEPS = 3, 0.1
FAR_OFF = 4.0
BLUR_S = 1e-3
DROWNED = 0.02
LEAST_UNIT_S = 1e-12
CANDIDATES_A_PROBE, CANDIDATES_A_RESULT = 10.0, 1.0
"""The least units, in those of a candidate: a coefficient that was taken to be free can be learned all the same."""


ANY = "*"
"""Stands for all drivers, and for all streams."""


UPPER = np.triu_indices(3)
"""The upper triangle of a fit's sums."""


class Key(NamedTuple):
    """What has a cost of its own."""

    driver: str
    stream: str
    method: str


@dataclass(frozen=True, slots=True)
class StepFit:
    """The sums of one fit: `gram` and `moments` of its rows, the upper triangle of the one; what they come to.

    `usual` is how far off times usually are, `surprises` how many of the last ones in a row were much further off,
    negative where they were short; `to_guess` is how strongly the guess still draws, `anchor` the guess that
    took the place of the one given.
    """

    gram: tuple[float, ...] = (0.0,) * 6
    moments: tuple[float, ...] = (0.0,) * 3
    usual: float = USUAL
    surprises: int = 0
    to_guess: float = TO_GUESS
    factors: tuple[float, ...] = ()
    anchor: tuple[float, ...] = ()

    def observe(self, guess: StepCost, tally: StepTally) -> StepFit:
        """The fit with one more row; tallies without work or without a time say nothing."""
        guess = self._guess(guess)
        units = _units(guess)
        predicted = units * (tally.probes, tally.candidates, tally.matches)
        if predicted.sum() <= 0 or tally.seconds <= 0:
            return self
        scale_s = float(predicted.sum()) + BLUR_S
        row = predicted / scale_s
        expected = float(row @ self._factors(guess))
        if max(expected * scale_s, tally.seconds) < DROWNED * BLUR_S:
            return self
        blur = BLUR_S / scale_s
        error = (tally.seconds / scale_s - expected) / (expected + blur)
        limit = SURPRISE * self.usual
        surprises = self._surprises_after(error, limit)
        changed = abs(surprises) >= CHANGE_AFTER
        ratio = tally.seconds / max(expected * scale_s, LEAST_UNIT_S)
        is_slower = ratio >= FAR_OFF
        is_faster = ratio <= 1 / FAR_OFF and predicted[0] <= predicted[1:].sum()
        if changed and (is_slower or is_faster):
            factor = tally.seconds / float(predicted.sum())
            return StepFit(anchor=tuple(factor * part for part in _parts(guess)))
        heard = error if changed else min(limit, max(-limit, error))
        weight = FORGETTING * (CHANGE_KEEPS if changed else 1.0)
        gram = weight * np.array(self.gram) + np.outer(row, row)[UPPER]
        moments = weight * np.array(self.moments) + row * (expected + heard * (expected + blur))
        usual = self.usual + LEARNING_USUAL * (1.25 * min(limit, abs(error)) - self.usual)
        learned = StepFit(
            tuple(gram.tolist()),
            tuple(moments.tolist()),
            max(LEAST_USUAL, usual),
            surprises,
            max(LEAST_TO_GUESS, TRUSTING * self.to_guess),
            anchor=self.anchor,
        )
        return replace(learned, factors=tuple(learned._solved(guess).tolist()))

    @property
    def is_young(self) -> bool:
        """Whether the guess still says more than the rows."""
        return self.to_guess > YOUNG

    def cost(self, guess: StepCost) -> StepCost:
        """What is believed now."""
        guess = self._guess(guess)
        return StepCost(*(self._factors(guess) * _units(guess)).tolist()) if self.factors else guess

    def _guess(self, guess: StepCost) -> StepCost:
        return StepCost(*self.anchor) if self.anchor else guess

    def _surprises_after(self, error: float, limit: float) -> int:
        if abs(error) <= limit:
            return 0
        side = 1 if error > 0 else -1
        return self.surprises + side if self.surprises * side > 0 else side

    def _factors(self, guess: StepCost) -> Floats:
        return np.array(self.factors) if self.factors else np.array(_parts(guess)) / _units(guess)

    def _solved(self, guess: StepCost) -> Floats:
        """The factors q >= 0, and g, at which  |rows q - times|² + c |q - g q0|² + d (g - 1)²  is least."""
        gram = np.zeros((3, 3))
        gram[UPPER] = self.gram
        gram = gram + np.triu(gram, 1).T
        guessed = np.array(_parts(guess)) / _units(guess)
        matrix = np.zeros((4, 4))
        matrix[:3, :3] = gram + TO_COMMON * np.eye(3)
        matrix[:3, 3] = matrix[3, :3] = -TO_COMMON * guessed
        matrix[3, 3] = TO_COMMON * float(guessed @ guessed) + self.to_guess
        right = np.array([*self.moments, self.to_guess])
        return nonnegative(matrix, right)[:3]


def _parts(cost: StepCost) -> tuple[float, float, float]:
    return cost.per_probe, cost.per_candidate, cost.per_result


def _units(guess: StepCost) -> Floats:
    unit = max(guess.per_candidate, LEAST_UNIT_S)
    return np.maximum(_parts(guess), (CANDIDATES_A_PROBE * unit, unit, CANDIDATES_A_RESULT * unit))


@dataclass(frozen=True)
class CostFit:
    """The costs of all steps of a plan: a value; each observation makes a new one.

    `paths` says which stream each step of a driver probes, and how. What was learned stays when the plan changes.
    """

    costs: WorkCosts
    paths: Mapping[str, tuple[tuple[str, str], ...]]
    fits: Mapping[Key, StepFit] = field(default_factory=dict)

    @staticmethod
    def of(costs: WorkCosts, plan: Plan) -> CostFit:
        """Nothing learned yet."""
        return CostFit(costs, _paths(plan))

    def under(self, plan: Plan) -> CostFit:
        """The same under another plan: other orders or other methods."""
        return replace(self, paths=_paths(plan))

    def observe(self, observation: Observation) -> CostFit:
        """What is known after a batch, which ran under the plan of this fit."""
        fits = dict(self.fits)
        for paths in (observation.joined.sampled, observation.joined.others):
            for path, tally in paths.items():
                for (stream, method), step in zip(self.paths[path], tally.steps, strict=False):
                    guess, common = self.costs.step(method), Key(ANY, ANY, method)
                    own = Key(driver_of(path), stream, method)
                    if own not in fits:
                        fits[own] = StepFit(anchor=_parts(fits[common].cost(guess))) if common in fits else StepFit()
                    fits[own] = fits[own].observe(guess, step)
                    fits[common] = fits.get(common, StepFit()).observe(guess, step)
        return replace(self, fits=fits)

    def cost(self, path: str, step: int) -> StepCost:
        """The cost of a step of a path under the present plan, counted from 0."""
        return self.cost_to(driver_of(path), *self.paths[path][step])

    def cost_to(self, driver: str, stream: str, method: str) -> StepCost:
        """The cost of probing a stream by a method, whether the present plan does so or not."""
        own, common = (self.fits.get(key, StepFit()) for key in (Key(driver, stream, method), Key(ANY, ANY, method)))
        return (common if own.is_young else own).cost(self.costs.step(method))

    def to_values(self) -> dict[str, Any]:
        """As values that JSON knows."""
        return {
            "version": FORMAT_VERSION,
            "costs": self.costs.to_values(),
            "paths": {driver: [list(step) for step in steps] for driver, steps in self.paths.items()},
            "fits": [{**key._asdict(), **asdict(fit)} for key, fit in self.fits.items()],
        }

    @staticmethod
    def from_values(values: Mapping[str, Any]) -> CostFit:
        """What `to_values` gave, after a way through JSON or not; another version or shape is refused."""
        try:
            if values["version"] != FORMAT_VERSION:
                raise StateError(
                    f"the fitted costs have format version {values['version']}, this is {FORMAT_VERSION}",
                    hint="start with a new checkpoint",
                )
            paths = {str(d): tuple((str(s), str(m)) for s, m in steps) for d, steps in values["paths"].items()}
            fits = dict(_fit(each) for each in values["fits"])
            return CostFit(WorkCosts.from_values(values["costs"]), paths, fits)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise StateError(
                f"these are no fitted costs: {type(error).__name__} {error}",
                place=json.dumps(values, default=str)[:60],
                hint="start with a new checkpoint",
            ) from error


def _fit(values: Mapping[str, Any]) -> tuple[Key, StepFit]:
    gram, moments, factors = (tuple(map(float, values[name])) for name in ("gram", "moments", "factors"))
    usual, surprises, to_guess = float(values["usual"]), int(values["surprises"]), float(values["to_guess"])
    fit = StepFit(gram, moments, usual, surprises, to_guess, factors, tuple(map(float, values["anchor"])))
    return Key(str(values["driver"]), str(values["stream"]), str(values["method"])), fit


def _paths(plan: Plan) -> dict[str, tuple[tuple[str, str], ...]]:
    return {path.name: tuple((step.stream, step.method) for step in path.steps) for path in plan.paths}
