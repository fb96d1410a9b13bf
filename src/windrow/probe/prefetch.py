"""A hint to the processor: an element of an array will be read soon.

A search waits for memory longer than it computes. A kernel that goes through many searches knows the next ones, and
asks for what they will read while it works on the present one; the waits then overlap. The hint changes no value, and
an index outside the array does no harm.

>>> import numba
>>> import numpy as np
>>> @numba.njit
... def total(values, order):
...     found = 0
...     for turn in range(len(order)):
...         prefetch(values, order[min(turn + 8, len(order) - 1)])
...         found += values[order[turn]]
...     return found
>>> int(total(np.arange(100), np.arange(99, -1, -1)))
4950
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.core.cgutils import get_or_insert_function
from numba.extending import intrinsic
from numpy.typing import NDArray

_TO_READ, _TO_KEEP, _DATA = 0, 3, 1


def _prefetch(_context: Any, array: Any, _index: Any) -> Any:
    """The type of the hint, and a function that generates its one instruction."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.bitcast(builder.gep(values.data, [arguments[1]]), ir.IntType(8).as_pointer())
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [address.type, word, word, word])
        hint = get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")  # type: ignore[no-untyped-call]
        builder.call(hint, [address, *(ir.Constant(word, value) for value in (_TO_READ, _TO_KEEP, _DATA))])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


prefetch = cast(Callable[[NDArray[Any], int | np.integer], None], intrinsic(_prefetch))
"""Start loading `array[index]`. Only inside compiled functions, on contiguous arrays."""
