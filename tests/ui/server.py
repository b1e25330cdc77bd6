"""A real API server of Airflow with the page in it: a home of its own, known users, DAGs that own jobs, a store."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sqlite3
import subprocess
import sys
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from demo import session
from demo.airflow_home import environment, migrate
from demo.folders import Folders
from tools.patience import STUCK_S
from tools.servers import before_exec, free_port

# The password of each is the name with this behind it.
USERS = {"admin": "admin", "op": "op", "user": "user", "viewer": "viewer"}
PASSWORD = "{}-of-the-page"

_DAGS = Path(__file__).parent / "dags"
_STOP_LIMIT_S = 10.0
_POLL_S = 0.1
_TAIL_LINES = 40


@dataclass(frozen=True)
class Server:
    """A running API server: where it is, and the folders it lives in. `url` ends in a slash."""

    url: str
    folders: Folders

    def token(self, user: str) -> str:
        """Log a user in; return what goes into the header `Authorization`, behind `Bearer `."""
        body = json.dumps({"username": user, "password": password_of(user)}).encode()
        asked = Request(f"{self.url}auth/token", body, {"Content-Type": "application/json"})  # noqa: S310 - our own
        with urlopen(asked, timeout=STUCK_S) as answer:  # noqa: S310
            return str(json.load(answer)["access_token"])

    def audited(self) -> list[tuple[str, str | None, str | None]]:
        """Return what Airflow's audit log has of bookmarks: event, user, DAG; the oldest first."""
        uri = f"file:{self.folders.airflow / 'airflow.db'}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=STUCK_S)) as database:
            sql = "SELECT event, owner, dag_id FROM log WHERE event LIKE 'bookmark.%' ORDER BY id"
            return database.execute(sql).fetchall()


def password_of(user: str) -> str:
    """Return the password of a user."""
    return PASSWORD.format(user)


@contextmanager
def running_server(
    root: Path, store: str, *, base_path: str = "", port: int | None = None, look_below: str = ""
) -> Iterator[Server]:
    """Run an API server below `root`, which is emptied, until the block ends.

    Args:
        root: the folder for all that it writes.
        store: the store of its connection `bookmarks_default`.
        base_path: the path below which it serves, e.g. "/tools/airflow"; default: all of the host.
        port: of the loopback; default: a free one.
        look_below: the folder of whose files the page looks; default: it looks at none.

    Raises:
        RuntimeError: it ended, or did not answer in time; the message has the end of its log.
    """
    folders = Folders.make(root)
    port = port or free_port()
    url = f"http://127.0.0.1:{port}{base_path}/"
    folders.passwords.write_text(json.dumps({user: password_of(user) for user in USERS}))
    shutil.copytree(_DAGS, root / "dags", ignore=shutil.ignore_patterns("__pycache__"))
    settings = {**environment(folders, store, ""), **_settings(folders, url)}
    settings["AIRFLOW__BOOKMARKS__LOOK_BELOW"] = look_below
    (folders.airflow / "airflow.cfg").touch()
    migrate(folders, settings)
    session.run([sys.executable, "-m", "tests.ui.flows"], settings)
    log = folders.logs / "api-server.log"
    with log.open("wb") as output:
        command = [sys.executable, "-m", "airflow", "api-server", "--host", "127.0.0.1", "--port", str(port)]
        process = subprocess.Popen(
            [*command, "--workers", "1"],
            env=settings,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=before_exec(os.getpid(), None),  # tests that are killed leave no server behind
        )
        try:
            _wait(process, url, log)
            yield Server(url, folders)
        finally:
            session.end(process, grace_s=_STOP_LIMIT_S)


def _settings(folders: Folders, url: str) -> Mapping[str, str]:
    secret = secrets.token_hex(32)
    return {
        "AIRFLOW__API__BASE_URL": url.removesuffix("/"),
        "AIRFLOW__API__SECRET_KEY": secret,
        "AIRFLOW__API_AUTH__JWT_SECRET": secret,
        "AIRFLOW__CORE__DAGS_FOLDER": str(folders.root / "dags"),
        "AIRFLOW__CORE__FERNET_KEY": urlsafe_b64encode(secrets.token_bytes(32)).decode(),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(folders.passwords),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{user}:{role}" for user, role in USERS.items()),
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
    }


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + STUCK_S
    while time.monotonic() < deadline and process.poll() is None:
        if _answers(url):
            return
        time.sleep(_POLL_S)
    tail = "\n".join(log.read_text(errors="replace").splitlines()[-_TAIL_LINES:])
    raise RuntimeError(
        f"the API server did not answer at {url} within {STUCK_S:.0f} s (exit code {process.poll()}). Its log ends:\n"
        f"{tail}"
    )


def _answers(url: str) -> bool:
    try:
        with urlopen(f"{url}api/v2/version", timeout=60) as answer:  # noqa: S310 - a URL of our own
            return bool(answer.status == 200)
    except HTTPError as error:
        raise RuntimeError(f"{url}api/v2/version answers {error.code}: another server has the port") from error
    except (URLError, ConnectionError, TimeoutError):
        return False
