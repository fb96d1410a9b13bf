"""Recall: how much of all results was delivered, as a number with an interval that holds it 95 times in 100.

    recall = emitted / (emitted + missing)          missing: estimated from sampled rows (windrow.control.sample)

What is missing is a sum of parts found at random, of which there may be few. So its interval is that of a Poisson mean,
on the effective count (missing² / variance) and scaled back (Fay and Feuer 1997): nearly the normal one where there is
much of it, lopsided where there is little, and not empty where no part was found. Below 30 results of sampled rows it
says "too few to tell".

A `RecallMeter` follows a run. Of the whole run it adds up groups of batches, each just large enough for its own share
of sampled rows and its own regression, because plans and loads change. Of the last interval it takes as many batches as
it needs for 30 sampled results.

Rows that never reached a window are not in this number, because nobody knows what they would have found. Reports have
them beside it.

>>> sample = Sample(rows=10_000, sampled=1_000, due=1_000, emitted=9_600, matches=600, kept=9_470, full=1_200,
...                 held=1_050, heaviest=12_000, uu=5_000, uv=4_700, vv=4_500, thin_u=900, thin_v=800)
>>> str(recall_of({"a": sample}, emitted=9_600))
'79.9 % (78.5 to 81.1)'
>>> str(recall_of({}, emitted=100)), str(recall_of({"a": Sample(rows=100, sampled=10, emitted=7, matches=2)}, 7))
('100 %', 'too few to tell')
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from windrow.control.chance import gamma_quantile
from windrow.control.observation import Observation
from windrow.control.sample import NO_SAMPLE, Sample

LEAST_MATCHES = 30
CONFIDENCE = 0.95
GROUP = 50
"""How many rows of a driver should be sampled in a group of batches that is estimated by itself."""
MOST_HELD = 64
"""How many batches, or batches put together, a meter can look back to one by one."""


@dataclass(frozen=True, slots=True)
class Sum:
    """Estimates of what was left out, added up: of rows that were sampled independently. Sampled rows found `matches`
    results; what a result can weigh at most adds up to `heaviest`. `known` says whether each had a sample at all.
    """

    estimate: float = 0.0
    variance: float = 0.0
    matches: int = 0
    heaviest: float = 0.0
    known: bool = True
    shed: bool = False

    @staticmethod
    def of(sample: Sample) -> Sum:
        """The estimate from one driver's sample."""
        if not sample.rows:
            return Sum()
        return Sum(
            sample.missing, sample.missing_variance, sample.matches, sample.heaviest, known=sample.share > 0, shed=True
        )

    def __add__(self, other: Sum) -> Sum:
        return Sum(
            self.estimate + other.estimate,
            self.variance + other.variance,
            self.matches + other.matches,
            self.heaviest + other.heaviest,
            self.known and other.known,
            self.shed or other.shed,
        )

    @property
    def tells(self) -> bool:
        """Whether there is enough to tell."""
        return not self.shed or (self.known and self.matches >= LEAST_MATCHES)

    def interval(self) -> tuple[float, float]:
        """Where what was left out lies; a part that was not found weighs as much as one can."""
        y, v = max(0.0, self.estimate), self.variance
        w = max(self.heaviest / self.matches if self.matches else 0.0, v / y if y > 0 else 0.0)
        if not w > 0:
            return y, y
        tail = (1 - CONFIDENCE) / 2
        low = v / y * gamma_quantile(y**2 / v, tail) if y > 0 and v > 0 else y
        scale = (v + w**2) / (y + w)
        return low, max(y, scale * gamma_quantile((y + w) / scale, 1 - tail))


@dataclass(frozen=True, slots=True)
class Recall:
    """The share of results that was delivered; `low` and `high` hold it. None where it is not known.

    Of the `emitted` results, sampled rows found `matches`, on which all this rests; `missing` were left out.
    """

    emitted: int
    matches: int
    recall: float | None
    low: float | None
    high: float | None
    missing: float | None = None
    missing_low: float | None = None
    missing_high: float | None = None

    @property
    def is_exact(self) -> bool:
        """Whether nothing was left out."""
        return self.missing_high == 0

    def to_values(self) -> dict[str, Any]:
        """As values that JSON knows."""
        return asdict(self)

    def __str__(self) -> str:
        if self.recall is None or self.low is None or self.high is None:
            return "too few to tell"
        if self.is_exact:
            return "100 %"
        return f"{100 * self.recall:.1f} % ({100 * self.low:.1f} to {100 * self.high:.1f})"


def recall_of(samples: Mapping[str, Sample], emitted: int) -> Recall:
    """The recall of a few batches that delivered `emitted` results; `samples` are those of each driver of which
    something was left out.
    """
    return _recall(emitted, _summed(samples.values()))


@dataclass(frozen=True, slots=True)
class Held:
    """Batches that a meter can look back to."""

    batches: int
    span_s: float
    emitted: int
    samples: Mapping[str, Sample]

    def __add__(self, other: Held) -> Held:
        return Held(
            self.batches + other.batches,
            self.span_s + other.span_s,
            self.emitted + other.emitted,
            _added(self.samples, other.samples),
        )


@dataclass(frozen=True, slots=True)
class Recent:
    """The recall of the last batches, and how many they are."""

    recall: Recall
    batches: int
    span_s: float

    def to_values(self) -> dict[str, Any]:
        """As values that JSON knows."""
        return {**self.recall.to_values(), "batches": self.batches, "span_s": self.span_s}


class RecallMeter:
    """Follows the recall of a run, batch by batch."""

    def __init__(self, interval_s: float = 5.0) -> None:
        self.interval_s = interval_s
        self.emitted = 0
        self._closed = Sum()
        self._open: dict[str, Sample] = {}
        self._held: list[Held] = []

    def observe(self, batch: Observation) -> None:
        """Take in what a batch did."""
        samples = {driver: sample for driver, sample in batch.joined.samples.items() if sample.rows}
        self.emitted += batch.results
        for driver, sample in samples.items():
            group = self._open.pop(driver, NO_SAMPLE) + sample
            if group.due >= GROUP:
                self._closed += Sum.of(group)
            else:
                self._open[driver] = group
        self._held.append(Held(1, batch.span_s, batch.results, samples))
        while len(self._held) > 1 and self._is_enough(self._held[1:]):
            del self._held[0]
        if len(self._held) > MOST_HELD:
            self._held[:2] = [self._held[0] + self._held[1]]

    @property
    def whole(self) -> Recall:
        """The recall of all batches so far."""
        return _recall(self.emitted, self._closed + _summed(self._open.values()))

    @property
    def recent(self) -> Recent:
        """The recall of the last interval, or of as many batches as it takes to tell."""
        total = _total(self._held)
        return Recent(recall_of(total.samples, total.emitted), total.batches, total.span_s)

    def to_values(self) -> dict[str, Any]:
        """The state, as values that JSON knows."""
        return {
            "emitted": self.emitted,
            "closed": asdict(self._closed),
            "open": {driver: sample.to_values() for driver, sample in self._open.items()},
            "held": [asdict(held) for held in self._held],
        }

    def restore(self, values: Mapping[str, Any]) -> None:
        """Go on from a state that `to_values` gave."""
        self.emitted = values["emitted"]
        self._closed = Sum(**values["closed"])
        self._open = _samples(values["open"])
        self._held = [Held(**{**held, "samples": _samples(held["samples"])}) for held in values["held"]]

    def _is_enough(self, held: list[Held]) -> bool:
        total = _total(held)
        return total.span_s >= self.interval_s and _summed(total.samples.values()).tells


def _recall(emitted: int, left: Sum) -> Recall:
    if not left.shed:
        return Recall(emitted, 0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0)
    if not left.tells:
        return Recall(emitted, left.matches, None, None, None)
    missing = max(0.0, left.estimate)
    low, high = left.interval()
    return Recall(
        emitted, left.matches, _share(emitted, missing), _share(emitted, high), _share(emitted, low), missing, low, high
    )


def _share(emitted: int, missing: float) -> float:
    return emitted / (emitted + missing) if emitted + missing > 0 else 1.0


def _summed(samples: Iterable[Sample]) -> Sum:
    total = Sum()
    for sample in samples:
        total += Sum.of(sample)
    return total


def _total(held: Iterable[Held]) -> Held:
    total = Held(0, 0.0, 0, {})
    for each in held:
        total += each
    return total


def _added(one: Mapping[str, Sample], two: Mapping[str, Sample]) -> dict[str, Sample]:
    return {name: one.get(name, NO_SAMPLE) + two.get(name, NO_SAMPLE) for name in dict.fromkeys((*one, *two))}


def _samples(values: Mapping[str, Any]) -> dict[str, Sample]:
    return {driver: Sample.from_values(held) for driver, held in values.items()}
