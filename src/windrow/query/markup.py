"""Tables for notebooks, as HTML: small, plain, and with everything that comes from data escaped.

>>> table(("stream", "rows"), [("a<b", 1200)])
'<table><tr><th>stream</th><th>rows</th></tr><tr><td>a&lt;b</td><td>1,200</td></tr></table>'
>>> section("Plan", "x < 1")
'<div><strong>Plan</strong><pre>x &lt; 1</pre></div>'
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table; numbers get their thousands separated, None is left empty."""
    lines = [_line("th", head), *(_line("td", row) for row in rows)]
    return f"<table>{''.join(lines)}</table>"


def section(title: str, text: str) -> str:
    """Lines of text as they stand, under a title."""
    return f"<div><strong>{escape(title)}</strong><pre>{escape(text)}</pre></div>"


def titled(title: str, *parts: str) -> str:
    """Parts that are HTML already, under a title."""
    return f"<div><strong>{escape(title)}</strong>{''.join(parts)}</div>"


def _line(kind: str, cells: Iterable[object]) -> str:
    return f"<tr>{''.join(f'<{kind}>{escape(_cell(cell))}</{kind}>' for cell in cells)}</tr>"


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
