"""Compiled predicates: from conjuncts to machine code that a second process finds ready.

    conjuncts ──Writer──▶ statements ──▶ template, statements in place of DECIDE ──▶ module file ──▶ import ──▶ Numba

A kernel is a module of its own, named by the hash of its text, in a private folder: Numba keeps machine code only for
what has a file. The folder is `WINDROW_CACHE_DIR` or the user's cache folder; it has to belong to the user and be
closed to others (0700), because what lies in it is run. `WINDROW_COMPILE=0` runs the same code interpreted, which
suits tests of many small queries.

Three templates are enough: `filter_pairs` decides on proposed pairs, `loop_pairs` is the nested loop with the
predicate inside, and `evaluate_rows` computes an expression row by row. All read their leaves from one tuple of
arrays, `inputs`.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numba
import numpy as np

from windrow.errors import SourceError
from windrow.probe import arithmetic, code, jit, loop, rules, text
from windrow.probe.code import Leaf, Number, Writer, name, negated
from windrow.query.expression import Expression, Literal
from windrow.query.types import VARCHAR, Type
from windrow.store.operand import Array, Form, Operand, from_arrow

Lookup = Callable[[str, Expression], Operand]
"""Where the operand of a leaf is found: by side and expression."""


@dataclass(frozen=True, slots=True)
class Source:
    """A leaf before it has a place: the side it is on (`probe`, `stored` or `row`), its form, and whether it may be
    NULL.
    """

    side: str
    form: Form
    nullable: bool


INDEXES = {"probe": "i", "stored": "j", "row": "i", "constant": ""}


@dataclass(frozen=True, slots=True)
class Kernel:
    """A compiled function and the order in which it wants its leaves."""

    function: Callable[..., Any]
    leaves: tuple[tuple[Expression, Source], ...]

    def inputs(self, lookup: Lookup) -> tuple[Array, ...]:
        """The arrays of all leaves, read-only, so that one compiled version serves views of files and fresh arrays
        alike.
        """
        arrays: list[Array] = []
        for expression, source in self.leaves:
            operand = _constant(expression) if isinstance(expression, Literal) else lookup(source.side, expression)
            arrays.extend(operand.arrays)
            if source.nullable and _has_flag(expression.type):
                arrays.append(operand.valid if operand.valid is not None else _all_valid(len(operand)))
        return tuple(_read_only(array) for array in arrays)

    def __call__(self, *arguments: Any) -> Any:
        if os.environ.get("WINDROW_COMPILE", "1") != "0":
            return self.function(*arguments)
        return self.interpret(*arguments)

    def interpret(self, *arguments: Any) -> Any:
        """Run the same code as plain Python."""
        with np.errstate(all="ignore"):
            return self.function.py_func(*arguments)  # type: ignore[attr-defined]


def compile_filter(conjuncts: Sequence[Expression], sources: Mapping[Expression, Source]) -> Kernel:
    """A kernel `(inputs, probes, rows, count, faults) -> kept` that keeps, in place, the pairs for which all conjuncts
    are true.
    """
    return _compile_decision(loop.filter_pairs, tuple(conjuncts), tuple(sources.items()))


def compile_loop(conjuncts: Sequence[Expression], sources: Mapping[Expression, Source]) -> Kernel:
    """A kernel `(inputs, row_low, row_high, state, probes, rows, faults) -> count` that tries the pairs of ranges."""
    return _compile_decision(loop.loop_pairs, tuple(conjuncts), tuple(sources.items()))


@lru_cache(maxsize=1024)
def _compile_decision(
    template: Callable[..., Any], conjuncts: tuple[Expression, ...], sources: tuple[tuple[Expression, Source], ...]
) -> Kernel:
    leaves, kept = _place(conjuncts, dict(sources))
    writer = Writer(leaves, rules.RULES)
    hoisted: list[ast.stmt] = []
    if template is loop.loop_pairs:
        for expression, leaf in leaves.items():
            if leaf.index != "j":
                writer.write(expression)
        hoisted, writer.body = writer.body, []
    for conjunct in conjuncts:
        decided = writer.condition(conjunct).true
        writer.body.append(ast.If(negated(decided), [ast.Continue()], []))
    if template is loop.loop_pairs and _only_numbers(leaves, writer.body):
        template = loop.scan_pairs
    return Kernel(_load(_fill(template, {"HOIST": hoisted, "DECIDE": writer.body})), kept)


def _only_numbers(leaves: Mapping[Expression, Leaf], statements: Sequence[ast.stmt]) -> bool:
    """Whether a predicate may be evaluated twice, and with an unsigned row number: all words, and no fault to count."""
    used = {node.id for statement in statements for node in ast.walk(statement) if isinstance(node, ast.Name)}
    return "faults" not in used and all(leaf.form is Form.NUMBER for leaf in leaves.values() if leaf.index == "j")


@lru_cache(maxsize=1024)
def compile_rows(expression: Expression, sources: tuple[tuple[Expression, Source], ...]) -> Kernel:
    """A kernel `(inputs, values, valid, faults)` that computes the expression for every row."""
    leaves, kept = _place((expression,), dict(sources))
    writer = Writer(leaves, rules.RULES)
    result = writer.write(expression)
    absent: ast.expr = name("nan") if expression.type.is_float else ast.Constant(0)
    if isinstance(result, Number):
        value, null = writer.keep(result.word), result.null
    else:
        condition = writer.condition(expression)
        value, null = condition.true, code.every((negated(condition.true), negated(condition.false)))
    store: list[ast.stmt] = [_put("values", value)]
    if null is not None:  # a word that is NULL may lie outside of its type
        store = [ast.If(negated(null), store, [_put("values", absent)])]
    return Kernel(
        _load(_fill(loop.evaluate_rows, {"DECIDE": [*writer.body, *store, _put("valid", negated(null))]})), kept
    )


def _put(array: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Subscript(name(array), name("i"), ast.Store())], value)


def _place(
    expressions: Sequence[Expression], sources: Mapping[Expression, Source]
) -> tuple[dict[Expression, Leaf], tuple[tuple[Expression, Source], ...]]:
    """Give each leaf that occurs its position in `inputs`; texts in the query become one-row operands, never code."""
    leaves: dict[Expression, Leaf] = {}
    kept: list[tuple[Expression, Source]] = []
    position = 0
    for expression in _occurring(expressions, sources):
        source = sources.get(expression) or Source(
            "constant", Form.TEXT, expression.value is None if isinstance(expression, Literal) else False
        )
        leaves[expression] = Leaf(position, INDEXES[source.side], source.form, source.nullable)
        kept.append((expression, source))
        position += (2 if source.form in (Form.TEXT, Form.TOKENS) else 1) + (
            1 if source.nullable and _has_flag(expression.type) else 0
        )
    return leaves, tuple(kept)


def _occurring(expressions: Sequence[Expression], sources: Mapping[Expression, Source]) -> list[Expression]:
    found: dict[Expression, None] = {}

    def visit(expression: Expression) -> None:
        if expression in sources or (isinstance(expression, Literal) and expression.type == VARCHAR):
            found[expression] = None
        elif not isinstance(expression, Literal):
            for argument in getattr(expression, "arguments", ()):
                visit(argument)

    for expression in expressions:
        visit(expression)
    return list(found)


def _has_flag(type_: Type) -> bool:
    return not type_.is_float


def _constant(literal: Literal) -> Operand:
    import pyarrow as pa

    return from_arrow(pa.array([literal.value], pa.string()), VARCHAR)


def _all_valid(count: int) -> Array:
    return np.ones(count, np.bool_)


def _read_only(array: Array) -> Array:
    view = array.view()
    view.flags.writeable = False
    return view


class _Splice(ast.NodeTransformer):
    """Puts statements in the place of the lines that name them."""

    def __init__(self, parts: Mapping[str, list[ast.stmt]]) -> None:
        self.parts = parts

    def visit_Expr(self, node: ast.Expr) -> Any:
        if isinstance(node.value, ast.Name) and node.value.id in self.parts:
            return self.parts[node.value.id] or ast.Pass()
        return node


def _fill(template: Callable[..., Any], parts: Mapping[str, list[ast.stmt]]) -> str:
    """The text of a module that holds the template with the parts in place."""
    tree = ast.parse(inspect.getsource(template))
    function = _Splice(parts).visit(tree).body[0]
    function.name = "kernel"
    function.body = function.body[1:]  # the docstring speaks of the template
    function.decorator_list = [name("compiled")]
    function.returns = None
    for argument in function.args.args:
        argument.annotation = None
    used = {node.id for statement in function.body for node in ast.walk(statement) if isinstance(node, ast.Name)}
    imports = [ast.ImportFrom("windrow.probe.jit", [ast.alias("compiled")], 0)]
    imports += [
        ast.ImportFrom(module, [ast.alias(original, alias)], 0)
        for alias, (module, original) in _IMPORTS.items()
        if alias in used
    ]
    return ast.unparse(ast.fix_missing_locations(ast.Module([*imports, function], [])))


_IMPORTS: dict[str, tuple[str, str]] = {
    **{alias: ("numpy", alias) for alias in ("float32", "float64", "int64", "uint64", "nan")},
    "np_floor": ("numpy", "floor"),
    "np_ceil": ("numpy", "ceil"),
    "token_jaccard": ("windrow.probe.text", "jaccard"),
    **{alias: ("windrow.probe.text", alias) for alias in ("bytes_equal", "bytes_compare")},
    **{
        alias: ("windrow.probe.arithmetic", alias)
        for alias in (
            "add_exact", "subtract_exact", "multiply_exact", "divide_exact", "modulo_exact", "divide_float",
            "divide_single", "modulo_float", "square_root", "float_to_integer", "scale_down", "floor_scaled",
            "ceil_scaled", "decimal_to_float", "haversine_m", "dot", "cosine", "l2", "month_number",
            "float_to_single",
        )
    },
}  # fmt: skip


_loaded: dict[str, None] = {}


def loaded_kernels() -> tuple[str, ...]:
    """The names of the kernel files that this process has loaded."""
    return tuple(_loaded)


def _load(source: str) -> Callable[..., Any]:
    """The kernel of a module's text: written once, then imported (and compiled by its first call, or loaded from
    Numba's cache).
    """
    digest = hashlib.sha256((_foundation() + source).encode()).hexdigest()[:24]
    path = cache_folder() / f"kernel_{digest}.py"
    if not path.exists():
        part = path.with_suffix(f".{os.getpid()}.part")
        part.write_text(source)
        part.replace(path)
    _loaded[path.name] = None
    kernel = _import(path).kernel
    return cast(Callable[..., Any], kernel)


def _import(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise SourceError(f"cannot import {path}", hint="set WINDROW_CACHE_DIR to another folder")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # Numba looks a cached function's module up by name
    spec.loader.exec_module(module)
    return module


@lru_cache(maxsize=1)
def _foundation() -> str:
    """What a kernel's machine code depends on besides its own text: the functions it calls, how it is loaded, the
    compiler.
    """
    # Through inspect, because on a cluster the package may come as an archive, whose modules are no files.
    sources = [inspect.getsource(module) for module in (arithmetic, text, jit, sys.modules[__name__])]
    return "".join([*sources, numba.__version__, np.__version__])


@lru_cache(maxsize=4)
def _folder(configured: str | None) -> Path:
    base = (
        Path(configured) if configured else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "windrow"
    )
    try:
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = base.stat()
        if found.st_uid == os.getuid() and not stat.S_IMODE(found.st_mode) & 0o022 and os.access(base, os.W_OK):
            return base
    except OSError as error:
        if configured:
            raise SourceError(
                f"the kernel cache {base} cannot be used: {error.strerror}",
                hint="set WINDROW_CACHE_DIR to a folder of yours",
            ) from error
    if configured:
        raise SourceError(
            f"the kernel cache {base} is open to other users",
            hint="close it (chmod 700) or set WINDROW_CACHE_DIR to another folder",
        )
    return Path(tempfile.mkdtemp(prefix="windrow-"))


def cache_folder() -> Path:
    """The private folder of compiled kernels."""
    return _folder(os.environ.get("WINDROW_CACHE_DIR"))
