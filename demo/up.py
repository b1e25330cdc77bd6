"""Up and down: the example DAGs in a running Airflow, for looking at; it runs until `down` stops it."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import psutil

from demo import session
from demo.folders import Folders
from demo.landing import Flights, Landing
from demo.play import Console, open_bookmarks, prepare, use_aws_environment
from demo.store import running_store
from tools.patience import STUCK_S
from tools.servers import free_port

USER = "admin"

_PORT = 8080
_STOP_LIMIT_S = 30.0
_POLL_S = 0.5


def up(root: Path, store_kind: str) -> int:
    """Let a month land, start Airflow, whose schedule starts both DAGs, and say where to look; return the exit code."""
    folders = Folders(root)
    if _holder(folders) is not None:
        print(f"demo: it runs already: {_state(folders)['url']}; 'python -m demo down' stops it")
        return 1
    console = Console()
    folders = Folders.make(root)
    port = _free_port()
    url = f"http://127.0.0.1:{port}"
    _write_password(folders)
    Landing(folders.raw, Flights.of_2013()).land(31)
    console.say(f"Airflow: starting, its log is {_log(folders)}")
    with _log(folders).open("wb") as log:
        command = [sys.executable, "-m", "demo.up", str(root), store_kind, str(port)]
        holder = session.start(command, os.environ, stdout=log, stderr=subprocess.STDOUT)
    try:
        _wait_until_ready(url, holder)
    except (RuntimeError, SystemExit) as error:
        if holder.poll() is None:
            _stop(psutil.Process(holder.pid))
        print(f"demo: Airflow did not start: {error}; the end of its log:\n{_tail(_log(folders))}")
        return 1
    console.say("Airflow: ready; 31 days have landed, and both DAGs run: now, and every midnight")
    print(f"\n  {url}\n  user      {USER}\n  password  in {folders.passwords}\n\n'python -m demo down' stops it")
    return 0


def down(root: Path) -> int:
    """Stop what `up` started, and nothing else; return the exit code."""
    folders = Folders(root)
    holder = _holder(folders)
    if holder is None:
        print("demo: it does not run")
        folders.pid_file.unlink(missing_ok=True)
        return 0
    _stop(holder)
    folders.pid_file.unlink(missing_ok=True)
    print("demo: stopped")
    return 0


# ---- the process that holds the store and Airflow until it is told to stop


def hold(root: Path, store_kind: str, port: int) -> None:
    """Run the state store and Airflow until a signal comes."""
    folders = Folders(root)
    me = psutil.Process()
    document = {"pid": me.pid, "created": me.create_time(), "url": f"http://127.0.0.1:{port}"}
    folders.pid_file.write_text(json.dumps(document), encoding="utf-8")
    use_aws_environment()
    with running_store(store_kind, folders.bookmarks) as uri:
        open_bookmarks(uri)
        settings = {**prepare(folders, uri, print), **_web_settings(folders, port)}
        airflow = session.start([sys.executable, "-m", "airflow", "standalone"], settings, stdout=None, stderr=None)
        try:
            airflow.wait()
        finally:
            session.end(airflow, grace_s=_STOP_LIMIT_S / 2)


def _web_settings(folders: Folders, port: int) -> dict[str, str]:
    return {
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(folders.passwords),
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__PARALLELISM": "4",
    }


# ---- its files


def _state(folders: Folders) -> dict[str, Any]:
    state: dict[str, Any] = json.loads(folders.pid_file.read_text(encoding="utf-8"))
    return state


def _holder(folders: Folders) -> psutil.Process | None:
    """Return the process that `up` left running; None where there is none, or another one has its number by now."""
    try:
        state = _state(folders)
        process = psutil.Process(state["pid"])
        return process if process.create_time() == state["created"] else None
    except (FileNotFoundError, psutil.NoSuchProcess):
        return None


def _stop(holder: psutil.Process) -> None:
    holder.terminate()
    try:
        holder.wait(_STOP_LIMIT_S)
    except psutil.TimeoutExpired:
        holder.kill()
        holder.wait()


def _log(folders: Folders) -> Path:
    return folders.logs / "standalone.log"


def _tail(path: Path) -> str:
    return "\n".join(path.read_text(errors="replace").splitlines()[-40:])


def _write_password(folders: Folders) -> None:
    descriptor = os.open(folders.passwords, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump({USER: secrets.token_urlsafe(12)}, file)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", _PORT))
        except OSError:
            return free_port()
    return _PORT


# ---- its health


def _wait_until_ready(url: str, holder: subprocess.Popen[bytes]) -> None:
    """Return when Airflow answers, schedules, and has read the DAGs.

    Raises:
        RuntimeError: it ended, or takes too long.
    """
    deadline = time.monotonic() + STUCK_S
    while not _is_ready(url):
        if holder.poll() is not None:
            raise RuntimeError(f"it ended with exit code {holder.returncode}")
        if time.monotonic() > deadline:
            raise RuntimeError(f"it was not ready after {STUCK_S:.0f} s")
        time.sleep(_POLL_S)


def _is_ready(url: str) -> bool:
    try:
        with urlopen(f"{url}/api/v2/monitor/health", timeout=60) as answer:  # noqa: S310 - a URL of our own
            health: dict[str, dict[str, str | None]] = json.load(answer)
    except (URLError, ConnectionError, TimeoutError):
        return False
    return all(health[part]["status"] == "healthy" for part in ("metadatabase", "scheduler", "dag_processor"))


def _leave(number: int, frame: object) -> None:
    for other in (signal.SIGINT, signal.SIGTERM):
        signal.signal(other, signal.SIG_IGN)  # a second one must not cut short what ends the others
    raise SystemExit(128 + number)


if __name__ == "__main__":
    for stop_signal in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop_signal, _leave)
    hold(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
