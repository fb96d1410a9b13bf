"""Every block of code in the documentation runs, or is checked as far as it can be without a cluster or a broker.

Pages whose Python needs no Spark run here, block by block, in an empty folder, and print what they say. The tutorial,
the README, the page on sinks and the one on Kafka have tests of their own, since their blocks need Spark.
"""

from __future__ import annotations

import re
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import typer
import yaml

import windrow
from tests.cli.conftest import Command
from tests.conftest import REPOSITORY
from tests.docs.pages import DOCS, LANGUAGES, LINK, Block, anchors, blocks, commands, documents, name, prose
from windrow.cli.main import main

ON_SPARK = ("README.md", "docs/tutorial.md", "docs/sinks.md", "docs/howto/kafka.md")
ALONE = [
    page for page in documents() if name(page) not in ON_SPARK and any(b.language == "python" for b in blocks(page))
]
OTHER_PROGRAMS = ("conda", "export", "git", "java", "mkdir", "mv", "pip", "python", "spark-submit", "venv-pack")
SCHEMA = pa.schema(
    [("ts", pa.timestamp("us")), ("id", pa.int64()), ("x", pa.float64()), ("kind", pa.string()), ("v", pa.float64())]
)
STREAMS = dict.fromkeys(("cam1", "cam2", "cam3", "a", "b", "c"), SCHEMA)


def parsed(words: list[str]) -> Any:
    """A command's arguments, read by the command itself, which does not run."""
    group: Any = typer.main.get_command(main)
    command = group.commands.get(words[1])
    assert command is not None, words[1]
    return command.make_context(words[1], list(words[2:]))


def test_pages_were_found() -> None:
    assert len(documents()) >= 25
    assert len(ALONE) >= 8
    assert sum(len(list(commands(page))) for page in documents()) >= 25


@pytest.mark.parametrize("page", documents(), ids=name)
def test_blocks_say_what_they_are(page: Path) -> None:
    for block in blocks(page):
        assert block.language in LANGUAGES, f"{name(page)}:{block.line}"
        if block.language in ("python", "py") and not block.text.startswith(">>>"):
            compile(block.text, name(page), "exec")


@pytest.mark.parametrize("page", documents(), ids=name)
def test_queries_are_understood(page: Path) -> None:
    for block in blocks(page):
        if block.language == "sql":
            windrow.sql(block.text, STREAMS)


@pytest.mark.parametrize("page", documents(), ids=name)
def test_commands_can_be_typed(page: Path) -> None:
    targets = set(re.findall(r"^([a-z][\w-]*):(?!=)", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))
    for line, words in commands(page):
        if words[0] == "make":
            assert words[1] in targets, line
        elif words[0] == "windrow":
            parsed(words)
        else:
            assert words[0] in OTHER_PROGRAMS, line


def test_a_command_that_cannot_be_typed_is_seen() -> None:
    with pytest.raises(Exception, match="No such option"):
        parsed(["windrow", "run", "q.sql", "--stream", "a=a", "--out", "o", "--trottle", "0.3"])


@pytest.mark.parametrize("page", ALONE, ids=name)
def test_pages_run_and_print_what_they_say(
    page: Path, windrow_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [name(page)])
    names: dict[str, Any] = {"__name__": "__main__"}
    ran = 0
    for block in blocks(page):
        if block.language == "python":
            printed = run_python(block, names, page)
        elif block.language == "sh":
            printed = run_commands(block, windrow_command)
        else:
            continue
        ran += 1
        if block.promised is not None:
            assert printed == block.promised, f"{name(page)}:{block.line}"
    assert ran


def run_python(block: Block, names: dict[str, Any], page: Path) -> str:
    """Run a block as its page has it; errors name the page's line."""
    out = StringIO()
    with redirect_stdout(out):
        exec(compile("\n" * block.line + block.text, name(page), "exec"), names)
    return out.getvalue()


def run_commands(block: Block, windrow_command: Command) -> str:
    """Run the commands of a block; one that fails has to be said to."""
    import shlex

    printed = ""
    for line in block.text.splitlines():
        words = shlex.split(line, comments=True)
        assert words[0] == "windrow", line
        ended = windrow_command(*words[1:])
        assert ended.code == 0 or block.promised is not None, ended.err
        printed += ended.out + (ended.err if ended.code else "")
    return printed


@pytest.mark.parametrize("page", documents(), ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(prose(page)):
        if "://" in link:
            assert link.startswith("https://"), link
            continue
        path, _, heading = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.is_file(), f"{name(page)}: {link}"
        if heading:
            assert heading in anchors(target), f"{name(page)}: {link}"


def test_the_site_has_every_page_and_no_other() -> None:
    settings = yaml.safe_load((REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8"))

    def leaves(item: Any) -> list[str]:
        if isinstance(item, str):
            return [item]
        parts = item.values() if isinstance(item, dict) else item
        return [leaf for part in parts for leaf in leaves(part)]

    listed = leaves(settings["nav"])
    assert sorted(listed) == sorted(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))


def test_inner_joins_only_is_said_plainly() -> None:
    for page in ("index.md", "reference/sql.md", "concepts/windows.md"):
        assert "Inner joins only" in (DOCS / page).read_text(encoding="utf-8"), page
