"""Results enter a folder: tasks stage Parquet files, the driver program publishes those of the tasks that succeeded.

    <folder>/_staged/…                 any attempt of any task writes here, and nowhere else
    <folder>/batch=7/part-0.parquet    published by the driver program, whole files at a time

Datasets skip names that begin with `_`, so whoever reads the folder never sees what a failed attempt wrote. A batch
that is run again takes the place of what was published of it. Renaming is used where both are folders of this machine;
elsewhere an object is copied, then deleted.
"""

from __future__ import annotations

import copy
import errno
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit

import pyarrow as pa
import pyarrow.parquet as pq

from windrow.errors import UsageError
from windrow.run.spark.results import Form, ResultFile, Results
from windrow.store.storage import LocalStorage, RemoteStorage, Storage

STAGED = "_staged"
SWEEP_EVERY = 64
"""After so many batches what failed attempts staged is looked for and deleted."""
SIDE_BY_SIDE = 8
"""Objects elsewhere that are published at the same time."""


class Staging:
    """Where tasks stage results, and what becomes of what lies there when a batch has been delivered."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._delivered = 0
        self._left: tuple[str, ...] = ()

    def delivered(self, left: Iterable[str] = ()) -> None:
        """Delete what the batch before left, now and then all that failed attempts did; `left` stays for one batch."""
        keep = tuple(left)
        for name in self._left:
            self.storage.delete(name)
        if self._delivered % SWEEP_EVERY == 0:
            sweep(self.storage, keep)
        self._left = keep
        self._delivered += 1


class FolderSink:
    """Parquet files below a folder, one folder a batch; holds each result once.

    `kept` says that the folder is the checkpoint's own, for `query.results()` to read and clear.
    """

    form: Form = "parquet"

    def __init__(self, folder: Storage, staging: Storage | None = None, *, kept: bool = False) -> None:
        self.folder = folder
        self.staging = inside(folder, STAGED) if staging is None else staging
        self.kept = kept
        self._staging = Staging(self.staging)

    def deliver(self, results: Results, batch: int) -> None:
        """Publish the results of a batch, and clear what lies staged."""
        self.publish((*results.files, *results.inline), batch)
        self._staging.delivered()

    def publish(self, parts: Iterable[ResultFile | pa.Table], batch: int) -> None:
        """Publish the files and tables of a batch, in place of those that an earlier try published."""
        for name in self.folder.list(batch_folder(batch)):
            self.folder.delete(name)
        filled = [part for part in parts if isinstance(part, ResultFile) or len(part)]
        named = [(part, f"{batch_folder(batch)}/part-{number}.parquet") for number, part in enumerate(filled)]
        if isinstance(self.folder, LocalStorage) or len(named) < 2:
            for part, name in named:
                self._publish(part, name)
        else:
            with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
                list(pool.map(lambda one: self._publish(*one), named))

    def is_empty(self) -> bool:
        """Whether no batch has been published yet."""
        return not any(name.startswith("batch=") for name in self.folder.list())

    def _publish(self, part: ResultFile | pa.Table, name: str) -> None:
        if isinstance(part, ResultFile):
            move(self.staging, part.name, self.folder, name)
            return
        with self.folder.writing(name) as file:
            pq.write_table(part, file)


def batch_folder(batch: int) -> str:
    """The folder of a batch; readers that know partitions find a column `batch` in its name."""
    return f"batch={batch}"


def inside(storage: Storage, folder: str) -> Storage:
    """The storage of a folder below another storage's address.

    >>> inside(LocalStorage("/data/results"), "_staged").address
    '/data/results/_staged'
    """
    if isinstance(storage, LocalStorage):
        return LocalStorage(storage.local(folder))
    if isinstance(storage, RemoteStorage):
        parts = urlsplit(storage.address)
        below = copy.copy(storage)
        below.address = urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{folder}"))
        below.root = f"{storage.root}/{folder}" if storage.root else folder
        return below
    message = f"a {type(storage).__name__} has no folders"
    raise UsageError(message, place=storage.address, hint="give a folder or a URI such as s3://bucket/folder")


def move(source: Storage, name: str, target: Storage, new_name: str) -> None:
    """Make an object of one storage an object of another: it is whole there before it is gone here."""
    before, after = source.local(name), target.local(new_name)
    if before is not None and after is not None:
        with _unless_apart():
            after.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            before.replace(after)
            return
    target.put(new_name, source.get(name))
    source.delete(name)


def sweep(staging: Storage, keep: Collection[str]) -> None:
    """Delete all that is staged but the files of one batch. Batches run one by one: the rest was written in vain."""
    for name in staging.list():
        if name not in keep:
            staging.delete(name)
    if isinstance(staging, LocalStorage):
        for part in staging.root.rglob(".*.part"):
            part.unlink(missing_ok=True)


@contextmanager
def _unless_apart() -> Iterator[None]:
    """Lets pass that two folders of one machine may lie on different disks: no renaming between them."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
