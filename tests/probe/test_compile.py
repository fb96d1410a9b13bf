"""Compiled predicates: what becomes code, where it is kept, and that nothing of the user's text is ever run."""

from __future__ import annotations

import ast
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from windrow.errors import SourceError
from windrow.probe import compile as compiling
from windrow.probe.compile import Source, cache_folder, compile_filter, compile_loop, compile_rows
from windrow.query.expression import Column, Expression, walk
from windrow.query.sql import parse
from windrow.store.operand import Form, Operand, form_of, from_arrow

CODE = "__import__('os').system('touch owned')"
NASTY = ("x", CODE, "'''; raise SystemExit #", 'a"b', "new\nline", "inputs", "kernel", "ünïcode", "{0}", "\\")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty kernel folder; kernels known from before are forgotten, those of the test afterwards."""
    monkeypatch.setenv("WINDROW_COMPILE", "0")
    monkeypatch.setenv("WINDROW_CACHE_DIR", str(tmp_path / "kernels"))
    forget()
    yield tmp_path / "kernels"
    forget()


def forget() -> None:
    compiling._compile_decision.cache_clear()
    compiling.compile_rows.cache_clear()


def conjuncts_of(where: str, schema: pa.Schema, names: tuple[str, str] = ("a", "b")) -> tuple[Expression, ...]:
    one, two = ('"' + name.replace('"', '""') + '"' for name in names)
    text = f"SELECT {one}.ts AS out FROM t AS {one}, t AS {two} WHERE {where} WINDOW 1 SECOND"
    return parse(text, {"t": schema}, time={"t": "ts"}).conjuncts


def sources_of(conjuncts: tuple[Expression, ...], probe: str = "a") -> dict[Expression, Source]:
    columns = [node for conjunct in conjuncts for node in walk(conjunct) if isinstance(node, Column)]
    return {c: Source("probe" if c.stream == probe else "stored", form_of(c.type), True) for c in columns}


def operands_of(table: pa.Table, expression: Expression) -> Operand:
    assert isinstance(expression, Column)
    return from_arrow(table.column(expression.name).combine_chunks(), expression.type)


def schema_of(*names: str) -> pa.Schema:
    return pa.schema([("ts", pa.timestamp("us")), *((name, pa.string()) for name in names)])


def sources_written(folder: Path) -> list[str]:
    return [path.read_text() for path in sorted(folder.glob("kernel_*.py"))]


@pytest.mark.parametrize("name", NASTY)
def test_names_never_become_code(folder: Path, name: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    conjuncts = conjuncts_of(f"p.{quoted} = q.{quoted}".replace("p.", f"{quoted}."), schema_of(name), (name, "q"))
    kernel = compile_filter(conjuncts, sources_of(conjuncts, name))
    table = pa.table({"ts": pa.array([0, 0], pa.timestamp("us")), name: ["u", None]})
    probes, rows = np.array([0, 0, 1], np.int32), np.array([0, 1, 1], np.int32)
    inputs = kernel.inputs(lambda _, leaf: operands_of(table, leaf))
    assert kernel(inputs, probes, rows, 3, np.zeros(1, np.int64)) == 1
    (source,) = sources_written(folder)
    assert name in ("x", "inputs", "kernel", "\\") or name not in source


@pytest.mark.parametrize("text", NASTY)
def test_texts_never_become_code(folder: Path, text: str) -> None:
    literal = "'" + text.replace("'", "''") + "'"
    conjuncts = conjuncts_of(f"(a.s = {literal} OR b.s >= {literal})", schema_of("s"))
    kernel = compile_filter(conjuncts, sources_of(conjuncts))
    table = pa.table({"ts": pa.array([0, 0], pa.timestamp("us")), "s": [text, ""]})
    probes, rows = np.array([0, 1], np.int32), np.array([1, 1], np.int32)
    assert kernel(kernel.inputs(lambda _, leaf: operands_of(table, leaf)), probes, rows, 2, np.zeros(1, np.int64)) == 1
    (source,) = sources_written(folder)
    constants = {node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)}
    assert not any(isinstance(constant, str) for constant in constants)


def test_kernels_use_only_what_they_import(folder: Path) -> None:
    conjuncts = conjuncts_of("a.s < b.s AND a.ts - b.ts <= INTERVAL 5 SECONDS", schema_of("s"))
    compile_loop(conjuncts, sources_of(conjuncts))
    (source,) = sources_written(folder)
    tree = ast.parse(source)
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert {node.module.split(".")[0] for node in imports if node.module} <= {"numpy", "windrow"}
    assert [type(node) for node in tree.body[len(imports) :]] == [ast.FunctionDef]
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    known = {alias.asname or alias.name for node in imports for alias in node.names}
    assert called <= known | {"range", "len", "max", "abs"}


def test_one_text_is_one_module_and_one_kernel(folder: Path) -> None:
    schema = pa.schema([("ts", pa.timestamp("us")), ("x", pa.float64()), ("y", pa.float64())])
    for where in ("a.x < b.x", "a.y < b.y", "a.x < b.x"):
        conjuncts = conjuncts_of(where, schema)
        compile_filter(conjuncts, sources_of(conjuncts))
    assert len(sources_written(folder)) == 1
    conjuncts = conjuncts_of("a.x <= b.x", schema)
    compile_filter(conjuncts, sources_of(conjuncts))
    assert len(sources_written(folder)) == 2
    assert list(folder.glob("*.part")) == []


def test_loops_stop_when_full_and_go_on(folder: Path) -> None:
    schema = pa.schema([("ts", pa.timestamp("us")), ("x", pa.int32())])
    conjuncts = conjuncts_of("a.x <= b.x", schema)
    kernel = compile_loop(conjuncts, sources_of(conjuncts))
    table = pa.table({"ts": pa.array([0] * 6, pa.timestamp("us")), "x": pa.array([0, 1, None, 3, 4, 5], pa.int32())})
    inputs = kernel.inputs(lambda _, leaf: operands_of(table, leaf))
    low, high = np.array([0, 2, 0, 6, 1, 3], np.int32), np.array([6, 4, 6, 6, 6, 5], np.int32)
    values = table["x"].to_pylist()
    expected = [
        (i, j)
        for i in range(6)
        for j in range(low[i], high[i])
        if values[i] is not None and values[j] is not None and values[i] <= values[j]
    ]
    for capacity in (1, 2, 3, len(expected), len(expected) + 1):
        state, found = np.zeros(2, np.int64), []
        while state[0] < 6:
            probes, rows = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
            count = kernel(inputs, low, high, state, probes, rows, np.zeros(1, np.int64))
            found += list(zip(probes[:count].tolist(), rows[:count].tolist(), strict=True))
        assert found == expected


def test_inputs_are_read_only_and_flags_are_filled_in(folder: Path) -> None:
    schema = pa.schema([("ts", pa.timestamp("us")), ("x", pa.int32()), ("f", pa.float64())])
    conjuncts = conjuncts_of("a.x = b.x AND a.f < b.f", schema)
    kernel = compile_filter(conjuncts, sources_of(conjuncts))
    table = pa.table({"ts": pa.array([0], pa.timestamp("us")), "x": pa.array([1], pa.int32()), "f": [0.5]})
    inputs = kernel.inputs(lambda _, leaf: operands_of(table, leaf))
    assert len(inputs) == 6
    assert not any(array.flags.writeable for array in inputs)
    assert [array.dtype.name for array in inputs] == ["int32", "bool", "int32", "bool", "float64", "float64"]


def test_rows_kernels_write_a_value_of_the_type_where_the_result_is_null(folder: Path) -> None:
    schema = pa.schema([("ts", pa.timestamp("us")), ("x", pa.int8())])
    text = "SELECT a.x + a.x AS out FROM t AS a, t AS b WINDOW 1 SECOND"
    expression = parse(text, {"t": schema}, time={"t": "ts"}).outputs[0].expression
    column = next(node for node in walk(expression) if isinstance(node, Column))
    kernel = compile_rows(expression, ((column, Source("row", Form.NUMBER, True)),))
    operand = from_arrow(pa.array([100, None, 3], pa.int8()), column.type)
    values, valid, faults = np.full(3, 77, np.int8), np.empty(3, np.bool_), np.zeros(1, np.int64)
    kernel(kernel.inputs(lambda _, leaf: operand), values, valid, faults)
    assert values.tolist() == [0, 0, 6]
    assert valid.tolist() == [False, False, True]
    assert faults[0] == 1


def test_a_new_folder_is_private(folder: Path) -> None:
    assert cache_folder() == folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_open_to_others_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int) -> None:
    shared = tmp_path / f"shared{mode:o}"
    shared.mkdir()
    shared.chmod(mode)
    monkeypatch.setenv("WINDROW_CACHE_DIR", str(shared))
    with pytest.raises(SourceError, match="open to other users") as caught:
        cache_folder()
    assert "chmod 700" in caught.value.hint


def test_a_foreign_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    foreign = tmp_path / "foreign"
    foreign.mkdir(mode=0o700)
    monkeypatch.setattr(os, "getuid", lambda: foreign.stat().st_uid + 1)
    monkeypatch.setenv("WINDROW_CACHE_DIR", str(foreign))
    with pytest.raises(SourceError, match="open to other users"):
        cache_folder()


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("WINDROW_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(SourceError, match="cannot be used"):
        cache_folder()


def test_kernels_go_to_a_folder_of_this_run_where_there_is_no_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "windrow").mkdir()
    (tmp_path / "open" / "windrow").chmod(0o777)
    (tmp_path / "here").mkdir()
    monkeypatch.delenv("WINDROW_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "open"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "here"))
    compiling._folder.cache_clear()
    found = cache_folder()
    compiling._folder.cache_clear()
    assert found.parent == tmp_path / "here"
    assert stat.S_IMODE(found.stat().st_mode) == 0o700
