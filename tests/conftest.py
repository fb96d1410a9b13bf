"""What all tests share: reproducible property tests, and where the recorded streams are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

REPOSITORY = Path(__file__).resolve().parent.parent

# A slow machine may not change the verdict: no deadline, no health check of speed, the same examples every time.
settings.register_profile("windrow", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("windrow")


@pytest.fixture(scope="session")
def recorded() -> Path:
    """The folder of recorded streams: $WINDROW_DATA, or shared/data beside the repository."""
    folder = Path(os.environ.get("WINDROW_DATA", REPOSITORY.parent / "shared" / "data"))
    if not any(folder.glob("*.parquet")):
        pytest.skip(f"no recorded streams in {folder}: set WINDROW_DATA")
    return folder
