"""How values look in the tables that commands print."""

from __future__ import annotations


def cell(value: object) -> str:
    """A value as a table shows it.

    >>> [cell(value) for value in (True, False, None, 0.0123456, 12345.678, 3, "x")]
    ['yes', 'NO', '', '0.0123', '12,346', '3', 'x']
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
