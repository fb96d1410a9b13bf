"""The calibrated costs of this machine: kept in the private cache folder, found again by what the machine is.

    windrow calibrate ── store ──▶ calibration_<machine>.json ── calibrated ──▶ WorkCosts, or None: never measured

A folder may be shared by several machines (a home directory on a cluster), so the processor is part of the name. A file
of another version, or a damaged one, is refused: costs that silently fall back would change what plans are made.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from pathlib import Path

from windrow.errors import PlanError, SourceError, StateError
from windrow.plan.work import REFERENCE, WorkCosts

FORMAT_VERSION = 1
_AGAIN = "measure again with windrow calibrate"
_PROCESSORS = Path("/proc/cpuinfo")


def calibrated() -> WorkCosts | None:
    """The costs measured on this machine, or None if there are none."""
    path = calibration_file()
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise StateError(f"the calibration cannot be read: {error}", place=str(path), hint=_AGAIN) from error
    try:
        values = json.loads(text)
        version = values["version"]
        if version == FORMAT_VERSION:
            return WorkCosts.from_values(values["costs"])
    except (ValueError, KeyError, TypeError) as error:
        reason = error.message if isinstance(error, PlanError) else f"{type(error).__name__} {error}"
        raise StateError(f"the calibration is damaged: {reason}", place=str(path), hint=_AGAIN) from error
    raise StateError(
        f"the calibration has format version {version}, this is {FORMAT_VERSION}", place=str(path), hint=_AGAIN
    )


def first_guess(controlled: bool) -> WorkCosts:
    """What a join that is `controlled` takes work to cost until it has learned better: as measured on this machine, or
    the built-in table. Others need no costs, and do not look for them.
    """
    return (calibrated() if controlled else None) or REFERENCE


def store(costs: WorkCosts) -> Path:
    """Keep costs for this machine, in the place of what was kept before; the file is for its owner alone."""
    path = calibration_file()
    values = {"version": FORMAT_VERSION, "machine": machine(), "costs": costs.to_values()}
    part = path.with_suffix(f".{os.getpid()}.part")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(json.dumps(values, indent=2) + "\n")
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise SourceError(
            f"the calibration cannot be kept: {error.strerror}",
            place=str(path),
            hint="set WINDROW_CACHE_DIR to a folder of yours",
        ) from error
    return path


def calibration_file() -> Path:
    """Where the costs of this machine are kept."""
    from windrow.probe.compile import cache_folder

    return cache_folder() / f"calibration_{hashlib.sha256(machine().encode()).hexdigest()[:16]}.json"


def machine() -> str:
    """What is known of the machine's processor."""
    return f"{platform.machine()}, {_processor()}, {os.cpu_count()} processors"


def _processor() -> str:
    try:
        lines = _PROCESSORS.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or "processor unknown")
