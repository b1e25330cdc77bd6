"""Clusters that live as long as the tests that need them, and a scene on each.

Their Spark is that of this Python, or of the Python that CLUSTERS_PYTHON names: then drivers and executors run with
that one, and neither this project nor Airflow is there.
"""

from __future__ import annotations

import json
import os
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import boto3.session
import pytest

from airflow_bookmarks.store.bookmark_store import BookmarkStore, open_store
from tests.airflow.conftest import airflow_database, connect, player  # noqa: F401  # fixtures for these tests too
from tests.clusters.driver_python import make_driver_python
from tests.clusters.scene import Scene
from tests.quick_spark import JAVA_OPTIONS
from tools.livy_server import LivyServer, livy_server
from tools.spark_cluster import SparkCluster, spark_cluster, spark_home
from tools.yarn_cluster import YarnCluster, yarn_cluster

_PYTHON = os.environ.get("CLUSTERS_PYTHON", sys.executable)
has_own_spark = sys.executable != _PYTHON
WORKER_KEY, CLUSTER_KEY = "AKIAOFTHEWORKER", "AKIAOFTHECLUSTER"
CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    "spark.executor.extraJavaOptions": JAVA_OPTIONS,
    "spark.sql.shuffle.partitions": "1",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
}


@pytest.fixture(scope="session")
def table_uri(dynamodb_local_url: str, aws_session: boto3.session.Session) -> str:
    """Make one table in DynamoDB Local; each test has a namespace of its own in it."""
    uri = f"dynamodb://clusters-{uuid.uuid4().hex}?region=eu-west-1&endpoint={dynamodb_local_url}"
    store = open_store(uri, session=aws_session)
    store.init()
    store.table.close()
    return uri


@pytest.fixture(scope="session")
def cluster_secret() -> str:
    """Make up the secret that the nodes have."""
    return f"cluster{uuid.uuid4().hex}"


@pytest.fixture(scope="session")
def driver_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the Python of the nodes."""
    if has_own_spark:
        return Path(_PYTHON)
    return make_driver_python(tmp_path_factory.mktemp("node") / "python")


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """Run a Spark standalone cluster."""
    with spark_cluster(tmp_path_factory.mktemp("standalone"), spark_home(_PYTHON)) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def yarn(tmp_path_factory: pytest.TempPathFactory, cluster_secret: str) -> Iterator[YarnCluster]:
    """Run a YARN cluster whose nodes have credentials of their own: the path of a file, as an administrator sets it."""
    folder = tmp_path_factory.mktemp("yarn")
    with yarn_cluster(folder / "cluster", _identity(folder, cluster_secret)) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def livy(tmp_path_factory: pytest.TempPathFactory, cluster_secret: str, driver_python: Path) -> Iterator[LivyServer]:
    """Run a Livy server whose batches have the credentials and the Python of a node."""
    folder = tmp_path_factory.mktemp("livy")
    environment = {**_identity(folder, cluster_secret), "PYSPARK_PYTHON": str(driver_python)}
    with livy_server(folder / "server", environment) as server:
        yield server


def _identity(folder: Path, secret: str) -> dict[str, str]:
    """Write credentials of a cluster into a file, as an administrator does; return the environment that leads there."""
    path = folder / "credentials"
    path.write_text("\n".join(("[default]", f"aws_access_key_id = {CLUSTER_KEY}", f"aws_secret_access_key = {secret}")))
    path.chmod(0o600)
    return {"AWS_SHARED_CREDENTIALS_FILE": str(path)}


# ---- the worker: its connections and its environment


@pytest.fixture
def worker_secret() -> str:
    """Make up the secret of the AWS connection: no other process of this machine has it."""
    return f"worker{uuid.uuid4().hex}"


@pytest.fixture
def store(
    table_uri: str, worker_secret: str, monkeypatch: pytest.MonkeyPatch, aws_session: boto3.session.Session
) -> Iterator[BookmarkStore]:
    """Open an empty namespace, and let the worker's connections lead to it by credentials of an AWS connection."""
    uri = f"{table_uri}&namespace=n{uuid.uuid4().hex}"
    aws = {"conn_type": "aws", "login": WORKER_KEY, "password": worker_secret}
    monkeypatch.setenv("AIRFLOW_CONN_AWS_BOOKMARKS", json.dumps(aws))
    connect(monkeypatch, store=uri, aws_conn_id="aws_bookmarks")
    store = open_store(uri, session=aws_session)
    store.init()
    yield store
    store.table.close()


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let spark-submit be found, and find the loopback alone."""
    monkeypatch.setenv("PATH", f"{Path(_PYTHON).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}")
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.delenv("PYSPARK_DRIVER_PYTHON", raising=False)


@pytest.fixture
def on_local(store: BookmarkStore, programs: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """Set an empty scene whose operator submits to no cluster: driver and executors are one process."""
    monkeypatch.setenv("PYSPARK_PYTHON", _PYTHON)
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "local[2]"}))
    return Scene(tmp_path, store, {"conf": {**CONF, **event_log(tmp_path)}, "driver_memory": "512m"})


@pytest.fixture
def on_standalone(
    standalone: SparkCluster, store: BookmarkStore, programs: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Scene:
    """Set an empty scene whose operator submits to the standalone cluster, in client mode."""
    monkeypatch.setenv("PYSPARK_PYTHON", _PYTHON)
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": standalone.master}))
    conf = {**CONF, **event_log(tmp_path), "spark.cores.max": "2"}
    return Scene(tmp_path, store, {"conf": conf, "driver_memory": "512m", "executor_memory": "512m"})


@pytest.fixture
def on_yarn(
    yarn: YarnCluster,
    store: BookmarkStore,
    programs: None,
    driver_python: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Scene:
    """Set an empty scene whose operator submits to YARN, in cluster mode."""
    monkeypatch.setenv("HADOOP_CONF_DIR", str(yarn.conf))
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)  # spark-submit would send them along
    monkeypatch.delenv("PYSPARK_DRIVER_PYTHON", raising=False)
    extra = {"deploy-mode": "cluster", "yarn_resourcemanager_webapp_address": yarn.web}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "yarn", "extra": extra}))
    conf = {
        **CONF,
        **event_log(tmp_path),
        "spark.pyspark.python": str(driver_python),
        "spark.yarn.appMasterEnv.PYSPARK_PYTHON": str(driver_python),
        "spark.yarn.jars": f"local:{spark_home(_PYTHON)}/jars/*",  # the nodes have Spark: nothing is copied
        "spark.yarn.maxAppAttempts": "1",
        "spark.yarn.report.interval": "200ms",
        "spark.yarn.stagingDir": yarn.staging.as_uri(),
    }
    submit = {"conf": conf, "driver_memory": "512m", "executor_memory": "512m", "num_executors": 1}
    return Scene(tmp_path, store, submit)


def event_log(folder: Path) -> dict[str, str]:
    """Return the conf that lets Spark note its applications in `folder`, where `Scene.events` looks."""
    events = folder / "events"
    events.mkdir()
    return {"spark.eventLog.dir": events.as_uri()}
