"""Kept spans: shares fall with age, and survive JSON within a plan."""

from __future__ import annotations

import numpy as np
import pytest

from windrow.errors import PlanError
from windrow.plan.kept import KeptSpan
from windrow.plan.plan import Plan


def test_shares_by_age() -> None:
    span = KeptSpan("a", ((-3, 1.0), (10, 0.5), (20, 0.125)))
    ages = np.array([-10, -3, -2, 0, 10, 11, 20, 21])
    assert span.shares_at(ages).tolist() == [1.0, 1.0, 0.5, 0.5, 0.5, 0.125, 0.125, 0.0]
    assert span.whole_to == -3
    assert KeptSpan("a", ()).shares_at(ages).max() == 0.0


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (((10, 1.5),), "shares"),
        (((10, 0.5), (10, 0.25)), "ages"),
        (((10, 0.5), (20, 0.75)), "no row comes back"),
    ],
)
def test_what_cannot_be_kept_is_refused(steps: tuple[tuple[int, float], ...], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        KeptSpan("a", steps)


def test_a_plan_with_kept_spans_survives_json() -> None:
    plan = Plan("timestamp", (), kept=(KeptSpan("a", ((10, 1.0), (20, 0.1))), KeptSpan("b", ())))
    assert Plan.from_json(plan.to_json()) == plan
