"""Storage: whole objects below one address, on this machine or anywhere Arrow reaches.

    put, writing    an object appears whole, when it is complete, or not at all
    put_new         the same, only if there is none of that name
    get, find       its bytes
    fetch           a path it can be mapped from: its own, or that of a copy in this process's cache
    list, delete

A local path (or file: URI) is written under a temporary name in the same folder, which then takes the object's place;
folders are made for the user alone. Any other URI is written through one output stream, closed at the end: no rename
and no append, which object stores lack. Nothing is ever changed in place, so readers need no locks.

What has been put survives the death of every process; that of the machine as far as its file system does.

Storages can be pickled and sent to workers; a worker keeps its own cache.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     storage = open_storage(folder)
...     storage.put("commits/7.json", b"{}")
...     storage.get("commits/7.json"), storage.find("commits/8.json"), storage.list()
(b'{}', None, ('commits/7.json',))
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import IO, Any, TypeAlias
from urllib.parse import unquote, urlsplit, urlunsplit

import pyarrow as pa
from pyarrow import fs

from windrow.errors import SourceError, WindrowError
from windrow.store.cache import forget_copy, process_cache

CACHE_BYTES = 4 * 2**30
_COPIED_BYTES = 4 * 2**20
_DELETED_AT_ONCE = 8
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_SCHEMES = {"s3a": "s3", "s3n": "s3"}
"""What Hadoop calls a scheme, where Arrow has another word for it."""

Data: TypeAlias = bytes | memoryview | pa.Buffer


class Storage(ABC):
    """Objects by name below `address`. Names are relative, with `/` between their parts."""

    address: str

    def put(self, name: str, data: Data) -> None:
        """Make or replace an object."""
        with self.writing(name) as sink:
            sink.write(data)

    def put_new(self, name: str, data: Data) -> bool:
        """Make an object if there is none of that name; whether this call made it.

        Where the address has no such call, it is looked for before and after: of two that put at once, the one whose
        bytes were replaced learns it, unless it looked before the other wrote.
        """
        if self.find(name) is not None:
            return False
        self.put(name, data)
        return self.find(name) == bytes(data)

    def delete_all(self, names: Iterable[str]) -> None:
        """Remove objects, as `delete` does."""
        for name in names:
            self.delete(name)

    def get(self, name: str) -> bytes:
        """The bytes of an object."""
        found = self.find(name)
        if found is None:
            raise self.missing(name)
        return found

    @abstractmethod
    def writing(self, name: str) -> AbstractContextManager[IO[bytes]]:
        """A stream whose contents become the object when the block ends without an error."""

    @abstractmethod
    def find(self, name: str) -> bytes | None:
        """The bytes of an object, None if there is none of that name."""

    @abstractmethod
    def list(self, folder: str = "") -> tuple[str, ...]:
        """The names of all objects below a folder, in order."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Remove an object; one that is not there needs no removing."""

    @abstractmethod
    def local(self, name: str) -> Path | None:
        """Where the object is, or would be, on this machine; None for an address elsewhere."""

    @abstractmethod
    def fetch(self, name: str) -> Path:
        """A path on this machine to read or map the object from, now."""

    def place(self, name: str) -> str:
        """An object as messages name it, without passwords."""
        return f"{shown(self.address).rstrip('/')}/{name}"

    def missing(self, name: str) -> SourceError:
        """The error for an object that is not there."""
        hint = "check the address; files of a checkpoint must not be removed by hand"
        return SourceError(f"there is no '{name}'", place=self.place(name), hint=hint)


def open_storage(address: str | Storage, cache_bytes: int = CACHE_BYTES) -> Storage:
    """The storage at an address; of objects elsewhere each process keeps copies of at most `cache_bytes`."""
    if isinstance(address, Storage):
        return address
    if not address:
        raise SourceError("the address of a storage is empty", hint="give a folder or a URI such as s3://bucket/folder")
    if not _URI.match(address):
        return LocalStorage(address)
    parts = urlsplit(address)
    if parts.scheme.lower() == "file":
        if parts.netloc not in ("", "localhost"):
            raise SourceError(f"'{address}' names another machine", hint="write file:///folder")
        return LocalStorage(unquote(parts.path))
    parts = parts._replace(scheme=_SCHEMES.get(parts.scheme, parts.scheme))
    with telling(address, "", "opened"):
        filesystem, root = fs.FileSystem.from_uri(urlunsplit(parts))
    return RemoteStorage(address, filesystem, root, cache_bytes)


def checked_name(name: str) -> str:
    """A name that stays below its address, and is not one of our temporary ones.

    >>> checked_name("segments/b12-s0.arrow")
    'segments/b12-s0.arrow'
    >>> checked_name("../other")
    Traceback (most recent call last):
        ...
    windrow.errors.SourceError: '../other' is not a name of an object (at: '..'). Next: names are relative, without ..,
    hidden parts or empty ones
    """
    for part in name.split("/"):
        if not part or part.startswith(".") or "\\" in part or "\0" in part:
            hint = "names are relative, without .., hidden parts or empty ones"
            raise SourceError(f"{name!r} is not a name of an object", place=repr(part), hint=hint)
    return name


def shown(address: str) -> str:
    """An address without what may be a secret in it.

    >>> shown("s3://key:secret@bucket/folder?region=eu-north-1")
    's3://key:***@bucket/folder'
    """
    if not _URI.match(address):
        return address
    parts = urlsplit(address)
    user, mark, host = parts.netloc.rpartition("@")
    if ":" in user:
        user = user.partition(":")[0] + ":***"
    return urlunsplit(parts._replace(netloc=user + mark + host, query="", fragment=""))


class LocalStorage(Storage):
    """A folder of this machine, or one that all machines see under the same path."""

    def __init__(self, folder: str | Path) -> None:
        self.root = Path(folder).absolute()
        self.address = str(self.root)

    def local(self, name: str) -> Path:
        return self.root / checked_name(name)

    @contextmanager
    def writing(self, name: str) -> Iterator[IO[bytes]]:
        path = self.local(name)
        part = path.with_name(f".{secrets.token_hex(8)}.part")
        with telling(self.address, name, "written"):
            _make_private(path.parent)
            try:
                with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as sink:  # noqa: PTH123 - a descriptor
                    yield sink
                part.replace(path)
            except BaseException:
                part.unlink(missing_ok=True)
                raise

    def put_new(self, name: str, data: Data) -> bool:
        path = self.local(name)
        part = path.with_name(f".{secrets.token_hex(8)}.part")
        with telling(self.address, name, "written"):
            _make_private(path.parent)
            try:
                with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as sink:  # noqa: PTH123 - a descriptor
                    sink.write(data)
                path.hardlink_to(part)  # unlike a rename, it never replaces
            except FileExistsError:
                return False
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                return super().put_new(name, data)
            finally:
                part.unlink(missing_ok=True)
        return True

    def find(self, name: str) -> bytes | None:
        path = self.local(name)
        with telling(self.address, name, "read"), suppress(FileNotFoundError):
            return path.read_bytes()
        return None

    def list(self, folder: str = "") -> tuple[str, ...]:
        top = self.local(folder) if folder else self.root
        with telling(self.address, folder, "listed"):
            found = (path.relative_to(self.root) for path in top.rglob("*") if path.is_file())
            return tuple(sorted(path.as_posix() for path in found if not _is_hidden(path.parts)))

    def delete(self, name: str) -> None:
        path = self.local(name)
        with telling(self.address, name, "deleted"):
            path.unlink(missing_ok=True)

    def fetch(self, name: str) -> Path:
        path = self.local(name)
        with telling(self.address, name, "read"):
            if not path.is_file():
                raise self.missing(name)
        return path


class RemoteStorage(Storage):
    """Objects reached through an Arrow file system, below its folder `root`."""

    def __init__(self, address: str, filesystem: fs.FileSystem, root: str, cache_bytes: int = CACHE_BYTES) -> None:
        self.address = address
        self.filesystem = filesystem
        self.root = root.rstrip("/")
        self.cache_bytes = cache_bytes

    def local(self, name: str) -> Path | None:
        checked_name(name)
        return None

    @contextmanager
    def writing(self, name: str) -> Iterator[IO[bytes]]:
        path = self._path(name)
        forget_copy(self.address, name)
        with telling(self.address, name, "written"):
            sink = self._open_output(path)
            try:
                yield sink
            except BaseException:
                # A stream cannot be taken back: what it holds becomes an object on closing, and is then removed.
                with suppress(OSError, pa.ArrowException):
                    sink.close()
                    self.filesystem.delete_file(path)
                raise
            sink.close()

    def find(self, name: str) -> bytes | None:
        path = self._path(name)
        with telling(self.address, name, "read"), suppress(FileNotFoundError):
            with self.filesystem.open_input_stream(path, compression=None) as source:
                found: bytes = source.read()
            return found
        return None

    def list(self, folder: str = "") -> tuple[str, ...]:
        top = self._path(folder) if folder else self.root
        with telling(self.address, folder, "listed"):
            selector = fs.FileSelector(top, allow_not_found=True, recursive=True)
            infos = self.filesystem.get_file_info(selector)
        files = (info.path.lstrip("/") for info in infos if info.type == fs.FileType.File)
        names = (path.removeprefix(self.root.lstrip("/")).lstrip("/") for path in files)
        return tuple(sorted(name for name in names if not _is_hidden(PurePosixPath(name).parts)))

    def delete(self, name: str) -> None:
        path = self._path(name)
        forget_copy(self.address, name)
        with telling(self.address, name, "deleted"), suppress(FileNotFoundError):
            self.filesystem.delete_file(path)

    def delete_all(self, names: Iterable[str]) -> None:
        with ThreadPoolExecutor(_DELETED_AT_ONCE) as pool:
            list(pool.map(self.delete, names))

    def fetch(self, name: str) -> Path:
        path = self._path(name)

        def copy(target: Path) -> None:
            try:
                source = self.filesystem.open_input_stream(path, compression=None)
            except FileNotFoundError as error:
                raise self.missing(name) from error
            with source, target.open("xb") as sink:
                shutil.copyfileobj(source, sink, _COPIED_BYTES)

        with telling(self.address, name, "read"):
            return process_cache(self.address, self.cache_bytes).fetch(name, copy)

    def _path(self, name: str) -> str:
        return f"{self.root}/{checked_name(name)}" if self.root else checked_name(name)

    def _open_output(self, path: str) -> Any:
        """A stream to an object; its folder is made only where the file system asks for it."""
        try:
            return self.filesystem.open_output_stream(path, compression=None)
        except FileNotFoundError:
            self.filesystem.create_dir(path.rpartition("/")[0], recursive=True)
            return self.filesystem.open_output_stream(path, compression=None)


@contextmanager
def telling(address: str, name: str, done: str) -> Iterator[None]:
    """Turns what the system or Arrow raise about an object that could not be `done` into our errors."""
    try:
        yield
    except WindrowError:
        raise
    except (OSError, pa.ArrowException) as error:
        place = f"{shown(address).rstrip('/')}/{name}" if name else shown(address)
        why = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        password = urlsplit(address).password if _URI.match(address) else None
        if password:
            why = why.replace(password, "***")
        told = SourceError(f"'{name or shown(address)}' cannot be {done}: {why}", place=place, hint=_hint(error))
        raise told from (None if password else error)


def _hint(error: Exception) -> str:
    if isinstance(error, PermissionError):
        return "check who may use the folder"
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "make room, or choose another address"
    return "check that the address is right and can be reached from this machine"


def _is_hidden(parts: tuple[str, ...]) -> bool:
    return any(part.startswith(".") for part in parts)


def _make_private(folder: Path) -> None:
    """Make a folder and those above it that are missing, for this user alone."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)
