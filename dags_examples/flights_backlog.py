"""Bring a backlog of flights in by micro-batches: a month of deliveries at a time, each committed by itself.

A year that was delivered at once is more than one run should read. The script drains it in one Spark session; what a
batch has published is there for the jobs behind it while the next one reads, and after a crash the retry goes on behind
the last batch that was committed.

The folders lie below the Airflow Variable `flights_data` (default: `data` beside this file): one CSV file per day in
`raw/flights`, the result in `named/flights`. Connections: `bookmarks_default`, `spark_default`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from airflow.sdk import DAG, Param

from airflow_bookmarks.operators.spark_submit import BookmarkSparkSubmitOperator

HERE = Path(__file__).resolve().parent
DATA = f"{{{{ var.value.get('flights_data', '{HERE / 'data'}') }}}}"

# [start flights_backlog]
with DAG(
    "flights_backlog",
    description="A backlog of flights, drained in batches of a month, with the names of the carriers",
    schedule="@daily",
    start_date=datetime(2013, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 2},
    params={"files_per_batch": Param(31, type="integer", minimum=1)},
    tags=["bookmarks", "example"],
    doc_md=__doc__,
):
    BookmarkSparkSubmitOperator(
        task_id="name",
        application=str(HERE / "jobs" / "name_flights.py"),
        application_args=[
            f"{DATA}/raw/flights",
            f"{DATA}/named/flights",
            "--carriers",
            str(HERE / "jobs" / "carriers.csv"),
            "--files-per-batch",
            "{{ params.files_per_batch }}",
        ],
        skip_when_empty=True,
    )
# [end flights_backlog]
