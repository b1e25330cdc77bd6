"""Clean the flights, and read them all again when the script writes other columns than it did the last time.

Whoever adds a column to `jobs/clean_flights.py` adds it to `COLUMNS` too: `reset` compares them with what the last run
with data has written, and `clean` then writes every day anew. Folders and connections are those of `flights_clean`; the
result lies in `clean/by_schema`.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, Context

from airflow_bookmarks.hooks.bookmark import BookmarkHook
from airflow_bookmarks.operators.change import BookmarkResetOperator
from airflow_bookmarks.operators.spark_submit import BookmarkSparkSubmitOperator

HERE = Path(__file__).resolve().parent
DATA = f"{{{{ var.value.get('flights_data', '{HERE / 'data'}') }}}}"
JOB = "reset_when_schema_changed.clean"


# fmt: off
COLUMNS = {
    "year", "month", "day", "dep_time", "sched_dep_time",
    "dep_delay", "arr_time", "sched_arr_time", "arr_delay", "carrier",
    "flight", "tailnum", "origin", "dest", "air_time",
    "distance", "hour", "minute", "time_hour",
}
# fmt: on


# [start reset_when_schema_changed]
def writes_other_columns(context: Context, preview: dict[str, Any]) -> bool:
    """Whether the last run with data has written other columns than the script does now."""
    store = BookmarkHook().get_conn()
    run = store.committed_run(JOB, store.head(JOB).data_run_number)
    schema = None if run is None else run.outputs["clean"].schema
    if schema is None:
        return False
    return {field["name"] for field in json.loads(store.blobs.get(schema))["fields"]} != COLUMNS


with DAG(
    "reset_when_schema_changed",
    description="Clean the flights; read them all again when the script writes other columns",
    schedule="@daily",
    start_date=datetime(2013, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 2},
    tags=["bookmarks", "example"],
    doc_md=__doc__,
):
    reset = BookmarkResetOperator(
        task_id="reset",
        job=JOB,
        reason="the script writes other columns",
        condition=writes_other_columns,
        missing_ok=True,  # before the first run there is no bookmark
    )
    clean = BookmarkSparkSubmitOperator(
        task_id="clean",
        application=str(HERE / "jobs" / "clean_flights.py"),
        application_args=[f"{DATA}/raw/flights", f"{DATA}/clean/by_schema"],
    )
    reset >> clean
# [end reset_when_schema_changed]
