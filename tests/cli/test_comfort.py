"""What makes the command line pleasant: completion, examples that can be typed, colours that can be turned off."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.cli.conftest import Command
from tests.cli.recordings import cameras_and_query
from windrow.cli.main import COMMANDS, main

COLOUR = re.compile(r"\x1b\[[\d;]*3\d")


def windrow(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "import sys; sys.argv[0] = 'windrow'; from windrow.cli.main import main; main()"]
    place = {**os.environ, **environment}
    return subprocess.run([*command, *arguments], cwd=folder, capture_output=True, text=True, check=False, env=place)


@pytest.mark.parametrize(("typed", "offered"), [("windrow ca", "calibrate"), ("windrow run --thr", "--throttle")])
def test_a_shell_completes_commands_and_options(folder: Path, typed: str, offered: str) -> None:
    asked = {"_WINDROW_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    ended = windrow(folder, **asked)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.split() == [offered]


def test_completion_can_be_installed_and_shown(windrow_command: Command) -> None:
    told = windrow_command("--help").out
    assert "--install-completion" in told
    assert "--show-completion" in told


@pytest.mark.parametrize("name", [command.__name__ for command in COMMANDS])
def test_examples_in_the_help_can_be_typed(windrow_command: Command, name: str) -> None:
    group: Any = typer.main.get_command(main)
    lines = [line.strip() for line in windrow_command(name, "--help").out.splitlines()]
    examples = [line.partition(" < ")[0] for line in lines if line.startswith(f"windrow {name}")]
    assert examples
    for example in examples:
        _, command, *arguments = shlex.split(example)
        assert group.commands[command].make_context(command, arguments)


def test_colours_can_be_turned_off(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("explain", *cameras_and_query(folder), "--look", "0")
    shown = {"FORCE_COLOR": "1", "TERM": "xterm-256color", "WINDROW_COMPILE": "0"}
    monkeypatch.delenv("NO_COLOR", raising=False)
    bold = windrow(folder, *arguments, **shown)
    assert "\x1b[" in bold.stdout
    assert not COLOUR.search(windrow(folder, *arguments, **shown, NO_COLOR="1").stdout)


def test_without_a_terminal_nothing_is_drawn(folder: Path) -> None:
    ended = windrow(folder, "explain", *cameras_and_query(folder), "--look", "0", WINDROW_COMPILE="0")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "\x1b" not in ended.stdout
