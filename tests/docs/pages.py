"""The pages of the documentation taken apart: blocks of code, headings, links."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import REPOSITORY

DOCS = REPOSITORY / "docs"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)\)")
LANGUAGES = ("python", "py", "sql", "sh", "text")
"""What blocks are: Python that runs, Python that needs other programs, a query, commands, what is printed."""


@dataclass(frozen=True)
class Block:
    """One block of code: its language, its text, the line it begins at, and what it is said to print."""

    language: str
    text: str
    line: int
    promised: str | None = None


def documents() -> list[Path]:
    """All pages, the README among them."""
    return [REPOSITORY / "README.md", *sorted(DOCS.rglob("*.md"))]


def name(page: Path) -> str:
    """A page as a reader writes it."""
    return page.relative_to(REPOSITORY).as_posix()


def blocks(page: Path) -> list[Block]:
    """The blocks of a page; a block of `text` right behind another one is what that prints."""
    text = page.read_text(encoding="utf-8")
    found: list[Block] = []
    ended = -1
    for match in FENCE.finditer(text):
        block = Block(match[1], match[2], text.count("\n", 0, match.start(2)))
        if block.language == "text" and found and not text[ended : match.start()].strip():
            before = found.pop()
            block = Block(before.language, before.text, before.line, block.text)
        found.append(block)
        ended = match.end()
    return found


def commands(page: Path) -> Iterator[tuple[str, list[str]]]:
    """The commands in a page's blocks, as written and as words."""
    import shlex

    for block in blocks(page):
        if block.language == "sh":
            for line in block.text.splitlines():
                words = shlex.split(line, comments=True)
                if words:
                    yield line, words


def prose(page: Path) -> str:
    """A page without its blocks and spans of code."""
    return re.sub(r"`[^`\n]+`", "", FENCE.sub("", page.read_text(encoding="utf-8")))


def anchors(page: Path) -> set[str]:
    """What links can point at in a page: its headings, as the site names them."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    return {anchor(re.sub(r"[`*]", "", heading)) for heading in HEADING.findall(text)}


def anchor(heading: str) -> str:
    """The name of a heading.

    >>> anchor("start, of a join on Spark")
    'start-of-a-join-on-spark'
    """
    plain = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())
