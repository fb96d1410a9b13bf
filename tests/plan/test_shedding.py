"""What is left out, as a value: its checks, what restricts, its JSON form."""

from __future__ import annotations

import json

import pytest

from windrow.errors import PlanError
from windrow.plan.shedding import ALL, Portion, Shedding, sampled

HALF = Portion(0.5, (((0, 10), (20, 30)), None), alternative=1)
WHOLE = Portion(1.0, (None, None))


@pytest.mark.parametrize(
    ("shedding", "restricts"),
    [
        (ALL, False),
        (Shedding(0.3), False),
        (Shedding(portions=(("a", (WHOLE,)),)), False),
        (Shedding(0.3, portions=(("a", (sampled(0.1, 2), Portion(0.9, (None, None)))),)), True),
        (Shedding(1.0, portions=(("a", (sampled(0.1, 2), Portion(0.9, (None, None)))),)), False),
        (Shedding(portions=(("a", (HALF, HALF)),)), True),
        (Shedding(portions=(("a", (Portion(1.0, ((), None)),)),)), True),
        (Shedding(keep=(("a", 1.0),)), False),
        (Shedding(keep=(("a", 0.9),)), True),
    ],
)
def test_what_restricts_and_the_json_form(shedding: Shedding, restricts: bool) -> None:
    assert shedding.restricts == restricts
    assert Shedding.from_values(json.loads(json.dumps(shedding.to_values()))) == shedding


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"throttle": 1.2}, "the throttle is a share of the full work, not 1.2"),
        ({"throttle": -0.1}, "the throttle is a share"),
        ({"keep": (("a", 1.5),)}, "1.5 of 'a' cannot be kept"),
        ({"portions": (("a", (HALF,)),)}, "the portions of 'a' add up to 0.5"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, object], says: str) -> None:
    with pytest.raises(PlanError, match=says):
        Shedding(**wrong)  # type: ignore[arg-type]


def test_whose_portions() -> None:
    shedding = Shedding(portions=(("a", (HALF, HALF)), ("b", (WHOLE,))))
    assert shedding.of("a") == (HALF, HALF)
    assert shedding.of("c") == ()
