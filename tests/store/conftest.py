"""What the tests of stores share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture
def interpreted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Leaves are computed as plain Python, without compilation."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WINDROW_COMPILE", "0")
        patch.setenv("WINDROW_CACHE_DIR", str(tmp_path_factory.mktemp("kernels")))
        yield
