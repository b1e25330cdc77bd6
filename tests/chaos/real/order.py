"""What a driver process of these tests is told to do, and where it stops until it is told to go on."""

from __future__ import annotations

import json
import os
import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from airflow_bookmarks.core.job import RunIdentity
from tools.patience import STUCK_S

JOB = "copy"
CTX = "raw"
OUTPUT = "out"
TASK = "task"
STARTED = "started"  # where a driver can be held before it asks the store for anything
WAITING = "waiting"  # where a driver is that waits for the job


class CommitPath(StrEnum):
    """The ways in which what a run writes becomes visible."""

    APPEND = "staged append"
    OVERWRITE = "staged overwrite"
    BY_ITSELF = "by itself"


@dataclass(frozen=True, slots=True)
class Order:
    """One attempt of the copy job: `<root>/raw` to `<root>/copy`, or to the table in `<root>/rows.db`.

    `fault` is a point at which the driver kills itself. The first time at each point in `holds` it reports to the port
    `gate` of the loopback, and goes on when it gets a byte. `staging` is a folder to stage in. Times are in seconds;
    `read_timeout_s` is how long a request to DynamoDB may take before it is tried again.
    """

    root: str
    store: str
    path: CommitPath
    attempt: int = 1
    run_id: str = TASK
    fault: str = ""
    holds: tuple[str, ...] = ()
    gate: int = 0
    lease_s: float = 120.0
    on_conflict: str = "fail"
    staging: str | None = None
    read_timeout_s: float | None = None

    @property
    def identity(self) -> RunIdentity:
        return RunIdentity(self.run_id, self.attempt)

    @property
    def said(self) -> Path:
        """The file that takes what the driver says."""
        return Path(self.root) / f"said-{self.run_id}-{self.attempt}.log"

    def to_text(self) -> str:
        """Return it as one argument of a command."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Order:
        """Return the order that `to_text` wrote."""
        given = json.loads(text)
        return cls(**{**given, "path": CommitPath(given["path"]), "holds": tuple(given["holds"])})

    def pass_gate(self, place: str) -> None:
        """In the driver: where `place` is among the holds, report it, and wait to be told to go on."""
        if place not in self.holds:
            return
        with socket.create_connection(("127.0.0.1", self.gate)) as line:
            line.sendall(f"{place} {os.getpid()}\n".encode())
            if not line.recv(1):
                raise ConnectionError(f"nobody holds the gate any more at which this driver waits: {place!r}")


class Held:
    """A driver that stands at a gate: at which `place`, and its `pid`."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        with line.makefile() as words:
            self.place, _, pid = words.readline().strip().rpartition(" ")
        self.pid = int(pid)

    def go_on(self) -> None:
        """Let the driver go on."""
        self._line.sendall(b".")
        self._line.close()


class Gate:
    """Where drivers report: `port` goes into their orders."""

    def __init__(self, server: socket.socket) -> None:
        self._server = server
        self.port: int = server.getsockname()[1]

    def next(self, *pids: int) -> Held:
        """Wait until a driver stands at the gate.

        Raises:
            ConnectionError: one of the processes `pids` has ended, without which none comes.
        """
        with ExitStack() as opened:
            ends = {opened.enter_context(_end_of(pid)): pid for pid in pids}
            gate = self._server.fileno()
            ready, _, _ = select.select([gate, *ends], [], [], STUCK_S)
            if gate not in ready:
                ended = [ends[end] for end in ready]
                raise ConnectionError(f"no driver came to the gate; of {pids} these have ended: {ended}")
            return Held(self._server.accept()[0])


@contextmanager
def _end_of(pid: int) -> Iterator[int]:
    """Open what can be read from as soon as a process has ended."""
    end = os.pidfd_open(pid)
    try:
        yield end
    finally:
        os.close(end)


@contextmanager
def open_gate() -> Iterator[Gate]:
    """Listen for drivers on a free port of the loopback."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield Gate(server)
