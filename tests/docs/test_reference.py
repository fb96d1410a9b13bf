"""The reference says what the code says."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest

import windrow
from tests.conftest import REPOSITORY
from windrow.run.events import read_events
from windrow.store.storage import open_storage

REFERENCE = REPOSITORY / "docs" / "reference"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    place = REPOSITORY / "scripts" / "reference.py"
    spec = importlib.util.spec_from_file_location("reference", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_parts_are_as_the_code_has_them(script: ModuleType) -> None:
    seen = set()
    for path, page, wanted in script.pages():
        assert page == wanted, f"{path.name} differs from the code: run python scripts/reference.py"
        seen |= set(re.findall(r"<!-- begin: (\w+) -->", page))
    assert seen == set(script.PARTS)


def test_a_page_that_differs_is_seen(script: ModuleType) -> None:
    page = (REFERENCE / "sql.md").read_text(encoding="utf-8")
    assert script.filled(page.replace("haversine_m", "haversine_km")) == page.replace(
        "`haversine_m` latitudes", "`haversine_km` latitudes"
    )


def test_every_command_option_and_function_is_there() -> None:
    from windrow.cli.main import COMMANDS
    from windrow.query.functions import FUNCTIONS

    cli = (REFERENCE / "cli.md").read_text(encoding="utf-8")
    assert all(f"## windrow {command.__name__}" in cli for command in COMMANDS)
    sql = (REFERENCE / "sql.md").read_text(encoding="utf-8")
    assert all(f"`{called}(…)`" in sql for function in FUNCTIONS.values() for called in function.called)


def test_every_variable_of_the_environment_is_there() -> None:
    text = (REFERENCE / "configuration.md").read_text(encoding="utf-8")
    read = {
        name
        for file in (REPOSITORY / "src").rglob("*.py")
        for name in re.findall(r"\bWINDROW_[A-Z_]+\b", file.read_text(encoding="utf-8"))
    }
    assert len(read) >= 3
    assert {name for name in read if f"`{name}`" not in text} == set()


def test_every_field_of_an_event_is_described(tmp_path: Path) -> None:
    rows = pa.table({"ts": pa.array([1_000_000], pa.timestamp("us")), "k": [7]})
    query = windrow.sql("SELECT a.k AS k FROM a, b WHERE a.k = b.k WINDOW 5 SECONDS", {"a": rows, "b": rows})
    with windrow.local(query, events=str(tmp_path)) as join:
        join.push("a", rows)
        join.push("b", rows)
        join.step(now_s=3.0)
    (event,) = read_events(open_storage(str(tmp_path)))
    text = (REFERENCE / "events.md").read_text(encoding="utf-8")
    fields = set(event) - {"version", "throttle"} | set(event["streams"]["a"])
    assert len(fields) > 15
    assert {field for field in fields if not re.search(rf"\b{field}\b", text)} == set()
