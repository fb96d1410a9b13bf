"""How types meet: the type two values are compared in, computed in, and the casts a query may write.

DuckDB 2.0's rules, as far as a join needs them. `common_type` is where values of two types can stand beside each other
(comparison, COALESCE, CASE, GREATEST); arithmetic has its own, a little wider, in `sum_type` and `product_types`.

    TINYINT, INTEGER          INTEGER                    DATE, TIMESTAMP      TIMESTAMP
    UTINYINT, TINYINT         SMALLINT                   INTEGER, FLOAT       FLOAT
    INTEGER, DECIMAL(5,2)     DECIMAL(12,2)              DECIMAL, DOUBLE      DOUBLE

>>> from windrow.query.types import BIGINT, DATE, INTEGER, TIMESTAMP, VARCHAR
>>> str(common_type(INTEGER, decimal(5, 2))), str(sum_type(INTEGER, decimal(5, 2)))
('DECIMAL(12,2)', 'DECIMAL(13,2)')
>>> common_type(VARCHAR, BIGINT) is None, common_type(DATE, TIMESTAMP) is TIMESTAMP
(True, True)
"""

from __future__ import annotations

from windrow.query.types import BIGINT, BITS, DOUBLE, FLOAT, INTEGER, SIGNED, TIMES, Kind, Type, decimal

DIGITS = {
    Kind.TINYINT: 3, Kind.SMALLINT: 5, Kind.INTEGER: 10, Kind.BIGINT: 19,
    Kind.UTINYINT: 3, Kind.USMALLINT: 5, Kind.UINTEGER: 10,
}  # fmt: skip
"""How many decimal digits an integer of each kind is given when it becomes a DECIMAL."""

WIDEST_DECIMAL = 38
WIDEST_64_BIT_DECIMAL = 18

_TIME_ORDER = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
_WIDER_SIGNED = {Kind.UTINYINT: Kind.SMALLINT, Kind.USMALLINT: Kind.INTEGER, Kind.UINTEGER: Kind.BIGINT}


def common_type(left: Type, right: Type, *, booleans_as_numbers: bool = False) -> Type | None:
    """The type both can be turned into without a cast being written; None where there is none.

    NULL takes the other's type. Comparisons also read booleans as the numbers 0 and 1; elsewhere only integers take
    them in.
    """
    if left == right or right.kind is Kind.NULL:
        return left
    if left.kind is Kind.NULL:
        return right
    if left.is_numeric and right.is_numeric:
        return _common_number(left, right)
    if left.kind in _TIME_ORDER and right.kind in _TIME_ORDER:
        return max(left, right, key=lambda type_: _TIME_ORDER.index(type_.kind))
    for boolean, other in ((left, right), (right, left)):
        if boolean.kind is Kind.BOOLEAN and (other.is_integer or (booleans_as_numbers and other.is_numeric)):
            return other
    return None


def integer_sum_type(left: Type, right: Type) -> Type:
    """The type integers of two types are added in: the wider, but BIGINT where an unsigned one is not narrower than a
    signed one."""
    if (left.kind in SIGNED) == (right.kind in SIGNED):
        return _wider(left, right)
    signed, unsigned = (left, right) if left.kind in SIGNED else (right, left)
    return signed if BITS[signed.kind] > BITS[unsigned.kind] else BIGINT


def sum_type(left: Type, right: Type) -> Type:
    """The type two numbers are added in; a sum of decimals is one digit wider than either."""
    if left.is_integer and right.is_integer:
        return integer_sum_type(left, right)
    if left.is_float or right.is_float:
        return _common_float(left, right)
    left, right = as_decimal(left), as_decimal(right)
    scale = max(left.scale, right.scale)
    return decimal(min(WIDEST_DECIMAL, max(left.width - left.scale, right.width - right.scale) + scale + 1), scale)


def product_types(left: Type, right: Type) -> tuple[Type, Type, Type] | None:
    """The types two numbers are multiplied in, and their product's: decimals keep their own scales, which add up.

    None where the scales of two decimals add up to more than a DECIMAL holds.
    """
    if not (left.kind is Kind.DECIMAL or right.kind is Kind.DECIMAL) or left.is_float or right.is_float:
        both = sum_type(left, right)
        return both, both, both
    left, right = as_decimal(left), as_decimal(right)
    width, scale = left.width + right.width, left.scale + right.scale
    if scale > WIDEST_DECIMAL:
        return None
    narrow = max(left.width, right.width) <= WIDEST_64_BIT_DECIMAL and scale < WIDEST_64_BIT_DECIMAL
    widest = WIDEST_64_BIT_DECIMAL if narrow else WIDEST_DECIMAL
    return left, right, decimal(min(width, widest), scale)


def quotient_type(left: Type, right: Type) -> Type:
    """The type of a division of two numbers that is not an integer division: FLOAT where the only floats are FLOAT,
    else DOUBLE."""
    return _common_float(left, right) if left.is_float or right.is_float else DOUBLE


def as_decimal(type_: Type) -> Type:
    """The decimal an integer type becomes beside a decimal."""
    return type_ if type_.kind is Kind.DECIMAL else decimal(DIGITS[type_.kind], 0)


def can_cast(source: Type, target: Type) -> bool:
    """Whether CAST from one type to another can be written for a computed value (a literal can be cast to more)."""
    numbers = (source.is_numeric or source.kind is Kind.BOOLEAN) and (target.is_numeric or target.kind is Kind.BOOLEAN)
    times = source.kind in _TIME_ORDER and target.kind in _TIME_ORDER
    return source == target or source.kind is Kind.NULL or numbers or times


def day_count_type(type_: Type) -> Type | None:
    """INTEGER for the integer types that can be added to a DATE."""
    return INTEGER if type_.kind is Kind.NULL or (type_.is_integer and sum_type(type_, INTEGER) == INTEGER) else None


def later_time(left: Type, right: Type) -> Type:
    """The timestamp type a difference of times is taken in."""
    return next((type_ for type_ in (left, right) if type_.kind is Kind.TIMESTAMPTZ), Type(TIMES[0]))


def _common_number(left: Type, right: Type) -> Type:
    if left.is_float or right.is_float:
        return _common_float(left, right)
    if left.kind is Kind.DECIMAL or right.kind is Kind.DECIMAL:
        left, right = as_decimal(left), as_decimal(right)
        scale = max(left.scale, right.scale)
        return decimal(min(WIDEST_DECIMAL, max(left.width - left.scale, right.width - right.scale) + scale), scale)
    if (left.kind in SIGNED) == (right.kind in SIGNED):
        return _wider(left, right)
    signed, unsigned = (left, right) if left.kind in SIGNED else (right, left)
    return _wider(signed, Type(_WIDER_SIGNED[unsigned.kind]))


def _common_float(left: Type, right: Type) -> Type:
    return DOUBLE if DOUBLE in (left, right) else FLOAT


def _wider(left: Type, right: Type) -> Type:
    return left if BITS[left.kind] >= BITS[right.kind] else right
