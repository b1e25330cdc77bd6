"""The named points of the protocol, and a fault hook that can kill a process at each of them.

Off by default. For tests and the demo, `AIRFLOW_BOOKMARKS_FAULT=<point>[@<attempt>]` in the environment of the driver
kills its process with SIGKILL when that attempt reaches that point: nothing runs after it, no `finally`, no `atexit`.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from enum import StrEnum

from airflow_bookmarks.core.errors import OptionError

FAULT_VARIABLE = "AIRFLOW_BOOKMARKS_FAULT"


class Failpoint(StrEnum):
    """Where a driver stands in the protocol; each name is the step that was just done (or is about to be)."""

    TAKEN = "taken"
    RECOVERED = "recovered"
    LISTED = "listed"
    PLANNED = "planned"
    PLACED = "placed"
    STAGED = "staged"
    BEFORE_COMMIT = "before_commit"
    COMMITTED = "committed"
    PUBLISHING = "publishing"
    MOVED = "moved"
    PUBLISHED = "published"
    MARKED = "marked"
    SWEPT = "swept"


FaultHook = Callable[[Failpoint], None]


def no_fault(point: Failpoint) -> None:
    """Do nothing: the hook of every real run."""


def fault_from_environment(attempt: int, environment: Mapping[str, str] | None = None) -> FaultHook:
    """Return the hook that the environment asks for; `no_fault` by default.

    Raises:
        OptionError: the variable names no point.
    """
    text = (os.environ if environment is None else environment).get(FAULT_VARIABLE, "")
    if not text:
        return no_fault
    name, _, only = text.partition("@")
    if name not in set(Failpoint) or (only and not only.isdecimal()):
        points = ", ".join(Failpoint)
        raise OptionError(f"{FAULT_VARIABLE}={text!r}: expected <point>[@<attempt>] with a point of: {points}")
    if only and int(only) != attempt:
        return no_fault

    def kill(point: Failpoint) -> None:
        if point == name:
            os.kill(os.getpid(), signal.SIGKILL)

    return kill
