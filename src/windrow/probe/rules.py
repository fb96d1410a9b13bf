"""What each function of the language compiles to: one rule a function.

A rule gets the writer and the call, has the writer compute the arguments, and returns the result. To add a function
that compiles, add a rule and its line in `RULES`, and its types in `windrow.query.functions`.
"""

from __future__ import annotations

import ast

from windrow.errors import QueryError
from windrow.probe.arithmetic import DAY_US, UNIT_US
from windrow.probe.code import (
    FALSE,
    TRUE,
    Condition,
    Number,
    Result,
    Rule,
    Writer,
    assign,
    call,
    compare,
    count_fault,
    every,
    is_nan_test,
    machine,
    name,
    negated,
    range_of,
    some,
)  # fmt: skip
from windrow.query.expression import Call, Expression, Literal
from windrow.query.predicate import leaves_of
from windrow.query.types import BOOLEAN, Kind, Type

COMPARISONS: dict[str, tuple[type[ast.cmpop], type[ast.cmpop]]] = {
    "equal": (ast.Eq, ast.NotEq),
    "not_equal": (ast.NotEq, ast.Eq),
    "less": (ast.Lt, ast.GtE),
    "less_equal": (ast.LtE, ast.Gt),
    "greater": (ast.Gt, ast.LtE),
    "greater_equal": (ast.GtE, ast.Lt),
}
OPERATORS: dict[str, type[ast.operator]] = {"add": ast.Add, "subtract": ast.Sub, "multiply": ast.Mult}


def _arithmetic(writer: Writer, node: Call) -> Result:
    left, right = (writer.number(argument) for argument in node.arguments)
    if node.type.is_float:
        return writer.floated(ast.BinOp(left.word, OPERATORS[node.function](), right.word), node.type, left, right)
    return _exact(writer, node, f"{node.function}_exact", left, right)


def _exact(writer: Writer, node: Call, function: str, left: Number, right: Number) -> Number:
    if node.function in OPERATORS and all(range_of(a.type) is not None for a in node.arguments) and _narrow(node):
        return writer.guarded(
            ast.BinOp(left.word, OPERATORS[node.function](), right.word), TRUE, node.type, left.null, right.null
        )
    word, fits = writer.fresh(), writer.fresh()
    writer.body.append(assign((word, fits), call(function, left.word, right.word)))
    return writer.guarded(name(word), name(fits), node.type, left.null, right.null)


def _narrow(node: Call) -> bool:
    """Whether the exact result always fits 64 bits, so that only the range of its own type has to be checked."""
    ranges = [range_of(argument.type) for argument in node.arguments]
    sizes = [max(abs(bounds[0]), abs(bounds[1])) for bounds in ranges if bounds is not None]
    return (sizes[0] * sizes[1] if node.function == "multiply" else sizes[0] + sizes[1]) < 2**63


def _divide(writer: Writer, node: Call) -> Result:
    left, right = (writer.number(argument) for argument in node.arguments)
    if not node.type.is_float:
        return _exact(writer, node, "divide_exact", left, right)
    zero = compare(right.word, ast.Eq, ast.Constant(0))
    fault = count_fault()
    writer.body.append(ast.If(zero, [fault], []))
    return writer.floated(
        call("divide_single" if node.type.kind is Kind.FLOAT else "divide_float", left.word, right.word),
        node.type,
        left,
        right,
    )


def _modulo(writer: Writer, node: Call) -> Result:
    left, right = (writer.number(argument) for argument in node.arguments)
    if node.type.is_float:
        return writer.floated(call("modulo_float", left.word, right.word), node.type, left, right)
    word, fits = writer.fresh(), writer.fresh()
    writer.body.append(assign((word, fits), call("modulo_exact", left.word, right.word)))
    bounds = range_of(node.type)
    least = FALSE if bounds is None else compare(left.word, ast.Eq, ast.Constant(bounds[0]))
    beyond = every((least, compare(right.word, ast.Eq, ast.Constant(-1))))
    return writer.guarded(name(word), every((name(fits), negated(beyond))), node.type, left.null, right.null)


def _negate(writer: Writer, node: Call) -> Result:
    operand = writer.number(node.arguments[0])
    if node.type.is_float:
        return writer.floated(ast.UnaryOp(ast.USub(), operand.word), node.type, operand)
    return _exact(writer, node, "subtract_exact", Number(call("int64", ast.Constant(0)), None), operand)


def _absolute(writer: Writer, node: Call) -> Result:
    operand = writer.number(node.arguments[0])
    if node.type.is_float:
        return writer.floated(call("abs", operand.word), node.type, operand)
    lowest = compare(operand.word, ast.NotEq, call("int64", ast.Constant(-(2**63))))
    fits = lowest if range_of(node.arguments[0].type) is None else TRUE
    return writer.guarded(call("abs", operand.word), fits, node.type, operand.null)


def _rounded(writer: Writer, node: Call) -> Result:
    operand, source = writer.number(node.arguments[0]), node.arguments[0].type
    if node.type.is_float:
        return writer.floated(
            call("np_floor" if node.function == "floor" else "np_ceil", operand.word), node.type, operand
        )
    if source.kind is not Kind.DECIMAL:
        return operand
    factor = ast.Constant(10**source.scale)
    return writer.guarded(call(f"{node.function}_scaled", operand.word, factor), TRUE, node.type, operand.null)


def _square_root(writer: Writer, node: Call) -> Result:
    operand = writer.number(node.arguments[0])
    return writer.floated(call("square_root", operand.word), node.type, operand)


def _extreme(writer: Writer, node: Call) -> Result:
    """GREATEST and LEAST pass over NULLs."""
    operator = ast.Gt if node.function == "greatest" else ast.Lt
    first = writer.number(node.arguments[0])
    word, null = writer.fresh(), writer.fresh()
    writer.body += [assign(word, first.word), assign(null, first.null or FALSE)]
    for argument in node.arguments[1:]:
        operand = writer.number(argument)
        better = every((negated(operand.null), some((name(null), compare(operand.word, operator, name(word))))))
        writer.body.append(ast.If(better, [assign(word, operand.word), assign(null, FALSE)], []))
    return Number(name(word), name(null))


def _comparison(writer: Writer, node: Call) -> Result:
    kind = node.arguments[0].type.kind
    positive, negative = COMPARISONS[node.function]
    if kind is Kind.VARCHAR:
        return _text_comparison(writer, node, positive, negative)
    if kind is Kind.VECTOR:
        raise QueryError("vectors cannot be compared", place=str(node), hint="compare their cosine, dot or l2")
    left, right = (writer.number(argument) for argument in node.arguments)
    known = every([negated(n.null) for n in (left, right) if not (n.null is not None and is_nan_test(n.null))])
    ordered = [n.word for n in (left, right) if n.null is not None and is_nan_test(n.null)]
    not_nan = every([compare(word, ast.Eq, word) for word in ordered])
    true, false = compare(left.word, positive, right.word), compare(left.word, negative, right.word)
    return Condition(
        every((known, not_nan if positive is ast.NotEq else TRUE, true)),
        every((known, not_nan if negative is ast.NotEq else TRUE, false)),
    )


def _text_comparison(writer: Writer, node: Call, positive: type[ast.cmpop], negative: type[ast.cmpop]) -> Result:
    left, right = (writer.item(argument) for argument in node.arguments)
    known = every((negated(left.null), negated(right.null)))
    if node.function in ("equal", "not_equal"):
        same = writer.keep(call("bytes_equal", *left.arguments, *right.arguments))
        equal, different = every((known, same)), every((known, negated(same)))
        return Condition(equal, different) if node.function == "equal" else Condition(different, equal)
    order = writer.keep(call("bytes_compare", *left.arguments, *right.arguments))
    zero = ast.Constant(0)
    return Condition(every((known, compare(order, positive, zero))), every((known, compare(order, negative, zero))))


def _and(writer: Writer, node: Call) -> Result:
    parts = [writer.condition(argument) for argument in node.arguments]
    return Condition(every(part.true for part in parts), some(part.false for part in parts))


def _or(writer: Writer, node: Call) -> Result:
    parts = [writer.condition(argument) for argument in node.arguments]
    return Condition(some(part.true for part in parts), every(part.false for part in parts))


def _not(writer: Writer, node: Call) -> Result:
    part = writer.condition(node.arguments[0])
    return Condition(part.false, part.true)


def _is_null(writer: Writer, node: Call) -> Result:
    result = writer.write(node.arguments[0])
    if isinstance(result, Condition):
        known = some((result.true, result.false))
        return Condition(negated(known), known)
    return Condition(result.null or FALSE, negated(result.null))


def _coalesce(writer: Writer, node: Call) -> Result:
    branches: list[tuple[Expression | None, Expression]] = [(_known(a), a) for a in node.arguments[:-1]]
    return _choice(writer, [*branches, (None, node.arguments[-1])], node.type)


def _known(expression: Expression) -> Expression:
    return Call("not", (Call("is_null", (expression,), BOOLEAN),), BOOLEAN)


def _case(writer: Writer, node: Call) -> Result:
    pairs = list(zip(node.arguments[:-1:2], node.arguments[1::2], strict=False))
    return _choice(writer, [*pairs, (None, node.arguments[-1])], node.type)


def _choice(writer: Writer, branches: list[tuple[Expression | None, Expression]], type_: Type) -> Result:
    """The value of the first branch whose test is true; the other branches are not run (nor their faults counted)."""
    word, null = writer.fresh(), writer.fresh()
    boolean = type_.kind in (Kind.BOOLEAN, Kind.NULL)
    writer.body += [assign(word, FALSE if boolean else call(machine(type_), ast.Constant(0))), assign(null, FALSE)]
    place = writer
    for test, value in branches:
        inner = place.nested()
        if boolean:
            chosen = inner.condition(value)
            inner.body += [
                assign(word, chosen.true),
                assign(null, every((negated(chosen.true), negated(chosen.false)))),
            ]
        else:
            number = inner.number(value)
            inner.body += [assign(word, number.word), assign(null, number.null or FALSE)]
        if test is None:
            place.body += inner.body
            break
        otherwise = place.nested()
        place.body.append(ast.If(place.condition(test).true, inner.body, otherwise.body))
        place = otherwise
    if boolean:
        return Condition(name(word), every((negated(name(word)), negated(name(null)))))
    return Number(name(word), name(null))


def _cast(writer: Writer, node: Call) -> Result:
    source, target = node.arguments[0].type, node.type
    if source == target:
        return writer.write(node.arguments[0])
    if target.kind is Kind.BOOLEAN:
        return writer.condition(node.arguments[0])
    operand = writer.number(node.arguments[0])
    if target.is_float:
        if source.kind is Kind.DECIMAL:
            return writer.floated(
                call("decimal_to_float", operand.word, ast.Constant(10**source.scale)), target, operand
            )
        if source.kind is Kind.DOUBLE:
            return _to_single(writer, operand, target)
        return writer.floated(operand.word, target, operand)
    if source.is_float:
        return _from_float(writer, operand, target)
    return _between_words(writer, operand, source, target)


def _to_single(writer: Writer, operand: Number, target: Type) -> Result:
    single = writer.keep(call("float_to_single", operand.word))
    lost = every((compare(single, ast.NotEq, single), compare(operand.word, ast.Eq, operand.word)))
    writer.body.append(ast.If(lost, [count_fault()], []))
    return writer.floated(single, target, operand)


def _from_float(writer: Writer, operand: Number, target: Type) -> Result:
    word, fits = writer.fresh(), writer.fresh()
    low, high = range_of(target) or (-(2**63), 2**63 - 1)
    value = operand.word
    if target.kind is Kind.DECIMAL:
        value = ast.BinOp(call("float64", value), ast.Mult(), ast.Constant(float(10**target.scale)))
    value = call("float64", value)
    writer.body.append(assign((word, fits), call("float_to_integer", value, ast.Constant(low), ast.Constant(high))))
    null = operand.null if operand.null is not None else FALSE
    return writer.guarded(name(word), name(fits), target, null)


def _between_words(writer: Writer, operand: Number, source: Type, target: Type) -> Result:
    """Integers, decimals, dates and times among each other: one factor up or down."""
    up = {Kind.DATE: DAY_US}.get(source.kind, 1) if target.is_time else 10 ** max(0, target.scale - source.scale)
    down = DAY_US if target.kind is Kind.DATE and source.is_time else 10 ** max(0, source.scale - target.scale)
    if down > 1:
        function = "floor_scaled" if target.kind is Kind.DATE else "scale_down"
        return writer.guarded(call(function, operand.word, ast.Constant(down)), TRUE, target, operand.null)
    if up == 1 and _includes(range_of(target), range_of(source)):
        return operand
    if up == 1:
        return writer.guarded(operand.word, TRUE, target, operand.null)
    word, fits = writer.fresh(), writer.fresh()
    writer.body.append(assign((word, fits), call("multiply_exact", operand.word, call("int64", ast.Constant(up)))))
    return writer.guarded(name(word), name(fits), target, operand.null)


def _includes(outer: tuple[int, int] | None, inner: tuple[int, int] | None) -> bool:
    return outer is None or (inner is not None and outer[0] <= inner[0] and inner[1] <= outer[1])


def _date_diff(writer: Writer, node: Call) -> Result:
    unit = str(node.arguments[0].value) if isinstance(node.arguments[0], Literal) else ""
    numbers = []
    for argument in node.arguments[1:]:
        operand = writer.number(argument)
        word = operand.word
        if argument.type.kind is Kind.DATE:
            word = writer.keep(ast.BinOp(word, ast.Mult(), call("int64", ast.Constant(DAY_US))))
        if unit in UNIT_US:
            counted: ast.expr = ast.BinOp(word, ast.FloorDiv(), call("int64", ast.Constant(UNIT_US[unit])))
        else:
            months = {"month": 1, "quarter": 3, "year": 12}[unit]
            counted = ast.BinOp(call("month_number", word), ast.FloorDiv(), call("int64", ast.Constant(months)))
        numbers.append(Number(writer.keep(counted), operand.null))
    start, end = numbers
    difference, fits = writer.fresh(), writer.fresh()
    writer.body.append(assign((difference, fits), call("subtract_exact", end.word, start.word)))
    return writer.guarded(name(difference), name(fits), node.type, start.null, end.null)


def _of_items(writer: Writer, node: Call) -> Result:
    left, right = (writer.item(argument) for argument in node.arguments)
    value = call("token_jaccard" if node.function == "jaccard" else node.function, *left.arguments, *right.arguments)
    nulls = [Number(FALSE, item.null) for item in (left, right)]
    return writer.floated(value, node.type, *nulls)


def _haversine(writer: Writer, node: Call) -> Result:
    operands = [writer.number(argument) for argument in node.arguments]
    return writer.floated(call("haversine_m", *(operand.word for operand in operands)), node.type, *operands)


RULES: dict[str, Rule] = {
    **dict.fromkeys(OPERATORS, _arithmetic),
    **dict.fromkeys(COMPARISONS, _comparison),
    **dict.fromkeys(("divide", "integer_divide"), _divide),
    **dict.fromkeys(("greatest", "least"), _extreme),
    **dict.fromkeys(("floor", "ceil"), _rounded),
    **dict.fromkeys(("cosine", "dot", "l2", "jaccard"), _of_items),
    "modulo": _modulo, "negate": _negate, "abs": _absolute, "sqrt": _square_root, "and": _and, "or": _or, "not": _not,
    "is_null": _is_null, "coalesce": _coalesce, "case": _case, "cast": _cast, "date_diff": _date_diff, "haversine_m":
    _haversine,
}  # fmt: skip


def is_compiled(expression: Expression) -> bool:
    """Whether the node itself (not what is below it) turns into statements; texts are only read and compared."""
    if not isinstance(expression, Call):
        return True
    if expression.function not in RULES or expression.type.kind in (Kind.VARCHAR, Kind.VECTOR, Kind.OTHER):
        return False
    return expression.function != "cast" or expression.arguments[0].type.kind is not Kind.VARCHAR


def is_compiled_whole(conjunct: Expression) -> bool:
    """Whether everything above the leaves turns into a kernel."""
    leaves = set(leaves_of(conjunct))

    def whole(node: Expression) -> bool:
        if node in leaves or isinstance(node, Literal):
            return True
        return is_compiled(node) and all(whole(argument) for argument in getattr(node, "arguments", ()))

    return whole(conjunct)
