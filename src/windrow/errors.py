"""One tree of errors.

Every error Windrow raises on purpose is a `WindrowError`: it says what was wrong, shows the offending value, says where
it is and what to do next, all on one line. Each kind keeps a built-in parent, so `except ValueError` and `except
OSError` still work.

>>> raise QueryError("there is no stream 'c'", place="a.x = c.x", hint="known streams: a, b")
Traceback (most recent call last):
    ...
windrow.errors.QueryError: there is no stream 'c' (at: a.x = c.x). Next: known streams: a, b
"""

from __future__ import annotations


class WindrowError(Exception):
    """Base of all errors raised on purpose; `message`, `place` and `hint` make up its one line."""

    def __init__(self, message: str, *, place: str = "", hint: str = "") -> None:
        self.message = _one_line(message)
        self.place = _one_line(place)
        self.hint = _one_line(hint)
        super().__init__(self.message)

    def __str__(self) -> str:
        place = f" (at: {self.place})" if self.place else ""
        hint = f". Next: {self.hint}" if self.hint else ""
        return f"{self.message}{place}{hint}"


class QueryError(WindrowError, ValueError):
    """The query is wrong: its text, a name, a type, a window. It fails before anything runs."""


class InputError(WindrowError, ValueError):
    """The data does not fit the query: a missing column, another type, a schema that changed."""


class SourceError(WindrowError, OSError):
    """Input cannot be read or output cannot be written: a missing, truncated or unreadable file."""


class FunctionError(WindrowError, RuntimeError):
    """A user function failed, took too long, or returned something that is not its declared type."""


class StateError(WindrowError, RuntimeError):
    """A checkpoint cannot be used: another version, another query, a damaged file."""


class PlanError(WindrowError, ValueError):
    """A plan cannot be read or cannot be run: another version, an unknown method, steps that do not cover the query."""


class FreshnessError(WindrowError, RuntimeError):
    """Results cannot be as fresh as was asked, and the join was told to refuse that."""


class UsageError(WindrowError, ValueError):
    """The library or the command line was called in a way that has no meaning."""


def _one_line(text: str) -> str:
    return " ".join(str(text).split())
