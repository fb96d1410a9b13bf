"""How a command ends: an exit code, and one line on stderr where it did not do what was asked.

    0   done
    1   failed: the input, a function of the user's, the output, or Ctrl-C
    2   wrong use: the command line or the query

    windrow: there is no stream 'cam9' (at: FROM cam9). Next: known streams: cam1, cam2

A traceback is never shown, unless `WINDROW_TRACEBACK=1` asks for it.

>>> failure(UsageError("--batch is ''", hint="write --batch '10 seconds'"))
Failure(line="--batch is ''. Next: write --batch '10 seconds'", code=2)
>>> failure(ZeroDivisionError("division by zero"))
Failure(line='ZeroDivisionError: division by zero. Next: set WINDROW_TRACEBACK=1 to see where, and report it', code=1)
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from windrow.errors import QueryError, UsageError, WindrowError

DONE, FAILED, WRONG_USE = 0, 1, 2
_TRACEBACK = "WINDROW_TRACEBACK"


class Stopped(KeyboardInterrupt):
    """Ctrl-C, where something was left behind on purpose: says what."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What is said about an error, and the exit code."""

    line: str
    code: int


def failure(error: Exception) -> Failure:
    """What an error means for whoever called the command."""
    if isinstance(error, WindrowError):
        return Failure(str(error), WRONG_USE if isinstance(error, (QueryError, UsageError)) else FAILED)
    # The parser of the command line has one base class for its errors, which typer does not export.
    describe = getattr(error, "format_message", None)
    if describe is not None:
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "windrow"
        line = " ".join(str(describe()).split()).removesuffix(".")
        return Failure(f"{line}. Next: see {command} --help", int(getattr(error, "exit_code", WRONG_USE)))
    line = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
    return Failure(f"{line}. Next: set {_TRACEBACK}=1 to see where, and report it", FAILED)


class Commands(TyperGroup):
    """The group of all commands; whatever goes wrong in one of them ends here."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stopped:
            left = str(stopped) if isinstance(stopped, Stopped) else "stopped before the end; nothing was left behind"
            typer.echo(f"windrow: {left}", err=True)
            raise typer.Exit(FAILED) from None

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
        _stop_like_interrupt()
        try:
            code = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
        except Exception as error:
            if os.environ.get(_TRACEBACK):
                traceback.print_exc()
            failed = failure(error)
            typer.echo(f"windrow: {failed.line}", err=True)
            sys.exit(failed.code)
        sys.exit(code if isinstance(code, int) else DONE)


def _stop_like_interrupt() -> None:
    """Being told to end cleans up as Ctrl-C does; without this the temporary output would stay."""

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001 - the signature of handlers
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, interrupt)
