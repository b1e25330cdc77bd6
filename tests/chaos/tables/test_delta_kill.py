"""A driver of a Delta table, killed by SIGKILL at each point at which the table or the bookmark is behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.chaos.real.order import JOB, CommitPath, Order
from tests.chaos.real.submission import spark_submit, started
from tests.chaos.tables.delta_driver import SEEN
from tools.jars import fetch_for_spark
from tools.patience import STUCK_S

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.thorough,
    pytest.mark.xdist_group("chaos-delta"),
]

# What is left of the run: nothing has landed yet, its rows have landed, it has committed, it is done.
STATES = {
    Failpoint.PLACED: RunState.PLANNED,
    Failpoint.STAGED: RunState.PLANNED,
    Failpoint.BEFORE_COMMIT: RunState.PLANNED,
    Failpoint.COMMITTED: RunState.COMMITTED,
    Failpoint.MARKED: RunState.PUBLISHED,
}


def submit(order: Order) -> int:
    """Run a driver by a spark-submit that has Delta Lake; return its exit code."""
    jars = sorted(map(str, fetch_for_spark("delta").glob("*.jar")))
    conf = {
        "spark.driver.extraClassPath": ":".join(jars),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "1",
    }
    script = str(Path(__file__).with_name("delta_driver.py"))
    with started(spark_submit(script, order.to_text(), conf=conf), order.said) as leader:
        return leader.wait(STUCK_S)


@pytest.mark.parametrize("point", STATES)
def test_driver_of_a_delta_table_killed_at_a_point_loses_and_doubles_no_row(tmp_path: Path, point: Failpoint) -> None:
    path = tmp_path / "bookmarks.db"
    store = BookmarkStore(SqliteTable(path), "test")
    store.init()
    raw = tmp_path / "raw"
    raw.mkdir()
    (raw / "a.txt").write_text("a\nb\n")

    def order(attempt: int, fault: str = "") -> Order:
        uri = f"sqlite:///{path}?namespace=test"
        return Order(str(tmp_path), uri, CommitPath.BY_ITSELF, attempt, fault=fault)

    assert submit(order(1, point)) != 0
    (left,) = store.runs(JOB)
    assert left.state is STATES[point]
    (raw / "b.txt").write_text("c\n")
    assert submit(order(2)) == 0, order(2).said.read_text()
    assert json.loads((tmp_path / SEEN).read_text()) == ["a", "b", "c"]
    head = store.head(JOB)
    assert (head.publishing, head.lease, head.published) == (None, None, head.run_number)
    assert store.open_runs(JOB, head) == []
