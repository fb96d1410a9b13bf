"""Copies of remote objects in a private folder of this process, so that they can be memory-mapped.

    fetch(name) ──▶ here already? ── yes ─▶ its path, now the youngest
                         └ no ─▶ copy once ─▶ oldest copies go until all fit in `limit_bytes`

Objects are never changed in place, so a copy never grows stale. A copy that goes while it is mapped stays readable:
its memory belongs to whoever mapped it.

Rule for leaving: least recently used first, never the one just fetched, even if it alone is larger than the limit.
The folder goes with its process. What a killed process left behind is removed by the next one that makes a cache: an
owner holds a lock on its folder as long as it lives.

>>> cache = Cache(limit_bytes=10)
>>> first = cache.fetch("a", lambda path: path.write_bytes(b"12345678") and None)
>>> second = cache.fetch("b", lambda path: path.write_bytes(b"1234") and None)
>>> first.exists(), second.exists(), cache.nbytes
(False, True, 4)
>>> cache.close()
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import weakref
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from threading import Lock

_PREFIX = "windrow-segments-"
_OWNER = "owner"


class Cache:
    """At most `limit_bytes` of copies, in a new folder below `base` (the system's folder for temporary files)."""

    def __init__(self, limit_bytes: int, base: Path | None = None) -> None:
        self.limit_bytes = limit_bytes
        self.nbytes = 0
        base = Path(tempfile.gettempdir()) if base is None else base
        _remove_ownerless(base)
        self.folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
        self._copies: OrderedDict[str, tuple[Path, int]] = OrderedDict()
        self._made = 0
        self._lock = Lock()
        self._close = weakref.finalize(self, _remove, self.folder, _own(self.folder), os.getpid())

    def fetch(self, name: str, copy: Callable[[Path], None]) -> Path:
        """The path of the copy of an object; `copy` writes it to the path it is given if there is none yet."""
        with self._lock:
            held = self._copies.get(name)
            if held is not None and held[0].exists():
                self._copies.move_to_end(name)
                return held[0]
            self._forget(name)
            self._made += 1
            path = self.folder / f"{self._made}"
            try:
                copy(path)
                size = path.stat().st_size
            except BaseException:
                path.unlink(missing_ok=True)
                raise
            self._copies[name] = (path, size)
            self.nbytes += size
            while self.nbytes > self.limit_bytes and len(self._copies) > 1:
                self._forget(next(iter(self._copies)))
            return path

    def forget(self, name: str) -> None:
        """Let go of the copy of an object, if there is one."""
        with self._lock:
            self._forget(name)

    def close(self) -> None:
        """Remove the folder; happens by itself when the process ends."""
        self._close()

    def _forget(self, name: str) -> None:
        path, size = self._copies.pop(name, (None, 0))
        self.nbytes -= size
        if path is not None:
            path.unlink(missing_ok=True)


_caches: dict[tuple[int, str], Cache] = {}


def process_cache(address: str, limit_bytes: int) -> Cache:
    """The cache of this process for the objects of an address; a forked process starts its own."""
    key = (os.getpid(), address)
    if key not in _caches:
        _caches[key] = Cache(limit_bytes)
    _caches[key].limit_bytes = limit_bytes
    return _caches[key]


def forget_copy(address: str, name: str) -> None:
    """Let go of this process's copy of an object that is replaced or removed."""
    cache = _caches.get((os.getpid(), address))
    if cache is not None:
        cache.forget(name)


def _own(folder: Path) -> int:
    """Lock a folder for as long as this process lives; the lock is complete before others can see it."""
    unseen = folder / f"{_OWNER}.new"
    lock = os.open(unseen, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    unseen.rename(folder / _OWNER)
    return lock


def _remove(folder: Path, lock: int, process: int) -> None:
    if os.getpid() == process:  # a fork inherits the call, not the folder
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _remove_ownerless(base: Path) -> None:
    """Remove the folders of this user whose process has ended."""
    for folder in base.glob(f"{_PREFIX}*"):
        try:
            if folder.lstat().st_uid != os.getuid():
                continue
            lock = os.open(folder / _OWNER, os.O_RDWR | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue
        finally:
            os.close(lock)
