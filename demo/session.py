"""A process in a session of its own, which ends together with all that it started."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import IO

import psutil

_POLL_S = 0.1
_SAID_CHARS = 4000


def start(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    stdin: int | IO[bytes] | None = subprocess.DEVNULL,
    stdout: int | IO[bytes] | None = subprocess.DEVNULL,
    stderr: int | IO[bytes] | None = subprocess.DEVNULL,
) -> subprocess.Popen[bytes]:
    """Start a process as the leader of a new session: a Ctrl-C in the terminal is its parent's to handle."""
    return subprocess.Popen(
        list(command), env=dict(environment), stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True
    )


def run(command: Sequence[str], environment: Mapping[str, str]) -> None:
    """Run a program to its end; whatever it started ends with it, also where the caller is interrupted.

    Raises:
        RuntimeError: it failed; the message holds the end of what it said.
    """
    with tempfile.TemporaryFile() as output:
        leader = start(command, environment, stdout=output, stderr=subprocess.STDOUT)
        try:
            code = leader.wait()
        finally:
            end(leader)
        if code != 0:
            output.seek(0)
            said = output.read().decode(errors="replace")[-_SAID_CHARS:]
            raise RuntimeError(f"'{' '.join(command)}' ended with exit code {code}:\n{said}")


def end(leader: subprocess.Popen[bytes], *, grace_s: float = 0.0) -> None:
    """End a session that `start` began: ask its leader, and after `grace_s` kill whoever is left of it."""
    if grace_s and leader.poll() is None:
        leader.terminate()
    deadline = time.monotonic() + grace_s
    while time.monotonic() < deadline and (leader.poll() is None or members(leader.pid)):
        time.sleep(_POLL_S)
    while left := members(leader.pid):
        for pid in left:
            _kill(pid)
        leader.poll()  # a leader that was killed stays in the table until its parent has asked
        time.sleep(_POLL_S)
    leader.wait()


def members(session: int) -> list[int]:
    """Return the processes of a session that still run."""
    return [pid for pid in psutil.pids() if _session_of(pid) == session and not _is_zombie(pid)]


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except (ProcessLookupError, PermissionError):
        return None  # it ended meanwhile, or is none of ours


def _is_zombie(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return  # it was faster
