"""What all tests share: reproducible property tests, and where the recorded streams are."""

from __future__ import annotations

import os
from collections.abc import Iterator
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


@pytest.fixture
def interpreted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Predicates run as plain Python, which is slower a pair and needs no compilation."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WINDROW_COMPILE", "0")
        patch.setenv("WINDROW_CACHE_DIR", str(tmp_path_factory.mktemp("kernels")))
        yield
