"""A real Airflow: API server, scheduler, DAG processor and triggerer, each a process of its own that can die."""

from __future__ import annotations

import json
import secrets
import sqlite3
import subprocess
import sys
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import psutil

from demo import session
from demo.airflow_home import environment, migrate
from demo.folders import Folders
from tools.patience import STUCK_S
from tools.servers import free_port

PARALLELISM = 4  # tasks that run at once
_POLL_S = 0.2
_ADDRESS_SPACE_BYTES = 8 * 2**30
_STOP_LIMIT_S = 10.0
_TAIL_LINES = 40
# In a process with its settings: to import Airflow makes a home for it.
_SAY_WHETHER_STATE = """
from airflow.sdk.execution_time import context
print(hasattr(getattr(context, "AssetStateStoreAccessors", None), "aget"))
"""


class StuckError(Exception):
    """Raised when something that was waited for does not come, or a process of Airflow ended."""


@dataclass
class Airflow:
    """The processes of one Airflow by their names, and what its metadata database says."""

    folders: Folders
    settings: Mapping[str, str]
    url: str
    limit_s: float = STUCK_S
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    # ---- processes

    def start(self, name: str, *arguments: str) -> None:
        """Start `airflow <name>`, as the leader of a session."""
        with self._log(name).open("ab") as log:
            command = [sys.executable, "-m", "airflow", name, *arguments]
            process = session.start(command, self.settings, stdout=log, stderr=subprocess.STDOUT)
        # All that it starts has the limit too. It is far above what they take, and far below what takes a machine down.
        limit = (_ADDRESS_SPACE_BYTES, _ADDRESS_SPACE_BYTES)
        psutil.Process(process.pid).rlimit(psutil.RLIMIT_AS, limit)
        self.processes[name] = process

    def kill(self, name: str) -> None:
        """Kill a part by SIGKILL, with all that it has started: as a machine dies."""
        session.end(self.processes.pop(name))

    def stop(self) -> None:
        """End all parts."""
        for process in self.processes.values():
            if process.poll() is None:
                process.terminate()
        for process in self.processes.values():
            session.end(process, grace_s=_STOP_LIMIT_S)

    def wait(self, what: str, is_there: Callable[[], bool]) -> None:
        """Wait until something is there, as long as all parts live.

        Raises:
            StuckError: a part ended, or it took too long.
        """
        deadline = time.monotonic() + self.limit_s
        while not is_there():
            for name, process in self.processes.items():
                if process.poll() is not None:
                    code = process.returncode
                    raise StuckError(f"airflow {name} ended with exit code {code}; its log ends:\n{self._tail(name)}")
            if time.monotonic() > deadline:
                raise StuckError(f"waited {self.limit_s:.0f} s in vain until {what}; {self.states()}")
            time.sleep(_POLL_S)

    def _log(self, name: str) -> Path:
        return self.folders.logs / f"{name}.log"

    def _tail(self, name: str) -> str:
        return "\n".join(self._log(name).read_text(errors="replace").splitlines()[-_TAIL_LINES:])

    # ---- what it can do

    def lets_triggers_keep_state(self) -> bool:
        """Whether a trigger can read and write its asset's state without holding the triggerer: from 3.3.2 on."""
        said = subprocess.run(
            [sys.executable, "-c", _SAY_WHETHER_STATE], env=self.settings, check=True, stdout=subprocess.PIPE, text=True
        ).stdout
        return said.splitlines()[-1] == "True"

    # ---- what the metadata database says

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return what a query finds; nothing is ever written."""
        uri = f"file:{self.folders.airflow / 'airflow.db'}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=STUCK_S)) as database:
            return database.execute(sql, values).fetchall()

    def count(self, sql: str, *values: Any) -> int:
        """Return the one number that a query finds."""
        ((number,),) = self.rows(sql, *values)
        return int(number)

    def states(self) -> dict[str, dict[str, int]]:
        """Return how many tasks are in which state, by DAG."""
        found: dict[str, dict[str, int]] = {}
        for dag_id, state, number in self.rows("SELECT dag_id, state, count(*) FROM task_instance GROUP BY 1, 2"):
            found.setdefault(dag_id, {})[str(state)] = number
        return found

    def tasks_in(self, dag_id: str, *states: str) -> int:
        """Return how many tasks of a DAG are in one of these states."""
        of_dag = self.states().get(dag_id, {})
        return sum(of_dag.get(state, 0) for state in states)

    def triggerer(self) -> int:
        """Return the number of the newest triggerer; 0 where there was none yet."""
        return self.count("SELECT coalesce(max(id), 0) FROM job WHERE job_type = 'TriggererJob'")

    # ---- what was logged

    def has_logged(self, dag_id: str, dag_run: str, task_id: str, words: str) -> bool:
        """Whether a try of a task has logged these words."""
        folder = self.folders.logs / "airflow" / f"dag_id={dag_id}" / f"run_id={dag_run}" / f"task_id={task_id}"
        return any(words in log.read_text(errors="replace") for log in folder.glob("*.log"))

    def started_in(self, triggerer: int) -> set[str]:
        """Return the tasks whose triggers a triggerer has started; one that fires at once may leave no log."""
        logs = (self.folders.logs / "airflow").rglob(f"*.trigger.{triggerer}.log")
        return {part.removeprefix("task_id=") for log in logs for part in log.parts if part.startswith("task_id=")}

    def tasks_that_wait(self, dag_id: str) -> set[str]:
        """Return the tasks of a DAG that are deferred."""
        rows = self.rows("SELECT task_id FROM task_instance WHERE dag_id = ? AND state = 'deferred'", dag_id)
        return {task_id for (task_id,) in rows}


@contextmanager
def running_airflow(folders: Folders, store: str, dags: Path, more: Mapping[str, str]) -> Iterator[Airflow]:
    """Run an Airflow with the DAGs of a folder; `store` is the store of its connection `bookmarks_default`.

    `more` goes into the environment of its processes.
    """
    port = free_port()
    settings = {**environment(folders, store, ""), **_settings(folders, port, dags), **more}
    # In the database, where the triggerer's poller has to ask Airflow for it from a thread of its own.
    connection = settings.pop("AIRFLOW_CONN_BOOKMARKS_DEFAULT")
    (folders.airflow / "airflow.cfg").touch()  # an absent one is written at the first start, by four at once
    migrate(folders, settings)
    airflow = Airflow(folders, settings, f"http://127.0.0.1:{port}")
    with ExitStack() as stack:
        stack.callback(airflow.stop)
        airflow.start("api-server", "--host", "127.0.0.1", "--port", str(port))
        add = [sys.executable, "-m", "airflow", "connections", "add", "bookmarks_default", "--conn-json", connection]
        session.run(add, settings)
        airflow.wait("the API server answers", lambda: _answers(airflow.url))
        for name in ("scheduler", "dag-processor", "triggerer"):
            airflow.start(name)
        yield airflow


def _settings(folders: Folders, port: int, dags: Path) -> dict[str, str]:
    secret = secrets.token_hex(32)
    return {
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__SECRET_KEY": secret,
        "AIRFLOW__API_AUTH__JWT_SECRET": secret,
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        # Trigger arguments are encrypted with it: without it each process would make a key of its own.
        "AIRFLOW__CORE__FERNET_KEY": urlsafe_b64encode(secrets.token_bytes(32)).decode(),
        "AIRFLOW__CORE__PARALLELISM": str(PARALLELISM),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(folders.passwords),
        "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(free_port()),
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(free_port()),
        # How soon a triggerer that died is noticed: Airflow's default is half a minute.
        "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "1",
        "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "8",
    }


def _answers(url: str) -> bool:
    try:
        with urlopen(f"{url}/api/v2/monitor/health", timeout=60) as answer:  # noqa: S310 - a URL of our own
            health: dict[str, dict[str, str | None]] = json.load(answer)
    except (URLError, ConnectionError, TimeoutError):
        return False
    return health["metadatabase"]["status"] == "healthy"
