"""What became of work with bad input: done, or an error of ours in one line; anything else is raised, with its seed."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from windrow.errors import WindrowError

DONE = "done"
LONGEST = 1_500
"""Characters of an error."""


def one_line(seed: int, work: Callable[[], object], given: str = "") -> str:
    """What became of some work, of which `given` says more where it ends otherwise."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            work()
    except WindrowError as error:
        told = error
    except BaseException as error:
        raise AssertionError(f"seed {seed}: {type(error).__name__}: {error}\n{given[:2000]!r}") from error
    else:
        return DONE
    assert "\n" not in str(told), f"seed {seed}: {told!r}"
    assert len(str(told)) < LONGEST, f"seed {seed}: a message of {len(str(told))} characters"
    return type(told).__name__
