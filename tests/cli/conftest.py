"""What the tests of the command line share: commands that run in an empty folder, without a compiler."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from windrow.cli.main import main


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


Command = Callable[..., Ended]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def windrow_command(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    """`windrow ARGUMENTS…` in that folder; `stdin` is what it reads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WINDROW_COMPILE", "0")
        patch.setenv("WINDROW_CACHE_DIR", str(tmp_path_factory.mktemp("kernels")))
        patch.delenv("WINDROW_TRACEBACK", raising=False)

        def command(*arguments: str, stdin: str | None = None) -> Ended:
            result = CliRunner().invoke(main, list(arguments), input=stdin)
            assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
            return Ended(result.exit_code, result.stdout, result.stderr)

        yield command
