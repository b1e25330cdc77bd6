"""An Airflow for these tests alone: its home in a temporary folder, its database migrated once for each version."""

from __future__ import annotations

import functools
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_bookmarks.store.bookmark_store import BookmarkStore, open_store
from demo.cache import cache_folder
from tests.lifecycle.shop import Shop

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun
    from airflow.sdk import DAG

# When this module is imported, and not in a fixture: Airflow reads its settings when a test module imports it.
_HOME = tempfile.TemporaryDirectory(prefix="airflow-bookmarks-tests-")
_DAGS = Path(_HOME.name) / "dags"
_DAGS.mkdir()
os.environ.update(
    {
        "AIRFLOW_HOME": _HOME.name,
        "AIRFLOW__CORE__DAGS_FOLDER": str(_DAGS),
        "AIRFLOW__CORE__DEFAULT_TASK_RETRY_DELAY": "0",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
    }
)
# spark-submit finds Spark and Python through PATH.
_PROGRAMS = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"


@pytest.fixture(scope="session")
def airflow_database() -> None:
    """Put an empty metadata database in place."""
    put_database_in_place()
    _share_api_server()


@functools.cache
def put_database_in_place() -> Path:
    """Copy a database that is migrated once for each version of Airflow, once for each process.

    A session fixture that several conftests import runs once for each of them; the second copy, over a
    database in WAL mode whose connections are open, made it "malformed".
    """
    database = Path(_HOME.name) / "airflow.db"
    cached = cache_folder("airflow") / f"airflow-{version('apache-airflow-core')}.db"
    if not cached.exists():
        subprocess.run([sys.executable, "-m", "airflow", "db", "migrate"], check=True, capture_output=True)
        beside = cached.with_suffix(f".{os.getpid()}.part")
        _copy_database(database, beside)
        os.replace(beside, cached)
    _copy_database(cached, database)
    return database


def _copy_database(path: Path, to: Path) -> None:
    """Copy through SQLite, which takes the write-ahead log along and locks out whoever has `to` open."""
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(to)) as target:
        source.backup(target)


def _share_api_server() -> None:
    """Let every `dag.test()` use one API server, as Airflow does from 3.3 on: to build it takes seconds each time."""
    from airflow.sdk.execution_time import supervisor

    if not hasattr(supervisor.in_process_api_server, "cache_info"):
        supervisor.in_process_api_server = functools.cache(supervisor.in_process_api_server)


@dataclass(frozen=True)
class World:
    """One store, one shop with files, and the connections that lead there."""

    folder: Path
    store: BookmarkStore
    shop: Shop
    store_uri: str


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Make an empty SQLite store, and the connections `bookmarks_default` and `spark_default`."""
    uri = f"sqlite:///{tmp_path}/bookmarks.db?namespace=test"
    store = open_store(uri)
    store.init()
    shop = Shop(tmp_path, store)
    shop.raw.mkdir()
    connect(monkeypatch, store=uri)
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "local[1]"}))
    monkeypatch.setenv("PATH", _PROGRAMS)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    return World(tmp_path, store, shop, uri)


def connect(patch: pytest.MonkeyPatch, conn_id: str = "bookmarks_default", **extra: Any) -> None:
    """Make a connection of the type `bookmarks`."""
    value = json.dumps({"conn_type": "bookmarks", "extra": extra})
    patch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", value)


@dataclass(frozen=True)
class Played:
    """What became of a DAG run."""

    run: DagRun

    @property
    def state(self) -> str:
        return str(self.run.state)

    def tries(self, task_id: str) -> int:
        return int(self._task(task_id).try_number)

    def xcom(self, task_id: str, key: str = "return_value") -> Any:
        return self._task(task_id).xcom_pull(task_ids=task_id, key=key)

    def _task(self, task_id: str) -> Any:
        return next(task for task in self.run.get_task_instances() if task.task_id == task_id)


class Player:
    """Plays DAGs in this process, retries included."""

    def play(self, dag: DAG) -> Played:
        """Play one run of a DAG that stands in no file."""
        self.sync(dag)
        return Played(dag.test())

    def sync(self, dag: DAG) -> None:
        """Make a DAG that stands in no file known to Airflow."""
        from airflow.dag_processing.bundles.manager import DagBundlesManager

        from tests.airflow.compat import DagBag, sync_bag_to_db

        DagBundlesManager().sync_bundles_to_db()  # type: ignore[no-untyped-call]
        bag = DagBag(dag_folder=os.devnull, collect_dags=False)
        bag.bag_dag(dag)
        sync_bag_to_db(bag, "dags-folder", None)


@pytest.fixture
def player(airflow_database: None) -> Iterator[Player]:
    """Return what plays DAGs. A task played here would leave its handler of SIGTERM behind, which ends no process."""
    before = signal.getsignal(signal.SIGTERM)
    yield Player()
    signal.signal(signal.SIGTERM, before)
