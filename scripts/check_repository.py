"""Guards over the repository itself: what a reader of a clean clone would trip over.

Each guard is a function from the repository to the problems it found, listed in `GUARDS`. A guard also says how many
things it looked at, and one that looked at too few fails: a guard that passes on nothing guards nothing.

    python scripts/check_repository.py [DIRECTORY]       prints the problems, exit code 1 if there are any
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LONGEST_MODULE_LINES = 450
LARGEST_FILE_BYTES = 500_000
DATA_SUFFIXES = frozenset({".parquet", ".arrow", ".arrows", ".feather", ".ipc", ".csv", ".gz", ".zip"})

MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|farm|root|home|tmp)/\w")
REGISTRY = re.compile(
    r"pypi\.org|pythonhosted\.org|(?:index|extra-index)[-_]url|trusted[-_]host|find[-_]links", re.IGNORECASE
)
UNFINISHED = re.compile(r"\bNotImplemented[E]rror\b|\bTO[D]O\b|\bFIX[M]E\b|\bXX[X]\b|\bx[f]ail\b|mark\.[s]kip")

CODE_SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
FENCED_BLOCK = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)[^)\s]*\)")
PATH_LIKE = re.compile(r"[\w.\-]+(?:/[\w.\-]+)*/?")
PROGRAMS = ("make", "windrow")
FILE_SUFFIXES = frozenset({".py", ".md", ".toml", ".txt", ".yml", ".cfg", ".ini"})


@dataclass
class Found:
    """What one guard found: its problems, one line each, and how many things it looked at."""

    seen: int = 0
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Repository:
    """The files git knows or would add, so that caches and environments do not count."""

    root: Path
    files: tuple[Path, ...]

    @classmethod
    def at(cls, root: Path) -> Repository:
        """Read the list of files from git; a deleted file that is still listed is left out."""
        command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        names = sorted({name for name in listed.split("\0") if name})
        return cls(root, tuple(root / name for name in names if (root / name).is_file()))

    def name(self, path: Path) -> str:
        """The path as a reader writes it."""
        return path.relative_to(self.root).as_posix()

    def texts(self) -> Iterator[tuple[Path, str]]:
        """Every file that is UTF-8 text."""
        for path in self.files:
            try:
                yield path, path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue

    def documents(self) -> Iterator[tuple[Path, str]]:
        """The Markdown pages."""
        return ((path, text) for path, text in self.texts() if path.suffix == ".md")

    def modules(self) -> Iterator[Path]:
        """The Python modules of the product."""
        return (path for path in self.files if path.suffix == ".py" and self.name(path).startswith("src/"))


def no_machine_paths(repository: Repository) -> Found:
    """No file names a folder of the machine it was written on."""
    return _no_match(repository, MACHINE_PATH, "names a folder of one machine")


def no_registry_hosts(repository: Repository) -> Found:
    """Where packages come from is the business of whoever installs."""
    return _no_match(repository, REGISTRY, "names a package registry")


def no_unfinished_work(repository: Repository) -> Found:
    """No stubs, reminders or switched-off tests in code."""
    return _no_match(repository, UNFINISHED, "leaves something unfinished", folders=("src/", "tests/", "scripts/"))


def modules_are_short(repository: Repository) -> Found:
    """A module is one idea; one that is longer holds more than one."""
    found = Found()
    for path in repository.modules():
        found.seen += 1
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if lines > LONGEST_MODULE_LINES:
            found.problems.append(f"{repository.name(path)}: {lines} lines, at most {LONGEST_MODULE_LINES} are allowed")
    return found


def no_recorded_data(repository: Repository) -> Found:
    """Tests make their data; recorded data stays outside."""
    found = Found()
    for path in repository.files:
        found.seen += 1
        size_bytes = path.stat().st_size
        if path.suffix in DATA_SUFFIXES:
            found.problems.append(f"{repository.name(path)}: is a data file")
        elif size_bytes > LARGEST_FILE_BYTES:
            found.problems.append(
                f"{repository.name(path)}: {size_bytes} bytes, at most {LARGEST_FILE_BYTES} are allowed"
            )
    return found


def documented_paths_exist(repository: Repository) -> Found:
    """A file or folder named in a Markdown page is there: from the root, from `src/windrow`, or beside the page."""
    found = Found()
    there = {place for path in repository.files for place in (path, *path.parents)}
    for page, text in repository.documents():
        prose = FENCED_BLOCK.sub("", text)
        links = [link for link in LINK.findall(prose) if "://" not in link]
        for name in [*filter(_is_path, CODE_SPAN.findall(prose)), *links]:
            found.seen += 1
            places = (repository.root, repository.root / "src" / "windrow", page.parent)
            if there.isdisjoint(Path(os.path.normpath(place / name)) for place in places):
                found.problems.append(f"{repository.name(page)}: there is no `{name}`")
    return found


def documented_commands_exist(repository: Repository) -> Found:
    """Every `make TARGET` and `windrow COMMAND` written in a Markdown page can be typed."""
    found = Found()
    makefile = (repository.root / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][\w-]*):(?!=)", makefile, re.MULTILINE))
    commands = {path.stem for path in (repository.root / "src" / "windrow" / "cli").glob("*.py")}
    known = dict(zip(PROGRAMS, (targets, commands), strict=True))
    for page, text in repository.documents():
        for program, argument in _commands(text):
            found.seen += 1
            if argument not in known[program]:
                found.problems.append(f"{repository.name(page)}: `{program} {argument}` is not a command")
    return found


def dependencies_are_pinned(repository: Repository) -> Found:
    """Each dependency has a range in pyproject.toml and one exact version inside it in constraints.txt."""
    found = Found()
    pins: dict[str, str] = {}
    for line in (repository.root / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        found.seen += 1
        pin = re.fullmatch(r"([\w.\-]+)==([\w.+!]+)", line)
        if pin is None:
            found.problems.append(f"constraints.txt: `{line}` is not an exact version")
        else:
            pins[canonicalize_name(pin[1])] = pin[2]
    for requirement in _requirements(repository.root / "pyproject.toml"):
        found.seen += 1
        version = pins.get(canonicalize_name(requirement.name))
        if version is None:
            found.problems.append(f"constraints.txt: {requirement.name} is not pinned")
        elif not requirement.specifier.contains(version, prereleases=True):
            found.problems.append(f"constraints.txt: {requirement.name}=={version} is outside {requirement.specifier}")
    return found


@dataclass(frozen=True)
class Guard:
    """A guard and the least it must have looked at to be believed."""

    look: Callable[[Repository], Found]
    at_least: int


GUARDS = (
    Guard(no_machine_paths, at_least=40),
    Guard(no_registry_hosts, at_least=40),
    Guard(no_unfinished_work, at_least=30),
    Guard(modules_are_short, at_least=20),
    Guard(no_recorded_data, at_least=40),
    Guard(documented_paths_exist, at_least=20),
    Guard(documented_commands_exist, at_least=5),
    Guard(dependencies_are_pinned, at_least=20),
)


def problems_of(guard: Guard, repository: Repository) -> list[str]:
    """The problems a guard found, and one more if it saw too little."""
    name = guard.look.__name__
    found = guard.look(repository)
    problems = [f"{name}: {problem}" for problem in found.problems]
    if found.seen < guard.at_least:
        problems.append(f"{name}: looked at {found.seen} things, expected {guard.at_least} or more")
    return problems


def main(arguments: list[str]) -> int:
    """Run every guard over a repository and print what they found."""
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    repository = Repository.at(root)
    problems = [problem for guard in GUARDS for problem in problems_of(guard, repository)]
    for problem in problems:
        print(problem)
    print(f"{len(GUARDS)} guards over {len(repository.files)} files: {len(problems)} problems")
    return 1 if problems else 0


def _no_match(repository: Repository, pattern: re.Pattern[str], what: str, folders: tuple[str, ...] = ("",)) -> Found:
    found = Found()
    for path, text in repository.texts():
        if not repository.name(path).startswith(folders):
            continue
        found.seen += 1
        for number, line in enumerate(text.splitlines(), start=1):
            if match := pattern.search(line):
                found.problems.append(f"{repository.name(path)}:{number}: {what}: {match[0]}")
    return found


def _is_path(span: str) -> bool:
    """Whether a code span is meant as a file or folder of ours; QUERY.sql is the reader's, `.venv` made by setup."""
    if not PATH_LIKE.fullmatch(span) or span.startswith(".venv/"):
        return False
    return "/" in span or Path(span).suffix in FILE_SUFFIXES


def _commands(text: str) -> Iterator[tuple[str, str]]:
    """(program, first argument) of what a page tells the reader to type, in code spans and in blocks."""
    blocks = FENCED_BLOCK.findall(text)
    lines = [line for block in blocks for line in block.splitlines()]
    for line in [*CODE_SPAN.findall(FENCED_BLOCK.sub("", text)), *lines]:
        words = line.strip().removeprefix("$ ").split()
        if len(words) > 1 and words[0] in PROGRAMS and not words[1].startswith("-"):
            yield words[0], words[1]


def _requirements(pyproject: Path) -> list[Requirement]:
    settings = tomllib.loads(pyproject.read_text(encoding="utf-8"))
    project = settings["project"]
    extras = project.get("optional-dependencies", {}).values()
    texts = [
        *settings["build-system"]["requires"],
        *project["dependencies"],
        *(text for extra in extras for text in extra),
    ]
    return [Requirement(text) for text in texts]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
