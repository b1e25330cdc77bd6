"""Driver processes: forked from a server that has imported all they need, so that one takes no half a second."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TypeVar

import psutil

from tests.chaos.real.driver import main
from tests.chaos.real.order import Order
from tools.patience import STUCK_S

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload([main.__module__, "tests.chaos.real.session", "tests.chaos.tables.driver"])

AnyOrder = TypeVar("AnyOrder", bound=Order)


class DriverProcess:
    """A process that works on one order. As a context it is killed at the end."""

    def __init__(self, order: AnyOrder, play: Callable[[AnyOrder], None] = main) -> None:
        self._said = order.said
        self._process: BaseProcess = _FORKS.Process(target=play, args=(order,), daemon=True)
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def wait(self) -> int:
        """Wait for the end; return the exit code, negative for a signal."""
        self._process.join(STUCK_S)
        if self._process.exitcode is None:
            raise TimeoutError(f"the driver {self.pid} did not end in {STUCK_S:.0f} s")
        return self._process.exitcode

    @property
    def said(self) -> str:
        """What it wrote to stdout and stderr."""
        return self._said.read_text() if self._said.exists() else ""

    def freeze(self) -> None:
        """Stop all its threads, as a machine does that hangs, and wait until all stand still.

        One that is in the kernel when the signal comes goes on until it leaves it, on a busy machine for long: it may
        take a lock until then.
        """
        self._signal(signal.SIGSTOP)
        while not self._stands_still():
            continue

    def _stands_still(self) -> bool:
        try:
            threads = list(Path(f"/proc/{self.pid}/task").iterdir())
            # The state follows the name, which is in brackets and may hold anything.
            states = {(thread / "stat").read_text().rpartition(")")[2].split()[0] for thread in threads}
        except (FileNotFoundError, ProcessLookupError):
            return not psutil.pid_exists(self.pid)  # a thread that ends meanwhile is looked at no more
        return states <= {"T", "Z", "X"}

    def thaw(self) -> None:
        """Let them go on."""
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill it, with no chance to clean up."""
        self._process.kill()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):  # it has ended
            os.kill(self.pid, number)

    def __enter__(self) -> DriverProcess:
        return self

    def __exit__(self, *reason: object) -> None:
        self._process.kill()
        self._process.join(STUCK_S)


def run_driver(order: Order) -> int:
    """Run a driver to its end; return its exit code, negative for a signal."""
    with DriverProcess(order) as driver:
        return driver.wait()
