"""Servers for tests and the demo, without Docker: DynamoDB Local and moto, on a free port of the loopback.

Each is a context manager that yields an endpoint URL and ends its own process, and no other. On Linux the server ends
with the thread that started it, so that none is left behind; start it from a thread that lives as long as it is needed.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from tools.jars import fetch
from tools.patience import STUCK_S

_POLL_S = 0.05
_STOP_LIMIT_S = 10.0
_PR_SET_PDEATHSIG = 1

# moto copies the whole table in each transaction: without a limit it once took the machine down.
_MOTO_ADDRESS_SPACE_BYTES = 4_000_000 * 1024


@contextmanager
def dynamodb_local() -> Iterator[str]:
    """Run an empty DynamoDB Local, in memory; it needs Java, and fetches its jars at the first use.

    Example:
        >>> with dynamodb_local() as url:  # doctest: +SKIP
        ...     boto3.client("dynamodb", endpoint_url=url, region_name="eu-west-1").list_tables()
    """
    jars = fetch("dynamodb-local")
    port = free_port()
    command = ["java", "-Xmx256m", f"-Djava.library.path={jars}", "-cp", f"{jars}/*"]
    command += ["com.amazonaws.services.dynamodbv2.local.main.ServerRunner"]
    command += ["-inMemory", "-sharedDb", "-disableTelemetry", "-port", str(port)]
    with _running("DynamoDB Local", command, port):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def moto_server(port: int | None = None) -> Iterator[str]:
    """Run an empty moto server, all its services in memory. `port` None takes a free one.

    Good for little data: its transactions copy the whole table, so its memory is limited to 4 GB.
    """
    port = free_port() if port is None else port
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with _running("moto", command, port, address_space_bytes=_MOTO_ADDRESS_SPACE_BYTES):
        yield f"http://127.0.0.1:{port}"


def free_port() -> int:
    """Return a TCP port of the loopback that nothing listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def _running(name: str, command: Sequence[str], port: int, address_space_bytes: int | None = None) -> Iterator[None]:
    with tempfile.TemporaryFile("w+", prefix="server-log-") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a Ctrl-C in the terminal is the parent's to handle
            preexec_fn=before_exec(os.getpid(), address_space_bytes),
        )
        try:
            if not _is_ready(process, port):
                log.seek(0)
                raise RuntimeError(
                    f"{name} did not answer on 127.0.0.1:{port} within {STUCK_S:.0f} s (exit code "
                    f"{process.poll()}). Command: {' '.join(command)}\n{log.read()[-4000:]}"
                )
            yield
        finally:
            _stop(process)


def before_exec(parent: int, address_space_bytes: int | None) -> Callable[[], None]:
    """Return what a child does before it becomes a server: it ends with its parent, and may be kept small."""
    # Loaded before the fork: what runs between fork and exec must not import or allocate much.
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None

    def prepare() -> None:
        if libc is not None:
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:  # the parent died before prctl took hold
                os._exit(1)
        if address_space_bytes is not None:
            resource.setrlimit(resource.RLIMIT_AS, (address_space_bytes, address_space_bytes))

    return prepare


def _is_ready(process: subprocess.Popen[bytes], port: int) -> bool:
    deadline = time.monotonic() + STUCK_S
    while time.monotonic() < deadline and process.poll() is None:
        if _answers(port):
            # Another process may have taken the port between the probe and the start: then ours has ended.
            return process.poll() is None
        time.sleep(_POLL_S)
    return False


def _answers(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/", timeout=60):
            return True
    except HTTPError:
        return True  # an unsigned request is refused, by a server that is up
    except (URLError, ConnectionError, TimeoutError):
        return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
