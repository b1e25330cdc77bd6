"""What is told of an error, without Spark's stack."""

from __future__ import annotations

from airflow_bookmarks.core.text.cause import cause_of

_PYTHON = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "script.py", line 3, in <lambda>
    lambda v: 1 // v
ZeroDivisionError: integer division or modulo by zero

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:645)
\t... 12 more

Driver stacktrace:
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:1)
Caused by: org.apache.spark.SparkException: first
\tat a.b.c(d.scala:1)
Caused by: java.io.FileNotFoundException: /lake/raw/a.csv is gone
\tat a.b.c(d.scala:2)
"""


def test_stack_of_spark_is_cut_to_what_happened_and_the_last_cause() -> None:
    assert cause_of(RuntimeError(_PYTHON)).splitlines() == [
        "RuntimeError: ",
        "  An exception was thrown from the Python worker. Please see the stack trace below.",
        "ZeroDivisionError: integer division or modulo by zero",
        "Caused by: java.io.FileNotFoundException: /lake/raw/a.csv is gone",
    ]


def test_error_of_spark_connect_is_told_once() -> None:
    said = "[USER_RAISED_EXCEPTION] boom SQLSTATE: P0001"
    stack = "org.apache.spark.SparkRuntimeException: boom\nas it said\n\tat a.b.c(d.scala:1)\nCaused by: a.B: because"

    assert cause_of(RuntimeError(f"{said}\n\nJVM stacktrace:\n{stack}\n\tat a.b.c(d.scala:2)")).splitlines() == [
        f"RuntimeError: {said}",
        "Caused by: a.B: because",
    ]


def test_error_without_a_stack_is_told_as_it_is() -> None:
    assert cause_of(ValueError("at noon\n\nsomething went")) == "ValueError: at noon\n\nsomething went"


def test_notes_of_an_error_are_told_behind_it() -> None:
    error = RuntimeError(_PYTHON)
    error.add_note("a note")
    assert cause_of(error).splitlines()[-2:] == [
        "Caused by: java.io.FileNotFoundException: /lake/raw/a.csv is gone",
        "a note",
    ]
