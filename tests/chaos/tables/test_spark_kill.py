"""A driver with Spark, killed when it has committed, and a worker without Spark that finishes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from tests.chaos.real.order import JOB, OUTPUT, TASK
from tests.chaos.real.submission import spark_submit, started
from tests.chaos.tables.scene import TablesScene
from tools.jars import fetch
from tools.patience import STUCK_S

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.thorough,
    pytest.mark.xdist_group("chaos-tables"),
]

# What is left of a run where its driver is killed.
STATES = {
    Failpoint.STAGED: RunState.PLANNED,
    Failpoint.COMMITTED: RunState.COMMITTED,
    Failpoint.MOVED: RunState.COMMITTED,
}


@pytest.mark.parametrize("point", STATES)
def test_spark_driver_of_three_sinks_killed_at_a_point_is_finished_without_spark(
    scene: TablesScene, point: Failpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    login, order = scene.warehouse, scene.order(fault=point)
    uri = f"{login.dialect}://{login.user}:{login.password}@{login.host}:{login.port}/{login.database}"
    monkeypatch.setenv("AIRFLOW_CONN_DW", uri)
    jars = ":".join(str(jar) for jar in sorted(fetch(login.dialect).glob("*.jar")))
    script = str(Path(__file__).with_name("spark_driver.py"))
    command = spark_submit(script, order.to_text(), conf={"spark.driver.extraClassPath": jars})
    with started(command, order.said) as leader:
        assert leader.wait(STUCK_S) != 0
    (left,) = [run for run in scene.store.runs(JOB) if run.run_id == TASK]
    assert (OUTPUT in left.outputs, left.state) == (True, STATES[point])
    if point is not Failpoint.STAGED:
        assert scene.work() == 0
        assert scene.targets() == scene.expected()
    scene.finish()
    scene.check_whole()
