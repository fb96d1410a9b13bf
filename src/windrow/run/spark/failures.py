"""Failures on Spark in one line: what the user's own code or ours said, out of what Python, Py4J and Java wrap it in.

    Py4JJavaError … stage failure … PythonException: Traceback … windrow.errors.FunctionError: 'near' failed …
    ──▶ FunctionError: 'near' failed …

A batch may only fail with such a line: Spark 4.3 searches the text of a failure by a regular expression, and overflows
its stack on the many pages of a wrapped one.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from typing import Any

from windrow import errors
from windrow.errors import WindrowError

LONGEST = 400
RUN_AGAIN = "correct the cause and start from the same checkpoint: the batch is run again"

_TOLD_BY_PYTHON = re.compile(r"((?:\w+\.)*[A-Z]\w*)(?:: (.*))?")
_STATE_OF_SQL = re.compile(r"(?: SQLSTATE: \w+)+$")
_CLASS_OF_JAVA = re.compile(r"^(?:: )?(?:[a-z_]\w*\.)+([A-Z]\w*): (?=.)")
_PY4J = re.compile(r"^An error occurred while calling \S+?\.?$")


def brief(error: BaseException, place: str = "") -> WindrowError:
    """An error as one of ours, in one line, without the traceback and causes of the one it stands for.

    >>> brief(ZeroDivisionError("division by zero"), place="batch 3").message
    'ZeroDivisionError: division by zero'
    >>> brief(errors.FunctionError("no", place="sink")).place
    'sink'
    """
    if isinstance(error, WindrowError):
        return type(error)(_cut(error.message), place=error.place or place, hint=error.hint)
    text = str(error)
    told = _told_by_python(text)
    if told is not None:
        name, message = told
        kind = _ours(name)
        if kind is not None:
            return _parsed(kind, message, place)
        return WindrowError(_cut(f"{name.rpartition('.')[2]}: {message}".rstrip(": ")), place=place, hint=RUN_AGAIN)
    said = _first_line(text)
    shown = said if type(error).__module__.startswith(("py4j", "pyspark")) else f"{type(error).__name__}: {said}"
    return WindrowError(_cut(shown.rstrip(": ")), place=place, hint=RUN_AGAIN)


def where_it_failed(error: BaseException, function: Callable[..., Any]) -> str:
    """The last line of a function's own file that an error went through, as `file.py:12`; else the function's name."""
    name = getattr(function, "__name__", type(function).__name__)
    file = getattr(getattr(function, "__code__", None), "co_filename", None)
    lines = [line.lineno for line in traceback.extract_tb(error.__traceback__) if line.filename == file]
    if file is None or not lines:
        return name
    return f"{file.replace(chr(92), '/').rpartition('/')[2]}:{lines[-1]} in {name}"


def _ours(name: str) -> type[WindrowError] | None:
    module, _, kind = name.rpartition(".")
    found = getattr(errors, kind, None) if module == errors.__name__ else None
    return found if isinstance(found, type) and issubclass(found, WindrowError) else None


def _parsed(kind: type[WindrowError], line: str, place: str) -> WindrowError:
    """An error of ours from its line, which has its place and hint in it."""
    message, _, hint = line.partition(". Next: ")
    at = re.fullmatch(r"(.*) \(at: (.*)\)", message)
    if at:
        message, place = at[1], at[2]
    return kind(_cut(message), place=place, hint=hint)


def _told_by_python(text: str) -> tuple[str, str] | None:
    """The kind and message of the last Python error in a text: what stands below the last lines of code shown."""
    found, below = None, False
    for line in text.splitlines():
        if line.startswith("  File "):
            below = True
        elif below and (match := _TOLD_BY_PYTHON.fullmatch(line)):
            found, below = (match[1], match[2] or ""), False
    return found


def _first_line(text: str) -> str:
    """The first line that says something, without the names of Java's classes in front."""
    lines = [line.strip() for line in text.splitlines()]
    said = next((line for line in lines if line and not _PY4J.match(line)), "no message")
    while match := _CLASS_OF_JAVA.match(said):
        said = said[match.end() :] if match.end() < len(said) else match[1]
    return _STATE_OF_SQL.sub("", said)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
