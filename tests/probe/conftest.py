"""What the tests of probes share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture
def interpreted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Predicates run as plain Python, which is slower a pair and needs no compilation."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WINDROW_COMPILE", "0")
        patch.setenv("WINDROW_CACHE_DIR", str(tmp_path_factory.mktemp("kernels")))
        yield
