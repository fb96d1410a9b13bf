"""The history of a run: a bounded choice of its events, kept up to date while more are written.

    events/  0 … 99,999        every 2^k-th of the old ones, so that there are at most OLD of them      ┐ read once,
                               the RECENT newest                                                        ┘ kept parsed

Finding out whether there is more asks for the one file that would come next; the folder is listed at the beginning, and
now and then. Torn files, files of other versions and what is no plain file (a link, a pipe) are passed over and
counted. Nothing is ever written.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from windrow.dashboard.batches import Asked, Batch, Planned, read
from windrow.dashboard.decode import DamagedError
from windrow.errors import UsageError, WindrowError
from windrow.run.events import FOLDER, event_name
from windrow.store.storage import Storage, open_storage, shown

RECENT = 200
OLD = 200
LARGEST_BYTES = 8 * 2**20
LISTED_EVERY = 30
STATE = "windrow"
"""Below a checkpoint the state is in this folder."""


@dataclass(frozen=True)
class History:
    """The chosen batches in their order, the newest query and plan, how many events there are, and how many of those
    looked at could not be read.
    """

    batches: tuple[Batch, ...] = ()
    query: Asked | None = None
    plan: Planned | None = None
    events: int = 0
    damaged: int = 0


class Reader:
    """Reads the events below an address: a checkpoint, a state, or a folder of events; also before there are any."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._places = _places(address)
        self._storage: Storage | None = None
        self._numbers: list[int] = []
        self._parsed: dict[int, Batch | None] = {}
        self._newest = b""
        self._polls = 0
        self.history = History()

    def refresh(self) -> bool:
        """Look for more; whether there was any."""
        due = self._polls % LISTED_EVERY == 0 or self._storage is None
        self._polls += 1
        changed = self._list() if due else self._follow()
        if self._numbers and self._reread():
            changed = True
        if changed:
            self._collect()
        return changed

    def _list(self) -> bool:
        for storage in self._places if self._storage is None else (self._storage,):
            numbers = sorted(_numbers(storage))
            if numbers:
                self._storage = storage
                changed = numbers != self._numbers
                if changed and self._numbers and not set(self._numbers) <= set(numbers):
                    self._parsed.clear()  # another run writes here now
                self._numbers = numbers
                return changed
        return False

    def _follow(self) -> bool:
        """Take what has come next; at most as much as is kept anyway."""
        before = len(self._numbers)
        while len(self._numbers) - before < RECENT and self._bytes(self._numbers[-1] + 1) is not None:
            self._numbers.append(self._numbers[-1] + 1)
        return len(self._numbers) > before

    def _reread(self) -> bool:
        """Read the newest event again: a batch that is run again replaces it."""
        number = self._numbers[-1]
        data = self._bytes(number) or b""
        if data == self._newest and number in self._parsed:
            return False
        self._newest, self._parsed[number] = data, _parsed(data)
        return True

    def _collect(self) -> None:
        chosen = choice(self._numbers)
        for number in chosen:
            if number not in self._parsed:
                self._parsed[number] = _parsed(self._bytes(number) or b"")
        self._parsed = {number: self._parsed[number] for number in chosen}
        batches = tuple(batch for batch in self._parsed.values() if batch is not None)
        query = next((batch.query for batch in reversed(batches) if batch.query is not None), None)
        plan = next((batch.plan for batch in reversed(batches) if batch.plan is not None), None)
        whole = tuple(batch for batch in batches if query is None or batch.streams.keys() <= query.streams.keys())
        self.history = History(whole, query, plan, len(self._numbers), len(chosen) - len(whole))

    def _bytes(self, number: int) -> bytes | None:
        """The bytes of an event; None where there is none that may be read."""
        if self._storage is None:
            return None
        name = event_name(number)
        path = self._storage.local(name)
        try:
            if path is not None:
                found = os.lstat(path)
                if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST_BYTES:
                    return b""
            return self._storage.find(name)
        except (OSError, WindrowError):
            return None


def choice(numbers: list[int]) -> list[int]:
    """The events to read: all of the newest, and of the older ones every 2^k-th by number, so that one that is chosen
    stays so until there are twice as many.

    >>> len(choice(list(range(100)))), len(choice(list(range(100_000))))
    (100, 395)
    >>> [number for number in choice(list(range(5000))) if number < 3800] == choice(list(range(4000)))[:-RECENT]
    True
    """
    older, recent = numbers[:-RECENT], numbers[-RECENT:]
    stride = 1
    while len(older) > OLD * stride:
        stride *= 2
    return [*(number for number in older if number % stride == 0), *recent]


def _parsed(data: bytes) -> Batch | None:
    try:
        return read(data)
    except DamagedError:
        return None


def _places(address: str) -> tuple[Storage, ...]:
    """Where the events may be: below a checkpoint, below the address, or at it."""
    address = address.rstrip("/") or "/"
    if "://" not in address:
        path = Path(address)
        if not path.is_dir():
            hint = "give the folder of --events or --checkpoint, or the state of a join"
            raise UsageError(f"there is no folder '{address}'", place="dashboard", hint=hint)
        address = str(path.absolute())
    places = [f"{address}/{STATE}", address]
    head, _, tail = address.rpartition("/")
    if tail == FOLDER and head:
        places.append(head)
    return tuple(open_storage(place) for place in places)


def _numbers(storage: Storage) -> Iterable[int]:
    folder = storage.local(FOLDER)
    try:
        names = os.listdir(folder) if folder is not None else [n.rpartition("/")[2] for n in storage.list(FOLDER)]  # noqa: PTH208 - names alone, of very many files
    except (OSError, WindrowError):
        return
    for name in names:
        number, _, end = name.partition(".")
        if end == "json" and len(number) == 9 and number.isascii() and number.isdigit():
            yield int(number)


def title_of(address: str) -> str:
    """What to call a run."""
    return shown(address).rstrip("/").rpartition("/")[2] or "run"
