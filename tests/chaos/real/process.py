"""Driver processes: forked from a server that has imported all they need, so that one takes no half a second."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from multiprocessing.process import BaseProcess

from tests.chaos.real.driver import main
from tests.chaos.real.order import Order

_LIMIT_S = 90.0
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload([main.__module__, "tests.chaos.real.session"])


class DriverProcess:
    """A process that works on one order. As a context it is killed at the end."""

    def __init__(self, order: Order) -> None:
        self._said = order.said
        self._process: BaseProcess = _FORKS.Process(target=main, args=(order,), daemon=True)
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def wait(self) -> int:
        """Wait for the end; return the exit code, negative for a signal."""
        self._process.join(_LIMIT_S)
        if self._process.exitcode is None:
            raise TimeoutError(f"the driver {self.pid} did not end in {_LIMIT_S:.0f} s")
        return self._process.exitcode

    @property
    def said(self) -> str:
        """What it wrote to stdout and stderr."""
        return self._said.read_text() if self._said.exists() else ""

    def freeze(self) -> None:
        """Stop all its threads, as a machine does that hangs."""
        self._signal(signal.SIGSTOP)

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
        self._process.join(_LIMIT_S)


def run_driver(order: Order) -> int:
    """Run a driver to its end; return its exit code, negative for a signal."""
    with DriverProcess(order) as driver:
        return driver.wait()
