"""One thread for a matrix product, whatever the process allows its linear algebra library.

A product of two blocks takes half a millisecond. Shared between threads it gains little, and where other work keeps the
cores busy it loses a lot: the threads wait for one another at the end of each block. The library that comes with NumPy
(OpenBLAS) counts its threads in one variable of the process, so it is set around a product and put back. With another
library nothing is changed: its own setting holds.

>>> with one_thread():
...     [[2.0]] @ np.array([[3.0]])
array([[6.]])
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Lock
from typing import NamedTuple

import numpy as np


class ThreadCount(NamedTuple):
    """How to read and how to set the number of threads of a linear algebra library."""

    read: Callable[[], int]
    write: Callable[[int], object]


class _Inside:
    """How many threads are inside a product; the first one in and the last one out change the setting."""

    lock = Lock()
    count = 0
    before = 1


@contextmanager
def one_thread() -> Iterator[None]:
    """Products inside run on the calling thread alone, where NumPy's library can be told so."""
    setting = thread_count()
    if setting is None:
        yield
        return
    with _Inside.lock:
        if _Inside.count == 0:
            _Inside.before = setting.read()
            setting.write(1)
        _Inside.count += 1
    try:
        yield
    finally:
        with _Inside.lock:
            _Inside.count -= 1
            if _Inside.count == 0:
                setting.write(_Inside.before)


@cache
def thread_count() -> ThreadCount | None:
    """The setting of the OpenBLAS that NumPy brought along, or None if it uses something else."""
    package = Path(np.__file__).parent
    for folder in (package.with_name("numpy.libs"), package / ".dylibs", package / ".libs"):
        for file in sorted(folder.glob("*openblas*")):
            library = ctypes.CDLL(str(file))
            for prefix, suffix in (("scipy_", "64_"), ("", "64_"), ("scipy_", ""), ("", "")):
                read = getattr(library, f"{prefix}openblas_get_num_threads{suffix}", None)
                write = getattr(library, f"{prefix}openblas_set_num_threads{suffix}", None)
                if read is not None and write is not None:
                    return ThreadCount(read, write)
    return None
