"""A server of a cluster: started in the background, its log kept, awaited by its state, ended with all it started."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import psutil

from tools.patience import STUCK_S
from tools.servers import before_exec

_STOP_LIMIT_S = 5.0  # nothing that it keeps is needed any more
_POLL_S = 0.1
_SAID_CHARS = 4000


@dataclass(frozen=True, slots=True)
class Daemon:
    """A running server: its name for people, its process, and the file that takes what it says."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def wait_until(self, is_ready: Callable[[], bool]) -> None:
        """Look at `is_ready` until it holds.

        Raises:
            RuntimeError: the server has ended, or it took too long; with the end of its log.
        """
        deadline = time.monotonic() + STUCK_S
        while not is_ready():
            code = self.process.poll()
            if code is not None or time.monotonic() > deadline:
                what = f"took longer than {STUCK_S:.0f} s" if code is None else f"ended with exit code {code}"
                said = self.log.read_text(errors="replace")[-_SAID_CHARS:]
                raise RuntimeError(f"{self.name} was to come up, and {what}. It is ended. It said:\n{said}")
            time.sleep(_POLL_S)


@contextmanager
def daemon(name: str, command: Sequence[str], environment: Mapping[str, str], folder: Path) -> Iterator[Daemon]:
    """Run a server in a session of its own; it and all that it started end with the context.

    On Linux it also ends with the thread that started it, so that a killed test leaves no cluster behind.
    """
    log = folder / f"{name.replace(' ', '-')}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            list(command),
            env=dict(environment),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=before_exec(os.getpid(), None),
        )
    try:
        yield Daemon(name, process, log)
    finally:
        _end(process)


def answer(url: str) -> dict[str, Any] | None:
    """Return the JSON object at a URL; None while nothing answers there."""
    try:
        with urlopen(url, timeout=60) as reply:  # noqa: S310  # of the loopback
            found: dict[str, Any] = json.load(reply)
            return found
    except (URLError, ConnectionError, TimeoutError, json.JSONDecodeError):
        return None


def java_home() -> Path:
    """Return the folder of the Java that is used: that of JAVA_HOME, else of the one on PATH.

    Raises:
        RuntimeError: there is none.
    """
    named = os.environ.get("JAVA_HOME")
    if named:
        return Path(named)
    java = shutil.which("java")
    if java is None:
        raise RuntimeError("a cluster needs Java, and there is none on PATH; nothing was started")
    # The one on PATH may be a link, or a stub that looks for the real one.
    told = subprocess.run([java, "-XshowSettings:properties", "-version"], capture_output=True, text=True, check=True)
    lines = (line.partition("=") for line in told.stderr.splitlines())
    return next(Path(value.strip()) for key, _, value in lines if key.strip() == "java.home")


def _end(process: subprocess.Popen[bytes]) -> None:
    # Listed before the server is asked: afterwards nobody knows any more whose children they were.
    family = _family(process.pid)
    process.terminate()
    _, left = psutil.wait_procs(family, timeout=_STOP_LIMIT_S)
    for each in left:
        if each.is_running():  # and is the same process, not another one under its number
            each.kill()
    psutil.wait_procs(left, timeout=_STOP_LIMIT_S)
    process.wait()


def _family(pid: int) -> list[psutil.Process]:
    try:
        leader = psutil.Process(pid)
        return [leader, *leader.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []
