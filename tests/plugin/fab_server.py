"""A real API server of Airflow with the FAB auth manager, in a process of its own: FAB lives in globals of Flask."""

from __future__ import annotations

import os
import secrets
import shutil
import sqlite3
import ssl
import sys
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import httpx

from demo import session
from demo.airflow_home import environment
from demo.cache import cache_folder
from demo.folders import Folders
from tests.plugin.fab_people import PEOPLE, password_of
from tools.daemon import answer, daemon
from tools.patience import STUCK_S
from tools.servers import free_port

_MANAGER = "airflow.providers.fab.auth_manager.fab_auth_manager.FabAuthManager"


@dataclass(frozen=True)
class FabServer:
    """A running server, and who is logged in; None is nobody."""

    database: Path
    clients: Mapping[str | None, httpx.Client]

    def as_user(self, name: str | None) -> httpx.Client:
        """Return the client of a user, None: of nobody."""
        return self.clients[name]

    def audited(self) -> list[tuple[str, str | None, str | None]]:
        """Return what Airflow's audit log has of bookmarks: event, user, DAG; the oldest first."""
        with closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True, timeout=STUCK_S)) as database:
            sql = "SELECT event, owner, dag_id FROM log WHERE event LIKE 'bookmark.%' ORDER BY id"
            return database.execute(sql).fetchall()


@contextmanager
def fab_server(root: Path, store: str) -> Iterator[FabServer]:
    """Run a server below `root`, with the DAGs and people of `fab_people`, until the block ends.

    Args:
        root: the folder for all that it writes, which is emptied.
        store: the store of its connection `bookmarks_default`.
    """
    folders, port = Folders.make(root), free_port()
    url = f"http://127.0.0.1:{port}"
    settings = {**environment(folders, store, ""), **_settings(folders, url)}
    (folders.airflow / "airflow.cfg").touch()
    database = folders.airflow / "airflow.db"
    _migrate(database, settings)
    session.run([sys.executable, "-m", "tests.plugin.fab_people"], settings)
    command = [sys.executable, "-m", "airflow", "api-server", "--host", "127.0.0.1", "--port", str(port)]
    with daemon("api-server", [*command, "--workers", "1", "--apps", "core"], settings, folders.logs) as server:
        server.wait_until(lambda: answer(f"{url}/api/v2/version") is not None)
        with ExitStack() as stack:
            tls = ssl.create_default_context()  # not used here, and slow to make for each of them
            nobody = stack.enter_context(httpx.Client(base_url=url, timeout=STUCK_S, verify=tls))
            clients: dict[str | None, httpx.Client] = {None: nobody}
            for name in PEOPLE:
                headers = {"Authorization": f"Bearer {_token(nobody, name)}"}
                clients[name] = stack.enter_context(
                    httpx.Client(base_url=url, timeout=STUCK_S, verify=tls, headers=headers)
                )
            yield FabServer(database, clients)


def _settings(folders: Folders, url: str) -> Mapping[str, str]:
    secret = secrets.token_hex(32)
    return {
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__API__SECRET_KEY": secret,
        "AIRFLOW__API_AUTH__JWT_SECRET": secret,
        "AIRFLOW__CORE__AUTH_MANAGER": _MANAGER,
        "AIRFLOW__CORE__DAGS_FOLDER": str(folders.data),
        "AIRFLOW__CORE__FERNET_KEY": urlsafe_b64encode(secrets.token_bytes(32)).decode(),
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
    }


def _migrate(database: Path, settings: Mapping[str, str]) -> None:
    """Put an empty metadata database with FAB's tables in place: migrated once for each version, copied after that."""
    versions = f"{version('apache-airflow-core')}-fab-{version('apache-airflow-providers-fab')}"
    cached = cache_folder("airflow") / f"airflow-{versions}.db"
    if cached.exists():
        shutil.copyfile(cached, database)
        return
    session.run([sys.executable, "-m", "airflow", "db", "migrate"], settings)
    beside = cached.with_suffix(f".{os.getpid()}.part")
    shutil.copyfile(database, beside)
    os.replace(beside, cached)


def _token(client: httpx.Client, name: str) -> str:
    answered = client.post("/auth/token", json={"username": name, "password": password_of(name)})
    if answered.status_code != 201:
        raise RuntimeError(f"{name!r} could not log in: {answered.status_code} {answered.text}")
    return str(answered.json()["access_token"])
