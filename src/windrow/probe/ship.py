"""Compiled kernels on their way to other machines: the files of the cache that a query needs, as one piece of bytes.

    driver program: compile ─▶ packed() ──▶ bytes ──▶ worker: unpack(bytes) ─▶ its own cache folder ─▶ import, load

Numba knows a cached kernel by its source file's name, size and time of change, so files keep their time. Machine code
is for one kind of processor: a worker with another one compiles for itself.
"""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

from windrow.probe.compile import cache_folder, loaded_kernels


def packed() -> tuple[tuple[str, ...], bytes]:
    """The names of the kernels that this process has loaded, and their files."""
    folder = cache_folder()
    names = loaded_kernels()
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as archive:
        for name in names:
            stem = Path(name).stem
            for path in (folder / name, *sorted((folder / "__pycache__").glob(f"{stem}.*"))):
                if path.suffix in (".py", ".nbi", ".nbc"):
                    archive.add(path, path.relative_to(folder).as_posix())
    return names, sink.getvalue()


def missing(names: tuple[str, ...]) -> bool:
    """Whether this machine lacks one of some kernels."""
    folder = cache_folder()
    return any(not (folder / name).exists() for name in names)


def unpack(data: bytes) -> None:
    """Put the files of kernels into this machine's cache; what is there stays."""
    folder = cache_folder()
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        # Sources come last: a process that sees one finds the machine code of it.
        for member in sorted(archive.getmembers(), key=lambda each: each.name.endswith(".py")):
            path = folder / member.name
            if path.exists() or not member.isfile() or path.parent.name not in (folder.name, "__pycache__"):
                continue
            path.parent.mkdir(mode=0o700, exist_ok=True)
            part = path.with_name(f".{path.name}.{os.getpid()}.part")
            held = archive.extractfile(member)
            part.write_bytes(b"" if held is None else held.read())
            os.utime(part, (member.mtime, member.mtime))
            part.replace(path)
