"""Failures in one line: what was said is found in what Spark wraps it in, and nothing else is."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from windrow.errors import FunctionError, StateError, WindrowError
from windrow.run.spark.failures import LONGEST, brief, where_it_failed

TASK = """[STREAM_FAILED] Query [id = 5, runId = 6] terminated with exception: An error occurred in the function
Traceback (most recent call last):
  File "clientserver.py", line 644, in _call_proxy
    return_value = getattr(self.pool[obj_id], method)(*params)
  File "captured.py", line 262, in deco
    raise converted from None
pyspark.errors.exceptions.captured.PythonException: An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "near.py", line 8, in near
    return table[key]
{told}
 SQLSTATE: 39000 SQLSTATE: XXKST
=== Streaming Query ===
Current State: ACTIVE
"""

CASES = {
    "KeyError: 'x'": (WindrowError, "KeyError: 'x'"),
    "my.module.Refused: too far\nSecond: line of it": (WindrowError, "Refused: too far"),
    "AssertionError": (WindrowError, "AssertionError"),
    "windrow.errors.FunctionError: 'near' failed (at: a.x). Next: look": (FunctionError, "'near' failed"),
}


@pytest.mark.parametrize("told", CASES)
def test_what_a_function_said_is_found_in_the_failure_of_a_query(told: str) -> None:
    kind, message = CASES[told]
    found = brief(PySparkException(TASK.format(told=told)), place="batch 3")
    assert (type(found), found.message) == (kind, message)
    assert "\n" not in str(found)
    assert found.place == ("a.x" if kind is FunctionError else "batch 3")
    assert found.hint.startswith("look" if kind is FunctionError else "correct the cause")


def test_failures_of_java_lose_the_names_of_classes() -> None:
    text = "An error occurred while calling o1.save.\n: java.sql.SQLException: No suitable driver\n\tat java.sql/x.y\n"
    assert brief(PySparkException(text)).message == "No suitable driver"
    assert brief(PySparkException("")).message == "no message"
    stated = "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n== SQL ==\n1/0"
    assert brief(PySparkException(stated)).message == "[DIVIDE_BY_ZERO] Division by zero."


def test_a_long_failure_is_cut_and_loses_its_causes() -> None:
    try:
        raise StateError("x" * 5000, hint="start anew") from ValueError("inner")
    except StateError as error:
        found = brief(error)
    assert isinstance(found, StateError)
    assert len(found.message) == LONGEST
    assert found.hint == "start anew"
    assert found.__cause__ is None


def failing(_: object, batch: int) -> None:
    raise ValueError(batch)


def test_the_line_that_failed_is_in_the_functions_own_file() -> None:
    with pytest.raises(ValueError, match="3") as caught:
        failing(None, 3)
    line = failing.__code__.co_firstlineno + 1
    assert where_it_failed(caught.value, failing) == f"test_failures.py:{line} in failing"
    assert where_it_failed(caught.value, print) == "print"
