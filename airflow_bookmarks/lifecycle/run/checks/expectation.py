"""Expectations: what a script checks of its data; one that fails blocks the commit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from airflow_bookmarks.core.errors import ExpectationError, OptionError

Condition: TypeAlias = bool | np.bool_ | Callable[[], "bool | np.bool_"]


class Expects:
    """The expectations of a run: the part that active and side runs share."""

    _unmet: ExpectationError | None = None

    @property
    def job(self) -> str:
        """The job's name."""
        raise NotImplementedError

    def _check_running(self, what: str) -> None:
        raise NotImplementedError

    def expect(self, condition: Condition, message: str) -> None:
        """Check a condition; if it is false, this run can't commit any more, even if the error is caught.

        Args:
            condition: True or False, or a function without arguments that returns one.
            message: what is expected, for people; kept on the run record.

        Raises:
            ExpectationError: it is false. OptionError: it is neither true nor false.
            MisuseError: the run is over.
        """
        self._check_running(f"expect {message!r}")
        if not _truth(self.job, condition, message):
            self._unmet = ExpectationError(self.job, message)
            raise self._unmet

    def _check_expectations(self) -> None:
        if self._unmet is not None:
            raise self._unmet

    def _with_unmet(self, error: str) -> str:
        """Return the text of an error with the expectation that failed, if one did."""
        if self._unmet is None or self._unmet.message in error:
            return error
        return f"{type(self._unmet).__name__}: {self._unmet} After that: {error}"


def _truth(job: str, condition: Any, message: str) -> bool:
    value = condition() if callable(condition) else condition
    if isinstance(value, bool | np.bool_):
        return bool(value)
    kind = type(value)
    label = f"job {job!r}: expect(..., {message!r})"
    if kind.__module__.split(".")[0] == "pyspark":
        # A frame counts as true in Python, whatever is in it.
        raise OptionError(
            f"{label} was given a {kind.__name__} of Spark, which is not true or false before an action. Nothing was "
            "committed. Ask for a value: job.expect(frame.where(~condition).isEmpty(), ...), or "
            "frame.count() > 0; a function without arguments is called here: lambda: frame.count() > 0."
        )
    raise OptionError(
        f"{label} was given {value!r}, a {kind.__name__}. Nothing was committed. Give True or False (compare, as in "
        "count > 0), or a function without arguments that returns one."
    )
