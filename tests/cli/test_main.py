"""What all commands share: help, version, exit codes."""

from __future__ import annotations

import pytest

import windrow
from tests.cli.conftest import Command
from windrow.cli.main import COMMANDS


@pytest.mark.parametrize("name", [command.__name__ for command in COMMANDS])
def test_help_has_an_example(windrow_command: Command, name: str) -> None:
    ended = windrow_command(name, "--help")
    assert (ended.code, ended.err) == (0, "")
    assert f"\n  windrow {name}" in ended.out


def test_all_commands_are_listed(windrow_command: Command) -> None:
    ended = windrow_command("--help")
    assert ended.code == 0
    assert windrow_command().out == ended.out
    for name in ("run", "explain", "demo", "dashboard", "state", "bench", "calibrate", "reproduce"):
        assert f"\n  {name} " in ended.out


def test_version(windrow_command: Command) -> None:
    ended = windrow_command("--version")
    assert (ended.code, ended.out) == (0, f"windrow {windrow.__version__}\n")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("sing",), "No such command 'sing'. Next: see windrow --help"),
        (("run",), "Missing argument 'QUERY.sql'. Next: see windrow run --help"),
        (("run", "q.sql", "--stream", "a=a.csv"), "Missing option '--out'. Next: see windrow run --help"),
        (("demo", "--seconds", "soon"), "Invalid value for '--seconds'"),
    ],
)
def test_wrong_use_is_one_line(windrow_command: Command, arguments: tuple[str, ...], says: str) -> None:
    ended = windrow_command(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("windrow: ")
    assert says in ended.err
    assert ended.err.count("\n") == 1
