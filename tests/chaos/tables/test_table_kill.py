"""A driver of a Delta or Iceberg table, killed by SIGKILL at each point where table or bookmark is behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.chaos.real.order import JOB, CommitPath, Order
from tests.chaos.real.submission import spark_submit, started
from tests.chaos.tables.table_driver import SEEN
from tests.spark.iceberg import iceberg_conf
from tools.jars import fetch_for_spark
from tools.patience import STUCK_S

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.thorough,
    pytest.mark.xdist_group("chaos-tables"),
]

# What is left of the run: nothing is written yet, its rows have landed or are staged, it has committed, it is done.
STATES = {
    Failpoint.PLACED: RunState.PLANNED,
    Failpoint.STAGED: RunState.PLANNED,
    Failpoint.BEFORE_COMMIT: RunState.PLANNED,
    Failpoint.COMMITTED: RunState.COMMITTED,
    Failpoint.MOVED: RunState.COMMITTED,
    Failpoint.MARKED: RunState.PUBLISHED,
}


def delta_conf(root: str) -> dict[str, str]:
    jars = sorted(map(str, fetch_for_spark("delta").glob("*.jar")))
    return {
        "spark.driver.extraClassPath": ":".join(jars),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "1",
    }


CONF: dict[str, Callable[[str], dict[str, str]]] = {
    "delta": delta_conf,
    "iceberg": lambda root: iceberg_conf(Path(root) / "tables"),
}
CASES = [(kind, point) for kind in CONF for point in STATES if kind != "delta" or point is not Failpoint.MOVED]


def submit(order: Order, kind: str) -> int:
    """Run a driver by a spark-submit that has the format; return its exit code."""
    script = str(Path(__file__).with_name("table_driver.py"))
    with started(spark_submit(script, order.to_text(), kind, conf=CONF[kind](order.root)), order.said) as leader:
        return leader.wait(STUCK_S)


@pytest.mark.parametrize(("kind", "point"), CASES)
def test_driver_of_a_table_killed_at_a_point_loses_and_doubles_no_row(
    tmp_path: Path, kind: str, point: Failpoint
) -> None:
    path = tmp_path / "bookmarks.db"
    store = BookmarkStore(SqliteTable(path), "test")
    store.init()
    raw = tmp_path / "raw"
    raw.mkdir()
    (raw / "a.txt").write_text("a\nb\n")

    def order(attempt: int, fault: str = "") -> Order:
        uri = f"sqlite:///{path}?namespace=test"
        return Order(str(tmp_path), uri, CommitPath.BY_ITSELF, attempt, fault=fault)

    assert submit(order(1, point), kind) != 0
    (left,) = store.runs(JOB)
    assert left.state is STATES[point]
    (raw / "b.txt").write_text("c\n")
    assert submit(order(2), kind) == 0, order(2).said.read_text()
    assert json.loads((tmp_path / SEEN).read_text()) == ["a", "b", "c"]
    head = store.head(JOB)
    assert (head.publishing, head.lease, head.published) == (None, None, head.run_number)
    assert store.open_runs(JOB, head) == []
