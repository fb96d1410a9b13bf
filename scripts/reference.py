"""The reference pages' parts that say what the code says, taken from the code.

    docs/reference/cli.md     <!-- begin: commands --> … <!-- end: commands -->      from the commands' own help

A part is a function without arguments, named in `PARTS`; the text around the parts is written by hand.

    python scripts/reference.py           writes the parts into the pages
    python scripts/reference.py --check   changes nothing; exit code 1 if a page differs
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference"
PART = re.compile(r"<!-- begin: (\w+) -->\n.*?<!-- end: \1 -->", re.DOTALL)
WIDTH = 110


def commands() -> str:
    """Each command with its help, as it is printed."""
    import typer

    from windrow.cli.main import COMMANDS, main

    group: Any = typer.main.get_command(main)
    wide = {"terminal_width": WIDTH, "max_content_width": WIDTH, "resilient_parsing": True}
    whole = group.make_context("windrow", [], **wide)
    told = [_help("windrow", group, whole)]
    for each in COMMANDS:
        command = group.get_command(whole, each.__name__)
        context = command.make_context(each.__name__, [], parent=whole, **wide)
        told.append(_help(f"windrow {each.__name__}", command, context))
    return "\n\n".join(re.sub(r"[ \t]+$", "", part, flags=re.MULTILINE) for part in told)


def functions() -> str:
    """The functions and operators of the query language."""
    from windrow.query.functions import FUNCTIONS

    rows = []
    for function in FUNCTIONS.values():
        written = [f"`{name}(…)`" for name in function.called]
        if function.operator:
            written.insert(0, f"`{function.operator}`")
        null = "NULL with any NULL" if function.strict else "its own rule for NULL"
        rows.append((", ".join(written) or f"`{function.name.upper()}`", function.expects, null))
    return _table(("written", "takes", "gives"), rows)


def types() -> str:
    """The types of values."""
    from windrow.query import types

    text = inspect.getdoc(types) or ""
    form = text[text.index("    BOOLEAN") : text.index("\n>>>")]
    return f"```text\n{inspect.cleandoc(form)}\n```"


def clauses() -> str:
    """The clauses that SQL does not have."""
    from windrow.query import clauses

    text = inspect.getdoc(clauses) or ""
    form = text[text.index("    WINDOW 20 SECONDS") : text.index("\nThey are found")]
    return f"```text\n{inspect.cleandoc(form)}\n```"


def names() -> str:
    """The public names."""
    import windrow

    errors = [name for name in windrow.__all__ if name.endswith("Error")]
    others = [name for name in windrow.__all__ if name not in errors]
    told = [_described(name, getattr(windrow, name)) for name in others]
    rows = [
        (f"`{name}`", ", ".join(f"`{base.__name__}`" for base in getattr(windrow, name).__bases__), _first(name))
        for name in errors
    ]
    return "\n\n".join([*told, "## Errors", _table(("error", "is a", "means"), rows)])


def start() -> str:
    """How a join on Spark is started."""
    from windrow.run.spark.join import SparkJoin

    return _code(f"start{_signature(SparkJoin.start)}", SparkJoin.start)


def local_options() -> str:
    """The options of a join in this process."""
    from windrow.run.options import LocalOptions

    return f"```text\n{_body(LocalOptions)}\n```\n\n{_defaults(LocalOptions)}"


def where() -> str:
    """Which options each runtime takes."""
    from windrow.run.options import LocalOptions
    from windrow.run.spark.join import SparkJoin

    here = [field.name for field in dataclasses.fields(LocalOptions)]
    there = [name for name in inspect.signature(SparkJoin.start).parameters if name != "self"]
    rows = [
        (f"`{name}`", "yes" if name in here else "", "yes" if name in there else "")
        for name in dict.fromkeys((*here, *there))
    ]
    return _table(("option", "`windrow.local`", "`start`"), rows)


def control() -> str:
    """How shedding is controlled, in detail."""
    from windrow.control.controller import ControlSettings

    return f"{_unquoted(ControlSettings)}\n\n{_defaults(ControlSettings)}"


def repairs() -> str:
    """How repairs are made."""
    from windrow.run.backlog import RepairSettings

    return f"{_unquoted(RepairSettings)}\n\n{_defaults(RepairSettings)}"


def events() -> str:
    """What an event holds."""
    from windrow.run import events

    text = inspect.getdoc(events) or ""
    return f"```text\n{text.partition(chr(10) * 2)[2]}\n```"


PARTS: dict[str, Callable[[], str]] = {
    part.__name__: part
    for part in (
        commands,
        functions,
        types,
        clauses,
        names,
        start,
        local_options,
        where,
        control,
        repairs,
        events,
    )
}


def filled(page: str) -> str:
    """A page with its parts as the code has them now."""

    def part(found: re.Match[str]) -> str:
        return f"<!-- begin: {found[1]} -->\n\n{PARTS[found[1]]()}\n\n<!-- end: {found[1]} -->"

    return PART.sub(part, page)


def pages() -> Iterator[tuple[Path, str, str]]:
    """Each page: where it is, its text, and what that should be."""
    for path in sorted(REFERENCE.glob("*.md")):
        page = path.read_text(encoding="utf-8")
        yield path, page, filled(page)


def main(arguments: list[str]) -> int:
    """Write the parts, or only look."""
    differing = [(path, wanted) for path, page, wanted in pages() if page != wanted]
    for path, wanted in differing:
        print(path.name)
        if "--check" not in arguments:
            path.write_text(wanted, encoding="utf-8")
    return 1 if differing and "--check" in arguments else 0


def _help(title: str, command: Any, context: Any) -> str:
    return f"## {title}\n\n```text\n{command.get_help(context).strip()}\n```"


def _described(name: str, value: Any) -> str:
    if not inspect.isclass(value):
        return f"## {name}\n\n{_code(f'windrow.{name}{_signature(value)}', value)}"
    parts = [f"## {name}\n\n{_prose(value)}"]
    for method, member in inspect.getmembers(value):
        if method.startswith("_") or not (inspect.isfunction(member) or isinstance(member, property)):
            continue
        if not inspect.getdoc(member):
            continue
        call = f"{method}" if isinstance(member, property) else f"{method}{_signature(member)}"
        parts.append(_code(call, member))
    if dataclasses.is_dataclass(value) and name in ("Report", "Format"):
        parts.append(_defaults(value))
    return "\n\n".join(parts)


def _signature(value: Any) -> str:
    """A signature without `self`, its types as they are written."""
    signature = inspect.signature(value)
    parameters = [each for each in signature.parameters.values() if each.name != "self"]
    text = str(signature.replace(parameters=parameters))
    return text.replace("'", "").replace("typing.", "")


def _code(call: str, value: Any) -> str:
    return f"```text\n{call}\n```\n\n{_prose(value)}"


def _prose(value: Any) -> str:
    """A docstring as a page has it: examples and pictures as they stand."""
    blocks = (inspect.getdoc(value) or "").split("\n\n")
    told = []
    for block in blocks:
        if block.startswith((">>>", "    ")):
            told.append(f"```text\n{inspect.cleandoc(block)}\n```")
        else:
            told.append(" ".join(block.split()))
    return "\n\n".join(told)


def _unquoted(value: Any) -> str:
    return _prose(value)


def _body(value: Any) -> str:
    return (inspect.getdoc(value) or "").partition("\n\n")[2]


def _first(name: str) -> str:
    import windrow

    return " ".join((inspect.getdoc(getattr(windrow, name)) or "").split())


def _defaults(value: Any) -> str:
    """The fields of a dataclass with their defaults."""
    rows = []
    for field in dataclasses.fields(value):
        default = field.default if field.default is not dataclasses.MISSING else None
        factory = field.default_factory is not dataclasses.MISSING
        if default is None:
            shown = "empty" if factory else "`None`" if field.default is None else "has to be given"
        elif callable(default):
            shown = f"`{default.__module__}.{default.__qualname__}`"
        elif dataclasses.is_dataclass(default):
            shown = "as built in"
        else:
            shown = f"`{default!r}`"
        rows.append((f"`{field.name}`", f"`{field.type}`".replace("|", "\\|"), shown))
    return _table(("field", "type", "default"), rows)


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
