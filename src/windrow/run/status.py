"""The status of a join: a dictionary that notebooks show as tables.

>>> status = Status({"batch": 3, "results": 5, "streams": {"a": {"rows": 7, "late": 0}}})
>>> status["results"], "<td>7</td>" in status._repr_html_()
(5, True)
"""

from __future__ import annotations

from typing import Any

from windrow.query.markup import table, titled


class Status(dict[str, Any]):
    """What `status()` gives; everything else about it is a dictionary's."""

    def _repr_html_(self) -> str:
        streams: dict[str, dict[str, Any]] = self.get("streams") or {}
        columns = list(dict.fromkeys(column for stream in streams.values() for column in stream))
        rows = [(name, *(stream.get(column) for column in columns)) for name, stream in streams.items()]
        rest = [(name, _flat(value)) for name, value in self.items() if name != "streams"]
        return titled("Status", table(("", ""), rest), table(("stream", *columns), rows))


def _flat(value: Any) -> Any:
    return ", ".join(f"{name} {part}" for name, part in value.items()) if isinstance(value, dict) else value
