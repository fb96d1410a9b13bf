"""Windrow: windowed stream joins of two or more streams, on any condition.

    query = windrow.sql("SELECT a.id, b.id AS b_id FROM a, b WHERE ABS(a.x - b.x) <= 1 WINDOW 20 SECONDS", streams={…})
    with windrow.local(query) as join:
        join.push("a", rows)
        results = join.step()

`windrow.join()` builds the same query in Python, `windrow.function` declares functions of your own for it. Names are
loaded when first used, so that importing the package (and asking the command line for help) costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windrow.errors import (
        FunctionError,
        InputError,
        PlanError,
        QueryError,
        SourceError,
        StateError,
        UsageError,
        WindrowError,
    )
    from windrow.query.builder import Join
    from windrow.query.user_functions import function, load_functions
    from windrow.run.entry import join, sql
    from windrow.run.local import LocalJoin, local
    from windrow.run.report import Report
    from windrow.run.spark.handle import RunningJoin
    from windrow.run.spark.sinks import Format
    from windrow.run.spark.stopped import repair

__version__ = "0.1.0"

_HOMES = {
    **dict.fromkeys(
        (
            "FunctionError",
            "InputError",
            "PlanError",
            "QueryError",
            "SourceError",
            "StateError",
            "UsageError",
            "WindrowError",
        ),
        "windrow.errors",
    ),
    "Join": "windrow.query.builder",
    **dict.fromkeys(("join", "sql"), "windrow.run.entry"),
    **dict.fromkeys(("function", "load_functions"), "windrow.query.user_functions"),
    **dict.fromkeys(("LocalJoin", "local"), "windrow.run.local"),
    "Report": "windrow.run.report",
    "Format": "windrow.run.spark.sinks",
    "RunningJoin": "windrow.run.spark.handle",
    "repair": "windrow.run.spark.stopped",
}

__all__ = [
    "Format",
    "FunctionError",
    "InputError",
    "Join",
    "LocalJoin",
    "PlanError",
    "QueryError",
    "Report",
    "RunningJoin",
    "SourceError",
    "StateError",
    "UsageError",
    "WindrowError",
    "function",
    "join",
    "load_functions",
    "local",
    "repair",
    "sql",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'windrow' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
