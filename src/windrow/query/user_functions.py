"""Functions of the user's own: declared with a decorator, or read from a file given by name.

>>> @function(returns="BOOLEAN")
... def near(x: float, y: float) -> bool:
...     return abs(x - y) < 1
>>> near.name, str(near.result), near.mode, near(1.0, 1.5)
('near', 'BOOLEAN', 'auto', True)
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, get_args

from windrow.errors import FunctionError, QueryError, SourceError
from windrow.query.casts import type_named
from windrow.query.functions import canonical_name
from windrow.query.spec import CALL_LIMIT_S, Mode, UserFunction
from windrow.query.types import BIGINT, BOOLEAN, DOUBLE, VARCHAR, Kind, Type

_PYTHON_TYPES: dict[type, Type] = {bool: BOOLEAN, int: BIGINT, float: DOUBLE, str: VARCHAR}


def user_function(
    name: str,
    function: Callable[..., Any],
    returns: str | type | Type | None = None,
    mode: Mode = "auto",
    limit_s: float | None = None,
) -> UserFunction:
    """A function under the name a query calls it by, checked.

    What is not said is taken from its declaration if it was declared before, else it returns a DOUBLE.
    """
    declared = function if isinstance(function, UserFunction) else UserFunction(name, function, DOUBLE)
    function = declared.function
    if not callable(function):
        raise QueryError(
            f"function '{name}' is {type(function).__name__}, which cannot be called", hint="pass a function"
        )
    if not name.isidentifier():
        raise QueryError(f"'{name}' cannot be the name of a function", hint="use letters, digits and _")
    if canonical_name(name) is not None or name.lower() in ("nullif", "if"):
        raise QueryError(f"there already is a function '{name}'", hint="give yours another name")
    if mode not in get_args(Mode):
        raise QueryError(
            f"'{mode}' is not a way to call function '{name}'", hint=f"modes are {', '.join(get_args(Mode))}"
        )
    limit_s = declared.limit_s if limit_s is None else limit_s
    given: object = limit_s
    if isinstance(given, bool) or not isinstance(given, int | float) or not given > 0:
        raise QueryError(f"a call of function '{name}' may take {limit_s!r} s", hint="give seconds, more than 0")
    result = declared.result if returns is None else _result_type(name, returns)
    return UserFunction(name, function, result, declared.mode if mode == "auto" else mode, float(limit_s))


def function(
    name: str | None = None,
    returns: str | type | Type = "DOUBLE",
    mode: Mode = "auto",
    limit_s: float = CALL_LIMIT_S,
) -> Callable[[Callable[..., Any]], UserFunction]:
    """A decorator that makes a Python function one that queries can call; it can still be called as before.

    A call that has not returned after `limit_s` seconds ends the query with an error (`math.inf`: it may take forever).
    One call is for one row; for many at once where the function is vectorised or could be compiled.
    """

    def declared(decorated: Callable[..., Any]) -> UserFunction:
        return user_function(name or decorated.__name__, decorated, returns, mode, limit_s)

    return declared


def load_functions(path: str | Path) -> tuple[UserFunction, ...]:
    """The functions of a Python file: those declared with `windrow.function`, and public ones that say they return a
    number, a truth or a text.

    The file is run, as an import runs it. What goes wrong in it is reported with its line.
    """
    file = Path(path)
    if not file.is_file():
        raise SourceError(f"there is no file '{path}'", place="--udf", hint="give the path of a Python file")
    spec = spec_from_file_location(f"windrow_functions_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise SourceError(f"'{path}' is not a Python file", place="--udf", hint="its name has to end in .py")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise FunctionError(
            f"'{path}' is not Python: {error.msg}", place=f"{path}:{error.lineno}", hint="correct the file"
        ) from None
    except (Exception, SystemExit) as error:
        message = f"'{path}' fails when it is loaded: {type(error).__name__}: {error}"
        raise FunctionError(message, place=f"{path}:{_line_in(file, error)}", hint="correct the file") from None
    found = tuple(each for name, value in vars(module).items() for each in _declared(name, value, module.__name__))
    if not found:
        hint = "decorate them with windrow.function or write what they return: def f(x) -> float"
        raise FunctionError(f"'{path}' declares no functions", place=str(path), hint=hint)
    return found


def accepts(user: UserFunction, count: int) -> bool:
    """Whether a function can be called with that many arguments; what cannot be inspected is believed to."""
    try:
        inspect.signature(user.function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def _declared(name: str, value: Any, module: str) -> list[UserFunction]:
    if isinstance(value, UserFunction):
        return [value]
    if name.startswith("_") or not inspect.isfunction(value) or value.__module__ != module:
        return []
    returned = value.__annotations__.get("return")
    result = next((type_ for type_ in _PYTHON_TYPES if returned in (type_, type_.__name__)), None)
    return [] if result is None else [user_function(name, value, result)]


def _result_type(name: str, returns: str | type | Type) -> Type:
    result = (
        returns
        if isinstance(returns, Type)
        else _PYTHON_TYPES.get(returns)
        if isinstance(returns, type)
        else type_named(returns)
    )
    if result is None or not (result.is_integer or result.is_float or result.kind in (Kind.BOOLEAN, Kind.VARCHAR)):
        shown = getattr(returns, "__name__", str(returns))
        raise QueryError(
            f"function '{name}' cannot return {shown}", hint="return BOOLEAN, an integer type, FLOAT, DOUBLE or VARCHAR"
        )
    return result


def _line_in(file: Path, error: BaseException) -> int:
    """The last line of the file the error passed through."""
    line, trace = 0, error.__traceback__
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename) == file or trace.tb_frame.f_code.co_filename == str(file.resolve()):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
