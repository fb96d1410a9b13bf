"""Finished runs, made once for all tests of the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dashboard import made


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished run in each of `near`, `far` and `throttled`."""
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WINDROW_COMPILE", "0")
        patch.setenv("WINDROW_CACHE_DIR", str(tmp_path_factory.mktemp("kernels")))
        made.run(made.NEAR, folder / "near")
        made.run(made.FAR, folder / "far")
        made.throttled(folder / "throttled")
    return folder
