"""Kill the process of a driver at a point of the protocol: nothing runs after it, no `finally`, no `atexit`.

It takes a process that was made for it. `run_over(..., crash_at=...)` simulates the same within the process of a test.
"""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint, no_fault
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.environment import runs_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_bookmarks.lifecycle.protocol.failpoint import FaultHook


def kill_hook(fault: str, attempt: int) -> FaultHook:
    """Return the hook that kills this process by SIGKILL at a point.

    Args:
        fault: `<point>[@<attempt>]`: the point, and the one attempt that dies there. Empty: none dies.
        attempt: the attempt that this process makes.

    Raises:
        OptionError: `fault` names no point.
    """
    if not fault:
        return no_fault
    name, _, only = fault.partition("@")
    if name not in set(Failpoint) or (only and not only.isdecimal()):
        points = ", ".join(Failpoint)
        raise OptionError(
            f"fault={fault!r}: expected <point>[@<attempt>] with a point of: {points}. Nothing was read or run."
        )
    if only and int(only) != attempt:
        return no_fault

    def kill(point: Failpoint) -> None:
        if point == name:
            os.kill(os.getpid(), signal.SIGKILL)

    return kill


@contextmanager
def killed_at(fault: str) -> Iterator[None]:
    """Kill this process where a job that is made within the block comes to a point; `fault` as for `kill_hook`."""
    with runs_in(lambda attempt: RunEnvironment(at=kill_hook(fault, attempt))):
        yield
