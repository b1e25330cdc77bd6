"""Three DAGs, each behind the other: what releases one is what the one before has published and it has not consumed."""

import os
from datetime import UTC, datetime
from pathlib import Path

from airflow.sdk import DAG, Param

from airflow_bookmarks.operators.spark_submit import BookmarkSparkSubmitOperator
from airflow_bookmarks.sensors.bookmark import BookmarkSensor
from tests.chaos.chain.lineup import LineupName, lineup_below
from tests.chaos.chain.stage import LINEUP_VARIABLE, ROOT_VARIABLE, STAGES, TASK, job, upstream

SCRIPT = Path(__file__).parents[1] / "copy_job.py"
ROOT = Path(os.environ[ROOT_VARIABLE])
LINEUP = lineup_below(ROOT, LineupName(os.environ[LINEUP_VARIABLE]))

for stage in STAGES:
    before = upstream(stage)
    with DAG(
        stage,
        schedule=None,
        start_date=datetime(2026, 1, 1, tzinfo=UTC),
        default_args={"retries": 2},
        params={
            "on_rewind": Param("fail", enum=["fail", "rewind", "ignore"]),
            "upstream_run": Param("1", type="string"),
        },
    ):
        copy = BookmarkSparkSubmitOperator(
            task_id=TASK,
            application=str(SCRIPT),
            application_args=[
                str(ROOT),
                LINEUP.name,
                stage,
                "{{ run_id }}",
                "{{ ti.try_number }}",
                "{{ params.on_rewind }}",
            ],
            conf={"spark.log.level": "WARN", "spark.sql.codegen.wholeStage": "false", **LINEUP.conf},
            driver_memory="600m",
            ship_runtime=False,  # the driver runs here, where the package is; out of a zip it is compiled each time
            bookmark_upstream=[job(before)] if before and LINEUP.has_edges else (),
        )
        if before:
            # Without an edge it is not known what was consumed: the DAG run says for which run it waits.
            what = {"consumer": copy} if LINEUP.has_edges else {"run_number": "{{ params.upstream_run }}"}
            wait = BookmarkSensor(
                task_id="wait", job=job(before), deferrable=True, poll_interval=1, timeout=1800, **what
            )
            wait >> copy
