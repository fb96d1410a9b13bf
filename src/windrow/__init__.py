"""Windrow: windowed stream joins of two or more streams, on any condition.

    query = windrow.sql("SELECT a.id, b.id AS b_id FROM a, b WHERE ABS(a.x - b.x) <= 1 WINDOW 20 SECONDS", streams={"a": …, "b": …})
    with windrow.local(query) as join:
        join.push("a", rows)
        results = join.step()

`windrow.join()` builds the same query in Python, `windrow.function` declares functions of your own for it.
"""

from __future__ import annotations

from windrow.errors import FunctionError, InputError, PlanError, QueryError, SourceError, UsageError, WindrowError
from windrow.query.builder import Join, join, sql
from windrow.query.user_functions import function, load_functions
from windrow.run.local import LocalJoin, local
from windrow.run.report import Report

__version__ = "0.1.0"

__all__ = [
    "FunctionError",
    "InputError",
    "Join",
    "LocalJoin",
    "PlanError",
    "QueryError",
    "Report",
    "SourceError",
    "UsageError",
    "WindrowError",
    "function",
    "join",
    "load_functions",
    "local",
    "sql",
]
