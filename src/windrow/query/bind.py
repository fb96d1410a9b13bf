"""Binding: a parsed expression becomes a typed one, with names looked up and every conversion written out.

    abs(a.n - b.x) <= 0.3       less_equal(abs(subtract(cast(a.n AS DOUBLE), b.x)), 0.3 as DOUBLE)

A literal takes the type of what it stands beside, as in DuckDB: a whole number becomes the other side's integer type
where it fits, a string in a comparison becomes whatever it is compared with. An expression that has no type is a
QueryError that quotes it.

>>> import pyarrow as pa
>>> from windrow.query.grammar import parse_condition
>>> from windrow.query.scope import declare_stream
>>> from windrow.query.spec import Window
>>> schema = pa.schema([("ts", pa.timestamp("us")), ("n", pa.int8()), ("name", pa.string())])
>>> binder = Binder(Scope((declare_stream("a", "a", schema, window=Window(span_us=0)),)))
>>> str(binder.bind(parse_condition("n + 1 <= 300")).arguments[1].type)
'INTEGER'
>>> binder.bind(parse_condition("name % 2 = 1"))
Traceback (most recent call last):
    ...
windrow.errors.QueryError: % does not take VARCHAR and INTEGER (at: name % 2). Next: it takes two numbers
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from itertools import chain

from sqlglot import exp

from windrow.errors import QueryError
from windrow.query import literals
from windrow.query.casts import asked_type, coerce
from windrow.query.coercion import can_cast
from windrow.query.expression import Call, Expression, Literal, conjuncts_of, walk
from windrow.query.folding import fold
from windrow.query.functions import DATE_DIFF_UNITS, FUNCTIONS, USER_PREFIX, canonical_name, is_instant, resolve
from windrow.query.grammar import text_of, too_deep
from windrow.query.operands import Operand, common_types, settled, user_argument
from windrow.query.scope import Scope
from windrow.query.spec import UserFunction
from windrow.query.types import BOOLEAN, NULL, TIMESTAMP, TIMESTAMPTZ, VARCHAR, Kind, Type
from windrow.query.user_functions import accepts

DEEPEST = 100
"""How deep an expression may be nested. Those who walk it do so recursively."""

_OPERATORS: dict[type[exp.Expr], str] = {
    exp.Add: "add", exp.Sub: "subtract", exp.Mul: "multiply", exp.Div: "divide", exp.IntDiv: "integer_divide",
    exp.Mod: "modulo", exp.EQ: "equal", exp.NEQ: "not_equal", exp.LT: "less", exp.LTE: "less_equal",
    exp.GT: "greater", exp.GTE: "greater_equal", exp.Like: "like", exp.ILike: "ilike",
}  # fmt: skip
_COMPARING = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_AGGREGATES = frozenset((
    "count", "sum", "avg", "mean", "min", "max", "median", "mode", "stddev", "variance", "first", "last", "any_value",
    "list", "string_agg", "array_agg",
))  # fmt: skip


class Binder:
    """Binds parsed expressions in one scope, with the user's functions in reach."""

    def __init__(self, scope: Scope, functions: Sequence[UserFunction] = ()) -> None:
        self.scope = scope
        self.functions = {function.name.casefold(): function for function in functions}
        self._depth = 0

    def conjuncts(self, node: exp.Expr) -> tuple[Expression, ...]:
        """A condition cut at its ANDs; parts that are always true are left out, parts that never are become FALSE."""
        bound = self.bind(node)
        if bound.type not in (BOOLEAN, NULL):
            raise QueryError(
                f"a condition has to be BOOLEAN, not {bound.type}",
                place=text_of(node),
                hint="compare it with something",
            )
        settled = (
            literals.FALSE if isinstance(part, Literal) and not part.value else part for part in conjuncts_of(bound)
        )
        return tuple(part for part in settled if part != literals.TRUE)

    def bind(self, node: exp.Expr) -> Expression:
        """The typed form of one expression."""
        try:
            bound = self._operand(node).expression
            for part in walk(bound):
                _check_width(part, node)
        except RecursionError:
            raise too_deep() from None
        return bound

    def _operand(self, node: exp.Expr) -> Operand:
        self._depth += 1
        try:
            if self._depth > DEEPEST:
                raise too_deep()
            return self._dispatch(node)
        finally:
            self._depth -= 1

    def _dispatch(self, node: exp.Expr) -> Operand:
        if isinstance(node, exp.Paren):
            return self._operand(node.this)
        if isinstance(node, exp.Literal):
            return Operand(
                literals.text_literal(node.this) if node.is_string else literals.number(node.this), written=True
            )
        if isinstance(node, exp.Null):
            return Operand(Literal(None, NULL), written=True)
        if isinstance(node, exp.Neg):
            return self._negated(node)
        if operator := _OPERATORS.get(type(node)):
            if isinstance(node, _COMPARING) and isinstance(node.this, _COMPARING):
                raise QueryError("comparisons cannot be chained", place=text_of(node), hint="write a < b AND b < c")
            _refuse_extras(node, "this", "expression")
            called = self._call(operator, [node.this, node.expression], node)
            return Operand(self._apply("not", [called], node) if node.args.get("negate") else called)
        binds = _NODES.get(type(node))
        if binds is None:
            raise QueryError(
                f"{_named(node)} is not supported in an expression",
                place=text_of(node),
                hint="see the functions Windrow knows",
            )
        return Operand(binds(self, node))

    def _negated(self, node: exp.Expr) -> Operand:
        operand = self._operand(node.this)
        if operand.written and isinstance(operand.expression, Literal) and operand.type.is_numeric:
            return Operand(literals.negative(operand.expression), written=True)
        return Operand(self._apply("negate", [operand], node))

    def _column(self, node: exp.Expr) -> Expression:
        if node.args.get("db") is not None or isinstance(node.this, exp.Star):
            raise QueryError(f"'{text_of(node)}' is not a column", place=text_of(node), hint="write stream.column")
        column = self.scope.column(node.name, node.text("table"))
        return Literal(None, NULL) if column.type == NULL else column

    def _boolean(self, node: exp.Expr) -> Expression:
        return literals.TRUE if node.this else literals.FALSE

    def _connective(self, node: exp.Expr) -> Expression:
        name, kind = ("and", exp.And) if isinstance(node, exp.And) else ("or", exp.Or)
        parts: list[exp.Expr] = []
        waiting = [node]
        while waiting:
            part = waiting.pop()
            unwrapped = part.unnest()
            if isinstance(unwrapped, kind):
                waiting += [unwrapped.expression, unwrapped.this]
            else:
                parts.append(part)
        return self._call(name, parts, node)

    def _not(self, node: exp.Expr) -> Expression:
        return self._call("not", [node.this], node)

    def _is(self, node: exp.Expr) -> Expression:
        if isinstance(node.expression, exp.Null):
            return self._call("is_null", [node.this], node)
        if isinstance(node.expression, exp.Boolean):
            wanted = bool(node.expression.this)
            test = self._apply("and", [self._operand(node.this), literals.TRUE], node)
            known = self._apply("coalesce", [test, literals.FALSE if wanted else literals.TRUE], node)
            return known if wanted else self._apply("not", [known], node)
        raise QueryError(
            f"IS {text_of(node.expression)} is not supported",
            place=text_of(node),
            hint="write IS NULL, IS TRUE or IS FALSE",
        )

    def _null_safe(self, node: exp.Expr) -> Expression:
        """a IS NOT DISTINCT FROM b: both NULL, or known to be equal."""
        left, right = node.this, node.expression
        both_null = self._apply("and", [self._call("is_null", [side], node) for side in (left, right)], node)
        known = self._apply("coalesce", [self._call("equal", [left, right], node), literals.FALSE], node)
        same = self._apply("or", [both_null, known], node)
        return same if isinstance(node, exp.NullSafeEQ) else self._apply("not", [same], node)

    def _in(self, node: exp.Expr) -> Expression:
        if not node.expressions or any(isinstance(item, exp.Query) for item in node.expressions):
            raise QueryError(
                "IN takes a list of values, not a subquery", place=text_of(node), hint="write IN (1, 2, 3)"
            )
        value, *items = self._alike([node.this, *node.expressions], node)
        tests = [self._apply("equal", [value, item], node) for item in items]
        return tests[0] if len(tests) == 1 else self._apply("or", tests, node)

    def _between(self, node: exp.Expr) -> Expression:
        _refuse_extras(node, "this", "low", "high")
        value, low, high = self._alike([node.this, node.args["low"], node.args["high"]], node)
        above = self._apply("greater_equal", [value, low], node)
        return self._apply("and", [above, self._apply("less_equal", [value, high], node)], node)

    def _alike(self, nodes: list[exp.Expr], node: exp.Expr) -> list[Expression]:
        """Operands that are compared with each other, all in one type, as IN and BETWEEN have it."""
        operands = self._settled("coalesce", [self._operand(each) for each in nodes], node)
        types = [operand.type for operand in operands]
        common = common_types(types)
        if common is None or common.kind in (Kind.VECTOR, Kind.OTHER):
            raise QueryError(f"cannot compare {_listed(types)}", place=text_of(node), hint="cast them to one type")
        return [_placed(operand.expression, common, node) for operand in operands]

    def _case(self, node: exp.Expr) -> Expression:
        branches: list[Operand] = []
        for branch in node.args["ifs"]:
            when = self._call("equal", [node.this, branch.this], node) if node.this else self._operand(branch.this)
            branches += [when if isinstance(when, Operand) else Operand(when), self._operand(branch.args["true"])]
        return self._choice(branches, node.args.get("default"), node)

    def _if(self, node: exp.Expr) -> Expression:
        return self._choice([self._operand(node.this), self._operand(node.args["true"])], node.args.get("false"), node)

    def _choice(self, branches: list[Operand], otherwise: exp.Expr | None, node: exp.Expr) -> Expression:
        last = self._operand(otherwise or exp.Null())
        return self._apply("case", self._settled("case", [*branches, last], node), node)

    def _cast(self, node: exp.Expr) -> Expression:
        _refuse_extras(node, "this", "to")
        target = asked_type(node.args["to"])
        value = self._operand(node.this).expression
        if not isinstance(value, Literal) and not can_cast(value.type, target):
            hint = (
                "texts can only be converted where they are literals"
                if VARCHAR in (value.type, target)
                else "cast to a type of its kind"
            )
            raise QueryError(f"cannot cast {value.type} to {target}", place=text_of(node), hint=hint)
        return _placed(value, target, node)

    def _interval(self, node: exp.Expr) -> Expression:
        amount, unit = node.this.unnest() if node.this else None, node.args.get("unit")
        sign = "-" if isinstance(amount, exp.Neg) else ""
        amount = amount.this if isinstance(amount, exp.Neg) else amount
        if not isinstance(amount, exp.Literal):
            raise QueryError("an INTERVAL has to be a constant", place=text_of(node), hint="write INTERVAL 5 SECONDS")
        return literals.interval(f"{sign}{amount.this}", unit.name if unit is not None else "")

    def _function(self, node: exp.Expr) -> Expression:
        called = node.name
        if user := self.functions.get(called.casefold()):
            return self._user_call(user, node)
        if called.lower() == "nullif" and len(node.expressions) == 2:
            left, right = node.expressions
            equal = Operand(self._call("equal", [left, right], node))
            return self._choice([equal, self._operand(exp.Null())], left, node)
        name = canonical_name(called)
        if name is None:
            raise self._unknown_function(called, node)
        if name in ("result_ts", "result_id"):
            raise QueryError(
                f"{name}() describes a result", place=text_of(node), hint="let it stand alone in the SELECT list"
            )
        if name == "date_diff":
            return self._date_diff(node)
        return self._call(name, node.expressions, node)

    def _abs(self, node: exp.Expr) -> Expression:
        return self._call("abs", [node.this], node)

    def _date_diff(self, node: exp.Expr) -> Expression:
        if len(node.expressions) != 3:
            raise _mismatch("date_diff", [self._operand(part).type for part in node.expressions], node)
        written = node.expressions[0]
        if not (isinstance(written, exp.Literal) and written.is_string):
            raise QueryError(
                "the unit of date_diff has to be a text", place=text_of(node), hint="write date_diff('day', a.ts, b.ts)"
            )
        unit = written.name.lower()
        unit = literals.UNIT_NAMES.get(unit, unit.removesuffix("s"))
        if unit not in DATE_DIFF_UNITS:
            raise QueryError(
                f"'{unit}' is not a unit of date_diff",
                place=text_of(node),
                hint=f"units are {', '.join(DATE_DIFF_UNITS)}",
            )
        times = [self._operand(part) for part in node.expressions[1:]]
        read = [_read_as_time(operand, times[1 - at].type, node) for at, operand in enumerate(times)]
        return self._apply("date_diff", [Literal(unit, VARCHAR), *read], node)

    def _user_call(self, user: UserFunction, node: exp.Expr) -> Expression:
        arguments = [self._operand(part).expression for part in node.expressions]
        for argument in arguments:
            if argument.type.kind is Kind.OTHER:
                raise QueryError(
                    f"{argument} has a type functions cannot take", place=text_of(node), hint="select it instead"
                )
        if not accepts(user, len(arguments)):
            message = f"{user.name} does not take {len(arguments)} argument{'' if len(arguments) == 1 else 's'}"
            raise QueryError(message, place=text_of(node), hint="pass as many as the function declares")
        return Call(f"{USER_PREFIX}{user.name}", tuple(map(user_argument, arguments)), user.result)

    def _unknown_function(self, called: str, node: exp.Expr) -> QueryError:
        if called.lower() in _AGGREGATES:
            return QueryError(
                f"{called}() is an aggregate and not supported here",
                place=text_of(node),
                hint="COUNT, SUM and AVG can be items of the SELECT list, alone or beside columns of GROUP BY",
            )
        known = sorted({*chain.from_iterable(function.called for function in FUNCTIONS.values()), *self.functions})
        close = get_close_matches(called.lower(), known, n=3)
        meant = f"did you mean {' or '.join(close)}? " if close else ""
        return QueryError(
            f"there is no function '{called}'", place=text_of(node), hint=f"{meant}known functions: {', '.join(known)}"
        )

    def _call(self, name: str, nodes: Sequence[exp.Expr], node: exp.Expr) -> Expression:
        return self._apply(name, self._settled(name, [self._operand(each) for each in nodes], node), node)

    def _settled(self, name: str, operands: list[Operand], node: exp.Expr) -> list[Operand]:
        try:
            return settled(name, operands)
        except QueryError as error:
            raise QueryError(error.message, place=text_of(node), hint=error.hint) from None

    def _apply(self, name: str, operands: Sequence[Operand | Expression], node: exp.Expr) -> Expression:
        bound = [operand.expression if isinstance(operand, Operand) else operand for operand in operands]
        if name == "add" and is_instant(bound[1].type):
            bound.reverse()
        signature = resolve(name, tuple(part.type for part in bound))
        if signature is None:
            raise _mismatch(name, [part.type for part in bound], node)
        arguments = tuple(_placed(part, wanted, node) for part, wanted in zip(bound, signature.arguments, strict=True))
        return fold(Call(signature.function or name, arguments, signature.result))


def _placed(expression: Expression, wanted: Type, node: exp.Expr) -> Expression:
    """The expression in the type that is wanted of it; what a literal cannot become is said with its place."""
    try:
        return coerce(expression, wanted)
    except QueryError as error:
        raise QueryError(error.message, place=text_of(node), hint=error.hint) from None


def _read_as_time(operand: Operand, other: Type, node: exp.Expr) -> Expression:
    """A text where date_diff wants a time is one: a TIMESTAMPTZ beside another, else a TIMESTAMP."""
    if operand.written and operand.type == VARCHAR:
        return _placed(operand.expression, TIMESTAMPTZ if other == TIMESTAMPTZ else TIMESTAMP, node)
    return operand.expression


def _check_width(part: Expression, node: exp.Expr) -> None:
    if (
        isinstance(part, Literal)
        and isinstance(part.value, int)
        and abs(part.value) > literals.BIGGEST + (part.value < 0)
    ):
        raise QueryError(
            f"{part} does not fit in 64 bits",
            place=text_of(node),
            hint="write it with an exponent (1e20) or fewer digits",
        )


def _refuse_extras(node: exp.Expr, *known: str) -> None:
    """Parts of a construct that are not understood are refused, never passed over."""
    for name, value in node.args.items():
        understood = name in known or not (isinstance(value, exp.Expr) or (isinstance(value, list) and value))
        if not understood or (name == "symmetric" and value):
            raise QueryError(f"{name.upper()} is not supported here", place=text_of(node), hint="leave it out")


def _mismatch(name: str, types: Sequence[Type], node: exp.Expr) -> QueryError:
    function = FUNCTIONS[name]
    called = function.operator or (function.called[0] if function.called else name.upper())
    hint = f"it takes {function.expects}"
    if any(type_.kind is Kind.OTHER for type_ in types):
        hint = "columns of other types than the query language has can be selected, not computed with"
    return QueryError(f"{called} does not take {_listed(types)}", place=text_of(node), hint=hint)


def _listed(types: Sequence[Type]) -> str:
    return " and ".join(str(type_) for type_ in types) or "zero arguments"


def _named(node: exp.Expr) -> str:
    if isinstance(node, (exp.Query, exp.Exists, exp.Subquery)):
        return "a subquery"
    names: dict[type[exp.Expr], str] = {
        exp.Window: "a window function",
        exp.Star: "*",
        exp.Array: "a list",
        exp.Pow: "a power",
        exp.DPipe: "joining texts with ||",
    }
    return names.get(type(node), type(node).__name__.upper())


_NODES: dict[type[exp.Expr], Callable[[Binder, exp.Expr], Expression]] = {
    exp.Column: Binder._column, exp.Boolean: Binder._boolean, exp.And: Binder._connective, exp.Or: Binder._connective,
    exp.Not: Binder._not, exp.Is: Binder._is, exp.NullSafeEQ: Binder._null_safe, exp.NullSafeNEQ: Binder._null_safe,
    exp.In: Binder._in, exp.Between: Binder._between, exp.Case: Binder._case, exp.If: Binder._if,
    exp.Cast: Binder._cast, exp.TryCast: Binder._cast, exp.Interval: Binder._interval, exp.Abs: Binder._abs,
    exp.Anonymous: Binder._function,
}  # fmt: skip
