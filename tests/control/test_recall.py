"""Recall and its interval; a meter that follows a run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from windrow.control.observation import Joined, Observation
from windrow.control.recall import LEAST_MATCHES, MOST_HELD, RecallMeter, Sum, recall_of
from windrow.control.sample import Sample, together

SHARE = 0.1


def sample(rows: int, found: int, escaped: int, throttle: float = 1.0) -> Sample:
    """Of `rows` rows, a tenth of them sampled, which found so many results that the others would find, and so many that
    escape those; each row one at most.
    """
    sampled = round(SHARE * rows)
    near, far = found / throttle, escaped / throttle
    others = round(9 * near)
    return Sample(
        rows=rows, sampled=sampled, due=SHARE * rows, emitted=others + found + escaped, matches=found + escaped,
        kept=others, full=near + far, held=near, heaviest=(found + escaped) / (SHARE * throttle),
        uu=(near + far) / throttle, uv=near / throttle, vv=near / throttle,
        thin_u=(1 - throttle) * (near + far) / throttle, thin_v=(1 - throttle) * near / throttle,
    )  # fmt: skip


def batch(samples: dict[str, Sample], results: int, number: int = 0) -> Observation:
    return Observation(number, float(number), 1.0, 0.1, {}, Joined(samples=samples), results=results)


def test_nothing_left_out_is_all() -> None:
    whole = recall_of({}, 17)
    assert whole.is_exact
    assert (whole.recall, whole.low, whole.high, whole.missing) == (1, 1, 1, 0)
    assert str(whole) == "100 %"


@pytest.mark.parametrize(("matches", "told"), [(LEAST_MATCHES - 1, False), (LEAST_MATCHES, True)])
def test_few_sampled_matches_tell_nothing(matches: int, told: bool) -> None:
    found = recall_of({"a": sample(1000, matches - 5, 5)}, 500)
    assert (found.recall is not None) == told
    assert ("too few to tell" in str(found)) != told
    assert found.matches == matches


def test_an_unsampled_driver_is_not_known() -> None:
    found = recall_of({"a": sample(1000, 90, 10), "b": Sample(rows=500)}, 1_000)
    assert found.recall is None
    assert not found.is_exact


def test_no_part_found_is_not_nothing() -> None:
    """Each part weighs ten: up to 3.7 of them may have been left out."""
    found = recall_of({"a": sample(10_000, 100, 0)}, 1_000)
    assert found.recall == pytest.approx(1, abs=1e-6)
    assert found.missing_high == pytest.approx(36.9, rel=0.01)
    assert found.low == pytest.approx(1000 / 1036.9, rel=1e-3)
    assert found.high == 1


@pytest.mark.parametrize("rate", [0.5, 2.0, 8.0, 60.0])
def test_intervals_of_rare_parts_hold_what_they_say(rate: float) -> None:
    """Few parts, of different weights, found at random: between 93 and 100 in 100 of the intervals hold their sum."""
    random = np.random.default_rng(11)
    held = 0
    for _ in range(600):
        weights = random.choice([10.0, 20.0], random.poisson(rate))
        low, high = Sum(float(weights.sum()), float((weights**2).sum()), 1, 20.0, shed=True).interval()
        held += low <= 15 * rate <= high
    assert held >= 0.93 * 600


def test_intervals_of_large_sums_are_nearly_normal() -> None:
    low, high = Sum(1e6, 1e8, 50, 50.0, shed=True).interval()
    assert low == pytest.approx(1e6 - 19_600, abs=250)
    assert high == pytest.approx(1e6 + 19_600, abs=250)


def followed(batches: Sequence[Observation]) -> RecallMeter:
    meter = RecallMeter(interval_s=3)
    for each in batches:
        meter.observe(each)
    return meter


def test_a_run_is_the_sum_of_its_groups() -> None:
    parts = [sample(600, 50, 10 * (k % 4)) for k in range(12)]
    meter = followed([batch({"a": part}, part.emitted, k) for k, part in enumerate(parts)])
    whole, pooled = meter.whole, recall_of({"a": together(parts)}, meter.emitted)
    assert whole.matches == pooled.matches == sum(part.matches for part in parts)
    assert whole.missing == pytest.approx(sum(part.missing for part in parts))
    assert whole.missing_low is not None
    assert whole.missing_high is not None
    assert pooled.missing is not None
    assert whole.missing_low < pooled.missing < whole.missing_high


def test_groups_wait_for_sampled_rows() -> None:
    parts = [sample(100, 8, 2) for _ in range(12)]
    meter = followed([batch({"a": part}, part.emitted, k) for k, part in enumerate(parts)])
    assert meter.whole.missing == pytest.approx(sum(together(parts[k : k + 5]).missing for k in (0, 5, 10)))


def test_the_last_interval_widens_until_it_can_tell() -> None:
    busy = followed([batch({"a": sample(600, 50, 10)}, 500, k) for k in range(9)]).recent
    assert (busy.batches, busy.span_s) == (3, 3)
    assert busy.recall.recall is not None
    quiet = followed([batch({"a": sample(600, 4, 1)}, 45, k) for k in range(9)]).recent
    assert quiet.batches == 6
    assert quiet.recall.matches == LEAST_MATCHES
    silent = followed([batch({"a": sample(600, 0, 0)}, 0, k) for k in range(3 * MOST_HELD)]).recent
    assert silent.batches == 3 * MOST_HELD
    assert silent.recall.recall is None
    exact = followed([batch({}, 45, k) for k in range(9)]).recent
    assert (exact.batches, exact.recall.is_exact) == (3, True)


def test_a_meter_goes_on_from_its_state() -> None:
    parts = [batch({"a": sample(300, 20, k)}, 250, k) for k in range(20)]
    meter, again = followed(parts[:11]), RecallMeter(interval_s=3)
    again.restore(json.loads(json.dumps(meter.to_values())))
    for part in parts[11:]:
        meter.observe(part)
        again.observe(part)
    assert (again.whole, again.recent) == (meter.whole, meter.recent)
    assert again.whole.to_values()["matches"] == meter.whole.matches > 0


def test_rows_that_were_not_restricted_add_results_only() -> None:
    meter = followed([batch({"a": sample(600, 50, 10)}, 500), batch({}, 1_000, 1)])
    assert meter.whole.emitted == 1_500
    alone = recall_of({"a": sample(600, 50, 10)}, 500)
    assert meter.whole.missing == alone.missing
    assert replace(meter.whole, emitted=500).matches == alone.matches
