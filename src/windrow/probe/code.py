"""From expression to code: the statements that compute an expression for one pair, as Python `ast` nodes.

Nothing is formatted as text: names, strings and aliases of the user's never become code, only positions of arrays do.
What the statements read are *leaves*: arrays of operands, addressed by a position in `inputs` and an index variable
(`i` probe row, `j` stored row).

    abs(a.x - b.x) <= 0.3    →    v1 = float64(inputs[0][i])
                                  v2 = float64(inputs[1][j])
                                  v3 = v1 - v2
                                  v4 = abs(v3)              true: v4 <= 0.3       false: v4 > 0.3

Three-valued logic needs no third value: a condition is a pair of expressions, *surely true* and *surely false*, and
NULL makes both false. The NULL of a float is NaN, for which every comparison but `!=` is false already; other values
carry a flag.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from windrow.errors import QueryError
from windrow.query.expression import Call, Expression, Literal
from windrow.query.types import BITS, UNSIGNED, Kind, Type
from windrow.store.operand import Form


@dataclass(frozen=True, slots=True)
class Leaf:
    """Where the values of a leaf are: the first of its arrays in `inputs`, the variable that indexes them (none: always
    row 0), and whether NULLs occur.
    """

    position: int
    index: str
    form: Form
    nullable: bool


@dataclass(frozen=True, slots=True)
class Number:
    """A machine word in variable or constant `word`; `null` says whether it is NULL (None: never)."""

    word: ast.expr
    null: ast.expr | None


@dataclass(frozen=True, slots=True)
class Condition:
    """A truth value as two expressions that exclude each other; neither holds for NULL."""

    true: ast.expr
    false: ast.expr


@dataclass(frozen=True, slots=True)
class Item:
    """One element of arrays (text, vector, tokens): the arrays and the index, ready to be passed to a function."""

    arrays: tuple[ast.expr, ...]
    index: ast.expr
    null: ast.expr | None

    @property
    def arguments(self) -> tuple[ast.expr, ...]:
        return (*self.arrays, self.index)


Result = Number | Condition | Item
Rule = Callable[["Writer", Call], Result]

TRUE, FALSE = ast.Constant(True), ast.Constant(False)


def name(identifier: str) -> ast.Name:
    """A variable, read."""
    return ast.Name(identifier, ast.Load())


def call(function: str, *arguments: ast.expr) -> ast.Call:
    """A call of one of the functions a kernel imports."""
    return ast.Call(name(function), list(arguments), [])


def assign(target: str | tuple[str, ...], value: ast.expr) -> ast.Assign:
    """A value given to one variable, or taken apart into several."""
    if isinstance(target, str):
        return ast.Assign([ast.Name(target, ast.Store())], value)
    return ast.Assign([ast.Tuple([ast.Name(part, ast.Store()) for part in target], ast.Store())], value)


def compare(left: ast.expr, operator: type[ast.cmpop], right: ast.expr) -> ast.expr:
    """One comparison."""
    return ast.Compare(left, [operator()], [right])


def every(parts: Iterable[ast.expr]) -> ast.expr:
    """All of the parts; constants are folded away."""
    kept = [part for part in parts if part is not TRUE]
    if any(part is FALSE for part in kept):
        return FALSE
    return TRUE if not kept else kept[0] if len(kept) == 1 else ast.BoolOp(ast.And(), kept)


def some(parts: Iterable[ast.expr]) -> ast.expr:
    """Any of the parts; constants are folded away."""
    kept = [part for part in parts if part is not FALSE]
    if any(part is TRUE for part in kept):
        return TRUE
    return FALSE if not kept else kept[0] if len(kept) == 1 else ast.BoolOp(ast.Or(), kept)


def negated(part: ast.expr | None) -> ast.expr:
    """The opposite of a part; None stands for what never holds."""
    return TRUE if part is None or part is FALSE else FALSE if part is TRUE else ast.UnaryOp(ast.Not(), part)


@dataclass
class Writer:
    """Writes statements for expressions into `body`; an expression that was already computed here is not computed
    again.
    """

    leaves: Mapping[Expression, Leaf]
    rules: Mapping[str, Rule]
    body: list[ast.stmt] = field(default_factory=list)
    done: dict[Expression, Result] = field(default_factory=dict)
    counter: list[int] = field(default_factory=lambda: [0])

    def nested(self) -> Writer:
        """A writer for a branch: it sees what was computed before it and keeps to itself what it computes."""
        return Writer(self.leaves, self.rules, [], dict(self.done), self.counter)

    def fresh(self) -> str:
        self.counter[0] += 1
        return f"v{self.counter[0]}"

    def keep(self, value: ast.expr) -> ast.expr:
        """The value in a variable of its own."""
        if isinstance(value, (ast.Name, ast.Constant)):
            return value
        target = self.fresh()
        self.body.append(assign(target, value))
        return name(target)

    def write(self, expression: Expression) -> Result:
        """Compute an expression."""
        found = self.done.get(expression)
        if found is None:
            found = self.done[expression] = self._write(expression)
        return found

    def _write(self, expression: Expression) -> Result:
        leaf = self.leaves.get(expression)
        if leaf is not None:
            return self._read(leaf, expression.type)
        if isinstance(expression, Literal):
            return self._literal(expression)
        if not isinstance(expression, Call):
            raise QueryError(
                f"column {expression} is not available here", hint="this is a defect of the plan, please report it"
            )
        return self.rules[expression.function](self, expression)

    def _read(self, leaf: Leaf, type_: Type) -> Result:
        index = name(leaf.index) if leaf.index else ast.Constant(0)
        null = None
        arrays = 2 if leaf.form in (Form.TEXT, Form.TOKENS) else 1
        if leaf.nullable and not type_.is_float:
            null = self.keep(negated(ast.Subscript(_input(leaf.position + arrays), index, ast.Load())))
        if leaf.form is not Form.NUMBER:
            return Item(tuple(_input(leaf.position + k) for k in range(arrays)), index, null)
        element = ast.Subscript(_input(leaf.position), index, ast.Load())
        if type_.kind is Kind.BOOLEAN:
            word = self.keep(element)
            return Condition(every((word, negated(null))), every((negated(word), negated(null))))
        word = self.keep(call(machine(type_), element))
        return Number(word, compare(word, ast.NotEq, word) if type_.is_float and leaf.nullable else null)

    def _literal(self, literal: Literal) -> Result:
        value, type_ = literal.value, literal.type
        if type_.kind is Kind.BOOLEAN or type_.kind is Kind.NULL:
            return (
                Condition(FALSE, FALSE)
                if value is None
                else Condition(TRUE, FALSE)
                if value
                else Condition(FALSE, TRUE)
            )
        if value is None:
            return Number(call(machine(type_), name("nan") if type_.is_float else ast.Constant(0)), TRUE)
        constant: ast.expr = ast.Constant(float(value) if type_.is_float else int(value))
        if type_.is_float and float(value) in (float("inf"), float("-inf")):
            constant = call("float64", ast.Constant("inf" if float(value) > 0 else "-inf"))
        return Number(call(machine(type_), constant), None)

    def number(self, expression: Expression) -> Number:
        """The expression as a word; truth values become 0 and 1."""
        result = self.write(expression)
        if isinstance(result, Number):
            return result
        if isinstance(result, Condition):
            true, false = self.keep(result.true), self.keep(result.false)
            return Number(self.keep(call("int64", true)), every((negated(true), negated(false))))
        raise QueryError(
            "a text or vector cannot be computed with",
            place=str(expression),
            hint="compare it, or pass it to a function",
        )

    def item(self, expression: Expression) -> Item:
        result = self.write(expression)
        if not isinstance(result, Item):
            raise QueryError("a text or a vector is needed", place=str(expression), hint="pass a column")
        return result

    def condition(self, expression: Expression) -> Condition:
        """The expression as a truth value."""
        result = self.write(expression)
        if isinstance(result, Condition):
            return result
        if isinstance(result, Number):
            known = negated(result.null)
            return Condition(
                every((known, compare(result.word, ast.NotEq, ast.Constant(0)))),
                every((known, compare(result.word, ast.Eq, ast.Constant(0)))),
            )
        raise QueryError("a truth value is needed", place=str(expression), hint="compare it with something")

    def guarded(self, value: ast.expr, fits: ast.expr, type_: Type, *nulls: ast.expr | None) -> Number:
        """A word that is NULL where an operand is, and NULL and counted where it does not fit its type."""
        word, absent = self.keep(value), self.keep(some([null for null in nulls if null is not None]))
        bounds = range_of(type_)
        if bounds is not None:
            fits = every(
                (fits, ast.Compare(ast.Constant(bounds[0]), [ast.LtE(), ast.LtE()], [word, ast.Constant(bounds[1])]))
            )
        if fits is TRUE:
            return Number(word, None if absent is FALSE else absent)
        target = self.fresh()
        self.body.append(assign(target, absent))
        test = every((negated(absent), negated(fits)))
        self.body.append(ast.If(test, [assign(target, TRUE), count_fault()], []))
        return Number(word, name(target))

    def floated(self, value: ast.expr, type_: Type, *operands: Number) -> Number:
        """A float result: NaN is its NULL, and operands that are NULL by flag make it so."""
        flags = [n.null for n in operands if n.null is not None and not is_nan_test(n.null)]
        word = self.keep(call(machine(type_), value))
        if flags:
            target = self.fresh()
            self.body.append(assign(target, word))
            self.body.append(ast.If(some(flags), [assign(target, call(machine(type_), name("nan")))], []))
            word = name(target)
        return Number(word, compare(word, ast.NotEq, word))


def count_fault() -> ast.stmt:
    """An overflow or a division by zero: the value is NULL, and counted."""
    return ast.AugAssign(ast.Subscript(name("faults"), ast.Constant(0), ast.Store()), ast.Add(), ast.Constant(1))


def is_nan_test(test: ast.expr) -> bool:
    """Whether a test for NULL is a float compared with itself."""
    return isinstance(test, ast.Compare) and test.left is test.comparators[0]


def _input(position: int) -> ast.expr:
    return ast.Subscript(name("inputs"), ast.Constant(position), ast.Load())


def machine(type_: Type) -> str:
    """The machine word that computes with a type: its NumPy name."""
    return "float32" if type_.kind is Kind.FLOAT else "float64" if type_.kind is Kind.DOUBLE else "int64"


def range_of(type_: Type) -> tuple[int, int] | None:
    """The least and greatest word of a type, where that is less than what 64 bits hold."""
    if type_.kind is Kind.DECIMAL:
        return (1 - 10**type_.width, 10**type_.width - 1) if type_.width <= 18 else None
    if type_.kind is Kind.DATE:
        return (-(2**31), 2**31 - 2)  # the last word stands for the infinite date
    bits = BITS.get(type_.kind)
    if bits is None or bits == 64:
        return None
    return (0, 2**bits - 1) if type_.kind in UNSIGNED else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
