"""One way of compiling: machine code kept on disk, other threads free to run, exact floating point.

Everything in `probe` that is written by hand is compiled with `compiled`. The result is cached beside the module, so
a second process loads it instead of compiling; there is no fast-math, because a predicate's value may not depend on
how it is evaluated.

Numba compiles once a combination of argument types, and to it a read-only array, a writable one and a strided one are
three types. `frozen` makes every input the same type (contiguous, read-only, one dtype), mapped from a file or just
computed, so that a kernel exists once a dtype and the cache on disk always fits.

For the same reason kernels take plain tuples, never named ones: Numba would write the name of the class into the cache,
and a cache that names a class which has moved cannot be loaded at all.

>>> import numpy as np
>>> frozen([3, 1], np.int64).flags.writeable
False
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

F = TypeVar("F", bound=Callable[..., Any])
Item = TypeVar("Item", bound=np.generic)

_njit = numba.njit(cache=True, nogil=True, error_model="numpy")


def compiled(function: F) -> F:
    """Compile on first call, once a combination of argument types; callers see the type of `function`."""
    return cast(F, _njit(function))


def frozen(values: ArrayLike, dtype: type[Item]) -> NDArray[Item]:
    """The values as a contiguous read-only array, without a copy where they already have this dtype and layout."""
    array = np.ascontiguousarray(values, dtype)
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array
