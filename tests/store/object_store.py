"""An object store as strict as the strictest: whole objects only, no rename, no append, and every call takes its time.

An object exists once its stream has been closed; what a stream held when its process died never existed. Objects are
kept in a folder, so that several processes see the same store. It can be pickled, and used wherever Arrow takes a file
system.
"""

from __future__ import annotations

import io
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import fs

from windrow.store.storage import RemoteStorage


def object_storage(folder: Path, delay_s: float = 0.0, cache_bytes: int = 2**30) -> RemoteStorage:
    """A storage on an object store that keeps its objects in `folder`."""
    filesystem = fs.PyFileSystem(ObjectStore(str(folder), delay_s))
    return RemoteStorage(f"objects://user:secret@{folder.name}/root", filesystem, "root", cache_bytes)


class ObjectStore(fs.FileSystemHandler):  # type: ignore[misc]
    """Paths are keys: folders exist only as parts of them. `calls` counts what was asked, by name."""

    def __init__(self, folder: str, delay_s: float = 0.0) -> None:
        self.folder = folder
        self.delay_s = delay_s
        self.calls: dict[str, int] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectStore) and other.folder == self.folder

    def __hash__(self) -> int:
        return hash(self.folder)

    def get_type_name(self) -> str:
        return "objects"

    def normalize_path(self, path: str) -> str:
        return path

    def open_output_stream(self, path: str, metadata: Mapping[str, str]) -> Any:
        self._called("put")
        return pa.PythonFile(_Upload(self._path(path)), mode="w")

    def open_input_stream(self, path: str) -> Any:
        self._called("get")
        return pa.PythonFile(self._path(path).open("rb"), mode="r")

    def open_input_file(self, path: str) -> Any:
        return self.open_input_stream(path)

    def get_file_info(self, paths: Sequence[str]) -> list[fs.FileInfo]:
        self._called("head")
        kinds = {path: fs.FileType.File if self._path(path).is_file() else fs.FileType.NotFound for path in paths}
        return [fs.FileInfo(path, kind) for path, kind in kinds.items()]

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        self._called("list")
        keys = [path.name.replace("|", "/") for path in Path(self.folder).iterdir() if "|" in path.name]
        return [fs.FileInfo(key, fs.FileType.File) for key in keys if key.startswith(f"{selector.base_dir}/")]

    def delete_file(self, path: str) -> None:
        self._called("delete")
        self._path(path).unlink()

    def create_dir(self, path: str, recursive: bool) -> None:
        raise OSError("there are no folders here")

    def delete_dir(self, path: str) -> None:
        raise OSError("there are no folders here")

    def delete_dir_contents(self, path: str, missing_dir_ok: bool) -> None:
        raise OSError("there are no folders here")

    def delete_root_dir_contents(self) -> None:
        raise OSError("there are no folders here")

    def move(self, src: str, dest: str) -> None:
        raise OSError("objects cannot be renamed")

    def copy_file(self, src: str, dest: str) -> None:
        raise OSError("objects cannot be copied")

    def open_append_stream(self, path: str, metadata: Mapping[str, str]) -> Any:
        raise OSError("objects cannot be appended to")

    def _called(self, name: str) -> None:
        self.calls[name] = self.calls.get(name, 0) + 1
        time.sleep(self.delay_s)

    def _path(self, key: str) -> Path:
        return Path(self.folder) / key.replace("/", "|")


class _Upload(io.BytesIO):
    """Becomes the object at once when it is closed."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def close(self) -> None:
        if not self.closed:
            part = self._path.with_name(f"{secrets.token_hex(8)}.upload")
            part.write_bytes(self.getvalue())
            os.replace(part, self._path)  # noqa: PTH105 - may run while the interpreter ends
            super().close()
