"""What the driver of one try is told to do at a point of the protocol, and the gate at which it waits for its fate."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

import psutil

from tools.patience import STUCK_S

_FILE = "order.json"


class Deed(StrEnum):
    """What a driver does."""

    DIE = "die"  # by SIGKILL
    FAIL = "fail"  # with an exception in its last line
    WAIT = "wait"  # until it is told to go on


@dataclass(frozen=True, slots=True)
class Order:
    """It is for one try of a DAG run alone; all other drivers go on undisturbed."""

    stage: str
    dag_run: str
    attempt: int
    deed: Deed
    point: str
    gate: int

    def give(self, root: Path) -> None:
        """Leave it where drivers look."""
        whole = root / f".{_FILE}"
        whole.write_text(json.dumps(asdict(self)))
        whole.replace(root / _FILE)

    @classmethod
    def given(cls, root: Path, stage: str, dag_run: str, attempt: int) -> Order | None:
        """Return what this try was told, if anything."""
        path = root / _FILE
        if not path.exists():
            return None
        said = json.loads(path.read_text())
        order = cls(**{**said, "deed": Deed(said["deed"])})
        return order if (order.stage, order.dag_run, order.attempt) == (stage, dag_run, attempt) else None

    @staticmethod
    def withdraw(root: Path) -> None:
        """Let all drivers go on undisturbed."""
        (root / _FILE).unlink(missing_ok=True)

    def wait(self) -> None:
        """In the driver: say that it is there, and wait to be told to go on, or for whoever holds the gate to end."""
        with socket.create_connection(("127.0.0.1", self.gate)) as line:
            line.sendall(f"{os.getpid()}\n".encode())
            line.recv(1)


class Held:
    """A driver that stands at the gate, with the JVM that started it and the task process that started that."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        line.settimeout(STUCK_S)
        with line.makefile() as words:
            self.driver = psutil.Process(int(words.readline()))
        self.jvm, self.task = self.driver.parents()[:2]

    def go_on(self) -> None:
        """Let the driver go on, if it still lives."""
        self._line.close()

    @property
    def task_has_ended(self) -> bool:
        """Whether the task process is gone."""
        return not _lives(self.task)

    @property
    def has_ended(self) -> bool:
        """Whether driver and JVM are gone."""
        return not any(_lives(process) for process in (self.driver, self.jvm))


class Gate:
    """Where drivers report."""

    def __init__(self, server: socket.socket) -> None:
        self._server = server
        self.port: int = server.getsockname()[1]

    def arrived(self) -> Held | None:
        """Return a driver that has come; None where none has yet."""
        try:
            line, _ = self._server.accept()
        except BlockingIOError:
            return None
        return Held(line)


@contextmanager
def open_gate() -> Iterator[Gate]:
    """Listen for drivers on a free port of the loopback."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield Gate(server)


def _lives(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
