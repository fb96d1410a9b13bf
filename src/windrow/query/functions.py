"""The functions of the query language, as data: how each is written, what it takes, what comes out, and what NULL does.

An entry's `rule` maps the types of the arguments to a `Signature`: the types they are cast to and the type that comes
out. So that is the one place that knows a promotion; whoever evaluates a bound expression meets operands that already
agree:

    arithmetic, comparisons     both operands of one type, except
      multiply                  decimals keep their own scales, the product's is the sum
      add, subtract             a DATE and INTEGER days, a timestamp and an INTERVAL: the time comes first;
                                timestamps differ by an INTERVAL, dates by a BIGINT of days
    date_diff                   a unit (see DATE_DIFF_UNITS), then two TIMESTAMPs or two TIMESTAMPTZs
    cosine, dot, l2             two vectors of one length, elements of 32 or 64 bits each as they come
    case                        when, then, when, then, …, else
    and, or, coalesce, greatest, least     any number of arguments

>>> resolve("less", (DATE, TIMESTAMP)).arguments == (TIMESTAMP, TIMESTAMP)
True
>>> resolve("add", (VARCHAR, INTEGER)) is None
True
>>> is_strict("abs"), is_strict("coalesce"), canonical_name("CEILING")
(True, False, 'ceil')
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

from windrow.query.coercion import common_type, day_count_type, later_time, product_types, quotient_type, sum_type
from windrow.query.expression import Call
from windrow.query.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    NULL,
    TIMESTAMP,
    VARCHAR,
    Kind,
    Type,
    decimal,
)

USER_PREFIX = "udf:"
"""What marks a call of a user's function: `udf:<name>`."""

DATE_DIFF_UNITS = ("microsecond", "millisecond", "second", "minute", "hour", "day", "month", "quarter", "year")
"""The units of date_diff, which counts the boundaries of the unit between two times."""

Types: TypeAlias = tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class Signature:
    """The types arguments are cast to and the result's; `function` where another function does the work."""

    arguments: Types
    result: Type
    function: str = ""


Rule: TypeAlias = Callable[[Types], "Signature | None"]


@dataclass(frozen=True, slots=True)
class Function:
    """One function: its canonical name, the names a query may call it by, its operator if it has one.

    `expects` completes the sentence "it takes …". A `strict` function gives NULL as soon as one argument is NULL.
    """

    name: str
    rule: Rule
    expects: str
    called: tuple[str, ...] = ()
    operator: str = ""
    strict: bool = True


def resolve(name: str, arguments: Types) -> Signature | None:
    """The signature of a function for these types of arguments; None if it does not take them."""
    return FUNCTIONS[name].rule(arguments)


def is_strict(name: str) -> bool:
    """Whether one NULL argument makes the result NULL (a user's function is not called for NULL, so it counts)."""
    return name == "cast" or name.startswith(USER_PREFIX) or FUNCTIONS[name].strict


def canonical_name(called: str) -> str | None:
    """The canonical name of what a query calls `called`, in any case."""
    return _BY_CALLED_NAME.get(called.lower())


def show_call(call: Call) -> str:
    """A call as SQL text (see `windrow.query.show`)."""
    from windrow.query.show import show

    return show(call)


def _sum(types: Types) -> Signature | None:
    if len(types) != 2:
        return None
    left, right = _filled(*types)
    if left.is_numeric and right.is_numeric:
        both = sum_type(left, right)
        return Signature((both, both), both)
    if left.kind is Kind.INTERVAL and right.kind is Kind.INTERVAL:
        return Signature((INTERVAL, INTERVAL), INTERVAL)
    return _moved_time(left, right)


def _difference(types: Types) -> Signature | None:
    if len(types) != 2:
        return None
    left, right = _filled(*types)
    if left == right == DATE:
        return Signature((DATE, DATE), BIGINT)
    if is_instant(left) and is_instant(right):
        time = later_time(left, right)
        return Signature((time, time), INTERVAL)
    return _sum((left, right))


def _moved_time(time: Type, by: Type) -> Signature | None:
    days = day_count_type(by) if time == DATE else None
    if days is not None:
        return Signature((DATE, days), DATE)
    if is_instant(time) and by == INTERVAL:
        moved = TIMESTAMP if time == DATE else time
        return Signature((moved, INTERVAL), moved)
    return None


def _product(types: Types) -> Signature | None:
    numbers = _two_numbers(types)
    product = product_types(*numbers) if numbers else None
    return Signature(product[:2], product[2]) if product else None


def _quotient(types: Types) -> Signature | None:
    numbers = _two_numbers(types)
    if not numbers:
        return None
    both = quotient_type(*numbers)
    return Signature((both, both), both)


def _whole_quotient(types: Types) -> Signature | None:
    """Whole numbers only: of others `//` is the plain quotient, in DuckDB too."""
    numbers = _two_numbers(types)
    if not numbers:
        return None
    if not all(type_.is_integer for type_ in numbers):
        both = quotient_type(*numbers)
        return Signature((both, both), both, function="divide")
    both = sum_type(*numbers)
    return Signature((both, both), both)


def _remainder(types: Types) -> Signature | None:
    numbers = _two_numbers(types)
    if not numbers:
        return None
    both = sum_type(*numbers) if all(type_.is_integer for type_ in numbers) else common_type(*numbers)
    return Signature((both, both), both) if both else None


def _same_number_or_interval(types: Types) -> Signature | None:
    if types == (NULL,):
        return Signature((BIGINT,), BIGINT)
    return Signature(types, types[0]) if len(types) == 1 and (types[0].is_numeric or types == (INTERVAL,)) else None


def _rounded(types: Types) -> Signature | None:
    if len(types) != 1 or not (types[0].is_numeric or types == (NULL,)):
        return None
    type_ = types[0]
    if type_.kind is Kind.DECIMAL:
        return Signature(types, decimal(type_.width, 0))
    result = type_ if type_.is_float else DOUBLE
    return Signature((result,), result)


def _common(types: Types) -> Signature | None:
    both = _reduced(types)
    if both is None or both.kind in (Kind.VECTOR, Kind.OTHER):
        return None
    return Signature((both,) * len(types), both)


def _comparison(types: Types) -> Signature | None:
    both = common_type(*types, booleans_as_numbers=True) if len(types) == 2 else None
    if both is None or both.kind in (Kind.VECTOR, Kind.OTHER):
        return None
    both = INTEGER if both == NULL else both
    return Signature((both, both), BOOLEAN)


def _case(types: Types) -> Signature | None:
    """Conditions in the even places but the last, values in the others."""
    conditions, values = types[:-1:2], (*types[1::2], types[-1])
    result = _reduced(values)
    if len(types) < 3 or len(types) % 2 == 0 or any(type_ not in (BOOLEAN, NULL) for type_ in conditions):
        return None
    if result is None or result.kind in (Kind.VECTOR, Kind.OTHER):
        return None
    return Signature((*chain.from_iterable((BOOLEAN, result) for _ in conditions), result), result)


def _any_value(types: Types) -> Signature | None:
    return Signature(types, BOOLEAN) if len(types) == 1 and types[0].kind is not Kind.OTHER else None


def _date_diff(types: Types) -> Signature | None:
    if len(types) != 3 or types[0] != VARCHAR or not all(is_instant(type_) or type_ == NULL for type_ in types[1:]):
        return None
    time = later_time(types[1], types[2])
    return Signature((VARCHAR, time, time), BIGINT)


def _two_vectors(types: Types) -> Signature | None:
    vectors = (
        len(types) == 2 and all(type_.kind is Kind.VECTOR for type_ in types) and types[0].length == types[1].length
    )
    return Signature(types, DOUBLE) if vectors else None


def _all_of(wanted: Type, count: int, result: Type) -> Rule:
    """A rule for exactly `count` arguments of one type, or of NULL, which is read as that type."""

    def rule(types: Types) -> Signature | None:
        return Signature((wanted,) * count, result) if len(types) == count and set(types) <= {wanted, NULL} else None

    return rule


def _all_numbers(count: int) -> Rule:
    def rule(types: Types) -> Signature | None:
        numbers = len(types) == count and all(type_.is_numeric or type_ == NULL for type_ in types)
        return Signature((DOUBLE,) * count, DOUBLE) if numbers else None

    return rule


def _connective(types: Types) -> Signature | None:
    return Signature((BOOLEAN,) * len(types), BOOLEAN) if len(types) >= 2 and set(types) <= {BOOLEAN, NULL} else None


def _two_numbers(types: Types) -> tuple[Type, Type] | None:
    if len(types) != 2:
        return None
    left, right = _filled(*types)
    return (left, right) if left.is_numeric and right.is_numeric else None


def _filled(left: Type, right: Type) -> tuple[Type, Type]:
    """A NULL operand takes the other's type, or the one that moves the other if that is a time."""
    if left == NULL and right == NULL:
        return INTEGER, INTEGER
    if left == NULL:
        return (INTERVAL if right.is_time else INTEGER if right == DATE else right), right
    if right == NULL:
        return left, (INTERVAL if left.is_time else INTEGER if left == DATE else left)
    return left, right


def _reduced(types: Types) -> Type | None:
    common: Type | None = types[0] if types else None
    for type_ in types[1:]:
        common = common_type(common, type_) if common is not None else None
    return common


def is_instant(type_: Type) -> bool:
    """Whether a value of this type is a point in time."""
    return type_ == DATE or type_.is_time


_NUMBERS = "two numbers"
_COMPARABLE = "two values of one kind"
_TEXTS = "two texts"
_VECTORS = "two vectors of the same length"
_MOVES = "two numbers, or a time and what moves it"

FUNCTIONS: dict[str, Function] = {
    function.name: function
    for function in (
        Function("add", _sum, _MOVES, operator="+"),
        Function("subtract", _difference, f"{_MOVES}, or two times", operator="-"),
        Function("multiply", _product, _NUMBERS, operator="*"),
        Function("divide", _quotient, _NUMBERS, operator="/"),
        Function("integer_divide", _whole_quotient, _NUMBERS, operator="//"),
        Function("modulo", _remainder, _NUMBERS, ("mod",), operator="%"),
        Function("negate", _same_number_or_interval, "a number or an interval", operator="-"),
        Function("abs", _same_number_or_interval, "a number or an interval", ("abs",)),
        Function("floor", _rounded, "a number", ("floor",)),
        Function("ceil", _rounded, "a number", ("ceil", "ceiling")),
        Function("sqrt", _all_numbers(1), "a number", ("sqrt",)),
        Function("greatest", _common, "values of one kind", ("greatest",), strict=False),
        Function("least", _common, "values of one kind", ("least",), strict=False),
        Function("equal", _comparison, _COMPARABLE, operator="="),
        Function("not_equal", _comparison, _COMPARABLE, operator="<>"),
        Function("less", _comparison, _COMPARABLE, operator="<"),
        Function("less_equal", _comparison, _COMPARABLE, operator="<="),
        Function("greater", _comparison, _COMPARABLE, operator=">"),
        Function("greater_equal", _comparison, _COMPARABLE, operator=">="),
        Function("and", _connective, "conditions", operator="AND", strict=False),
        Function("or", _connective, "conditions", operator="OR", strict=False),
        Function("not", _all_of(BOOLEAN, 1, BOOLEAN), "a condition", operator="NOT"),
        Function("is_null", _any_value, "one value", operator="IS NULL", strict=False),
        Function("coalesce", _common, "values of one kind", ("coalesce", "ifnull"), strict=False),
        Function("case", _case, "conditions, and values of one kind", strict=False),
        Function("like", _all_of(VARCHAR, 2, BOOLEAN), _TEXTS, operator="LIKE"),
        Function("ilike", _all_of(VARCHAR, 2, BOOLEAN), _TEXTS, operator="ILIKE"),
        Function("lower", _all_of(VARCHAR, 1, VARCHAR), "a text", ("lower", "lcase")),
        Function("upper", _all_of(VARCHAR, 1, VARCHAR), "a text", ("upper", "ucase")),
        Function("length", _all_of(VARCHAR, 1, BIGINT), "a text", ("length", "len")),
        Function("date_diff", _date_diff, "a unit and two times", ("date_diff", "datediff")),
        Function("cosine", _two_vectors, _VECTORS, ("cosine",)),
        Function("dot", _two_vectors, _VECTORS, ("dot",)),
        Function("l2", _two_vectors, _VECTORS, ("l2",)),
        Function(
            "haversine_m", _all_numbers(4), "two latitudes and longitudes: lat1, lon1, lat2, lon2", ("haversine_m",)
        ),
        Function("jaccard", _all_of(VARCHAR, 2, DOUBLE), _TEXTS, ("jaccard",)),
        Function("levenshtein", _all_of(VARCHAR, 2, BIGINT), _TEXTS, ("levenshtein",)),
        Function("jaro_winkler", _all_of(VARCHAR, 2, DOUBLE), _TEXTS, ("jaro_winkler", "jaro_winkler_similarity")),
        Function("result_ts", _all_of(NULL, 0, TIMESTAMP), "nothing", ("result_ts",)),
        Function("result_id", _all_of(NULL, 0, BIGINT), "nothing", ("result_id",)),
    )
}
"""All functions by canonical name. `cast` is not among them: its result is whatever type was asked for, and it is
strict."""

_BY_CALLED_NAME = {called: function.name for function in FUNCTIONS.values() for called in function.called}
